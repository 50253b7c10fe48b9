"""Whether a changed program prints what the unchanged one does.

Why lines are compared whatever their order: ranks print as they come. Lines that vary between runs
of the unchanged program, such as times, are left out. Numbers may differ by as much as another
order of a sum makes them differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Optional

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?")
CLOSE = 1e-6  # the part of a number that another order of a sum may change at most
Lines = Counter  # counts strings


def lines(printed: bytes) -> Lines:
    return Counter(printed.decode(errors="replace").splitlines())


def numbers(line: str) -> list[float]:
    return [float(re.sub("[dD]", "e", one)) for one in NUMBER.findall(line)]


def apart(one: str, other: str) -> Optional[float]:
    """The greatest part by which numbers of two lines differ; None: not only numbers differ."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return None
    pairs = zip(numbers(one), numbers(other))
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b), default=0.0)


@dataclass(frozen=True)
class Comparison:
    compared: int = 0  # lines
    missing: str = ""  # a line that the changed program does not print
    instead: str = ""  # and what it prints in its place; "": nothing that is alike
    apart: float = 0.0  # the greatest part by which numbers differ
    more: int = (
        0  # lines that it prints beyond those of the unchanged one, which has always as many
    )

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
    """Each run of the changed program with what all of the unchanged one have in common."""
    constant = reduce(and_, unchanged)
    constant = Counter({line: count for line, count in constant.items() if line.strip()})
    found = [compare_run(constant, set(map(total, unchanged)), run) for run in changed]
    wrong = next((one for one in found if one.differs), None)
    furthest = max((one.apart for one in found), default=0.0)
    return wrong or Comparison(total(constant), apart=furthest)
