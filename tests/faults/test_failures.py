"""Tests jobs that continue after a failure (row 41). Weft leaves them to the MPI library, and says
so."""

import os
import subprocess

import pytest
from job import ENGINES, Job

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

SIZES = (1, 65536)
GO_ON = ["--with-ft", "ulfm"]
RANKS = 4


def printed_by_those_left(out: str) -> list[str]:
    return sorted(line for line in out.splitlines() if "ranks left" in line)


def lines_of_those_left(case: str) -> list[str]:
    """Returns the lines that the library alone prints. Each failure removes the last rank, or
    none."""
    lines, left = [], RANKS
    for size in SIZES:
        left -= case == "killed"
        lines += [f"rank {rank}: {size} integers, {left} ranks left" for rank in range(left)]
    return sorted(lines)


@pytest.mark.parametrize("case", ["revoked", "killed"])
@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_a_job_that_goes_on_after_a_failure(tool, engine, case):
    done = Job(
        "openmpi",
        [case],
        engine,
        ranks=RANKS,
        launcher_options=GO_ON,
        options=["--summary"],
        tools=[tool("openmpi", "end_at_finalize")],
    ).right()
    assert printed_by_those_left(done.out) == lines_of_those_left(case)
    assert "wrong" not in done.err
    said = [sentence for sentence in done.sentences() if "--with-ft ulfm" in sentence]
    assert done.sentences() == said and len(said) == (1 if engine else 0)


def test_the_advisor_lets_such_a_job_go_on(tool, tmp_path):
    library = mpi_libraries.implementation("openmpi")
    words = [installation.weft_command(), "advise", "--", library.mpiexec, *GO_ON]
    words += ["-n", RANKS, "--bind-to", "none", "--oversubscribe"]
    words += ["-x", f"LD_PRELOAD={tool('openmpi', 'end_at_finalize')}"]
    done = subprocess.run(
        [*map(str, words), library.program("faults"), "killed"],
        env={**os.environ, **library.environment(), "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert printed_by_those_left(done.stdout) == lines_of_those_left("killed")
    assert "did not come to MPI_Finalize" in done.stdout
