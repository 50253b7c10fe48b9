"""Compares two results point by point: what became faster, and which candidate wins now.

Each run calibrates the computation anew, so that the amounts of two runs differ slightly. B's curve
is therefore interpolated at A's amounts. A difference counts if it exceeds both confidence
intervals and 2 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from weft.data import files
from weft.data.stored import head
from weft.measurements import effect
from weft.measurements.effect import Case, Curve, duration, percent
from weft.measurements.result import Result, Statistic
from weft.measurements.statistics import FASTER, SAME, SLOWER, ratio, verdict
from weft.report import html
from weft.report.effect_page import heads, highest
from weft.report.svg import DASHED, ROUND, Graph, Line, Look, Stack, legend_of, look, one_scale

# A point may lie outside the other run's amounts by this share, and is still compared.
BEYOND = 0.1


@dataclass(frozen=True)
class Ratio:
    """B's time divided by A's, for one candidate at one amount of computation."""

    case: Case
    name: str
    amount: int
    computation_us: float
    a: Statistic
    b: Statistic

    @property
    def times(self) -> Statistic:
        """Returns B's time divided by A's, with its interval."""
        return ratio(self.b, self.a)

    @property
    def verdict(self) -> str:
        return verdict(self.b, self.a)

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.case.title,
            "candidate": self.name,
            "computation_us": self.computation_us,
            "times": self.times.median,
            "times_low": self.times.low,
            "times_high": self.times.high,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Change:
    """The fastest candidates at one amount of computation at which both runs have a single leader,
    but different ones."""

    case: Case
    computation_us: float
    before: str
    after: str

    @property
    def sentence(self) -> str:
        where = duration(self.computation_us)
        return f"{self.case.title}, {where} of computation: {self.before} before, {self.after} now"


@dataclass(frozen=True)
class Versus:
    ratios: tuple[Ratio, ...]
    changes: tuple[Change, ...]
    only_a: tuple[str, ...]  # candidates in cases that B lacks; only_b is the reverse
    only_b: tuple[str, ...]

    def count(self, verdict: str) -> int:
        return sum(ratio.verdict == verdict for ratio in self.ratios)

    @property
    def sentence(self) -> str:
        return self.told("A", "B")

    def told(self, a: str, b: str) -> str:
        """Returns the comparison as text, with these names of the two results."""
        if not self.ratios:
            return "Nothing can be compared: no candidate was measured in the same case in both."
        middle = median(one.times.median for one in self.ratios)
        changed = len(self.changes)
        winner = (
            "The winner changed nowhere."
            if not changed
            else f"The winner changed at {changed} {'amount' if changed == 1 else 'amounts'}."
        )
        return (
            f"Of {len(self.ratios)} points, {b} is faster at {self.count(FASTER)}, slower at"
            f" {self.count(SLOWER)}, and without difference at {self.count(SAME)}; in the median it"
            f" takes {percent(middle)} of {a}'s time. {winner}"
        )

    def to_json(self, verdict: str = "") -> dict[str, Any]:
        """Returns the comparison as a document of the schema weft-compare/1. B is the last result,
        A the first. Ratios of times are B's by A's."""
        headline: dict[str, Any] = {word: self.count(word) for word in (FASTER, SLOWER, SAME)}
        headline |= {"winner_changed": len(self.changes), "verdict": verdict}
        return {
            **head("weft-compare/1", headline),
            "points": [one.to_json() for one in self.ratios],
            "winner_changed": [one.sentence for one in self.changes],
            "only_a": self.only_a,
            "only_b": self.only_b,
        }


def compare(a: Result, b: Result) -> Versus:
    cases_a = {_key(case): case for case in effect.cases(a)}
    cases_b = {_key(case): case for case in effect.cases(b)}
    ratios, changes, only_a, only_b = [], [], [], []
    for key, case in cases_a.items():
        if key not in cases_b:
            only_a.append(case.title)
            continue
        other = cases_b[key]
        names_a = {_candidate(curve): curve for curve in case.curves}
        names_b = {_candidate(curve): curve for curve in other.curves}
        only_a += [f"{case.title}: {names_a[n].name}" for n in names_a if n not in names_b]
        only_b += [f"{case.title}: {names_b[n].name}" for n in names_b if n not in names_a]
        for name in names_a:
            if name in names_b:
                ratios += _ratios(case, names_a[name], other, names_b[name])
        changes += _changes(case, other)
    only_b += [case.title for key, case in cases_b.items() if key not in cases_a]
    return Versus(tuple(ratios), tuple(changes), tuple(only_a), tuple(only_b))


def _key(case: Case) -> tuple:
    return (*case.group, case.size_bytes)


def _candidate(curve: Curve) -> tuple[str, str]:
    """Returns the candidate's library and name without the library's version, since a newer version
    should be compared with an older one."""
    library = curve.mpi.partition(" ")[0]
    # The name begins with the library if a run has several of them.
    return (library, curve.name.removeprefix(f"{library} "))


def _ratios(case: Case, curve: Curve, other: Case, against: Curve) -> list[Ratio]:
    found = []
    for amount, reading in sorted(curve.readings.items()):
        x_us = case.computation_us[amount]
        there = at(other, against, x_us)
        if there is not None:
            found.append(Ratio(case, curve.name, amount, x_us, reading.total, there))
    return found


def at(case: Case, curve: Curve, x_us: float) -> Statistic | None:
    """Returns the curve's time at this amount of computation; None if it is too far outside of the
    measured amounts.

    The difference from the ideal time is interpolated, since the curves themselves have a
    corner."""
    amounts = sorted(curve.readings, key=lambda amount: case.computation_us[amount])
    x = [case.computation_us[amount] for amount in amounts]
    if not (1 - BEYOND) * x[0] <= x_us <= (1 + BEYOND) * x[-1]:
        return None

    def ideal(computation_us: float) -> float:
        return max(case.communication_us, computation_us)

    above = [_shifted(curve.readings[a].total, -ideal(v)) for a, v in zip(amounts, x)]
    if x_us <= x[0] or x_us >= x[-1]:
        return _shifted(above[0 if x_us <= x[0] else -1], ideal(x_us))
    right = next(i for i, value in enumerate(x) if value >= x_us)
    share = (x_us - x[right - 1]) / (x[right] - x[right - 1])
    return _shifted(_mixed(above[right - 1], above[right], share), ideal(x_us))


def _shifted(total: Statistic, by_us: float) -> Statistic:
    return Statistic(total.median + by_us, total.low + by_us, total.high + by_us, total.n)


def _mixed(left: Statistic, right: Statistic, share: float) -> Statistic:
    def mix(a: float, b: float) -> float:
        return (1 - share) * a + share * b

    return Statistic(
        median=mix(left.median, right.median),
        low=mix(left.low, right.low),
        high=mix(left.high, right.high),
        n=min(left.n, right.n),
    )


def _changes(a: Case, b: Case) -> list[Change]:
    """Returns the amounts at which A and B each have a single leader, but different ones. A's
    amount is compared with B's nearest one."""
    found = []
    for amount, x_us in enumerate(a.computation_us):
        nearest = min(b.amounts, key=lambda k: abs(b.computation_us[k] - x_us))
        if abs(b.computation_us[nearest] - x_us) > BEYOND * x_us:
            continue
        before, after = a.standings[amount], b.standings[nearest]
        if before.tied or after.tied:
            continue
        if _candidate(before.leader) != _candidate(after.leader):
            found.append(Change(a, x_us, before.leader.name, after.leader.name))
    return found


def by_case(versus: Versus) -> dict[str, list[Ratio]]:
    groups: dict[str, list[Ratio]] = {}
    for one in versus.ratios:
        groups.setdefault(one.case.title, []).append(one)
    return groups


def charts(versus: Versus) -> dict[str, Graph]:
    """Returns a graph per case: each candidate's ratio over the amount of computation, on one
    scale."""
    groups = by_case(versus)
    graphs = [graph(ratios) for ratios in groups.values()]
    return dict(zip(groups, one_scale(graphs))) if graphs else {}


def graph(ratios: Sequence[Ratio]) -> Graph:
    case = ratios[0].case
    unit, scale = case.unit
    limit = highest([one.times for one in ratios])
    names = list(dict.fromkeys(one.name for one in ratios))
    candidates = [name for name in names if name != case.blocking.name]
    looks = {name: look(place) for place, name in enumerate(candidates)}
    lines = []
    for name in names:
        mine = [one for one in ratios if one.name == name]
        lines.append(
            Line(
                name,
                looks.get(name, Look("faint", DASHED, ROUND)),
                [one.computation_us / scale for one in mine],
                [one.times.median for one in mine],
                [one.times.low for one in mine],
                [min(one.times.high, limit) for one in mine],
                [f"{name}: {one.times.median:.3f}" for one in mine],
                whiskers=True,
            )
        )
    title = f"{case.title}: B's time divided by A's"
    return Graph(
        lines,
        f"computation alone, {unit}",
        "B / A",
        title,
        start=None,
        level=1.0,
        heads=heads(case),
    )


def render(versus: Versus, names: Sequence[str], verdict: str = "") -> str:
    graphs = charts(versus)
    return html.render(
        "versus.html.j2",
        versus=versus,
        verdict=verdict,
        names=names,
        groups=by_case(versus),
        legend=legend_of(list(graphs.values())),
        charts={title: Stack((one,), explained=False) for title, one in graphs.items()},
        words={FASTER: "faster", SLOWER: "slower", SAME: "≈"},
        shaded=(FASTER, SLOWER),
        unit=duration,
    )


def write(path: Path, versus: Versus, names: Sequence[str], verdict: str = "") -> None:
    files.write_text(path, render(versus, names, verdict))
