"""The page of a comparison, the program without Weft and with it: text, picture and table.

Why apart from weft.report.overlap: that has the figures, this only shows them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from weft.report import html
from weft.report.overlap import CallComparison, Comparison, figure, hidden, interval, remarks


def machine() -> str:
    """Processor, usable cores and kernel of this machine, in words."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} {'core' if cores == 1 else 'cores'}, Linux {platform.release()}"


def chart(comparison: Comparison) -> dict:
    """What the page's script draws: one bar per candidate, and two lines to hold them against."""
    return {
        "names": [row.name for row in comparison.rows],
        "totals": [row.total.median for row in comparison.rows],
        "above": [row.total.high - row.total.median for row in comparison.rows],
        "below": [row.total.median - row.total.low for row in comparison.rows],
        "hidden": [hidden(row) for row in comparison.rows],
        "best": comparison.best.name if comparison.best else "",
        "ideal": comparison.ideal_ms,
        "sum": comparison.sum_ms,
    }


def render(found: Sequence[Comparison | CallComparison], network: str) -> str:
    """`network`: a sentence about what the ranks communicate over."""
    comparisons = [one for one in found if isinstance(one, Comparison)]
    return html.render(
        "comparison.html.j2",
        found=found,
        comparisons=comparisons,
        calls=[one for one in found if isinstance(one, CallComparison)],
        charts=[chart(comparison) for comparison in comparisons],
        samples=min((one.samples for one in found), default=0),
        interval=interval,
        figure=figure,
        hidden=hidden,
        remarks=remarks([row for one in comparisons for row in one.rows]),
        machine=machine(),
        network=network,
    )


def write(path: Path, found: Sequence[Comparison | CallComparison], network: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(found, network))
