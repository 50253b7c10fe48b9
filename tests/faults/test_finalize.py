"""Tests delete callbacks of MPI_COMM_SELF, which run inside MPI_Finalize (row 39)."""

import re

import pytest
from job import ENGINES, Job

pytestmark = pytest.mark.covering

USES = "uses-mpi-in-finalize"


WITH_AND_WITHOUT = pytest.mark.parametrize(
    ("engine", "options"),
    [
        (None, []),
        *((engine, []) for engine in ENGINES),
        *((engine, ["--blocking"]) for engine in ("function", "thread", "tcc")),
    ],
)


@WITH_AND_WITHOUT
def test_callbacks_in_finalize_may_use_all_of_mpi(mpi, engine, options):
    """Operations that callbacks complete were not left incomplete, so that nothing is printed about
    them."""
    done = Job(mpi, [USES], engine, ranks=3, options=options).right()
    assert "wrong" not in done.err
    assert done.sentences() == []


@WITH_AND_WITHOUT
def test_callbacks_that_nobody_saw_being_set(mpi, tool, engine, options):
    """With MPICH the callbacks run when only application threads may call the library."""
    job = Job(mpi, [f"{USES}-unseen"], engine, ranks=3, options=options)
    job.tools = [tool(mpi, "set_unseen")]
    done = job.right()
    assert "wrong" not in done.err
    assert done.sentences() == []


@pytest.mark.parametrize("engine", ["auto", "thread"])
def test_the_summary_counts_what_callbacks_call(mpi, engine):
    """Each of the three ranks makes four initialisations, before and inside MPI_Finalize."""
    done = Job(mpi, [USES], engine, ranks=3, options=["--summary"]).right()
    assert "wrong" not in done.err
    assert re.search(r"MPI_Allreduce_init +12\b", done.err), done.err


@pytest.mark.parametrize("mpi", ["openmpi"])
def test_a_callback_that_fails_ends_nothing_but_itself(mpi):
    """MPICH ends the program. Open MPI calls none of the remaining callbacks, including Weft's."""
    done = Job(mpi, ["fails-in-finalize"], "thread", options=["--summary"]).right()
    (sentence,) = {line.split("weft: ")[1] for line in done.sentences()}
    assert sentence.startswith("no summary and no trace: a delete callback of MPI_COMM_SELF")
