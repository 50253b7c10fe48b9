"""A reproduction: figures, and for each published finding what comes out here, and a verdict.

Nothing is fitted: the machines' numbers are cited or measured, and a finding that does not come out
is said so, with the reason as far as it is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    name: str
    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class Figure:
    title: str
    x: str  # what the axis shows
    y: str
    lines: list[Line] = field(default_factory=list)
    bars: bool = False
    names: list[str] = field(default_factory=list)  # of bars


@dataclass(frozen=True)
class Finding:
    published: str
    here: str
    holds: bool
    why: str = ""

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Reproduction:
    what: str
    title: str
    source: str
    figures: list[Figure]
    findings: list[Finding]
    conditions: str  # under which it was simulated
