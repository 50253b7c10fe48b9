"""Reads what Weft's threads did from the trace that `weft run` leaves in the advisor's directory.
The threads write it with or without the advisor."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

NAME = "weft-threads"  # name of the trace file, as in src/advise/variables.h
OWN = "weft-"  # prefix of the names of Weft's threads; other threads are the program's
# These limit the activities that are kept: those of all ranks, and the least and most of one rank.
ALL, LEAST, MOST = 1 << 20, 64, 8192


@dataclass(frozen=True)
class ThreadSpan:
    rank: int
    thread: str
    doing: str  # activity of the thread: working, polling or asleep
    began_ns: int  # time on the clock of the rank's node
    ended_ns: int


def both_ends(spans: list[ThreadSpan], most: int) -> list[ThreadSpan]:
    spans = sorted(spans, key=lambda one: one.began_ns)
    return spans if len(spans) <= most else spans[: most // 2] + spans[-(most // 2) :]


def read(directory: Path) -> list[ThreadSpan]:
    """Returns the activities that are kept of each thread; none if no engine ran or the job ended
    early."""
    try:
        events = json.loads((directory / NAME).read_text())["traceEvents"]
        offsets: dict[int, int] = {}
        threads: dict[tuple[int, int], str] = {}
        spans: dict[tuple[int, str], list[ThreadSpan]] = defaultdict(list)
        for event in events:
            rank = event["pid"]
            thread = threads.get((rank, event["tid"]), "")
            if event["name"] == "process_name":
                offsets[rank] = event["args"]["offset_ns"]
            elif event["name"] == "thread_name":
                threads[rank, event["tid"]] = event["args"]["name"].partition(" ")[0]
            elif thread.startswith(OWN):
                began = round(event["ts"] * 1e3) - offsets[rank]
                span = ThreadSpan(
                    rank, thread, event["name"], began, began + round(event["dur"] * 1e3)
                )
                spans[rank, thread].append(span)
    except (OSError, ValueError, KeyError):
        return []
    most = min(MOST, max(LEAST, ALL // max(1, len(offsets))))
    return [span for mine in spans.values() for span in both_ends(mine, most)]
