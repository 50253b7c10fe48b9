"""Compares several results, the oldest first: whether the newest is slower than the oldest, and how
the times developed.

The comparison is with the oldest result, since a series of small slowdowns would never be noticed
otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from weft.data import files
from weft.measurements.effect import duration, percent
from weft.measurements.result import Result, Statistic
from weft.report import html, versus
from weft.report.effect_page import highest
from weft.report.svg import DASHED, ROUND, Graph, Line, Look, Stack, legend_of, look, one_scale
from weft.report.versus import Ratio, Versus

# Results that differ in one of these facts come from different machines.
OF_A_MACHINE = ("cpu", "cores", "usable_cores", "network")
MOST_NAMED = 3  # most points that are named in a sentence


class HistoryError(Exception):
    """Raised for results that cannot be judged together; the message says why."""


def share(text: str) -> float:
    """Returns the share in a text such as `5%` or `5`. Raises HistoryError for any other text."""
    try:
        value = float(text.replace("%", "").strip()) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value < 100:
        raise HistoryError(f"--fail-if-slower {text}: write per cent, such as 5%")
    return value


def another_machine(names: Sequence[str], results: Sequence[Result]) -> str:
    """Says which results come from another machine than the first; "" if none."""
    first = results[0].measured_on
    for name, result in zip(names[1:], results[1:]):
        for key in OF_A_MACHINE:
            here, there = first.get(key), result.measured_on.get(key)
            if here != there:
                return f"{key.replace('_', ' ')} is {here} in {names[0]}, and {there} in {name}"
    return ""


def slower(found: Versus, allowed: float) -> list[Ratio]:
    """Returns the candidates that are slower even at the lower bound of the ratio, the worst
    first."""
    worse = [one for one in found.ratios if one.times.is_certain and one.times.low > 1 + allowed]
    return sorted(worse, key=lambda one: -one.times.median)


def open_points(found: Versus, allowed: float) -> int:
    """Returns the number of points that the intervals leave undecided."""
    beyond = [one.times for one in found.ratios if one.times.high > 1 + allowed]
    return sum(not times.is_certain or times.low <= 1 + allowed for times in beyond)


def judgement(found: Versus, allowed: float) -> tuple[bool, str]:
    """Returns whether the comparison fails, and a sentence about it. Raises HistoryError if no case
    is common to both."""
    if not found.ratios:
        raise HistoryError("--fail-if-slower: no candidate was measured in the same case in both")
    worse, limit = slower(found, allowed), percent(allowed)
    undecided, total = open_points(found, allowed), len(found.ratios)
    rest = f"; {undecided} of {total} points are not decided" if undecided else ""
    if found.only_a:
        rest += f"; {len(found.only_a)} of the old result's candidates are missing in the new one"
    if not worse:
        return False, f"Nowhere more than {limit} slower beyond the intervals{rest}."
    named, title = [], ""
    for one in worse[:MOST_NAMED]:
        where = "" if one.case.title == title else f"{one.case.title}, "
        at = f"{one.name} at {duration(one.computation_us)}"
        named.append(f"{where}{at} ({one.times.median:.2f} times as long)")
        title = one.case.title
    more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
    verb = "is" if len(worse) == 1 else "are"
    return True, (
        f"{len(worse)} of {total} points {verb} more than {limit} slower: {'; '.join(named)}{more}"
        f"{rest}."
    )


# ---- More than two results ----------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """A candidate in one case: its time in each result, divided by that in the oldest one."""

    title: str
    name: str
    blocking: bool
    times: dict[int, Statistic]  # medians over the amounts, by the number of the result from 1


def courses(results: Sequence[Result]) -> list[Course]:
    found: dict[tuple[str, str], Course] = {}
    for number, result in enumerate(results, 1):
        groups: dict[tuple[str, str], list[Ratio]] = {}
        for one in versus.compare(results[0], result).ratios:
            groups.setdefault((one.case.title, one.name), []).append(one)
        for (title, name), ratios in groups.items():
            blocking = name == ratios[0].case.blocking.name
            course = found.setdefault((title, name), Course(title, name, blocking, {}))
            every = [one.times for one in ratios]
            course.times[number] = Statistic(
                median(time.median for time in every),
                median(time.low for time in every),
                median(time.high for time in every),
                min(time.n for time in every),
            )
    return list(found.values())


def graph(title: str, shown: Sequence[Course], count: int) -> Graph:
    limit = highest([time for course in shown for time in course.times.values()])
    candidates = [course.name for course in shown if not course.blocking]
    lines = []
    for course in shown:
        numbers = list(course.times)
        times = list(course.times.values())
        lines.append(
            Line(
                course.name,
                Look("faint", DASHED, ROUND)
                if course.blocking
                else look(candidates.index(course.name)),
                numbers,
                [time.median for time in times],
                [time.low for time in times],
                [min(time.high, limit) for time in times],
                [f"{course.name}: {time.median:.3f}" for time in times],
                whiskers=True,
            )
        )
    name = f"{title}: time in each result, divided by that in the oldest one"
    ticks = tuple(float(number) for number in range(1, count + 1))
    return Graph(
        lines,
        "result, the oldest first",
        "times as long",
        name,
        start=None,
        ticks=ticks,
        level=1.0,
        heads={number: f"result {number:.0f}" for number in ticks},
    )


def by_case(found: Sequence[Course]) -> dict[str, list[Course]]:
    cases: dict[str, list[Course]] = {}
    for course in found:
        cases.setdefault(course.title, []).append(course)
    return cases


def write(path: Path, names: Sequence[str], found: Sequence[Course], sentence: str) -> None:
    cases = by_case(found)
    graphs = one_scale([graph(title, shown, len(names)) for title, shown in cases.items()])
    text = html.render(
        "history.html.j2",
        names=names,
        sentence=sentence,
        cases=cases,
        legend=legend_of(graphs),
        charts=[Stack((one,), explained=False) for one in graphs],
    )
    files.write_text(path, text)
