"""The page of benchmark results: advice, curves, crossings, heat maps of the winner, tables.

Why apart from weft.report.effect: that has the figures and the sentences, this only shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.bench.result import MEASURED, Result
from weft.report import effect, html, scaling
from weft.report.effect import Case, Curve, duration

# The eight of Okabe and Ito that show on both backgrounds, distinguishable without colour vision.
PALETTE = ("#0f8b77", "#d55e00", "#3b82c4", "#cc79a7", "#b8860b", "#7a5cc0", "#56b4e9", "#8a8f2a")
DASHES = ("solid", "dash", "dot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "hexagon")
NO_DIFFERENCE = "no difference to blocking"
NOT_DECIDED = "not decided: too few samples"


@dataclass(frozen=True)
class Source:
    """A result, and the name under which the page shows it."""

    name: str
    result: Result
    remarks: tuple[str, ...] = ()  # what a preset found

    @property
    def cases(self) -> list[Case]:
        return effect.cases(self.result)


def styles(sources: Sequence[Source]) -> dict[str, dict[str, str]]:
    """One colour, dash and marker per candidate, the same in all pictures of the page."""
    found: dict[str, dict[str, str]] = {}
    for source in sources:
        for case in source.cases:
            for curve in case.candidates:
                n = len(found)
                found.setdefault(
                    curve.name,
                    {
                        "color": PALETTE[n % len(PALETTE)],
                        "dash": DASHES[n // len(PALETTE) % len(DASHES)],
                        "symbol": SYMBOLS[n % len(SYMBOLS)],
                    },
                )
    return found


def curve_data(curve: Curve, case: Case) -> dict[str, Any]:
    """In the case's unit."""
    scale = case.unit[1]
    amounts = sorted(curve.readings)
    readings = [curve.readings[amount] for amount in amounts]
    return {
        "name": curve.name,
        "blocking": curve.is_blocking,
        "x": [case.computation_us[amount] / scale for amount in amounts],
        "median": [reading.total.median / scale for reading in readings],
        "low": [reading.total.low / scale for reading in readings],
        "high": [reading.total.high / scale for reading in readings],
        "hidden": [effect.percent(reading.hidden) for reading in readings],
        "slowdown": [reading.slowdown for reading in readings],
    }


def chart(case: Case) -> dict[str, Any]:
    """What the page's script draws for one case, in its unit."""
    name, scale = case.unit
    overtaken = [c for c in case.crossings if case.blocking.name in (c.before, c.after)]
    return {
        "unit": name,
        "x": [x / scale for x in case.computation_us],
        "corner": case.communication_us / scale,
        "curves": [curve_data(curve, case) for curve in case.curves],
        "crossings": [
            {"x": crossing.at_us / scale, "y": height(case, crossing.at_us) / scale}
            for crossing in overtaken
        ],
    }


def height(case: Case, x_us: float) -> float:
    """Of the blocking call's line at this amount of computation."""
    line = case.blocking.readings
    known = [a for a in case.amounts if a in line]
    left = max((a for a in known if case.computation_us[a] <= x_us), default=known[0])
    right = min((a for a in known if case.computation_us[a] >= x_us), default=known[-1])
    x, y = case.computation_us, {a: line[a].total.median for a in known}
    if x[left] == x[right]:
        return y[left]
    return y[left] + (y[right] - y[left]) * (x_us - x[left]) / (x[right] - x[left])


def heat_maps(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Size × amount of the winner, for what was measured at several sizes."""
    groups: dict[tuple, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    return [heat_map(group) for group in groups.values() if len(group) > 1]


def heat_map(cases: Sequence[Case]) -> dict[str, Any]:
    rows = [[cell(case, amount) for amount in case.amounts] for case in cases]
    first = cases[0]
    return {
        "title": f"{first.call}, {first.title.partition(', ')[2].partition(', ')[2]}",
        "sizes": [effect.size(case.size_bytes) for case in cases],
        "winners": sorted({cell["winner"] for row in rows for cell in row}),
        "rows": rows,
    }


def cell(case: Case, amount: int) -> dict[str, Any]:
    standing = case.standings[amount]
    leader = standing.leader
    reading = leader.readings[amount].total
    against = case.blocking.readings.get(amount)
    saved = 1 - reading.median / against.total.median if against else 0.0
    tied = "".join(f" ≈ {curve.name}" for curve in standing.tied)
    name = effect.BLOCKING if leader.is_blocking else leader.name
    if not standing.is_certain(amount):
        name = NOT_DECIDED
    elif standing.undecided:
        name = NO_DIFFERENCE
    return {
        "winner": name,
        "label": duration(case.computation_us[amount]),
        "text": f"{leader.name}{tied}: {duration(reading.median)}",
        "saved": saved,
    }


def table(case: Case) -> list[dict[str, Any]]:
    """One entry per amount, with a row per candidate."""
    entries = []
    for amount in case.amounts:
        standing = case.standings[amount]
        best = {standing.leader.name, *(curve.name for curve in standing.tied)}
        rows = [
            {
                "name": curve.name,
                "reading": curve.readings[amount],
                "against": _against(case, curve, amount),
                "best": curve.name in best,
                "alone": not standing.tied,
            }
            for curve in case.curves
            if amount in curve.readings
        ]
        entries.append({"computation": case.computation_us[amount], "rows": rows})
    return entries


def _against(case: Case, curve: Curve, amount: int) -> float | None:
    blocking = case.blocking.readings.get(amount)
    if curve is case.blocking or blocking is None:
        return None
    return curve.readings[amount].total.median / blocking.total.median


def not_run(result: Result) -> list[dict[str, str]]:
    return [
        {"name": candidate.label, "status": candidate.status, "reason": candidate.reason}
        for candidate in result.candidates
        if candidate.status != MEASURED
    ]


def facts(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Machine or settings in words, whatever the result says about them."""
    return [(key.replace("_", " "), words(value)) for key, value in values.items() if value != ""]


def words(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key.replace('_', ' ')}: {words(v)}" for key, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(words(v) for v in value) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def advice_of(source: Source) -> list[dict[str, Any]]:
    """Per collective, a sentence for each of its cases."""
    found: dict[str, list[str]] = {}
    for case in source.cases:
        where = case.title.partition(", ")[2]
        found.setdefault(case.call, []).append(f"{where}: {effect.advice(case)}")
    return [{"call": call, "sentences": sentences} for call, sentences in found.items()]


def section(source: Source) -> dict[str, Any]:
    cases = source.cases
    return {
        "name": source.name,
        "remarks": source.remarks,
        "complete": source.result.complete,
        "advice": advice_of(source),
        "cases": [{"case": case, "table": table(case)} for case in cases],
        "charts": [chart(case) for case in cases],
        "heat_maps": heat_maps(cases),
        "scalings": scaling.section(source.result, cases),
        "not_run": not_run(source.result),
        "machine": facts(source.result.machine),
        "settings": facts(source.result.settings),
        "mpi": sorted({point.mpi for point in source.result.points}),
    }


def render(sources: Sequence[Source]) -> str:
    """ValueError if there is nothing to show."""
    for source in sources:
        if not source.result.points:
            raise ValueError(f"{source.name}: nothing was measured, there is nothing to report")
    sections = [section(source) for source in sources]
    drawn = ("charts", "heat_maps", "scalings")
    data = [{name: part[name] for name in drawn} for part in sections]
    return html.render(
        "effect.html.j2",
        sections=sections,
        data=data,
        styles=styles(sources),
        unit=duration,
        figure=effect.figure,
        percent=effect.percent,
    )


def write(path: Path, sources: Sequence[Source]) -> None:
    page = render(sources)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)
