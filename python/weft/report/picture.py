"""Pictures for papers: time over the amount of computation, one panel per case, as SVG.

Why SVG: it stays sharp at any size, is drawn without a browser, and can be turned into PDF.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.report import html
from weft.report.effect import Case, Curve
from weft.report.effect_page import Source, styles

COLUMNS = 2
WIDTH, HEIGHT = 460, 340  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 28, 42  # around the plot
TICKS = 5  # about so many on an axis
DASHES = {"solid": "", "dash": "6 3", "dot": "2 2"}
BLOCKING_LOOK = {"color": "#5b6570", "dash": "dash"}


@dataclass(frozen=True)
class Axis:
    """From 0 to `last`, drawn from `begin` to `end`."""

    last: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        return round(self.begin + (self.end - self.begin) * value / self.last, 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(place, label) at round values."""
        step = round_step(self.last / TICKS)
        values = [step * i for i in range(int(self.last / step + 1e-9) + 1)]
        return [(self.place(value), f"{value:.4g}") for value in values]


def round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * 0.999)


def points(xs: Sequence[float], ys: Sequence[float], x: Axis, y: Axis) -> str:
    return " ".join(f"{x.place(a)},{y.place(b)}" for a, b in zip(xs, ys))


def line(curve: Curve, case: Case, look: dict[str, str], x: Axis, y: Axis) -> dict:
    """A candidate: its medians as a line, their confidence intervals as a band."""
    scale = case.unit[1]
    amounts = sorted(curve.readings)
    xs = [case.computation_us[amount] / scale for amount in amounts]
    totals = [curve.readings[amount].total for amount in amounts]
    low = [total.low / scale for total in totals]
    high = [total.high / scale for total in totals]
    return {
        "name": curve.name,
        "color": look["color"],
        "dash": DASHES[look["dash"]],
        "points": points(xs, [total.median / scale for total in totals], x, y),
        "band": points([*xs, *reversed(xs)], [*low, *reversed(high)], x, y),
    }


def ideal(case: Case, x: Axis, y: Axis) -> str:
    """The longer of communication and computation."""
    scale = case.unit[1]
    corner, last = case.communication_us / scale, case.computation_us[-1] / scale
    xs = sorted(value for value in (0.0, corner, last) if value <= last)
    return points(xs, [max(value, corner) for value in xs], x, y)


def panel(case: Case, looks: dict[str, dict[str, str]]) -> dict:
    unit, scale = case.unit
    most = max(r.total.high for c in case.curves for r in c.readings.values()) / scale
    x = Axis(1.04 * case.computation_us[-1] / scale, LEFT, WIDTH - RIGHT)
    y = Axis(1.06 * most, HEIGHT - BOTTOM, TOP)
    return {
        "title": case.title,
        "unit": unit,
        "x": x,
        "y": y,
        "ideal": ideal(case, x, y),
        "lines": [line(c, case, looks.get(c.name, BLOCKING_LOOK), x, y) for c in case.curves],
    }


def write(path: Path, sources: Sequence[Source]) -> None:
    """ValueError if there is nothing to draw."""
    cases = [case for source in sources for case in source.cases]
    if not cases:
        raise ValueError("nothing was measured, there is nothing to draw")
    looks = styles(sources)
    panels = [panel(case, looks) for case in cases]
    columns = min(COLUMNS, len(panels))
    text = (
        html.environment()
        .get_template("picture.svg.j2")
        .render(
            panels=panels,
            columns=columns,
            width=WIDTH,
            height=HEIGHT,
            rows=-(-len(panels) // columns),
        )
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
