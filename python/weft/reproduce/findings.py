"""A reproduction has the result here for each published finding, a verdict, and figures.

Nothing is fitted. The machines' parameters are cited or measured. If a finding is not reproduced,
the report says so, with the reason as far as it is known."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Optional

from weft.data.stored import head

SCHEMA = "weft-reproduction/2"  # schema of one reproduction
ALL_SCHEMA = "weft-reproductions/2"
HOLDS, DOES_NOT_HOLD, CANNOT = "holds", "does not hold", "cannot be tested here"
VERDICTS = (HOLDS, DOES_NOT_HOLD, CANNOT)
MEASURED, SIMULATED, COMPUTED = "measured", "simulated", "computed"
Verdict = Literal["holds", "does not hold", "cannot be tested here"]


@dataclass(frozen=True)
class Line:
    name: str
    x: list[float]
    y: list[Optional[float]]  # values of the line; None if one is not known


@dataclass(frozen=True)
class Figure:
    title: str
    x: str  # name of the quantity on the horizontal axis
    y: str
    lines: list[Line] = field(default_factory=list)
    bars: bool = False
    names: list[str] = field(default_factory=list)  # names of bars


@dataclass(frozen=True)
class Finding:
    """The result for one published statement. `how` and `on` say how and on which machine it was
    tested, and `why` explains the verdict."""

    where: str  # place in the paper
    published: str
    how: str  # "measured", "simulated" or "computed"; empty if it was not tested
    on: str
    here: str
    verdict: Verdict
    why: str = ""

    @property
    def holds(self) -> bool:
        return self.verdict == HOLDS


@dataclass(frozen=True)
class Part:
    """The findings and figures of one way of testing, by the benchmark or by the simulator."""

    findings: list[Finding]
    figures: list[Figure] = field(default_factory=list)
    conditions: str = ""


@dataclass(frozen=True)
class Reproduction:
    name: str
    title: str
    paper: str
    findings: list[Finding]
    figures: list[Figure]
    conditions: list[str]  # conditions of the measurements and simulations, as sentences

    def to_json(self) -> dict[str, Any]:
        return {**head(SCHEMA, verdicts([self])), **asdict(self)}


@dataclass(frozen=True)
class Reproductions:
    machine: dict[str, Any]
    reproductions: list[Reproduction]

    def to_json(self) -> dict[str, Any]:
        return {**head(ALL_SCHEMA, verdicts(self.reproductions)), **asdict(self)}


def verdicts(reproductions: list[Reproduction]) -> dict[str, int]:
    found = [finding.verdict for one in reproductions for finding in one.findings]
    return {verdict: found.count(verdict) for verdict in VERDICTS}


def verdict_if(holds: bool) -> Verdict:
    return HOLDS if holds else DOES_NOT_HOLD
