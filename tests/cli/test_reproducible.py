"""Tests --reproducible: results have the same bits in the node's memory, by messages, and with each
engine."""

import os
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering


def results(mpi: str, *options: str, ranks: int = 3, hosts: str = "") -> list[str]:
    """Returns a hash of each rank's sums. `hosts`: nodes for Hydra, which are all this machine."""
    library = mpi_libraries.implementation(mpi)
    program = library.program("reductions")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    launcher = library.launcher(ranks)
    if hosts:
        launcher += ["-launcher", "fork", "-hosts", hosts]
    front = [installation.weft_command(), "run", *options, "--"]
    done = subprocess.run(
        [str(word) for word in [*launcher, *front, program]],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **library.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


@pytest.mark.one_library
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_the_same_bits_wherever_the_ranks_are(mpi):
    first = results(mpi, "--reproducible", "--engine", "function")
    assert len(first) == 3
    for engine in ("function", "thread", "auto"):
        messages = ("--reproducible", "--engine", engine, "--transport", "mpi")
        assert results(mpi, *messages) == first, engine
    assert results(mpi, "--reproducible") == first


def test_the_same_bits_for_any_number_of_ranks_per_node():
    same = {}
    for hosts in ("a:4", "a:2,b:2", "a:3,b:1", "a:1,b:1,c:1,d:1"):
        options = ("--reproducible", "--engine", "function")
        same[hosts] = results("mpich", *options, ranks=4, hosts=hosts)
    first = same["a:4"]
    assert len(first) == 4
    assert all(sums == first for sums in same.values()), same


def test_without_it_they_differ():
    memory = results("mpich", "--blocking", "--engine", "function")
    messages = results("mpich", "--blocking", "--engine", "function", "--transport", "mpi")
    assert memory != messages


def test_what_cannot_be_is_refused(call):
    refused = call("run", "--reproducible", "--engine", "tcc", "--", "true")
    assert refused.returncode == 2
    assert "engine function, thread, agent or auto" in refused.stderr
    assert call("run", "--reproducible", "--", "true", WEFT_BLOCKING="0").returncode == 2
