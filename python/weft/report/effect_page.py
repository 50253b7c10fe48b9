"""Writes the page of benchmark results: advice, curves, crossings, heat maps of the winner, tables.

The figures and the sentences come from weft.measurements.effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.data import files
from weft.measurements import effect
from weft.measurements.effect import Case, Curve, Standing, duration
from weft.measurements.result import MEASURED, Result, Statistic
from weft.report import html, scaling
from weft.report.fields import Cell, Map
from weft.report.svg import DASHED, DOTTED, ROUND, Graph, Line, Look, Stack, legend_of, look

NO_DIFFERENCE = "no difference to blocking"
NOT_DECIDED = "not decided: too few samples"
HEADROOM = 1.5  # height of the axis over the highest median, so that bands have room


@dataclass(frozen=True)
class Source:
    """A result, and the name under which the page shows it."""

    name: str
    result: Result
    remarks: tuple[str, ...] = ()  # sentences about the findings of a preset

    @property
    def cases(self) -> list[Case]:
        return effect.cases(self.result)


def looks(sources: Sequence[Source]) -> dict[str, Look]:
    """Returns a colour, dash and mark per candidate, the same in all pictures of the page."""
    found: dict[str, Look] = {}
    for source in sources:
        for case in source.cases:
            for curve in case.candidates:
                found.setdefault(curve.name, look(len(found)))
    return found


def look_of(name: str, styles: dict[str, Look]) -> Look:
    """Returns the look of a candidate, or that of the blocking call, which is no candidate."""
    return styles.get(name, Look("faint", DASHED, ROUND))


def time_line(curve: Curve, case: Case, styles: dict[str, Look], strong: bool) -> Line:
    unit, scale = case.unit
    amounts, limit = sorted(curve.readings), highest_us(case)
    totals = [curve.readings[amount].total for amount in amounts]
    said = []
    for amount in amounts:
        reading = curve.readings[amount]
        text = f"{curve.name}: {effect.figures(reading.total, case)[0]} {unit}"
        hidden, slowed = effect.percent(reading.hidden), effect.percent(reading.slowed)
        text += f", hides {hidden}" if hidden else ""
        said.append(text + (f", slows {slowed}" if slowed else ""))
    return Line(
        curve.name,
        look_of(curve.name, styles),
        [case.computation_us[amount] / scale for amount in amounts],
        [total.median / scale for total in totals],
        [total.low / scale for total in totals],
        [min(total.high, limit) / scale for total in totals],
        said,
        strong=strong,
        marked=[curve in case.standings[amount].all for amount in amounts],
    )


def highest_us(case: Case) -> float:
    """Returns the highest time that is drawn. A single interval that is far wider than all others
    must not flatten the lines."""
    return highest([r.total for curve in case.curves for r in curve.readings.values()])


def highest(drawn: Sequence[Statistic]) -> float:
    return HEADROOM * max(one.median for one in drawn)


def heads(case: Case) -> dict[float, str]:
    """Returns the headings of hover texts: the amounts in the axis's unit."""
    unit, scale = case.unit
    return {
        us / scale: f"{effect.figure(us, case)} {unit} of computation" for us in case.computation_us
    }


def ideal_line(case: Case) -> Line:
    """Returns the line of perfect overlap: the longer of communication and computation."""
    scale = case.unit[1]
    corner, last = case.communication_us / scale, case.computation_us[-1] / scale
    xs = sorted(value for value in (0.0, corner, last) if value <= last)
    return Line("ideal", Look("text", DOTTED), xs, [max(value, corner) for value in xs])


def time_graph(case: Case, styles: dict[str, Look], tall: float = 260) -> Graph:
    unit, scale = case.unit
    overtaken = [c for c in case.crossings if case.blocking.name in (c.before, c.after)]
    rings = [
        (c.at_us / scale, height(case, c.at_us) / scale, f"crossing at {duration(c.at_us)}")
        for c in overtaken
    ]
    advised = effect.advised(case)
    lines = [time_line(curve, case, styles, curve is advised) for curve in case.curves]
    return Graph(
        [ideal_line(case), *lines],
        f"computation alone, {unit}",
        f"both together, {unit}",
        f"{case.title}: time over the amount of computation",
        rings=rings,
        height=tall,
        heads=heads(case),
    )


def slowdown_graph(case: Case, styles: dict[str, Look]) -> Graph:
    unit, scale = case.unit
    lines = []
    for curve in case.candidates:
        known = [a for a in sorted(curve.readings) if curve.readings[a].slowdown is not None]
        if not known:
            continue
        values = [curve.readings[amount].slowdown for amount in known]
        x = [case.computation_us[amount] / scale for amount in known]
        lines.append(Line(curve.name, replace(look_of(curve.name, styles), symbol=""), x, values))
    every = [value for line in lines for value in line.y]
    return Graph(
        lines,
        f"computation alone, {unit}",
        "computation, times as long as alone",
        f"{case.title}: how much longer the computation takes than alone",
        start=min([0.95, *every]) - 0.02,
        top=max([1.2, *every]) + 0.03,
        level=1.0,
        last=case.computation_us[-1] / scale,
        height=100,
    )


def chart(case: Case, styles: dict[str, Look]) -> Stack:
    """Returns the graph of times, and below it the graph of the computation's slowdown if that is
    known."""
    slowdown = slowdown_graph(case, styles)
    time = time_graph(case, styles)
    graphs = (time, slowdown) if slowdown.lines else (time,)
    return Stack(graphs, f"{case.title}: time and slowdown over the computation", explained=False)


def height(case: Case, x_us: float) -> float:
    """Returns the height of the blocking call's line at this amount of computation."""
    line = case.blocking.readings
    known = [a for a in case.amounts if a in line]
    left = max((a for a in known if case.computation_us[a] <= x_us), default=known[0])
    right = min((a for a in known if case.computation_us[a] >= x_us), default=known[-1])
    x, y = case.computation_us, {a: line[a].total.median for a in known}
    if x[left] == x[right]:
        return y[left]
    return y[left] + (y[right] - y[left]) * (x_us - x[left]) / (x[right] - x[left])


def heat_maps(cases: Sequence[Case], styles: dict[str, Look]) -> list[dict[str, Any]]:
    """Returns heat maps of the winner by size and amount of computation, for cases that were
    measured at several sizes."""
    groups: dict[tuple, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    return [heat_map(group, styles) for group in groups.values() if len(group) > 1]


def heat_map(cases: Sequence[Case], styles: dict[str, Look]) -> dict[str, Any]:
    """Returns the heat map of one group of cases, with the smallest size at the bottom."""
    first = cases[0]
    title = f"{first.call}, {first.title.partition(', ')[2].partition(', ')[2]}"
    rows = [
        (
            effect.size(case.size_bytes),
            case.unit[0],
            [cell(case, amount, styles) for amount in case.amounts],
        )
        for case in reversed(cases)
    ]
    names = sorted({winner(case, amount) for case in cases for amount in case.amounts})
    return {
        "title": title,
        "map": Map(
            rows,
            "amount of computation, from little to much",
            f"{title}: the fastest candidate by size and amount of computation",
            [(name, winner_colour(name, styles)) for name in names],
        ),
    }


def winner(case: Case, amount: int) -> str:
    standing = case.standings[amount]
    if not standing.is_certain(amount):
        return NOT_DECIDED
    if standing.undecided:
        return NO_DIFFERENCE
    return effect.BLOCKING if standing.leader.is_blocking else standing.leader.name


def winner_colour(name: str, styles: dict[str, Look]) -> str:
    dull = {effect.BLOCKING: "bar", NO_DIFFERENCE: "line", NOT_DECIDED: "page"}
    return dull.get(name) or styles[name].colour


def cell(case: Case, amount: int, styles: dict[str, Look]) -> Cell:
    standing = case.standings[amount]
    value = case.computation_us[amount] / case.unit[1]
    label = f"{value:.2g}" if value < 1 else effect.figure(case.computation_us[amount], case)
    took = duration(standing.leader.readings[amount].total.median)
    names = " ≈ ".join(curve.name for curve in standing.all)
    return Cell(winner_colour(winner(case, amount), styles), label, f"{names}, {took}")


def table(case: Case) -> list[dict[str, Any]]:
    """Returns one entry per amount, with a row per candidate."""
    entries = []
    for amount in case.amounts:
        standing = case.standings[amount]
        rows = [
            {
                "name": curve.name,
                "figures": figures(case, curve, amount),
                "rank": rank(curve, standing),
            }
            for curve in case.curves
            if amount in curve.readings
        ]
        entries.append({"computation": case.computation_us[amount], "rows": rows})
    return entries


def rank(curve: Curve, standing: Standing) -> str:
    """Returns "best" for a sole winner, "tied" for one of several, and otherwise an empty
    string."""
    if curve not in standing.all:
        return ""
    return "tied" if standing.tied else "best"


def figures(case: Case, curve: Curve, amount: int) -> list[str]:
    """Returns the cells of a table's row."""
    reading = curve.readings[amount]
    shares = (reading.hidden, _against(case, curve, amount), reading.slowed)
    cells = [*effect.figures(reading.total, case), str(reading.total.n)]
    return [*cells, *map(effect.hundredths, shares)]


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


# These are readable names of facts about machine and settings. Results of other tools may have
# further facts.
NAMES = {
    "cpu": "processor",
    "memory_bytes": "memory",
    "weft": "Weft",
    "kernel": "computation",
    "compute_library": "library that computes",
    "working_set_bytes": "memory that the computation touches",
    "fixed_work": "the same total work on all numbers of ranks",
    "time_budget_s": "time for measuring, at most",
}
# These facts are left out, since the cases and the network show them, or since they only matter for
# repeating the measurement.
LEFT_OUT = {
    *("usable_cores", "numa_nodes", "python", "collectives", "bytes", "engines", "mpis", "ranks"),
    *("placements", "backoffs", "algorithms", "amounts", "lab", "launcher", "tolerance", "hang_s"),
    "seed",
}


def facts(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns facts about the machine or the settings as pairs of readable words. Empty and
    disabled ones are left out."""
    return [
        (NAMES.get(key) or key.replace("_", " "), fact(key, value))
        for key, value in values.items()
        if value and key not in LEFT_OUT
    ]


def fact(key: str, value: Any) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return effect.size(value)
    is_time = key.endswith("_s") and isinstance(value, (int, float))
    return f"{value:g} s" if is_time else words(value)


def words(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key.replace('_', ' ')}: {words(v)}" for key, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(words(v) for v in value) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def advice_of(source: Source) -> list[dict[str, Any]]:
    """Returns for each collective a sentence about each of its cases."""
    found: dict[str, list[str]] = {}
    for case in source.cases:
        where = case.title.partition(", ")[2]
        found.setdefault(case.call, []).append(f"{where}: {effect.advice(case)}")
    return [{"call": call, "sentences": sentences} for call, sentences in found.items()]


def section(source: Source, styles: dict[str, Look]) -> dict[str, Any]:
    cases = source.cases
    return {
        "name": source.name,
        "remarks": source.remarks,
        "complete": source.result.complete,
        "advice": advice_of(source),
        "cases": [
            {
                "case": case,
                "table": table(case),
                "chart": chart(case, styles),
            }
            for case in cases
        ],
        "legend": legend_of([time_graph(case, styles) for case in cases]),
        "heat_maps": heat_maps(cases, styles),
        "scalings": scaling.section(source.result, cases, lambda name: look_of(name, styles)),
        "not_run": not_run(source.result),
        "machine": facts(source.result.measured_on),
        "settings": facts(source.result.settings),
        "mpi": sorted({point.mpi for point in source.result.points}),
    }


def render(sources: Sequence[Source]) -> str:
    """Returns the page's HTML. Raises ValueError if there is nothing to show."""
    for source in sources:
        if not source.result.points:
            raise ValueError(f"{source.name}: nothing was measured, there is nothing to report")
    styles = looks(sources)
    return html.render(
        "effect.html.j2",
        sections=[section(source, styles) for source in sources],
        unit=duration,
        figure=effect.figure,
    )


def write(path: Path, sources: Sequence[Source]) -> None:
    page = render(sources)
    files.write_text(path, page)
