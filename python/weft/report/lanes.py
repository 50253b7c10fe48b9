"""Draws rows of time spans as SVG: what ranks or cores did at which time.

Close spans are joined, since a job has more of them than a screen has pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from weft.report.svg import (
    ACROSS,
    FINE,
    TICKS,
    TITLE,
    Axis,
    Field,
    axis_below,
    joined,
    key,
    lowered,
    round_step,
    said,
    short,
    tag,
)

LEFT = 40  # pixels on the left for the numbers of rows


@dataclass(frozen=True)
class Span:
    begin: float
    end: float
    kind: int
    name: str = ""


@dataclass(frozen=True)
class Lanes:
    """Spans of time in named rows. Spans too close to be distinguished are joined."""

    rows: Sequence[tuple[str, Sequence[Span]]]
    last: float
    x_title: str
    name: str
    kinds: Sequence[tuple[str, str]]  # name and colour of each kind
    took: Callable[[float], str]  # returns the length of a part of the axis as text
    most: int = 600  # largest number of drawn spans
    height: float = 14  # height of a row in pixels

    def hover(self, span: Span, count: int) -> str:
        took, kind = self.took(span.end - span.begin), self.kinds[span.kind][0]
        if count > 1:
            return f"{count} times {kind}, the first {span.name}: {took} from first to last"
        return f"{span.name}, {kind}: {took}"

    def row(self, spans: Iterable[tuple[Span, int]], area: Field) -> Markup:
        """Draws the spans of a row. Each is at least one step wide, so that short ones are
        visible."""
        kinds: dict[int, list[Markup]] = {}
        for span, count in spans:
            around = area.strip(span.begin, max(span.end, span.begin + self.last / ACROSS))
            drawn = tag("path", said(self.hover(span, count)), d=around)
            kinds.setdefault(span.kind, []).append(drawn)
        groups = [
            tag("g", *paths, fill=area.colour(self.kinds[kind][1])) for kind, paths in kinds.items()
        ]
        return area.stretched(groups)

    def __html__(self) -> Markup:
        area = Field(Axis(self.last), Axis(1.0), self.height)
        parts = []
        for name, spans in joined_rows(self.rows, self.last, self.most):
            parts += [tag("div", escape(name), class_="row faint"), self.row(spans, area)]
        used = {span.kind for _, spans in self.rows for span in spans}
        entries = [entry for kind, entry in enumerate(self.kinds) if kind in used]
        axis = axis_below(area, self.x_title)
        chart = tag("div", *parts, axis, class_="bars", role="img", aria_label=self.name)
        return joined((key(entries), chart))


@dataclass(frozen=True)
class Rows:
    """Many numbered rows, such as the cores of a machine, with one SVG path for each kind of
    span."""

    rows: Sequence[Sequence[Span]]
    last: float
    x_title: str
    name: str
    # This is the name and colour of each kind; the first kind is drawn over the others.
    kinds: Sequence[tuple[str, str]]
    row_title: str
    most: int = 2500
    height: float = 420  # greatest height of all rows in pixels

    def __html__(self) -> Markup:
        row = max(2.0, min(12.0, self.height / max(1, len(self.rows))))
        area = Field(Axis(self.last), Axis(1.0), row * len(self.rows))
        paths: list[list[str]] = [[] for _ in self.kinds]
        named = [("", spans) for spans in self.rows]
        for core, (_, spans) in enumerate(joined_rows(named, self.last, self.most)):
            y, height = short(FINE * core * row), short(FINE * (row - (1 if row > 4 else 0)))
            for span, _ in spans:
                begin, end = (round(ACROSS * area.x.share(at)) for at in (span.begin, span.end))
                width = max(1, end - begin)
                paths[span.kind].append(f"M{begin} {y}h{width}v{height}h-{width}z")
        parts = [
            tag("path", d="".join(path), fill=area.colour(colour))
            for path, (_, colour) in reversed(list(zip(paths, self.kinds)))
            if path
        ]
        plot = lowered(TITLE, area.stretched(parts), *self.labels(area, row))
        title = area.text(self.row_title, str(4 - LEFT), TITLE - 9)
        height = short(TITLE + area.height)
        svg = tag("svg", title, plot, class_="drawn", width="100%", height=height)
        bars = {"class_": "bars", "style": f"padding-left:{LEFT}px", "role": "img"}
        chart = tag("div", svg, axis_below(area, self.x_title), **bars, aria_label=self.name)
        return joined((key(self.kinds), chart))

    def labels(self, area: Field, row: float) -> list[Markup]:
        """Draws the numbers of some of the rows."""
        step = max(1, round(round_step(len(self.rows) / TICKS)))
        return [
            area.text(str(at), "-6", (at + 0.5) * row + 4, "faint", text_anchor="end")
            for at in range(0, len(self.rows), step)
        ]


def joined_rows(
    rows: Sequence[tuple[str, Sequence[Span]]], last: float, most: int
) -> list[tuple[str, list[tuple[Span, int]]]]:
    """Returns the rows with at most `most` spans in total. Each span has the number of spans that
    were joined in it."""
    apart = last / 2000
    while True:
        found = [(name, merged(spans, apart)) for name, spans in rows]
        if apart > last or sum(len(spans) for _, spans in found) <= most:
            return found
        apart *= 1.5


def merged(spans: Sequence[Span], apart: float) -> list[tuple[Span, int]]:
    """Joins short spans of one kind that are close to each other."""
    found: list[tuple[Span, int]] = []
    latest: dict[int, int] = {}  # maps each kind to the index of its latest span in the result
    for span in sorted(spans, key=lambda one: one.begin):
        place = latest.get(span.kind)
        if place is not None and span.end - span.begin < 4 * apart:
            one, count = found[place]
            if span.begin - one.end < apart:
                joint = Span(one.begin, max(one.end, span.end), one.kind, one.name)
                found[place] = (joint, count + 1)
                continue
        latest[span.kind] = len(found)
        found.append((span, 1))
    return found
