"""Tests that a library of the program may call MPI before Weft's own constructors have run."""

import subprocess

import pytest

from weft.system import installation

SOURCE = installation.ROOT / "tests/cli/programs/early_constructor.c"


@pytest.mark.parametrize("engine", ["auto", "function", "thread"])
def test_collectives_in_a_librarys_constructor(mpi, engine, weft, environment, tmp_path):
    variables = {**environment, **mpi.environment()}
    compiler = [mpi.mpiexec.parent / "mpicc", "-O1", SOURCE]
    search = ["-Wl,-rpath,$ORIGIN", f"-Wl,-rpath,{mpi.prefix / 'lib'}"]
    for words in (
        [*compiler, "-fPIC", "-shared", "-o", tmp_path / "libearly.so"],
        [*compiler, "-DPROGRAM", f"-L{tmp_path}", "-learly", *search, "-o", tmp_path / "program"],
    ):
        subprocess.run([str(word) for word in words], check=True, env=variables, timeout=60)
    command = [*mpi.launcher(2), weft, "run", "--engine", engine, "--", tmp_path / "program"]
    done = subprocess.run(
        [str(word) for word in command],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right") == 2, done.stdout  # the lines of two ranks may be joined
