"""The page of a kernel's figures: what was published and found, a bar per engine, and a table.

Why apart from weft.report.effect_page: there is no amount of computation to draw over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.bench import statistics
from weft.bench.kernels import BLOCKING, KernelResult, Run
from weft.bench.presets import findings, measured_for
from weft.report import html
from weft.report.effect_page import facts


def section(result: KernelResult) -> dict[str, Any]:
    preset = measured_for(result.preset, result.machine, of_a_program=True)
    return {
        "title": preset.title if preset else result.preset,
        "published": preset.published if preset else "",
        "missing": (preset.not_available if preset else "") or "",
        "findings": findings(preset, result.runs) if preset else [],
        "runs": [{"title": run.title, "rows": rows(run)} for run in result.runs],
        "failed": result.failed,
        "machine": facts(result.machine),
        "mpi": sorted({run.mpi for run in result.runs}),
    }


def rows(run: Run) -> list[dict[str, Any]]:
    """One for each variant, blocking first."""
    found = []
    for name in (BLOCKING, *run.engines):
        time = run.times_us[name]
        found.append(
            {
                "name": name,
                "time": time,
                "against": time.median / run.blocking.median,
                "verdict": verdict(run, name),
                "best": name == run.best and statistics.leads(time, run.blocking),
            }
        )
    return found


def verdict(run: Run, name: str) -> str:
    if name == BLOCKING:
        return ""
    word = statistics.verdict(run.times_us[name], run.blocking)
    return "no difference" if word == statistics.SAME else word


def chart(run: Run) -> dict[str, Any]:
    """What the page draws, in milliseconds."""
    shown = rows(run)
    return {
        "names": [row["name"] for row in shown],
        "best": [row["best"] for row in shown],
        "medians": [row["time"].median / 1000 for row in shown],
        "above": [(row["time"].high - row["time"].median) / 1000 for row in shown],
        "below": [(row["time"].median - row["time"].low) / 1000 for row in shown],
    }


def render(results: Sequence[KernelResult]) -> str:
    """ValueError if there is nothing to show."""
    if not any(result.runs for result in results):
        raise ValueError("nothing was measured, there is nothing to report")
    return html.render(
        "kernel.html.j2",
        sections=[section(result) for result in results],
        data=[[chart(run) for run in result.runs] for result in results],
    )


def write(path: Path, results: Sequence[KernelResult]) -> None:
    page = render(results)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)
