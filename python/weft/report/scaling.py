"""Strong scaling: the same total work on several numbers of ranks, and who ends first.

Why: with fewer ranks each computes longer, and the cores left over can communicate; the least total
time says how many ranks an application should have. Denis et al., 2019, section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.bench.result import Result, Statistic, ranks_in_words
from weft.bench.statistics import leads
from weft.report import effect
from weft.report.effect import Case, Curve, duration, listing, percent


@dataclass(frozen=True)
class Place:
    """One candidate on one number of ranks."""

    case: Case
    curve: Curve
    total: Statistic

    @property
    def words(self) -> str:
        return f"{ranks_in_words(self.case.ranks)} with {self.curve.name}"


@dataclass(frozen=True)
class Scaling:
    """Cases that differ in their ranks only, ascending; an amount is named by its number, which is
    that of the same total work in all."""

    cases: tuple[Case, ...]

    @property
    def title(self) -> str:
        first = self.cases[0]
        kernel = f", {first.kernel}" if first.kernel else ""
        return f"{first.call}, {effect.size(first.size_bytes)}{kernel}"

    @property
    def most(self) -> Case:
        return self.cases[-1]

    @property
    def amounts(self) -> list[int]:
        """Those that were measured with every number of ranks."""
        return sorted(set.intersection(*(set(case.numbers) for case in self.cases)))

    def places(self, amount: int) -> list[Place]:
        return [
            Place(case, curve, curve.readings[index].total)
            for case in self.cases
            for index in [case.numbers.index(amount)]
            for curve in case.curves
            if index in curve.readings
        ]

    def work(self, amount: int) -> str:
        """The total work, by its time where the most ranks share it."""
        time = duration(self.most.computation_us[self.most.numbers.index(amount)])
        return f"{time} of computation on {ranks_in_words(self.most.ranks)}"

    def finding(self, amount: int) -> str:
        places = self.places(amount)
        best = min(places, key=lambda place: place.total.median)
        full = [place for place in places if place.case is self.most]
        best_full = min(full, key=lambda place: place.total.median, default=best)
        verb = "takes" if best.case.ranks == 1 else "take"
        took = f"{self.work(amount)}: {best.words} {verb} {duration(best.total.median)}"
        if best.case is self.most:
            return f"{took}, the least; fewer ranks are no faster."
        against = f"the best on all {self.most.ranks}, {best_full.curve.name}"
        if not leads(best.total, best_full.total):
            return f"{took}; {against}, is as fast within the spread."
        saved = 1 - best.total.median / best_full.total.median
        return f"{took}, {percent(saved)} less than {against}."


def scalings(result: Result, cases: Sequence[Case]) -> list[Scaling]:
    """Empty unless the work was fixed: else every number of ranks has amounts of its own."""
    if not result.settings.get("fixed_work"):
        return []
    groups: dict[tuple, list[Case]] = {}
    for case in cases:
        groups.setdefault((case.collective, case.size_bytes, case.kernel), []).append(case)
    return [
        Scaling(tuple(sorted(group, key=lambda case: case.ranks)))
        for group in groups.values()
        if len(group) > 1
    ]


def chart(scaling: Scaling, amount: int) -> dict:
    """What the page draws: time over the ranks, a line per candidate, and the ideal."""
    places = scaling.places(amount)
    unit, scale = max((case.unit for case in scaling.cases), key=lambda found: found[1])
    names = list(dict.fromkeys(_line(place.curve) for place in places))
    return {
        "unit": unit,
        "title": scaling.work(amount),
        "ranks": [case.ranks for case in scaling.cases],
        "ideal": [case.ideal_us[case.numbers.index(amount)] / scale for case in scaling.cases],
        "curves": [
            _curve(name, [p for p in places if _line(p.curve) == name], scale) for name in names
        ],
    }


def _line(curve: Curve) -> str:
    return effect.BLOCKING if curve.is_blocking else curve.name


def _curve(name: str, places: Sequence[Place], scale: float) -> dict:
    return {
        "name": name,
        "blocking": name == effect.BLOCKING,
        "x": [place.case.ranks for place in places],
        "median": [place.total.median / scale for place in places],
        "low": [place.total.low / scale for place in places],
        "high": [place.total.high / scale for place in places],
    }


def section(result: Result, cases: Sequence[Case]) -> list[dict]:
    return [
        {
            "title": scaling.title,
            "ranks": listing([str(case.ranks) for case in scaling.cases]),
            "findings": [scaling.finding(amount) for amount in scaling.amounts],
            "charts": [chart(scaling, amount) for amount in scaling.amounts],
        }
        for scaling in scalings(result, cases)
    ]
