"""Writes the page of a kernel's figures: the published and the measured finding, a bar per engine,
a table.

Kernels have no amount of computation over which curves could be drawn, as on
weft.report.effect_page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.data import files
from weft.measurements import choice, statistics
from weft.measurements.effect import rounded
from weft.measurements.kernels import BLOCKING, KernelResult, Run
from weft.measurements.presets import findings, measured_for
from weft.report import html
from weft.report.effect_page import facts
from weft.report.svg import Bar, Bars


def section(result: KernelResult) -> dict[str, Any]:
    preset = measured_for(result.preset, result.machine, of_a_program=True)
    return {
        "title": preset.title if preset else result.preset,
        "published": preset.published if preset else "",
        "missing": (preset.not_available if preset else "") or "",
        "findings": findings(preset, result.runs) if preset else [],
        "runs": [
            {"title": run.title, "rows": rows(run), "chart": chart(run)} for run in result.runs
        ],
        "failed": result.failed,
        "machine": facts(result.machine),
        "mpi": sorted({run.library for run in result.runs}),
    }


def rows(run: Run) -> list[dict[str, Any]]:
    """Returns a table row per variant, with the blocking one first."""
    best, _ = choice.best((BLOCKING, *run.engines), run.times_us.__getitem__, simplicity)
    found = []
    for name in (BLOCKING, *run.engines):
        time = run.times_us[name]
        found.append(
            {
                "name": name,
                "time": time,
                "against": time.median / run.blocking.median,
                "verdict": verdict(run, name),
                "best": name == best != BLOCKING,
            }
        )
    return found


def simplicity(name: str) -> tuple[int, int]:
    """Returns the sort key of a variant by simplicity. Its engine is the last part of its name."""
    return choice.simplicity(name.rpartition(", ")[2], name)


def verdict(run: Run, name: str) -> str:
    if name == BLOCKING:
        return ""
    word = statistics.verdict(run.times_us[name], run.blocking)
    return "no difference" if word == statistics.SAME else word


def chart(run: Run) -> Bars:
    bars = []
    for row in rows(run):
        time, name = row["time"], row["name"]
        median, low, high = (us / 1000 for us in (time.median, time.low, time.high))
        colour = "best" if row["best"] else "plain" if name == BLOCKING else "bar"
        text = f"{name}: {rounded(median)} ms, {rounded(low)} to {rounded(high)}"
        bars.append(Bar(name, [(median, colour, text)], f"{rounded(median)} ms", low, high))
    return Bars(bars, "ms", f"{run.title}: time of one pass by engine")


def render(results: Sequence[KernelResult]) -> str:
    """Returns the page's HTML. Raises ValueError if there is nothing to show."""
    if not any(result.runs for result in results):
        raise ValueError("nothing was measured, there is nothing to report")
    return html.render(
        "kernel.html.j2",
        sections=[section(result) for result in results],
        rounded=rounded,
    )


def write(path: Path, results: Sequence[KernelResult]) -> None:
    page = render(results)
    files.write_text(path, page)
