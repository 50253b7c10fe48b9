"""Draws charts as SVG for all pages and pictures: lines over an amount, bars, fields.

Horizontal positions are shares of the width, and text has one size, so that a chart fits a phone
and a wide screen alike. Colours are variables of the page (`var(--best)`), which follow its dark
mode without a script. A picture for papers contains their values. Hover text is a `<title>`. A page
has many charts. To save space, lines and points are paths in whole steps, each given as its
distance from the previous one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup, escape

# These colours of Okabe and Ito are visible on both backgrounds, and can be distinguished with any
# colour vision.
PALETTE = ("#0f8b77", "#d55e00", "#3b82c4", "#cc79a7", "#b8860b", "#7a5cc0", "#56b4e9", "#8a8f2a")
DASHES = ("", "6 3", "2 3")
ROUND, SQUARE = "round", "square"  # shapes of stroke ends, which draw points
SYMBOLS = (ROUND, SQUARE)
DASHED, DOTTED = "6 3", "1 3"
TICKS = 5  # approximate number of ticks on an axis
# These are the steps of a page's coordinates over the whole width, and in a pixel of the height.
ACROSS, FINE = 1000, 2
LIGHT = {  # colours of base.html.j2, for pictures outside of a page
    "text": "#1d2329",
    "faint": "#5b6570",
    "line": "#e1e4e8",
}
TEXT = 12  # height of text in pixels
TITLE = 20  # pixels for the title above a plot


Spot = tuple[float, float]


@dataclass(frozen=True)
class Look:
    """The look of a line. `colour` is the name of a page's colour, or a value. Points are not
    marked without a symbol."""

    colour: str
    dash: str = ""
    symbol: str = ""


def look(place: int) -> Look:
    """Returns the look of a candidate by its position among all."""
    return Look(
        PALETTE[place % len(PALETTE)],
        DASHES[place // len(PALETTE) % len(DASHES)],
        SYMBOLS[place % len(SYMBOLS)],
    )


def tag(name: str, *inside: str, **attributes: object) -> Markup:
    """Returns an XML element. `_` in an attribute's name stands for `-`, and a trailing `_` is
    removed."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value not in (None, "")
    )
    body = Markup("").join(inside)
    if body or name in ("div", "span"):  # these elements of HTML have no short form
        return Markup(f"<{name}{said}>{body}</{name}>")
    return Markup(f"<{name}{said}/>")


def said(text: str) -> Markup:
    return tag("title", escape(text)) if text else Markup("")


def joined(parts: Iterable[str]) -> Markup:
    return Markup("").join(parts)


def short(value: float) -> str:
    """Returns a coordinate as text with the digits that are visible."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def distances(spots: Sequence[Spot]) -> list[str]:
    """Returns the first point, and the distance of each other one from its predecessor."""
    before = [(0.0, 0.0), *spots]
    return [
        f"{short(x - a)} {short(y - b)}".replace(" -", "-") for (a, b), (x, y) in zip(before, spots)
    ]


def course(spots: Sequence[Spot]) -> str:
    """Returns the path through all points."""
    return ("m" + " ".join(distances(spots))).replace(" -", "-") if spots else ""


def dots(spots: Sequence[Spot]) -> str:
    """Returns a path with a stroke of length zero at each point, which draws a dot."""
    return "".join(f"m{place}h0" for place in distances(spots))


# ---- Axes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """An axis with values from `first` to `last`, which are converted to shares of its length."""

    last: float
    first: float = 0.0
    # These are values at which ticks are drawn; if empty, round values are chosen.
    values: tuple[float, ...] = ()

    def share(self, value: float) -> float:
        return (value - self.first) / (self.last - self.first)

    @property
    def places(self) -> list[float]:
        """Returns the values at which ticks are drawn."""
        step = round_step((self.last - self.first) / TICKS)
        begin, end = math.ceil(self.first / step - 1e-9), math.floor(self.last / step + 1e-9)
        return list(self.values) or [step * i for i in range(begin, end + 1)]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Returns the position (as a share of the length) and the label of each tick."""
        return [(self.share(value), number(value)) for value in self.places]


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def unit_of(longest_us: float) -> tuple[str, float]:
    """Returns the unit in which an axis shows times, and its length in microseconds."""
    scales = (("s", 1e6), ("ms", 1e3))
    return next(((unit, us) for unit, us in scales if longest_us >= 10 * us), ("µs", 1.0))


def round_step(least: float) -> float:
    """Returns 1, 2 or 5 times a power of ten, and at least the given value."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * 0.999)


@dataclass(frozen=True)
class Field:
    """The area of a chart. `width` is in pixels for a picture, and unset on a page, which decides
    the width."""

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

    def spot(self, x: float, y: float) -> Spot:
        """Returns a point's coordinates for paths within `stretched`: whole steps on a page, or
        tenths of a pixel in a picture."""
        across, up = self.x.share(x), self.up(y)
        if self.width:
            return round(across * self.width, 1), round(up, 1)
        return round(across * ACROSS), round(up * FINE)

    def spots(self, xs: Iterable[float], ys: Iterable[float]) -> list[Spot]:
        return [self.spot(x, y) for x, y in zip(xs, ys)]

    def stretched(self, parts: Iterable[str]) -> Markup:
        """Returns an element that stretches paths over the width, since path coordinates cannot be
        shares of it."""
        if self.width:
            return tag("g", *parts)
        return tag(
            "svg",
            *parts,
            viewBox=f"0 0 {ACROSS} {short(FINE * self.height)}",
            preserveAspectRatio="none",
            height=short(self.height),
        )

    def stroke(self, colour: str) -> dict[str, object]:
        return {"fill": "none", "stroke": self.colour(colour)}

    def across_at(self, value: float) -> str:
        """Returns the path of a horizontal line at this value."""
        left, y = self.spot(self.x.first, value)
        return f"M{short(left)} {short(y)}H{short(self.spot(self.x.last, value)[0])}"

    def upright_at(self, value: float) -> str:
        x, top = self.spot(value, self.y.last)
        return f"M{short(x)} {short(top)}V{short(self.spot(value, self.y.first)[1])}"

    def strip(self, left: float, right: float) -> str:
        """Returns the path around a vertical strip of the area."""
        x, top = self.spot(left, self.y.last)
        end, bottom = self.spot(right, self.y.first)
        return f"M{short(x)} {short(top)}H{short(end)}V{short(bottom)}H{short(x)}z"

    def upright(self, value: float, colour: str, dash: str = DOTTED, text: str = "") -> Markup:
        x, bottom = self.across(value), short(self.height)
        paint = {"stroke": self.colour(colour), "stroke_dasharray": dash}
        return tag("line", said(text), x1=x, x2=x, y2=bottom, **paint)

    def text(self, text: str, x: str, y: float, colour: str = "text", **attributes: object):
        fill = self.colour(colour)
        return tag("text", escape(text), x=x, y=short(y), fill=fill, **attributes)

    def grid(self) -> Markup:
        """Draws a line at each tick."""
        lines = [self.upright_at(value) for value in self.x.places]
        lines += [self.across_at(value) for value in self.y.places]
        return tag("path", d="".join(lines), stroke=self.colour("line"))

    def labels_beside(self) -> Markup:
        """Draws the labels of the vertical axis."""
        texts = [
            tag("text", escape(label), y=short(self.height * (1 - at)))
            for at, label in self.y.ticks
        ]
        paint = {"fill": self.colour("faint"), "text_anchor": "end"}
        return tag("g", *texts, **paint, transform="translate(-6 4)")

    def labels_below(self, title: str) -> Markup:
        texts = [tag("text", escape(label), x=self.place(at)) for at, label in self.x.ticks]
        ticks = tag("g", *texts, fill=self.colour("faint"), transform="translate(0 16)")
        return tag("g", ticks, self.text(title, self.place(0.5), 33), text_anchor="middle")


# ---- Lines ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """Values over an amount. With `low` and `high` there is a band around the line, or whiskers."""

    name: str
    look: Look
    x: Sequence[float]
    y: Sequence[float | None]  # values; None makes a gap in the line
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    said: Sequence[str] = ()  # hover text for each point
    whiskers: bool = False
    strong: bool = False  # the line is emphasised, since it is the recommended one
    # Only these points are drawn with the look's symbol; if empty, all are. An isolated point
    # always has it.
    marked: Sequence[bool] = ()

    def spots(self, area: Field) -> list[Spot]:
        """Returns the points that have a value."""
        return [area.spot(x, y) for x, y in zip(self.x, self.y) if y is not None]

    def points(self, area: Field) -> str:
        every = self.spots(area)
        if len(every) == 1:
            return dots(every)
        if not self.look.symbol:
            return ""
        chosen = zip(self.x, self.y, self.marked or [True] * len(self.x))
        return dots([area.spot(x, y) for x, y, here in chosen if here and y is not None])

    def band(self, area: Field) -> str:
        around = area.spots(self.x, self.high) + area.spots(self.x, self.low)[::-1]
        return course(around) + "z"

    def ends(self, area: Field) -> str:
        """Returns the path of the line's whiskers."""
        above, below = area.spots(self.x, self.high), area.spots(self.x, self.low)
        return "".join(
            f"M{short(x)} {short(top)}V{short(bottom)}"
            for (x, top), (_, bottom) in zip(above, below)
        )


def range_of(lines: Sequence[Line], start: float | None) -> tuple[float, float]:
    """Returns the range of all drawn values, slightly widened. If `start` is given, the range
    begins there."""
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
    name: str  # description for readers who cannot see the graph
    # This is the start of the vertical axis; None means slightly below the least value.
    start: float | None = 0.0
    top: float | None = None
    last: float | None = None  # end of the horizontal axis; None means the end of the lines
    # The horizontal axis has ticks at these values; if empty, round values from 0 are chosen.
    ticks: tuple[float, ...] = ()
    level: float | None = None  # value at which a horizontal line is drawn
    upright: float | None = None
    rings: Sequence[tuple[float, float, str]] = ()
    height: float = 240
    heads: Mapping[float, str] = field(default_factory=dict)  # heading of each amount's hover text

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
        layers = (area.grid(), self.marks(area), *self.drawn(area))
        return joined((area.stretched(layers), area.labels_beside()))

    def circles(self, area: Field) -> Markup:
        ring = {**area.stroke("text"), "r": 7, "pointer_events": "all"}
        return joined(
            tag("circle", said(text), cx=area.across(x), cy=short(area.up(y)), **ring)
            for x, y, text in self.rings
        )

    def marks(self, area: Field) -> Markup:
        """Draws the reference lines."""
        paths = [area.across_at(self.level)] if self.level is not None else []
        paths += [area.upright_at(self.upright)] if self.upright is not None else []
        faint = area.colour("faint")
        return joined(tag("path", d=d, stroke=faint, stroke_dasharray=DOTTED) for d in paths)

    def drawn(self, area: Field) -> list[Markup]:
        """Draws bands, lines, whiskers and points, each above the previous ones."""
        bands, lines, points = [], [], []
        for line in self.lines:
            colour, look = area.colour(line.look.colour), line.look
            if line.low and line.whiskers:
                lines.append(tag("path", stroke=colour, d=line.ends(area)))
            elif line.low:
                bands.append(tag("path", fill=colour, d=line.band(area)))
            width = 3.5 if line.strong else None
            paint = {"stroke_width": width, "stroke_dasharray": look.dash}
            lines.append(tag("path", stroke=colour, **paint, d=course(line.spots(area))))
            if marks := line.points(area):
                end = look.symbol if look.symbol != ROUND else None
                points.append(tag("path", stroke=colour, stroke_linecap=end, d=marks))
        layers = (
            (bands, {"fill_opacity": 0.18}),
            (lines, {"fill": "none", "stroke_width": 1.5}),
            (points, {"stroke_width": 7, "stroke_linecap": ROUND}),
        )
        return [tag("g", *paths, **paint) for paths, paint in layers if paths]

    def head(self, x: float) -> str:
        return self.heads.get(x) or f"{self.x_title}: {number(x)}"

    def __html__(self) -> Markup:
        return Stack((self,)).__html__()


@dataclass(frozen=True)
class Stack:
    """Graphs one below the other, over the amounts of the first one, with a common hover text."""

    graphs: Sequence[Graph]
    name: str = ""  # title; if empty, that of the first graph
    explained: bool = True  # has a legend of its own; otherwise the page has one

    @property
    def left(self) -> int:
        """Returns the width in pixels of the labels on the left."""
        labels = [label for graph in self.graphs for _, label in graph.area().y.ticks]
        return 12 + 7 * max(map(len, labels))

    @property
    def tops(self) -> list[float]:
        """Returns the top of each graph's plot, below its title."""
        before = itertools.accumulate(graph.height + 2 * TITLE for graph in self.graphs)
        return [TITLE + top for top in (0, *before)][: len(self.graphs)]

    @property
    def bottom(self) -> float:
        return self.tops[-1] + self.graphs[-1].height

    def areas(self, width: float | None) -> list[Field]:
        found = [graph.area(width) for graph in self.graphs]
        return [replace(area, x=found[0].x) for area in found]

    def inside(self, width: float | None = None) -> Markup:
        areas, plots, rings = self.areas(width), [], []
        for graph, area, top in zip(self.graphs, areas, self.tops):
            title = area.text(graph.y_title, str(4 - self.left), -9)
            plots.append(lowered(top, title, graph.inside(area)))
            rings.append(lowered(top, graph.circles(area)) if graph.rings else "")
        below = lowered(self.bottom, areas[0].labels_below(self.graphs[0].x_title))
        return joined((*plots, below, lowered(self.tops[0], self.strips(areas[0])), *rings))

    def strips(self, first: Field) -> Markup:
        """Draws a strip around each amount. Its hover text has the texts of all lines at this
        amount."""
        area = replace(first, height=self.bottom - self.tops[0])
        found: dict[float, list[str]] = {}
        for line in (line for graph in self.graphs for line in graph.lines):
            for x, y, text in zip(line.x, line.y, line.said):
                if y is not None:
                    found.setdefault(x, []).append(text)
        xs = sorted(found)
        edges = [area.x.first, *((a + b) / 2 for a, b in zip(xs, xs[1:])), area.x.last]
        head = self.graphs[0].head
        paths = [
            tag("path", said("\n".join((head(x), *found[x]))), d=area.strip(left, right))
            for x, left, right in zip(xs, edges, edges[1:])
        ]
        return area.stretched([tag("g", *paths, fill="transparent", class_="strips")])

    def __html__(self) -> Markup:
        name = self.name or self.graphs[0].name
        svg = tag("svg", self.inside(), height=short(self.bottom + 40), **frame(name))
        lines = {line.name: line.look for graph in self.graphs for line in graph.lines}
        above = legend(lines.items()) if self.explained and len(lines) > 1 else Markup("")
        style = f"padding-left:{self.left}px"
        return joined((above, tag("div", svg, class_="plot", style=style)))


def one_scale(graphs: Sequence[Graph]) -> list[Graph]:
    """Returns the graphs with one common vertical scale, to stand side by side."""
    axes = [graph.area().y for graph in graphs]
    low, high = min(axis.first for axis in axes), max(axis.last for axis in axes)
    return [replace(graph, start=low, top=high) for graph in graphs]


def legend_of(graphs: Sequence[Graph]) -> Markup:
    """Returns one legend for all graphs. It stays visible above them while the page is scrolled."""
    return legend({one.name: one.look for graph in graphs for one in graph.lines}.items(), True)


def lowered(by: float, *parts: str) -> Markup:
    return tag("g", *parts, transform=f"translate(0 {short(by)})")


def frame(name: str) -> dict[str, object]:
    """Returns the attributes of a chart that fills the available width."""
    return {"class_": "drawn", "width": "100%", "role": "img", "aria_label": name}


def swatch(area: Field, shown: Look) -> Markup:
    """Draws a short line with a point in it, for a legend."""
    parts = [tag("path", d="M0 5h22", stroke_dasharray=shown.dash)]
    if shown.symbol:
        parts.append(tag("path", d="M11 5h0", stroke_width=7, stroke_linecap=shown.symbol))
    return tag("g", *parts, stroke=area.colour(shown.colour), stroke_width=2)


def legend(entries: Iterable[tuple[str, Look]], still: bool = False) -> Markup:
    """Returns a legend of lines. `still`: it stays visible above the graph while the page is
    scrolled."""
    area = Field(Axis(1), Axis(1), 1)
    items = [tag("li", tag("svg", swatch(area, shown)), escape(name)) for name, shown in entries]
    return tag("ul", *items, class_="legend still" if still else "legend") if items else Markup("")


def key(entries: Sequence[tuple[str, str]]) -> Markup:
    """Returns a key of bars and spans: names and colours."""
    area = Field(Axis(1), Axis(1), 1)
    items = []
    for name, colour in entries:
        square = tag("rect", width=12, height=10, rx=2, fill=area.colour(colour))
        items.append(tag("li", tag("svg", square), escape(name)))
    return tag("ul", *items, class_="legend key") if items else Markup("")


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
    """A row of a bar chart: its name, its parts one after the other, and the text on its right."""

    name: str
    parts: Sequence[tuple[float, str, str]]  # value, colour and hover text of each part
    label: str = ""
    low: float | None = None
    high: float | None = None

    @property
    def end(self) -> float:
        return max(sum(value for value, _, _ in self.parts), self.high or 0.0)


@dataclass(frozen=True)
class Bars:
    """Rows of bars over one axis. Several charts side by side have the same `last`."""

    bars: Sequence[Bar]
    x_title: str
    name: str
    last: float | None = None
    # These are vertical reference lines: value, name and dash of each.
    levels: Sequence[tuple[float, str, str]] = ()
    entries: Sequence[tuple[str, str]] = ()  # entries of the colour key: name and colour

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
