"""Writes the page that compares a program without Weft and with it: text, picture and table.

The figures come from weft.report.overlap."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weft.data import files
from weft.report import html
from weft.report.overlap import (
    CallComparison,
    Comparison,
    Row,
    figure,
    hidden,
    interval,
    remarks,
)
from weft.report.svg import DASHED, DOTTED, Bar, Bars

MUCH_LONGER = 3


def machine() -> str:
    """Returns a description of this machine's processor, usable cores and kernel."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} {'core' if cores == 1 else 'cores'}, Linux {platform.release()}"


def bar(row: Row, comparison: Comparison) -> Bar:
    time, share = row.total, hidden(row)
    place = "plain" if row is comparison.without else "bar"
    colour = "best" if row is comparison.best else place
    label = f"{time.median:.1f} ms" + (f", {share} hidden" if share else "")
    text = f"{row.name}: {time.median:.1f} ms, {time.low:.1f} to {time.high:.1f}"
    return Bar(row.name, [(time.median, colour, text)], label, time.low, time.high)


def charts(comparisons: Sequence[Comparison]) -> list[Bars]:
    """Returns one bar per candidate, and two lines for comparison, all on one scale."""
    found = [
        Bars([bar(row, one) for row in one.rows], "ms", one.sentence, levels=levels(one))
        for one in comparisons
    ]
    last = max((chart.longest for chart in found), default=1.0)
    return [replace(chart, last=last) for chart in found]


def levels(one: Comparison) -> list[tuple[float, str, str]]:
    """Returns the ideal and the sum of the times as lines; none if communication or computation
    alone is undecided."""
    if not one.alone_is_known:
        return []
    return [
        (one.ideal_ms, f"ideal, {one.ideal_ms:.0f} ms", DOTTED),
        (one.sum_ms, f"sum, {one.sum_ms:.0f} ms", DASHED),
    ]


def why_short(comparisons: Sequence[Comparison]) -> str:
    """Returns a sentence that says why the bars of one chart are short beside another's; an empty
    string if they are not."""
    ends = {one.call: chart.longest for one, chart in zip(comparisons, charts(comparisons))}
    most = max(ends, key=ends.__getitem__, default="")
    short = [call for call, end in ends.items() if MUCH_LONGER * end < ends[most]]
    if not short:
        return ""
    return (
        f"{most} takes more than {MUCH_LONGER} times as long as {' and '.join(short)},"
        " whose bars are short for that reason."
    )


def render(found: Sequence[Comparison | CallComparison], network: str, place: str = "") -> str:
    """Returns the page's HTML. `network` is a sentence about how the ranks communicate, and `place`
    its short form."""
    comparisons = [one for one in found if isinstance(one, Comparison)]
    return html.render(
        "comparison.html.j2",
        found=found,
        comparisons=comparisons,
        calls=[one for one in found if isinstance(one, CallComparison)],
        charts=charts(comparisons),
        why_short=why_short(comparisons),
        samples=min((one.samples for one in found), default=0),
        interval=interval,
        figure=figure,
        hidden=hidden,
        remarks=remarks([row for one in comparisons for row in one.rows]),
        machine=machine(),
        network=network,
        place=place,
    )


def write(
    path: Path, found: Sequence[Comparison | CallComparison], network: str, place: str = ""
) -> None:
    files.write_text(path, render(found, network, place))
