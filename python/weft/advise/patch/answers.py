"""Compares the output of a changed program with that of the unchanged one.

The order of lines does not count, since ranks print in any order. Lines that vary between runs of
the unchanged program, such as times, are left out. Numbers may differ by as much as another order
of summation changes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Optional

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?")
CLOSE = 1e-6  # greatest relative difference that another order of summation may cause
Lines = Counter  # counts equal lines


def lines(printed: bytes) -> Lines:
    return Counter(printed.decode(errors="replace").splitlines())


def numbers(line: str) -> list[float]:
    return [float(re.sub("[dD]", "e", one)) for one in NUMBER.findall(line)]


def apart(one: str, other: str) -> Optional[float]:
    """Returns the greatest relative difference between the numbers of two lines; None if other
    characters differ, too."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return None
    pairs = zip(numbers(one), numbers(other))
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b), default=0.0)


@dataclass(frozen=True)
class Comparison:
    compared: int = 0  # number of compared lines
    missing: str = ""  # a line that the changed program does not print
    instead: str = ""  # the similar line that it prints instead; an empty string if there is none
    apart: float = 0.0  # greatest relative difference between numbers
    # This counts lines in addition to those of the unchanged program, if that one always prints the
    # same number.
    more: int = 0

    @property
    def differs(self) -> bool:
        return bool(self.missing or self.more)


def compare_run(constant: Lines, sizes: set[int], run: Lines) -> Comparison:
    compared, others, furthest = total(constant), run - constant, 0.0
    for missing in (constant - run).elements():
        alike = [(part, one) for one in others if (part := apart(missing, one)) is not None]
        part, nearest = min(alike, default=(None, ""))
        if part is None or part > CLOSE:
            return Comparison(compared, missing, nearest)
        furthest = max(furthest, part)
        others -= Counter([nearest])
    more = total(run) - max(sizes) if len(sizes) == 1 else 0
    return Comparison(compared, apart=furthest, more=more)


def total(found: Lines) -> int:
    return sum(found.values())


def compare(unchanged: Sequence[Lines], changed: Sequence[Lines]) -> Comparison:
    """Compares each run of the changed program with the lines that all runs of the unchanged one
    have in common."""
    constant = reduce(and_, unchanged)
    constant = Counter({line: count for line, count in constant.items() if line.strip()})
    found = [compare_run(constant, set(map(total, unchanged)), run) for run in changed]
    wrong = next((one for one in found if one.differs), None)
    furthest = max((one.apart for one in found), default=0.0)
    return wrong or Comparison(total(constant), apart=furthest)
