"""Tests objects that are freed while the MPI library is inside another call (row 31)."""

import pytest
from job import ENGINES, Job

pytestmark = pytest.mark.covering

CASES = ("freed-by-delete-callback", "freed-by-operator", "freed-in-finalize")
SETTINGS = [
    (None, []),
    *((engine, []) for engine in ENGINES),
    *((engine, ["--blocking"]) for engine in ("auto", "function", "thread")),
]


@pytest.mark.parametrize(("engine", "options"), SETTINGS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_freed_from_inside_the_library(mpi, engine, options, case):
    """With three ranks a handle may be reused for another group."""
    done = Job(mpi, [case], engine, ranks=3, options=options).right()
    assert "wrong" not in done.err
    assert done.sentences() == []
