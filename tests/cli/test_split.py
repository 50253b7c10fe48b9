"""Tests split trees with MPI: some levels of a tree are the caller's part, and the results do not
depend on who carries out which part.

The messages, and that a thread stops before the caller's part, are tested without MPI
(tests/unit/split_tree_test.cc, progress_test.cc)."""

import os
import re
import subprocess

import pytest
from test_conformance import check, largest_count

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

SOURCES = installation.ROOT / "tests/cli/programs"
TREES = ("bcast", "reduce", "gather", "scatter", "allreduce")
TREE_VARIABLES = {f"WEFT_ALGORITHM_{kind.upper()}": "binomial" for kind in TREES}


# Three ranks have one level to split off, and five have two. Waiting ranks of Open MPI yield a
# shared core. Those of the other libraries do not, so that five ranks on two cores take up to a
# minute.
CASES = [("mpich", 3, "1"), ("openmpi", 5, "2"), ("intelmpi", 3, "1")]
LONGER = [("mpich", 5, "2"), ("openmpi", 5, "1"), ("intelmpi", 5, "2")]


@pytest.mark.parametrize(
    ("mpi", "ranks", "split"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.long) for case in LONGER)],
)
def test_conformance(mpi, ranks, split, tmp_path, capsys, monkeypatch):
    for name, value in {**TREE_VARIABLES, "WEFT_SPLIT": split}.items():
        monkeypatch.setenv(name, value)
    check(mpi, ranks, "thread", tmp_path, capsys, largest_count(1000))


@pytest.fixture
def waits_elsewhere(tmp_path, environment):
    mpich = mpi_libraries.implementation("mpich")
    program = tmp_path / "waits-elsewhere"
    source = SOURCES / "waits_elsewhere.c"
    subprocess.run([mpich.prefix / "bin/mpicc", source, "-o", program], check=True, timeout=60)
    path = [str(mpich.prefix / "lib"), environment.get("LD_LIBRARY_PATH", "")]
    variables = {**environment, **mpich.environment(), **TREE_VARIABLES}
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, path))

    def run(*weft):
        front = [mpich.mpiexec, "-n", "4", installation.weft_command(), "run", *weft, "--", program]
        return subprocess.run(
            [str(word) for word in front],
            env=variables,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.mark.parametrize("split", [0, 1, 2])
def test_the_callers_part_goes_on_while_the_caller_waits_for_something_else(waits_elsewhere, split):
    done = waits_elsewhere("--engine", "thread", "--split", str(split))
    assert done.returncode == 0, done.stdout + done.stderr


def test_schedule_shows_the_callers_parts(call):
    words = ["--algorithm", "binomial", "--ranks", "8", "--bytes", "1MiB", "--split", "1"]
    down = call("schedule", "bcast", *words, "--rank", "4").stdout
    before, after = down.split("from here on by the waiting call\n")
    assert "send    -> 6" in before
    assert re.search(r"send    -> 5", after)
    up = call("schedule", "reduce", *words, "--rank", "4").stdout
    before, after = up.split("up to here by the starting call\n")
    assert "recv    <- 5" in before
    assert "recv    <- 6" in after
