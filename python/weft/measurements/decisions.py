"""Yes, no, or None where the intervals permit both.

Why three: a statement that no spread could refute says nothing. Medians are for people to read, and
decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from weft.measurements.result import Statistic
from weft.measurements.statistics import NOTICEABLE, leads, ratio

Decision = Optional[bool]


def is_shorter(time: Statistic, other: Statistic) -> Decision:
    """Whether it is shorter beyond the spread; None: the intervals permit a gain and none."""
    if leads(time, other):
        return True
    share = ratio(time, other)
    return None if share.low < 1 - NOTICEABLE or not share.is_certain else False


def reaches(value: Statistic, least: float) -> Decision:
    """Whether it is at least that."""
    if not value.is_certain or value.low < least <= value.high:
        return None
    return value.low >= least


def every(parts: Iterable[Decision]) -> Decision:
    """Whether all parts are so; of none nothing is known."""
    found = list(parts)
    if False in found:
        return False
    return None if None in found or not found else True


def some(parts: Iterable[Decision]) -> Decision:
    """Whether one of the parts is so; of none nothing is known."""
    found = list(parts)
    if True in found:
        return True
    return None if None in found or not found else False


def some_shorter(times: Iterable[Statistic], other: Statistic) -> Decision:
    return some(is_shorter(time, other) for time in times)
