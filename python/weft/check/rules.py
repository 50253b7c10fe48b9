"""The mistakes that `weft check` finds: the one table of them. The names are those of
src/advise/check.cc; docs/check.md has the same rows.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    what: str  # of the call
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
    "never-completed": Rule(
        "the operation was not completed before MPI_Finalize",
        "call MPI_Wait or MPI_Test until it is complete",
    ),
    "order": Rule(
        "ranks of one communicator make different collective calls, or with different roots",
        "let all ranks of the communicator make the same calls in the same order",
    ),
}
