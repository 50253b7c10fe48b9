"""What MPI_Init costs the system, also where a node has more ranks: docs/inside/scale.md.

Counted by strace: the calls that open, map and attach, of which heaps that are all attached at the
start would need some for each pair of ranks.
"""

import shutil
import subprocess

import pytest

from weft import installation

CALLS = "openat,memfd_create,ftruncate,mmap,process_vm_readv"
WITH_WEFT = ("--engine", "auto", "--init-budget", "0")


@pytest.fixture
def calls_of_a_rank(mpi, environment, tmp_path):
    """How many of these a rank makes from its start to its end, on the average."""
    program = mpi.program("idle")

    def count(ranks: int, weft: bool) -> float:
        place = tmp_path / f"{ranks}-{weft}"
        place.mkdir()
        front = [installation.weft_command(), "run", *WITH_WEFT, "--"] if weft else []
        traced = ["strace", "-ff", "-o", place / "calls", "-e", f"trace={CALLS}"]
        command = [*mpi.launcher(ranks), *traced, *front, program, "0"]
        done = subprocess.run(
            [str(word) for word in command],
            env={**environment, **mpi.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return sum(path.read_text().count("(") for path in place.iterdir()) / ranks

    return count


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_rank_makes_no_more_system_calls_where_there_are_more_ranks(calls_of_a_rank):
    """Attached at the start, each further rank's heap would cost nine.

    To look for a library by its name costs six: no driver of a device is looked for so.
    """
    own = {n: calls_of_a_rank(n, True) - calls_of_a_rank(n, False) for n in (2, 6)}
    print(own)
    assert 0 < own[6] < own[2] + 4
    assert own[2] < 36, "it looks for something that is not there"
