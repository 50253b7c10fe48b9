"""The table of the mistakes that `weft check` finds. The names are those of src/advise/findings.h.
docs/check.md lists the same mistakes."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    what: str  # description of the mistake in the call
    mend: str


RULES = {
    "send-written": Rule(
        "the send buffer was written before the operation was completed",
        "move the write behind the wait, or send from another buffer",
    ),
    "receive-touched": Rule(
        "the receive buffer was read or written before the operation was completed",
        "move the access behind the wait",
    ),
    "overlap": Rule(
        "a buffer that MPI writes is also used by another operation in flight",
        "give each operation a buffer of its own, or complete the first one before",
    ),
    "buffer-gone": Rule(
        "the buffer was unmapped before the operation was completed",
        "free the buffer after the wait",
    ),
    "stack-gone": Rule(
        "the buffer belongs to a function that returned before the operation was completed",
        "wait in that function, or let the caller own the buffer",
    ),
    "communicator-freed": Rule(
        "the communicator was freed or disconnected before the operation was completed",
        "free the communicator after the wait",
    ),
    "never-completed": Rule(
        "the operation was not completed before MPI_Finalize",
        "call MPI_Wait or MPI_Test until it is complete",
    ),
    "order": Rule(
        "ranks of one communicator make different collective calls, or with different roots",
        "let all ranks of the communicator make the same calls in the same order",
    ),
    "counts": Rule(
        "ranks give the same collective call other amounts of data, datatypes or operators",
        "state the same amount and type where data are sent and where they are received",
    ),
    "hang": Rule(
        "no rank gets on any more, and these ranks wait here",
        "find the message that nobody sends, or the call that another rank leaves out",
    ),
}
