"""weft_exchange_rows_init, the exchange of sparse tensor codes, under each library and engine."""

import os
import subprocess

import pytest

from weft import installation, mpi_libraries

ENGINES = ("native", "function", "thread", "tcc", "auto")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_rows_arrive(mpi, engine):
    library = mpi_libraries.implementation(mpi)
    program = library.program("exchange_rows")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    front = [installation.weft_command(), "run", "--engine", engine, "--"]
    command = [*library.launcher(3), *front, program]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **library.environment()},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 exchanges, 0 wrong" in done.stdout


def test_without_weft_the_program_can_tell():
    library = mpi_libraries.implementation("mpich")
    command = [str(library.mpiexec), "-n", "2", str(library.program("exchange_rows"))]
    assert subprocess.run(command, timeout=60).returncode == 77
