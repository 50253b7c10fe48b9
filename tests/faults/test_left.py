"""Tests calls that never return, because of an exception or a jump out of a callback, or because a
thread ends in one or is cancelled (row 38). Pending and later operations must be right."""

import pytest
from job import ENGINES, Job

pytestmark = pytest.mark.covering

# On several nodes engine auto raises the thread level.
TWO_NODES = ["-launcher", "fork", "-hosts", "a:1,b:1"]
# Other engines carry collectives out as a whole, whose operator runs in the library. The library
# does not survive an exception there.
IN_ROUNDS = ("function", "thread", "agent")
HANDLERS = ["out-of-handlers", "told-once"]
GENERATED = ["inside-generated-code", "before-generated-code"]
CASES = ["out-of-attributes", "inside-a-callback", *GENERATED, "out-of-operators", "ended-threads"]
EVERYWHERE = pytest.mark.parametrize("engine", [None, "native", *ENGINES, "advise"])


@EVERYWHERE
def test_callbacks_leave_their_calls(mpi, engine):
    done = Job(mpi, CASES, engine).right()
    assert engine == "advise" or done.sentences() == []


@EVERYWHERE
def test_error_handlers_leave_their_calls(mpi, engine):
    Job(mpi, HANDLERS, engine).right()


@pytest.mark.parametrize("engine", ["auto", "native", "thread"])
def test_error_handlers_leave_their_calls_on_two_nodes(engine):
    """MPICH holds a lock around handlers at the thread level to which engine auto raises it."""
    Job("mpich", HANDLERS, engine, launcher_options=TWO_NODES).right()


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("engine", IN_ROUNDS)
def test_operators_throw_in_rounds(mpi, engine, transport):
    """Whichever thread runs the operator, the exception is thrown where the program waits."""
    options = ["--blocking", "--transport", transport]
    Job(mpi, ["out-of-requests", "out-of-operators"], engine, options=options).right()


@pytest.mark.parametrize("engine", [None, "native", "auto", "function", "thread", "advise"])
def test_a_thread_is_cancelled_at_any_instruction(mpi, engine):
    """The job ends without MPI_Finalize, so that a launcher may kill the other rank."""
    done = Job(mpi, ["cancelled-at-once"], engine).done()
    assert "joined" in done.out
    assert "terminate called" not in done.err
