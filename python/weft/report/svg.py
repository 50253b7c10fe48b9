"""Charts as SVG: lines over an amount, bars, fields, rows of spans, for every page and picture.

Places across are shares of the width, and text has one size, so that a chart fits a phone and a
wide screen alike. Colours are the page's (`var(--best)`), which follow its dark mode without a
script; a picture for papers gets them by value. Hover text is a `<title>`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

# These are Okabe and Ito's colours that show on both backgrounds and need no colour vision.
PALETTE = ("#0f8b77", "#d55e00", "#3b82c4", "#cc79a7", "#b8860b", "#7a5cc0", "#56b4e9", "#8a8f2a")
DASHES = ("", "6 3", "2 3")
SYMBOLS = ("circle", "square", "diamond", "triangle")
DASHED, DOTTED = "6 3", "1 3"
TICKS = 5  # about so many on an axis
LIGHT = {  # of base.html.j2, for pictures that stand alone
    "text": "#1d2329",
    "faint": "#5b6570",
    "line": "#e1e4e8",
}
TEXT = 12  # pixels


@dataclass(frozen=True)
class Look:
    """`colour`: a name of the page's, or a value."""

    colour: str
    dash: str = ""
    symbol: str = "circle"


def look(place: int) -> Look:
    """That of a candidate, by its place among all."""
    return Look(
        PALETTE[place % len(PALETTE)],
        DASHES[place // len(PALETTE) % len(DASHES)],
        SYMBOLS[place % len(SYMBOLS)],
    )


def tag(name: str, *inside: str, **attributes: object) -> Markup:
    """An element; `_` in an attribute's name stands for `-`, and a trailing one is left out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value not in (None, "")
    )
    body = Markup("").join(inside)
    if body or name in ("div", "span"):  # of HTML, which has no short form
        return Markup(f"<{name}{said}>{body}</{name}>")
    return Markup(f"<{name}{said}/>")


def said(text: str) -> Markup:
    return tag("title", escape(text)) if text else Markup("")


def joined(parts: Iterable[str]) -> Markup:
    return Markup("").join(parts)


def short(value: float) -> str:
    """A coordinate, with as few digits as show."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


# ---- Axes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """Values from `first` to `last`, as shares of a length."""

    last: float
    first: float = 0.0
    values: tuple[float, ...] = ()  # where ticks are; (): at round values

    def share(self, value: float) -> float:
        return (value - self.first) / (self.last - self.first)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(share, label)."""
        step = round_step((self.last - self.first) / TICKS)
        begin, end = math.ceil(self.first / step - 1e-9), math.floor(self.last / step + 1e-9)
        values = self.values or [step * i for i in range(begin, end + 1)]
        return [(self.share(value), number(value)) for value in values]


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def unit_of(longest_us: float) -> tuple[str, float]:
    """In which an axis shows times, and its microseconds."""
    scales = (("s", 1e6), ("ms", 1e3))
    return next(((unit, us) for unit, us in scales if longest_us >= 10 * us), ("µs", 1.0))


def round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * 0.999)


@dataclass(frozen=True)
class Field:
    """The area of a chart: `width` in pixels for a picture, none for a page that gives it one."""

    x: Axis
    y: Axis
    height: float
    width: float | None = None

    def colour(self, name: str) -> str:
        if name.startswith("#"):
            return name
        return LIGHT[name] if self.width else f"var(--{name})"

    def across(self, value: float) -> str:
        return self.place(self.x.share(value))

    def place(self, share: float) -> str:
        return short(share * self.width) if self.width else f"{short(100 * share)}%"

    def up(self, value: float) -> float:
        return self.height * (1 - self.y.share(value))

    def points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """For `stretched`, whose width has steps enough."""
        if self.width:
            across = [short(self.width * self.x.share(x)) for x in xs]
        else:
            across = [f"{1000 * self.x.share(x):.0f}" for x in xs]
        return " ".join(f"{x},{short(self.up(y))}" for x, y in zip(across, ys))

    def stretched(self, parts: Iterable[str]) -> Markup:
        """Lines through points, which have no shares of a width."""
        if self.width:
            return tag("g", *parts)
        return tag(
            "svg",
            *parts,
            viewBox=f"0 0 1000 {short(self.height)}",
            preserveAspectRatio="none",
            width="100%",
            height=short(self.height),
        )

    def stroke(self, colour: str) -> dict[str, object]:
        return {"fill": "none", "stroke": self.colour(colour)}

    def level(self, value: float, colour: str, dash: str = DOTTED) -> Markup:
        y = short(self.up(value))
        right = self.place(1)
        return tag("line", x2=right, y1=y, y2=y, stroke=self.colour(colour), stroke_dasharray=dash)

    def upright(self, value: float, colour: str, dash: str = DOTTED, text: str = "") -> Markup:
        x, bottom = self.across(value), short(self.height)
        paint = {"stroke": self.colour(colour), "stroke_dasharray": dash}
        return tag("line", said(text), x1=x, x2=x, y2=bottom, **paint)

    def text(self, text: str, x: str, y: float, colour: str = "text", **attributes: object):
        fill = self.colour(colour)
        return tag("text", escape(text), x=x, y=short(y), fill=fill, **attributes)

    def frame(self, x_title: str) -> Markup:
        """Grid, ticks and the title below."""
        bottom, lines, below, beside = self.height, [], [], []
        for share, label in self.x.ticks:
            x = self.place(share)
            lines.append(tag("line", x1=x, x2=x, y2=short(bottom)))
            below.append(tag("text", escape(label), x=x, y=short(bottom + 16)))
        for share, label in self.y.ticks:
            y = bottom * (1 - share)
            lines.append(tag("line", y1=short(y), y2=short(y), x2=self.place(1)))
            beside.append(tag("text", escape(label), x="-6", y=short(y + 4)))
        faint = self.colour("faint")
        return joined(
            (
                tag("g", *lines, stroke=self.colour("line")),
                tag("g", *below, fill=faint, text_anchor="middle"),
                tag("g", *beside, fill=faint, text_anchor="end"),
                self.text(x_title, self.place(0.5), bottom + 33, text_anchor="middle"),
            )
        )


# ---- Lines ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """Values over an amount; with `low` and `high` a band around them, or whiskers."""

    name: str
    look: Look
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    said: Sequence[str] = ()  # of each point; (): points are not marked
    whiskers: bool = False
    strong: bool = False  # the one that is advised

    @property
    def without_gaps(self) -> tuple[list[float], list[float], list[str]]:
        """Only points that have a value."""
        texts = self.said or [""] * len(self.x)
        known = [(x, y, text) for x, y, text in zip(self.x, self.y, texts) if y is not None]
        xs, ys, said_ = ([list(part) for part in zip(*known)] or [[], [], []])[:3]
        return xs, ys, said_


def definitions() -> Markup:
    """The shapes of points, once in a page or picture."""
    circle = tag("circle", id="circle", r=3.5)
    shapes = {
        "square": "M-3-3h6v6h-6z",
        "diamond": "M0-4.5l4.5 4.5-4.5 4.5-4.5-4.5z",
        "triangle": "M0-4l4 7h-8z",
    }
    paths = [tag("path", id=name, d=path) for name, path in shapes.items()]
    return tag("defs", circle, *paths)


def mark(area: Field, symbol: str, x: float, y: float, text: str) -> Markup:
    """A point with its hover text."""
    return tag("use", said(text), href=f"#{symbol}", x=area.across(x), y=short(area.up(y)))


def drawn(line: Line, area: Field) -> tuple[Markup, Markup]:
    """What is stretched, and what is not."""
    xs, ys, texts = line.without_gaps
    colour = line.look.colour
    parts, fixed = [], []
    if line.low and not line.whiskers:
        around = area.points([*xs, *reversed(xs)], [*line.low, *reversed(line.high)])
        parts.append(tag("polygon", points=around, fill=area.colour(colour), fill_opacity=0.18))
    stroke = {"stroke_width": 3.5 if line.strong else 1.5, "stroke_dasharray": line.look.dash}
    parts.append(tag("polyline", points=area.points(xs, ys), **area.stroke(colour), **stroke))
    if line.whiskers:
        for x, low, high in zip(xs, line.low, line.high):
            place = {"x1": area.across(x), "x2": area.across(x)}
            ends = {"y1": short(area.up(low)), "y2": short(area.up(high))}
            fixed.append(tag("line", **place, **ends, stroke=area.colour(colour)))
    if line.said:
        marks = [mark(area, line.look.symbol, *one) for one in zip(xs, ys, texts)]
        # A margin that is not seen belongs to the point.
        paint = {"fill": area.colour(colour), "stroke": "transparent", "stroke_width": 9}
        fixed.append(tag("g", *marks, **paint))
    return joined(parts), joined(fixed)


def range_of(lines: Sequence[Line], start: float | None) -> tuple[float, float]:
    """Of all that is drawn, a little wider; from `start` on, if one is given."""
    every = [v for line in lines for part in (line.y, line.low, line.high) for v in part]
    known = [value for value in every if value is not None] or [0.0, 1.0]
    low, high = (min(known) if start is None else start), max(known)
    room = (high - low or abs(high) or 1.0) * 0.06
    return (low - room if start is None else start), high + room


@dataclass(frozen=True)
class Graph:
    """Lines over an amount. Two graphs side by side have the same `top`."""

    lines: Sequence[Line]
    x_title: str
    y_title: str
    name: str  # what it shows, for those who do not see it
    start: float | None = 0.0  # where the upright axis begins; None: below the least value
    top: float | None = None
    last: float | None = None  # where the amounts end; None: with the lines
    ticks: tuple[float, ...] = ()  # of the amounts; (): round ones, from 0 on
    level: float | None = None  # a line across
    upright: float | None = None
    rings: Sequence[tuple[float, float, str]] = ()
    height: float = 240

    def area(self, width: float | None = None) -> Field:
        low, high = range_of(self.lines, self.start)
        if self.level is not None:
            low, high = min(low, self.level), max(high, self.level * 1.02)
        every = [x for line in self.lines for x in line.x] or [1.0]
        least, most = min(every), self.last or max(every)
        room = 0.04 * (most - least or 1.0)
        x = Axis(most + room, least - room, self.ticks) if self.ticks else Axis(1.04 * most)
        return Field(x, Axis(self.top or high, low), self.height, width)

    def inside(self, area: Field) -> Markup:
        parts = [area.frame(self.x_title)]
        if self.level is not None:
            parts.append(area.level(self.level, "faint"))
        if self.upright is not None:
            parts.append(area.upright(self.upright, "faint"))
        both = [drawn(line, area) for line in self.lines]
        parts.append(area.stretched([stretched for stretched, _ in both]))
        parts += [fixed for _, fixed in both]
        ring = {**area.stroke("text"), "r": 7, "pointer_events": "all"}
        for x, y, text in self.rings:
            place = {"cx": area.across(x), "cy": short(area.up(y))}
            parts.append(tag("circle", said(text), **place, **ring))
        return joined(parts)

    def __html__(self) -> Markup:
        area = self.area()
        entries = [(line.name, line.look) for line in self.lines]
        left = 12 + 7 * max(len(label) for _, label in area.y.ticks)
        style = f"padding-left:{left}px"
        svg = tag("svg", self.inside(area), height=short(self.height + 40), **frame(self.name))
        return joined(
            (
                legend(entries if len(entries) > 1 else ()),
                tag("div", escape(self.y_title), class_="axis"),
                tag("div", svg, class_="plot", style=style),
            )
        )


def frame(name: str) -> dict[str, object]:
    """Attributes of a chart that takes the width it is given."""
    return {"class_": "drawn", "width": "100%", "role": "img", "aria_label": name}


def swatch(area: Field, shown: Look) -> Markup:
    dash = {"stroke_dasharray": shown.dash, "stroke_width": 2}
    return tag("line", x2=22, y1=5, y2=5, stroke=area.colour(shown.colour), **dash)


def legend(entries: Sequence[tuple[str, Look]]) -> Markup:
    """Of lines."""
    area = Field(Axis(1), Axis(1), 1)
    items = [
        tag("li", tag("svg", swatch(area, shown), width=22, height=10), escape(name))
        for name, shown in entries
    ]
    return tag("ul", *items, class_="legend") if items else Markup("")


def key(entries: Sequence[tuple[str, str]]) -> Markup:
    """Of bars and spans: names and colours."""
    area = Field(Axis(1), Axis(1), 1)
    items = []
    for name, colour in entries:
        square = tag("rect", width=12, height=10, rx=2, fill=area.colour(colour))
        items.append(tag("li", tag("svg", square, width=12, height=10), escape(name)))
    return tag("ul", *items, class_="legend") if items else Markup("")


def axis_below(area: Field, title: str) -> Markup:
    parts = [tag("line", x2="100%", stroke=area.colour("faint"))]
    for share, label in area.x.ticks:
        x = area.place(share)
        parts.append(tag("line", x1=x, x2=x, y2=5, stroke=area.colour("faint")))
        parts.append(area.text(label, x, 18, "faint", text_anchor="middle"))
    parts.append(area.text(title, "50%", 36, text_anchor="middle"))
    return tag("svg", *parts, class_="drawn", width="100%", height=44)


# ---- Bars -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """A row: its name, parts one after the other, and what is said at the right."""

    name: str
    parts: Sequence[tuple[float, str, str]]  # value, colour, hover text
    label: str = ""
    low: float | None = None
    high: float | None = None

    @property
    def end(self) -> float:
        return max(sum(value for value, _, _ in self.parts), self.high or 0.0)


@dataclass(frozen=True)
class Bars:
    """Rows of bars over one axis. Several side by side have the same `last`."""

    bars: Sequence[Bar]
    x_title: str
    name: str
    last: float | None = None
    levels: Sequence[tuple[float, str, str]] = ()  # to hold the bars against: value, name, dash
    entries: Sequence[tuple[str, str]] = ()  # of the key

    @property
    def longest(self) -> float:
        return max([bar.end for bar in self.bars] + [value for value, _, _ in self.levels])

    def row(self, bar: Bar, area: Field) -> Markup:
        parts, at = [], 0.0
        for value, colour, text in bar.parts:
            if value > 0:
                place = {"x": area.across(at), "width": area.place(area.x.share(value))}
                shape = {"y": 2, "height": 12, "fill": area.colour(colour)}
                parts.append(tag("rect", said(text), **place, **shape))
            at += value
        for value, text, dash in self.levels:
            parts.append(area.upright(value, "text", dash, text))
        if bar.low is not None and bar.high is not None:
            ends = {"x1": area.across(bar.low), "x2": area.across(bar.high), "y1": 8, "y2": 8}
            parts.append(tag("line", **ends, stroke=area.colour("text"), stroke_width=1.5))
        names = tag("span", escape(bar.name)), tag("span", escape(bar.label), class_="faint")
        svg = tag("svg", *parts, class_="drawn", width="100%", height=short(area.height))
        return joined((tag("div", *names, class_="row"), svg))

    def __html__(self) -> Markup:
        area = Field(Axis(1.02 * (self.last or self.longest or 1.0)), Axis(1.0), 16)
        rows = [self.row(bar, area) for bar in self.bars]
        lines = [(name, Look("text", dash)) for _, name, dash in self.levels]
        above = joined((key(self.entries), legend(lines)))
        chart = tag(
            "div",
            *rows,
            axis_below(area, self.x_title),
            class_="bars",
            role="img",
            aria_label=self.name,
        )
        return joined((above, chart))


# ---- Fields and rows of spans -----------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    colour: str
    text: str
    said: str
    dark: bool  # its colour takes white text


@dataclass(frozen=True)
class Map:
    """Rows of fields, from top to bottom."""

    rows: Sequence[tuple[str, Sequence[Cell]]]
    x_title: str
    name: str
    entries: Sequence[tuple[str, str]]

    def __html__(self) -> Markup:
        columns = max(len(cells) for _, cells in self.rows)
        area = Field(Axis(columns), Axis(1.0), 34 * len(self.rows))
        parts, words = [], []
        for row, (label, cells) in enumerate(self.rows):
            y = 34 * row
            parts.append(area.text(label, "-6", y + 21, "faint", text_anchor="end"))
            for place, cell in enumerate(cells):
                shape = {"x": area.across(place + 0.02), "width": area.place(0.96 / columns)}
                shape |= {"y": y + 1, "height": 32, "fill": area.colour(cell.colour)}
                parts.append(tag("rect", said(cell.said), **shape))
                fill = "#ffffff" if cell.dark else "text"
                for line, word in enumerate(cell.text.split(" ")):
                    at = area.across(place + 0.5)
                    words.append(area.text(word, at, y + 15 + 11 * line, fill))
        bottom = area.height
        style = {"text_anchor": "middle", "font_size": 10, "pointer_events": "none"}
        parts.append(tag("g", *words, **style))
        parts.append(area.text(self.x_title, "50%", bottom + 18, text_anchor="middle"))
        left = 12 + 7 * max(len(label) for label, _ in self.rows)
        svg = tag("svg", *parts, height=short(bottom + 26), **frame(self.name))
        style = f"padding-left:{left}px"
        return joined((key(self.entries), tag("div", svg, class_="plot", style=style)))


@dataclass(frozen=True)
class Span:
    begin: float
    end: float
    kind: int
    name: str = ""


@dataclass(frozen=True)
class Lanes:
    """What happened when, in rows with names. Spans that are too close to be seen are joined."""

    rows: Sequence[tuple[str, Sequence[Span]]]
    last: float
    x_title: str
    name: str
    kinds: Sequence[tuple[str, str]]  # name and colour
    unit: str
    most: int = 600  # rectangles
    height: float = 14  # of a row

    def hover(self, span: Span, count: int) -> str:
        took = f"{span.end - span.begin:.4g} {self.unit}"
        kind = self.kinds[span.kind][0]
        if count > 1:
            return f"{count} times {kind}, the first {span.name}: {took} from first to last"
        return f"{span.name}, {kind}: {took}"

    def __html__(self) -> Markup:
        area = Field(Axis(self.last), Axis(1.0), self.height)
        parts = []
        for name, spans in joined_rows(self.rows, self.last, self.most):
            rectangles = []
            for span, count in spans:
                begin, end = (100 * area.x.share(time) for time in (span.begin, span.end))
                place = {"x": f"{begin:.2f}%", "width": f"{max(end - begin, 0.12):.2f}%"}
                fill = area.colour(self.kinds[span.kind][1])
                text = said(self.hover(span, count))
                rectangles.append(tag("rect", text, **place, height=short(self.height), fill=fill))
            svg = {"class_": "drawn", "width": "100%", "height": short(self.height + 1)}
            parts += [tag("div", escape(name), class_="row faint"), tag("svg", *rectangles, **svg)]
        used = {span.kind for _, spans in self.rows for span in spans}
        entries = [entry for kind, entry in enumerate(self.kinds) if kind in used]
        axis = axis_below(area, self.x_title)
        chart = tag("div", *parts, axis, class_="bars", role="img", aria_label=self.name)
        return joined((key(entries), chart))


@dataclass(frozen=True)
class Rows:
    """Many rows without names, such as a machine's cores: a path for each kind."""

    rows: Sequence[Sequence[Span]]
    last: float
    x_title: str
    name: str
    kinds: Sequence[tuple[str, str]]  # the first is drawn over the others
    most: int = 2500
    height: float = 420  # at most

    def __html__(self) -> Markup:
        row = max(2.0, min(12.0, self.height / max(1, len(self.rows))))
        area = Field(Axis(self.last), Axis(1.0), row * len(self.rows))
        paths: list[list[str]] = [[] for _ in self.kinds]
        named = [("", spans) for spans in self.rows]
        for core, (_, spans) in enumerate(joined_rows(named, self.last, self.most)):
            y, height = short(core * row), short(row - (1 if row > 4 else 0))
            for span, _ in spans:
                begin, end = (round(1000 * area.x.share(time)) for time in (span.begin, span.end))
                width = max(1, end - begin)
                paths[span.kind].append(f"M{begin} {y}h{width}v{height}h-{width}z")
        parts = [
            tag("path", d="".join(path), fill=area.colour(colour))
            for path, (_, colour) in reversed(list(zip(paths, self.kinds)))
            if path
        ]
        svg = area.stretched(parts)
        chart = tag("div", svg, axis_below(area, self.x_title), class_="bars", role="img")
        return joined((key(self.kinds), chart))


def joined_rows(
    rows: Sequence[tuple[str, Sequence[Span]]], last: float, most: int
) -> list[tuple[str, list[tuple[Span, int]]]]:
    """Each row's spans, and how many were joined in each, so that there are not too many."""
    apart = last / 2000
    while True:
        found = [(name, merged(spans, apart)) for name, spans in rows]
        if apart > last or sum(len(spans) for _, spans in found) <= most:
            return found
        apart *= 1.5


def merged(spans: Sequence[Span], apart: float) -> list[tuple[Span, int]]:
    """Short spans of one kind that are close to each other become one."""
    found: list[tuple[Span, int]] = []
    latest: dict[int, int] = {}  # by kind: the place in what was found
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
