"""Tests weft_exchange_rows_init, the exchange of sparse tensor codes, with each library and
engine."""

import os
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

ENGINES = ("native", "function", "thread", "tcc", "auto")


def run(mpi, engine, *arguments, tool=None):
    library = mpi_libraries.implementation(mpi)
    program = library.program("exchange_rows")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    front = ["env", f"LD_PRELOAD={tool}"] if tool else []
    front += [installation.weft_command(), "run", "--engine", engine, "--"]
    command = [*library.launcher(3), *front, program, *arguments]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **library.environment()},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 exchanges, 0 wrong" in done.stdout


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_rows_arrive(mpi, engine):
    run(mpi, engine)


def test_rows_arrive_beside_more_communicators_than_weft_has_shadows_for(tmp_path):
    """Weft leaves other calls to the MPI library if it has no internal communicator for them. This
    call it must carry out itself."""
    tool = tmp_path / "few_tags.so"
    mpicc = mpi_libraries.implementation("mpich").prefix / "bin/mpicc"
    source = installation.ROOT / "tests/faults/programs/few_tags.c"
    subprocess.run([mpicc, "-shared", "-fPIC", source, "-o", tool], check=True, timeout=60)
    run("mpich", "auto", 300, tool=tool)


def test_without_weft_the_program_can_tell():
    library = mpi_libraries.implementation("mpich")
    command = [str(library.mpiexec), "-n", "2", str(library.program("exchange_rows"))]
    assert subprocess.run(command, timeout=60).returncode == 77
