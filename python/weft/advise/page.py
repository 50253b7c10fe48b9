"""Writes the HTML pages of `weft advise`.

The page of one run shows the share of time in collectives and the best three changes on its first
screen. The page of two runs shows run times, shares, and which collectives gained or lost."""

from __future__ import annotations

from pathlib import Path

from weft.advise import compare, fragments, record, show, timeline
from weft.advise.analysis import LEAST_WORTH, Advice
from weft.data import files
from weft.report import html
from weft.report.lanes import Lanes, Span
from weft.report.svg import Bar, Bars, unit_of

MOST_CHARACTERS = 60  # greatest length of a name beside a bar or in a hover text
MOST_ROWS = 60  # greatest number of call sites in the table
TRANSFER, WAITING, UNKNOWN = "transferring", "waiting for the last rank", "not split"
COLOURS = {TRANSFER: "plain", WAITING: "bar", UNKNOWN: "faint"}
BEFORE, AFTER = ("before", "bar"), ("after", "best")
SHADES = {
    record.CALL: "plain",
    record.IN_FLIGHT: "best",
    record.WAIT: "bar",
    record.AFTER: "faint",
    record.BEFORE: "gain",
    timeline.GAP: "line",
    timeline.WORKING: "work",
    timeline.POLLING: "look",
    timeline.ASLEEP: "line",
}


def cut(name: str) -> str:
    """Shortens a long name, such as those of C++ templates."""
    return name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…"


def known(text: str) -> str:
    """Returns the text of a table's cell, which is empty if the value is not known."""
    return "" if text in (show.UNKNOWN, show.NOT_NAMED) else text


def chart(advice: Advice) -> Bars:
    """Returns one bar per site with its waiting, transfer and unknown time."""
    shown, bars = advice.sites[: show.MOST_SITES], []
    unit, scale = unit_of(max((site.time_us for site in shown), default=0.0))
    for site in shown:
        waiting_us = (site.waiting or 0) * site.time_us
        split = site.waiting is not None
        parts_us = {
            TRANSFER: site.time_us - waiting_us if split else 0,
            WAITING: waiting_us,
            UNKNOWN: 0 if split else site.time_us,
        }
        parts = [
            (us / scale, COLOURS[name], f"{name}: {fragments.microseconds(us)}")
            for name, us in parts_us.items()
        ]
        name = cut(f"{site.call} {show.short_place(site)}")
        label = f"{fragments.microseconds(site.time_us)}, {show.per_cent(site.share)}"
        bars.append(Bar(name, parts, label))
    drawn = {colour for bar in bars for length, colour, _ in bar.parts if length > 0}
    return Bars(
        bars,
        f"{unit} of one rank",
        "Time in each collective",
        entries=[(name, colour) for name, colour in COLOURS.items() if colour in drawn],
    )


def lanes(line: timeline.Timeline) -> Lanes | None:
    """Returns the lanes of the timeline; None if there is nothing to draw."""
    found = timeline.rows(line)
    last_us = max((one.ended_us for _, spans in found for one in spans), default=0.0)
    if not last_us:
        return None
    unit, scale = unit_of(last_us)
    rows = [
        (name, [Span(s.began_us / scale, s.ended_us / scale, s.kind, cut(s.name)) for s in spans])
        for name, spans in found
    ]
    kinds = range(max(SHADES) + 1)
    return Lanes(
        rows,
        last_us / scale,
        f"{unit} since MPI_Init",
        "What each rank did in its collectives",
        [(timeline.KINDS.get(kind, ""), SHADES.get(kind, "line")) for kind in kinds],
        lambda part: fragments.microseconds(part * scale),
    )


def write(path: Path, advice: Advice) -> None:
    picture = lanes(advice.timeline)
    drawn = timeline.calls_in(timeline.rows(advice.timeline))
    text = html.render(
        "advice.html.j2",
        advice=advice,
        sites=advice.sites[:MOST_ROWS],
        rest=advice.sites[MOST_ROWS:],
        chart=chart(advice),
        picture=picture,
        left_out=timeline.left_out(advice.timeline, drawn),
        show=show,
        known=known,
        fragments=fragments,
    )
    files.write_text(path, text, errors="backslashreplace")  # names of files may be no valid UTF-8


def write_comparison(path: Path, found: compare.Comparison) -> None:
    shown = found.changes[: show.MOST_SITES]
    times = [side.us for one in shown for side in (one.before, one.after) if side]
    unit, scale = unit_of(max(times, default=0.0))
    bars = []
    for one in shown:
        name = cut(one.name)
        for side, (when, colour) in ((one.before, BEFORE), (one.after, AFTER)):
            if side:
                text = f"{when}: {fragments.microseconds(side.us)}"
                bars.append(Bar(name, [(side.us / scale, colour, text)], text))
                name = ""
    chart = Bars(
        bars, f"{unit} of the average rank", "Time in each collective", entries=[BEFORE, AFTER]
    )
    text = html.render(
        "advice_comparison.html.j2",
        found=found,
        chart=chart,
        words=compare,
        short=fragments.microseconds,
        least=LEAST_WORTH,
    )
    files.write_text(path, text, errors="backslashreplace")
