"""Decides statements from confidence intervals: True, False, or None if the intervals permit both.

A statement that no spread could refute would say nothing. Medians are for readers, and decide
nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from weft.measurements.result import Statistic
from weft.measurements.statistics import NOTICEABLE, leads, ratio

Decision = Optional[bool]


def is_shorter(time: Statistic, other: Statistic) -> Decision:
    """Returns whether the time is shorter beyond the spread; None if the intervals permit a gain as
    well as none."""
    if leads(time, other):
        return True
    share = ratio(time, other)
    return None if share.low < 1 - NOTICEABLE or not share.is_certain else False


def reaches(value: Statistic, least: float) -> Decision:
    """Returns whether the value is at least the given one; None if its interval permits both."""
    if not value.is_certain or value.low < least <= value.high:
        return None
    return value.low >= least


def every(parts: Iterable[Decision]) -> Decision:
    """Returns True if all parts are true, False if any is false, and otherwise None. The result for
    no parts is None."""
    found = list(parts)
    if False in found:
        return False
    return None if None in found or not found else True


def some(parts: Iterable[Decision]) -> Decision:
    """Returns True if any part is true, None if any other part is undecided, and otherwise False.
    The result for no parts is None."""
    found = list(parts)
    if True in found:
        return True
    return None if None in found or not found else False


def some_shorter(times: Iterable[Statistic], other: Statistic) -> Decision:
    return some(is_shorter(time, other) for time in times)
