"""Activities of Weft's threads, from the trace that `weft run` leaves in the advisor's directory.
The threads write it with or without the advisor."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

NAME = "weft-threads"  # as src/advise/variables.h has it
OWN = "weft-"  # how the names of Weft's threads begin; all others are the program's
ALL, LEAST, MOST = 1 << 20, 64, 8192  # kept of all ranks; of one, as for the events of calls


@dataclass(frozen=True)
class ThreadSpan:
    rank: int
    thread: str
    doing: str  # working, polling, asleep
    began_ns: int  # by the clock of the rank's node
    ended_ns: int


def both_ends(spans: list[ThreadSpan], most: int) -> list[ThreadSpan]:
    spans = sorted(spans, key=lambda one: one.began_ns)
    return spans if len(spans) <= most else spans[: most // 2] + spans[-(most // 2) :]


def read(directory: Path) -> list[ThreadSpan]:
    """Those of each thread that are kept; none where no engine ran, or the job ended early."""
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
