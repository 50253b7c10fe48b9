"""Calls are known again by their arguments: what differs in anything that counts is not taken for
the call before (docs/inside/choices.md)."""

import subprocess

import pytest

from weft import installation, mpi_libraries

SOURCE = installation.ROOT / "tests/cli/programs/known_calls.c"
TWO_NODES = ["-launcher", "fork", "-hosts", "a:2,b:2"]
WAYS = {
    "auto": [],
    "auto, switching": ["--learn", "switch"],
    "auto, blocking": ["--blocking"],
    "function": ["--engine", "function", "--blocking"],
    "thread": ["--engine", "thread"],
    "native": ["--engine", "native"],
    "watched": ["--summary"],
}


def outcome(name, directory, words, ranks, where=()):
    mpi = mpi_libraries.implementation(name)
    if not mpi.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(name)}")
    program = directory / "known_calls"
    library = f"-Wl,-rpath,{mpi.prefix / 'lib'}"
    compiler = mpi.mpiexec.parent / "mpicc"
    subprocess.run([compiler, "-O1", SOURCE, "-o", program, library], check=True, timeout=60)
    weft = [installation.weft_command(), "run", "--plan-cache", directory / "plans", *words, "--"]
    oversubscribed = ["--allow-run-as-root", "--oversubscribe"] if name == "openmpi" else []
    command = [mpi.mpiexec, *oversubscribed, *where, "-n", ranks, *weft, program]
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.count("right")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_on_one_node(name, way, tmp_path):
    assert outcome(name, tmp_path, WAYS[way], 3) == 3


@pytest.mark.parametrize("way", ["auto", "auto, switching", "auto, blocking", "thread"])
def test_on_two_nodes(way, tmp_path):
    assert outcome("mpich", tmp_path, WAYS[way], 4, TWO_NODES) == 4
