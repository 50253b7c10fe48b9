"""Pictures for papers: time over the amount of computation, one panel per case, as PNG.

Why matplotlib beside plotly: it draws without a browser, so also on a machine that has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.report.effect import Case
from weft.report.effect_page import Source, styles

MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "x": "x",
    "cross": "P",
    "star": "*",
    "hexagon": "h",
}
LINES = {"solid": "-", "dash": "--", "dot": ":"}
COLUMNS = 2
PANEL_INCHES = (4.6, 3.4)


def write(path: Path, sources: Sequence[Source]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    cases = [case for source in sources for case in source.cases]
    if not cases:
        raise ValueError("nothing was measured, there is nothing to draw")
    columns = min(COLUMNS, len(cases))
    rows = -(-len(cases) // columns)
    width, height = PANEL_INCHES
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(columns * width, rows * height), squeeze=False, dpi=200
    )
    looks = styles(sources)
    for panel, case in zip(axes.flat, cases, strict=False):
        draw(panel, case, looks)
    for panel in list(axes.flat)[len(cases) :]:
        panel.set_axis_off()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)


def draw(panel, case: Case, looks: dict[str, dict[str, str]]) -> None:
    unit, scale = case.unit
    corner, last = case.communication_us / scale, case.computation_us[-1] / scale
    x = sorted(value for value in (0.0, corner, last) if value <= last)
    ideal = [max(value, corner) for value in x]
    panel.plot(x, ideal, ":", color="black", linewidth=1, label="ideal")
    for curve in case.curves:
        amounts = sorted(curve.readings)
        totals = [curve.readings[amount].total for amount in amounts]
        x = [case.computation_us[amount] / scale for amount in amounts]
        look = looks.get(curve.name)
        style = (
            {"color": look["color"], "linestyle": LINES[look["dash"]]}
            if look
            else {"color": "#5b6570", "linestyle": "--"}
        )
        marker = MARKERS[look["symbol"]] if look else None
        y = [total.median / scale for total in totals]
        panel.plot(x, y, **style, marker=marker, markersize=3.5, linewidth=1.3, label=curve.name)
        low, high = ([t.low / scale for t in totals], [t.high / scale for t in totals])
        panel.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
    panel.set_title(case.title, fontsize=8)
    panel.set_xlabel(f"computation alone, {unit}", fontsize=8)
    panel.set_ylabel(f"both together, {unit}", fontsize=8)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    panel.tick_params(labelsize=7)
    panel.grid(color="#e1e4e8", linewidth=0.6)
    panel.legend(fontsize=6.5, frameon=False)
