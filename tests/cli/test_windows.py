"""Tests --windows passive: other ranks access the windows of a rank that computes, under locks of
which it is not told. Rank 0 makes no MPI call until rank 1 has unlocked, which never happens
without Weft's thread."""

import json
import os
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

PROGRAM = installation.ROOT / "tests/cli/programs/own_windows.c"
PATIENCE = 60  # seconds that rank 0 waits for an access that must come
A_MOMENT = 0.3  # seconds that it waits for an access that does not come
KINDS = 4  # kinds of windows, the last of which needs a single node
PASSIVE = ("--windows=passive",)
# With MPICH, host names make two nodes of this machine.
TWO_NODES = ["-launcher", "fork", "-hosts", "a:1,b:1"]
JOBS = [
    ("mpich", "auto", 1),
    ("mpich", "auto", 2),
    ("mpich", "function", 1),
    ("intelmpi", "thread", 1),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Returns the program, compiled for a library or for another one of its ABI."""
    place = tmp_path_factory.mktemp("windows")

    def build(library):
        family = mpi_libraries.implementation(library.family)
        program = place / family.name
        if not program.exists():
            command = [family.prefix / "bin/mpicc", "-O1", PROGRAM, "-o", program]
            subprocess.run(command, check=True, timeout=60)
        return program

    return build


@pytest.fixture
def run(built, environment, tmp_path):
    """Runs a job under Weft. Returns its output, its messages, and its summary."""

    def run(mpi, engine, what, options, nodes=1, ranks=2, seconds=PATIENCE):
        library = mpi_libraries.implementation(mpi)
        if not library.mpiexec.exists():
            pytest.skip(f"needs {mpi_libraries.make_target(library.name)}")
        summary = tmp_path / "summary.json"
        variables = {**environment, **library.environment()}
        path = [str(library.prefix / "lib"), variables.get("LD_LIBRARY_PATH", "")]
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, path))
        command = [*library.launcher(ranks), *(TWO_NODES if nodes == 2 else [])]
        command += [installation.weft_command(), "run", f"--engine={engine}", *options]
        command += [f"--summary=json:{summary}", "--"]
        command += [built(library), tmp_path / "shared", seconds, what]
        done = subprocess.run(
            [str(word) for word in command],
            env=variables,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip(), done.stderr, json.loads(summary.read_text())

    return run


@pytest.mark.parametrize(("mpi", "engine", "nodes"), JOBS)
def test_a_rank_that_computes_answers(run, mpi, engine, nodes):
    said, _, summary = run(mpi, engine, "answers", PASSIVE, nodes)
    assert said == "right"
    assert summary["windows"] == 2 * (KINDS if nodes == 1 else KINDS - 1)


def test_alone_without(run):
    """Without --windows passive the access does not progress, which shows that the test above is
    valid."""
    said, _, summary = run("mpich", "thread", "answers", (), seconds=A_MOMENT)
    assert said == "alone"
    assert summary["windows"] == 0


@pytest.mark.parametrize(("mpi", "engine", "nodes"), JOBS)
def test_accesses_are_right_by_every_synchronisation(run, mpi, engine, nodes):
    """All calls are tested, in windows of all kinds."""
    said, _, _ = run(mpi, engine, "values", PASSIVE, nodes)
    assert said == "right"


@pytest.mark.parametrize("mpi", ["mpich", "intelmpi"])
def test_windows_end(run, mpi):
    """Windows are freed in any order, or never, of which UCX warns. Weft does not progress windows
    that cannot be locked."""
    said, _, summary = run(mpi, "thread", "ends", PASSIVE)
    assert said.splitlines()[0] == "right"
    assert summary["windows"] == 2 * (3 + 1)


@pytest.mark.parametrize(
    ("mpi", "engine", "reason"),
    [
        ("openmpi", "thread", "Open MPI's file accesses tolerate no second thread"),
        ("mpich", "native", "the MPI library carries everything out alone"),
    ],
)
def test_one_rank_says_where_it_has_no_effect(run, mpi, engine, reason):
    said, messages, summary = run(mpi, engine, "values", PASSIVE)
    assert said == "right"
    assert messages.count(reason) == 1
    assert summary["windows"] == 0
