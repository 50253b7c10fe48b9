"""Calls that never return: an exception or a jump out of a callback, a thread that ends in one or
is cancelled (row 38). What was under way, and what comes later, is right."""

import pytest
from job import ENGINES, Job

pytestmark = pytest.mark.covering

TWO_NODES = ["-launcher", "fork", "-hosts", "a:1,b:1"]  # so that auto raises the level of threads
# The operator of a collective that stays whole runs in the library, which does not survive it.
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
    """MPICH holds a lock around handlers at the level of threads to which auto raises it."""
    Job("mpich", HANDLERS, engine, launcher_options=TWO_NODES).right()


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
