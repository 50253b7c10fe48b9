"""Draws pictures for papers as SVG: time over the amount of computation, with one panel per case.

SVG is sharp at any size, needs no browser to be drawn, and can be converted to PDF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup, escape

from weft.data import files
from weft.report.effect_page import Source, looks, time_graph
from weft.report.svg import LIGHT, TEXT, TITLE, Field, Graph, Stack, lowered, swatch, tag

COLUMNS = 2
WIDTH, HEIGHT = 460, 340  # size of a panel in pixels
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 46, 42  # margins around the plot in pixels
PLOT = HEIGHT - TOP - BOTTOM


def legend(graph: Graph, area: Field) -> Markup:
    """Draws the legend in the upper left corner, where the lines are low."""
    entries = []
    for number, line in enumerate(graph.lines):
        name = area.text(line.name, "28", 9)
        place = f"translate(10 {10 + 15 * number})"
        entries.append(tag("g", swatch(area, line.look), name, transform=place))
    return tag("g", *entries)


def panel(title: str, graph: Graph, x: int, y: int) -> Markup:
    width = WIDTH - LEFT - RIGHT
    inside = (Stack((graph,)).inside(width), lowered(TITLE, legend(graph, graph.area(width))))
    name = tag("text", escape(title), y=-6, font_weight="bold", fill=LIGHT["text"])
    return tag("g", name, *inside, transform=f"translate({x + LEFT} {y + TOP - TITLE})")


def write(path: Path, sources: Sequence[Source]) -> None:
    """Writes the pictures of the results. Raises ValueError if there is nothing to draw."""
    files.write_text(path, of_results(sources) + "\n")


def of_results(sources: Sequence[Source]) -> str:
    styles = looks(sources)
    cases = [case for source in sources for case in source.cases]
    return drawing([(case.title, time_graph(case, styles, PLOT)) for case in cases])


def drawing(graphs: Sequence[tuple[str, Graph]]) -> str:
    """Returns an SVG with a panel for each title and graph. Raises ValueError if there is none."""
    if not graphs:
        raise ValueError("nothing was measured, there is nothing to draw")
    columns = min(COLUMNS, len(graphs))
    panels = []
    for number, (title, graph) in enumerate(graphs):
        row, column = divmod(number, columns)
        panels.append(panel(title, graph, column * WIDTH, row * HEIGHT))
    width, height = columns * WIDTH, -(-len(graphs) // columns) * HEIGHT
    return tag(
        "svg",
        tag("rect", width="100%", height="100%", fill="#ffffff"),
        *panels,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        font_family="Helvetica, Arial, sans-serif",
        font_size=TEXT - 1,
    )
