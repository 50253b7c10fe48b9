"""Several threads of the program's in MPI at a time (row 38): a thread that is blocked keeps nothing
from going on that another one starts meanwhile."""

import pytest
from job import Job

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
