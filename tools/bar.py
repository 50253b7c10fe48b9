"""What a performance bar is: a figure, its limit, and whether it is met."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass
class Bar:
    what: str
    figure: float
    limit: float
    at_least: bool = False
    unit: str = ""
    note: str = ""

    @property
    def met(self) -> bool:
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit


def ratios(what: str, limit: float, shares: list[float], at_least: bool = False) -> Bar:
    """The median of ratios that were measured in turn."""
    note = f"[{min(shares):.2f}, {max(shares):.2f}] in {len(shares)} rounds"
    return Bar(what, statistics.median(shares), limit, at_least, note=note)
