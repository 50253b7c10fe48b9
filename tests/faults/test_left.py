"""Calls that never return: an exception or a jump out of a callback, a thread that ends in one or
is cancelled (row 38). What was under way, and what comes later, is right."""

import pytest
from job import ENGINES, Job

# Where several threads may call it, MPICH holds a lock around an error handler, and ends the
# program if that does not return.
KEEP_LEVEL = (None, "native", "auto", "advise")
# The operator of a collective that stays whole runs in the library, which does not survive it.
IN_ROUNDS = ("function", "thread", "agent")
CASES = ["out-of-attributes", "inside-a-callback", "out-of-operators", "ended-threads"]
EVERYWHERE = pytest.mark.parametrize("engine", [None, "native", *ENGINES, "advise"])


@EVERYWHERE
def test_callbacks_leave_their_calls(mpi, engine):
    done = Job(mpi, CASES, engine).right()
    assert engine == "advise" or done.sentences() == []


@EVERYWHERE
def test_error_handlers_leave_their_calls(mpi, engine):
    if mpi != "mpich" or engine in KEEP_LEVEL:
        Job(mpi, ["out-of-handlers"], engine).right()


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("engine", IN_ROUNDS)
def test_operators_throw_in_rounds(mpi, engine, transport):
    """Whoever runs the operator: it is thrown where the program waits."""
    options = ["--blocking", "--transport", transport]
    Job(mpi, ["out-of-requests", "out-of-operators"], engine, options=options).right()


@pytest.mark.parametrize("engine", [None, "native", "auto", "function", "thread", "advise"])
def test_a_thread_is_cancelled_at_any_instruction(mpi, engine):
    """Its job ends without MPI_Finalize, for which a launcher may end the other rank."""
    done = Job(mpi, ["cancelled-at-once"], engine).done()
    assert "joined" in done.out
    assert "terminate called" not in done.err
