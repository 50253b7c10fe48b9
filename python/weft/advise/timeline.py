"""Makes the timeline: what each rank did in its collectives, and how long their buffers were left
alone.

Spans of one kind may overlap if several calls are in flight, while a drawing needs rows without
overlap. Spans are therefore divided into lanes. Times are those of rank 0's clock."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from weft.advise.record import AFTER, BEFORE, CALL, IN_FLIGHT, SENT, WAIT
from weft.advise.store import Stored
from weft.data import files

# These kinds follow those of the record. They are gaps without recorded events, and the states of
# Weft's threads.
GAP, WORKING, POLLING, ASLEEP = range(5, 9)
DOING = {"working": WORKING, "polling": POLLING, "asleep": ASLEEP}
KINDS = {CALL: "call", WAIT: "wait", IN_FLIGHT: "in flight", AFTER: "result left alone"}
KINDS |= {BEFORE: "not written before the call", GAP: "not kept"}
KINDS |= {WORKING: "Weft works", POLLING: "Weft looks for messages", ASLEEP: "Weft's thread sleeps"}
# Calls and waits of a rank never overlap, and share one lane. All other kinds may overlap.
LANES = {CALL: "collectives", WAIT: "collectives", GAP: "collectives", IN_FLIGHT: "in flight"}
LANES |= {AFTER: "result left alone", BEFORE: "not written"}
ORDER = ("collectives", "in flight", "result left alone", "not written")
# These limit the ranks and the spans of calls on the page. As many spans of threads are added.
MOST_RANKS, MOST_SPANS = 16, 4_000


@dataclass(frozen=True)
class Span:
    rank: int
    kind: int
    name: str
    began_us: float
    ended_us: float
    thread: str = ""  # name of Weft's thread; an empty string for the application's

    @property
    def lane(self) -> str:
        return self.thread or LANES[self.kind]


@dataclass
class Timeline:
    spans: list[Span]
    hosts: dict[int, str]  # host of each rank
    recorded: int  # number of recorded events, including those that were not kept

    @property
    def kept(self) -> int:
        return sum(span.kind != GAP and not span.thread for span in self.spans)


def gap(rows: list[dict], recorded: int) -> dict | None:
    """Returns the gap between the first and the latest events of a rank if some between them are
    missing; otherwise None."""
    half = len(rows) // 2
    if recorded <= len(rows) or half == 0:
        return None
    began = max(row["ended_ns"] for row in rows[:half])
    ended = min(row["began_ns"] for row in rows[half:])
    missing = {"began_ns": began, "ended_ns": ended, "what": GAP, "site": -1}
    return {**rows[0], **missing} if ended > began else None


def timeline(stored: Stored, name_of: Callable[[int, int], str]) -> Timeline:
    """Returns the timeline of a record. `name_of` returns the name of a site by its rank and
    number."""
    ranks = {row["rank"]: row for row in stored["rank"]}
    by_rank: dict[int, list[dict]] = defaultdict(list)
    for row in stored["event"]:
        if row["what"] in KINDS and row["rank"] in ranks:
            by_rank[row["rank"]].append(row)
    zero = min((row["began_ns"] for row in ranks.values()), default=0)
    spans = []
    for rank, rows in sorted(by_rank.items()):
        hole = gap(rows, ranks[rank]["events"])
        for row in [*rows, *([hole] if hole else [])]:
            times = ((row[name] - zero) / 1e3 for name in ("began_ns", "ended_ns"))
            name = name_of(rank, row["site"]) if row["site"] >= 0 else "events that were not kept"
            spans.append(Span(rank, row["what"], name, *times))
    for row in stored["thread_span"]:
        if row["rank"] in ranks and row["doing"] in DOING and row["ended_ns"] > zero:
            # A thread may have begun inside MPI_Init, before the time zero of the timeline.
            times = (max(0, row[name] - zero) / 1e3 for name in ("began_ns", "ended_ns"))
            named = (DOING[row["doing"]], f"{row['thread']} ({row['doing']})")
            spans.append(Span(row["rank"], *named, *times, row["thread"]))
    hosts = {rank: row["host"] for rank, row in ranks.items()}
    elsewhere = sum(row["what"] == SENT for row in stored["event"])
    return Timeline(spans, hosts, sum(row["events"] for row in ranks.values()) - elsewhere)


def in_lanes(spans: Iterable[Span]) -> list[tuple[str, list[Span]]]:
    """Divides one rank's spans into rows in which no two overlap."""
    spans = sorted(spans, key=lambda one: (one.began_us, one.ended_us))
    threads = sorted({span.thread for span in spans if span.thread})
    lanes: dict[str, list[list[Span]]] = {name: [] for name in (*ORDER, *threads)}
    for span in spans:
        rows = lanes[span.lane]
        free = next((row for row in rows if row[-1].ended_us <= span.began_us), None)
        if free is None:
            rows.append(free := [])
        free.append(span)
    return [(name, row) for name, rows in lanes.items() for row in rows]


def of_rank(spans: Iterable[Span], rank: int) -> list[Span]:
    return [span for span in spans if span.rank == rank]


# Trace for Perfetto -------------------------------------------------------------------------------


def metadata(kind: str, pid: int, tid: int, name: str) -> dict:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def trace_events(line: Timeline) -> list[dict]:
    events = []
    for rank, host in sorted(line.hosts.items()):
        events.append(metadata("process_name", rank, 0, f"rank {rank} ({host})"))
        for tid, (lane, spans) in enumerate(in_lanes(of_rank(line.spans, rank))):
            events.append(metadata("thread_name", rank, tid, lane))
            for span in spans:
                shown = {"ph": "X", "name": span.name, "cat": KINDS[span.kind], "pid": rank}
                shown |= {"tid": tid, "ts": round(span.began_us, 3)}
                events.append({**shown, "dur": round(span.ended_us - span.began_us, 3)})
    return events


def write_trace(path: Path, line: Timeline) -> None:
    """Writes the timeline in Chrome's trace format, which Perfetto opens."""
    document = {"displayTimeUnit": "ms", "traceEvents": trace_events(line)}
    document["otherData"] = {"events": line.recorded, "kept": line.kept}
    files.write_text(path, json.dumps(document) + "\n")


# Rows of the page ---------------------------------------------------------------------------------


def both_ends(spans: list[Span], most: int) -> list[Span]:
    """Returns the first and the latest spans, at most `most` of them together."""
    if len(spans) <= most:
        return spans
    spans = sorted(spans, key=lambda one: one.began_us)
    return spans[: most // 2] + spans[-(most // 2) :]


def rows(line: Timeline) -> list[tuple[str, list[Span]]]:
    """Returns the rows of the drawing from top to bottom, each with its name."""
    ranks = sorted(line.hosts)[:MOST_RANKS]
    found = []
    for rank in ranks:
        most = MOST_SPANS // len(ranks)
        mine = of_rank(line.spans, rank)
        calls = both_ends([span for span in mine if not span.thread], most)
        # Sleeping threads are not drawn.
        awake = both_ends([span for span in mine if span.kind in (WORKING, POLLING)], most)
        found += [(f"rank {rank}, {lane}", spans) for lane, spans in in_lanes(calls + awake)]
    return found


def calls_in(rows: list[tuple[str, list[Span]]]) -> int:
    return sum(span.kind < GAP for _, spans in rows for span in spans)


def left_out(line: Timeline, shown: int) -> str:
    """Returns a sentence about what the picture leaves out; an empty string if it shows
    everything."""
    said = []
    if len(line.hosts) > MOST_RANKS:
        said.append(f"the first {MOST_RANKS} of {len(line.hosts)} ranks")
    if shown < line.recorded:
        said.append(f"of {line.recorded} events {shown}, each rank's first and its latest")
    return f"Shown are {'; '.join(said)}." if said else ""
