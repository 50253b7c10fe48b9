"""Strong scaling: the same total work on several numbers of ranks, and which of them ends first.

With fewer ranks each one computes longer, while the remaining cores can communicate. The shortest
total time shows how many ranks an application should have. See Denis et al., 2019, section 7."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.measurements import effect
from weft.measurements.effect import Case, Curve, duration, listing, percent
from weft.measurements.result import Result, Statistic, ranks_in_words
from weft.measurements.statistics import leads
from weft.report.svg import DOTTED, Graph, Line, Look, one_scale


@dataclass(frozen=True)
class Place:
    """A candidate's result on one number of ranks."""

    case: Case
    curve: Curve
    total: Statistic

    @property
    def words(self) -> str:
        return f"{ranks_in_words(self.case.ranks)} with {self.curve.name}"


@dataclass(frozen=True)
class Scaling:
    """Cases that differ only in their number of ranks, in ascending order. An amount of computation
    has the same number, and the same total work, in all of them."""

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
        """Returns the amounts of computation that were measured with every number of ranks."""
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
        """Returns a description of the total work: its time on the largest number of ranks."""
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
    """Returns the scalings of a result; none unless the work was fixed. Otherwise each number of
    ranks has different amounts of computation."""
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


def chart(scaling: Scaling, amount: int, look_of: Callable[[str], Look]) -> Graph:
    """Returns a graph of the time over the ranks, with a line per candidate and one for perfect
    overlap."""
    places = scaling.places(amount)
    unit, scale = max((case.unit for case in scaling.cases), key=lambda found: found[1])
    ranks = [case.ranks for case in scaling.cases]
    ideal = [case.ideal_us[case.numbers.index(amount)] / scale for case in scaling.cases]
    names = list(dict.fromkeys(_line(place.curve) for place in places))
    lines = [Line("ideal", Look("text", DOTTED), ranks, ideal)]
    for name in names:
        mine = [place for place in places if _line(place.curve) == name]
        lines.append(_drawn(name, mine, scale, look_of(name)))
    return Graph(
        lines,
        "application ranks",
        f"both together, {unit}",
        f"{scaling.title}, {scaling.work(amount)}: time over the number of ranks",
        ticks=tuple(ranks),
        heads={number: ranks_in_words(number) for number in ranks},
    )


def _line(curve: Curve) -> str:
    return effect.BLOCKING if curve.is_blocking else curve.name


def _drawn(name: str, places: Sequence[Place], scale: float, look: Look) -> Line:
    return Line(
        name,
        look,
        [place.case.ranks for place in places],
        [place.total.median / scale for place in places],
        [place.total.low / scale for place in places],
        [place.total.high / scale for place in places],
        [f"{name}: {duration(place.total.median)}" for place in places],
    )


def section(result: Result, cases: Sequence[Case], look_of: Callable[[str], Look]) -> list[dict]:
    """Returns the scalings for the page. The charts of one entry have one scale, since they stand
    side by side."""
    found = []
    for scaling in scalings(result, cases):
        graphs = [chart(scaling, amount, look_of) for amount in scaling.amounts]
        found.append(
            {
                "title": scaling.title,
                "ranks": listing([str(case.ranks) for case in scaling.cases]),
                "findings": [scaling.finding(amount) for amount in scaling.amounts],
                "charts": [
                    {"title": scaling.work(amount), "graph": graph}
                    for amount, graph in zip(scaling.amounts, one_scale(graphs) if graphs else [])
                ],
            }
        )
    return found
