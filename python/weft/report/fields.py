"""Draws rows of coloured fields as SVG, such as the fastest candidate by size and amount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from weft.report.svg import Axis, Field, frame, joined, key, said, short, tag


@dataclass(frozen=True)
class Cell:
    colour: str
    text: str
    said: str

    @property
    def ink(self) -> str:
        """Returns the colour of text on the field; an empty string for the page's own colour."""
        return ink_on(self.colour) if self.colour.startswith("#") else ""


def ink_on(colour: str) -> str:
    """Returns white or black, whichever has more contrast on the colour."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    luminance = sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear))
    return "#000000" if luminance > 0.18 else "#ffffff"


@dataclass(frozen=True)
class Map:
    """Rows of fields from top to bottom. A row has its name, the unit of its fields, and the
    fields."""

    rows: Sequence[tuple[str, str, Sequence[Cell]]]
    x_title: str
    name: str
    entries: Sequence[tuple[str, str]]
    height: float = 34  # height of a row

    def __html__(self) -> Markup:
        columns = max(len(cells) for *_, cells in self.rows)
        area = Field(Axis(columns), Axis(len(self.rows)), self.height * len(self.rows))
        fields, words = [], []
        for row, (label, unit, cells) in enumerate(self.rows):
            fields += [
                tag(
                    "path",
                    said(cell.said),
                    fill=area.colour(cell.colour),
                    d=self.around(area, row, at),
                )
                for at, cell in enumerate(cells)
            ]
            texts = [
                tag("text", escape(cell.text), x=area.across(at + 0.5), fill=cell.ink)
                for at, cell in enumerate(cells)
            ]
            names = [area.text(label, "-6", -3, "faint"), area.text(unit, "-6", 9, "faint")]
            texts.append(tag("g", *names, text_anchor="end", font_size=11))
            words.append(
                tag("g", *texts, transform=f"translate(0 {short(self.height * (row + 0.5) + 3)})")
            )
        gap = area.stretched([tag("g", *fields, stroke=area.colour("card"), stroke_width=2)])
        style = {"text_anchor": "middle", "font_size": 10, "pointer_events": "none"}
        parts = [gap, tag("g", *words, fill=area.colour("text"), **style)]
        parts.append(area.text(self.x_title, "50%", area.height + 18, text_anchor="middle"))
        left = 12 + 7 * max(len(label) for label, *_ in self.rows)
        svg = tag("svg", *parts, height=short(area.height + 26), **frame(self.name))
        style = f"padding-left:{left}px"
        return joined((key(self.entries), tag("div", svg, class_="plot", style=style)))

    def around(self, area: Field, row: int, at: int) -> str:
        """Returns the SVG path around a field."""
        (x, y), (end, bottom) = (
            area.spot(at, area.y.last - row),
            area.spot(at + 1, area.y.last - row - 1),
        )
        return f"M{x} {y}h{end - x}v{bottom - y}h{x - end}z"
