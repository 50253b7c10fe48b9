"""Tests that operations progress while the program blocks in MPI: those that another of its threads
starts meanwhile, and those that were started before a collective call which other ranks reach
later."""

import pytest
from job import Job

from weft.system import installation

pytestmark = pytest.mark.covering

LIMIT_THREADS = installation.ROOT / "tests/cli/programs/limit_threads.c"
WAITS = ("Recv", "Wait", "Waitall", "Waitany", "Waitsome")


def check(job: Job) -> None:
    done = job.right()
    for wait in WAITS:
        assert f"{wait} has come back" in done.out


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("engine", ["function", "thread", "assist", "auto"])
def test_a_sum_started_while_another_thread_is_blocked(mpi, engine, transport):
    check(Job(mpi, ["started-while-blocked"], engine, 4, options=["--transport", transport]))


@pytest.mark.parametrize("engine", ["function", "thread"])
def test_the_same_where_no_thread_is_to_be_had(mpi, tool, engine):
    job = Job(mpi, ["started-while-blocked"], engine, 4, options=["--transport", "mpi"])
    job.variables = {"FAULTS_REFUSE": "threads"}
    job.tools = [tool(mpi, "refuse")]
    job.as_somebody = True
    check(job)


CALLS = ("Comm_split", "Cart_create", "Win_fence", "Win_free", "File_write_at_all", "File_close")


@pytest.mark.parametrize("level", ["granted", "refused"])
@pytest.mark.parametrize("engine", ["function", "thread", "auto"])
def test_a_rank_blocked_in_a_collective_call_goes_on_with_others(mpi, tool, engine, level):
    """The calls have no non-blocking form. The test includes thread levels at which no thread can
    help."""
    options = ["--transport", "mpi"]
    job = Job(mpi, ["blocked-in-collective-calls"], engine, 4, options=options)
    if level == "refused":
        job.tools = [tool(mpi, "limit_threads", LIMIT_THREADS)]
    done = job.right()
    for call in CALLS:
        assert f"{call} has come back" in done.out
