"""Tests callbacks of the program's generalised requests that call MPI (row 44)."""

import functools

import pytest
from job import Job

pytestmark = pytest.mark.covering

CASE = "callbacks-that-call-mpi"
# On several nodes engine auto raises the thread level.
TWO_NODES = ("-launcher", "fork", "-hosts", "a:2,b:1")
# MPICH itself fails if a program with MPI_THREAD_MULTIPLE makes such calls.
FURTHER = [
    ("mpich", "native", "single", ()),
    ("openmpi", "native", "multiple", ()),
    *(("mpich", engine, "single", TWO_NODES) for engine in ("auto", "native", "tcc")),
]


def run(mpi: str, engine: str | None, level: str, launcher: tuple[str, ...] = ()) -> str:
    variables = {"FAULTS_LEVEL": level}
    return (
        Job(mpi, [CASE], engine, ranks=3, variables=variables, launcher_options=[*launcher])
        .right()
        .out
    )


@functools.cache
def without_weft(mpi: str) -> str:
    return run(mpi, None, "single")


@pytest.mark.parametrize("level", ["single", "multiple"])
@pytest.mark.parametrize("engine", ["auto", "thread", "function", "tcc", "assist"])
def test_callbacks_may_call_mpi(mpi, engine, level):
    """Errors, which the program prints, are treated as by the library alone. Open MPI and MPICH
    treat errors of callbacks differently."""
    assert "query_fn: class" in without_weft(mpi)
    assert run(mpi, engine, level) == without_weft(mpi)


@pytest.mark.parametrize(("mpi", "engine", "level", "launcher"), FURTHER)
def test_callbacks_may_call_mpi_in_further_jobs(mpi, engine, level, launcher):
    assert run(mpi, engine, level, launcher) == without_weft(mpi)
