"""The rule for the best of several candidates, in `weft bench`, `weft demo` and their pages.

The simplest candidate is the best until another one leads it beyond the confidence intervals. The
best one is thus led by no other. Of candidates that are equal within the intervals, the simplest is
advised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from weft.measurements.result import Statistic
from weft.measurements.statistics import leads

T = TypeVar("T")
# The engines are sorted from one that changes nothing to one that takes a thread or a core of its
# own.
SIMPLICITY = (
    "without Weft",
    "blocking",
    "native",
    "auto",
    "function",
    "thread",
    "tcc",
    "agent",
    "assist",
    "library-async",
)


def simplicity(engine: str, name: str) -> tuple[int, int]:
    """Returns a key for sorting candidates by simplicity: the engine first, then the number of
    words in the name."""
    place = SIMPLICITY.index(engine) if engine in SIMPLICITY else len(SIMPLICITY)
    return place, len(name.split())


def best(
    candidates: Sequence[T], time: Callable[[T], Statistic], simple: Callable[[T], tuple[int, int]]
) -> tuple[T, list[T]]:
    """Returns the best candidate, and the others that are as fast within the intervals, with the
    simplest first."""
    ordered = sorted(candidates, key=simple)
    found = ordered[0]
    for one in ordered[1:]:
        if leads(time(one), time(found)):
            found = one
    return found, [c for c in ordered if c is not found and not leads(time(found), time(c))]
