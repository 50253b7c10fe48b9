"""Fixtures for the tests of faults: the MPI libraries, and PMPI tools that are compiled for
them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from job import HERE, MPIS

from weft.system import mpi_libraries


@pytest.fixture(params=MPIS)
def mpi(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def tool():
    """Compiles a PMPI tool of programs/ for an MPI library."""
    # Some jobs run as another user, who cannot read the private directory of a pytest session.
    directory = Path(tempfile.mkdtemp(prefix="weft-faults-tools-"))
    directory.chmod(0o755)

    def compile_tool(mpi: str, name: str, source: Path | None = None) -> Path:
        target = directory / f"{name}-{mpi}.so"
        if not target.exists():
            library = mpi_libraries.implementation(mpi)
            source = source or HERE / "programs" / f"{name}.c"
            command = [library.prefix / "bin/mpicc", "-shared", "-fPIC", source, "-o", target]
            environment = {**os.environ, **library.environment()}
            subprocess.run(command, check=True, env=environment, timeout=120)
        return target

    yield compile_tool
    shutil.rmtree(directory)
