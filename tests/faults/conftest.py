"""Fixtures for the tests of faults: the MPI libraries, and PMPI tools that are compiled for
them."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import HERE, MPIS

from weft.system import mpi_libraries


@pytest.fixture(params=MPIS)
def mpi(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def tool(compile_once):
    """Compiles a PMPI tool of programs/ for an MPI library."""

    def compile_tool(mpi: str, name: str, source: Path | None = None) -> Path:
        library = mpi_libraries.implementation(mpi)
        source = source or HERE / "programs" / f"{name}.c"
        command = [library.prefix / "bin/mpicc", "-shared", "-fPIC", source]
        return compile_once(f"{name}-{mpi}.so", command, library.environment())

    return compile_tool
