"""Reads a timeline's file as rows. The file has Chrome's format, as `weft run`, `weft advise` and
`weft sim` write it. Spans that overlap are divided among several rows, since in OTF2 the regions of
a location lie side by side or inside each other."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path


class NoTrace(Exception):
    """Raised if the file is no timeline of Weft's."""


@dataclass(frozen=True)
class Span:
    name: str
    kind: str  # the advisor's name of the activity, such as "in flight"; "" in the other timelines
    began_ns: int
    ended_ns: int


@dataclass(frozen=True)
class Row:
    """A thread of a rank, or a part of it. Two spans overlap only if one lies inside the other."""

    rank: int
    process: str  # for example "rank 0 (node1)"
    name: str
    spans: list[Span]  # in order; an outer span stands before those inside it


def read(path: Path) -> list[Row]:
    """Returns the rows of a timeline's file. Raises NoTrace, and OSError if the file cannot be
    read."""
    try:
        events = json.loads(path.read_text())["traceEvents"]
        return rows_of(events)
    except (ValueError, KeyError, TypeError):
        raise NoTrace(
            f"{path} is no timeline; give a file of 'weft run --trace', 'weft advise --trace' or"
            " 'weft sim --trace'"
        ) from None


def rows_of(events: list[dict]) -> list[Row]:
    processes: dict[int, str] = {}
    threads: dict[tuple[int, int], str] = {}
    spans: dict[tuple[int, int], list[Span]] = defaultdict(list)
    for event in events:
        rank, thread = event["pid"], event["tid"]
        if event["ph"] == "M" and event["name"] == "process_name":
            processes[rank] = event["args"]["name"]
        elif event["ph"] == "M" and event["name"] == "thread_name":
            threads[rank, thread] = event["args"]["name"]
        elif event["ph"] == "X":
            began, took = round(event["ts"] * 1e3), round(event["dur"] * 1e3)
            one = Span(event["name"], event.get("cat", ""), began, began + took)
            spans[rank, thread].append(one)
    return [
        Row(rank, processes[rank], name if number == 0 else f"{name}, {number + 1}", part)
        for (rank, thread), name in sorted(threads.items())
        for number, part in enumerate(nested(spans[rank, thread]) or [[]])
    ]


def nested(spans: list[Span]) -> list[list[Span]]:
    """Divides spans into rows, in each of which two spans lie apart or one inside the other."""
    rows: list[list[Span]] = []
    open_in: list[list[int]] = []  # for each row the ends of its open spans, the outer one first
    for span in sorted(spans, key=lambda one: (one.began_ns, -one.ended_ns)):
        place = next((i for i, ends in enumerate(open_in) if fits(span, ends)), len(rows))
        if place == len(rows):
            rows.append([])
            open_in.append([])
        rows[place].append(span)
        open_in[place].append(span.ended_ns)
    return rows


def fits(span: Span, ends: list[int]) -> bool:
    """Returns whether the span lies inside the open spans of a row, after closing those that ended
    before it."""
    while ends and ends[-1] <= span.began_ns:
        ends.pop()
    return not ends or span.ended_ns <= ends[-1]
