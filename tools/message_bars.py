"""How much of the program's own messages and one-sided accesses hides behind computation, with and
without Weft; and what Weft's thread takes of the processor while it waits.

The jobs (bench/messages, bench/idle) take turns, so that a machine that changes changes for all.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from bar import Bar, ratios
from bar_jobs import run_job
from never_worse import WORSE

from weft.lab import Lab

LONG = 2 << 20  # bytes
HIDDEN = 0.95
# Processor time for a second of communication, at most so much above a blocking worker's.
QUIET_S = 0.05
JOB_SECONDS = 300
RATIO = 1.3  # of computation to communication


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    rounds: int = 5
    repetitions: int = 7  # in a job
    many: int = 500  # of exchanges of 8 bytes
    idle_s: int = 10


SHORT = Extent(rounds=1, repetitions=2, many=20, idle_s=1)


@dataclass
class Case:
    """One exchange, under several ways; for each way what each round's job has printed."""

    mpi: str
    what: str
    size: int
    jobs: dict[str, list[dict]] = field(default_factory=dict)

    def in_rounds(self, way: str, name: str) -> list[float]:
        return [statistics.median(job[name]) for job in self.jobs[way]]

    def per_second(self, way: str, name: str) -> list[float]:
        """Of communication, in each round."""
        pairs = zip(self.in_rounds(way, name), self.in_rounds(way, "alone_s"), strict=True)
        return [value / seconds for value, seconds in pairs]


def measure(case: Case, ways: dict[str, list | None], words: list, rounds: int, lab: Lab) -> Case:
    """ways: options of `weft run`; None: without Weft."""
    options = [case.what, case.size, *words]
    for _ in range(rounds):
        for name, weft in ways.items():
            said = run_job(case.mpi, 2, lab, "messages", options, weft, JOB_SECONDS)
            case.jobs.setdefault(name, []).append(json.loads(said))
    return case


def messages(mpi: str, extent: Extent) -> Iterator[tuple[Case | None, list[Bar]]]:
    """Between two nodes of the lab, with engine auto."""
    ways = {"alone": None, "weft": []}
    with Lab(nodes=2, mpi=mpi) as lab:
        for what in ("halo", "put", "get"):
            words = [extent.repetitions, RATIO]
            case = measure(Case(mpi, what, LONG), ways, words, extent.rounds, lab)
            least = {way: min(case.in_rounds(way, "hidden")) for way in ways}
            middle = {way: statistics.median(case.in_rounds(way, "hidden")) for way in ways}
            note = f"median {middle['weft']:.2f}; alone {middle['alone']:.2f}, "
            note += f"least {least['alone']:.2f}; {extent.rounds} rounds"
            name = f"{mpi}, 2 nodes, {what} of 2 MiB, hidden in every round"
            yield case, [Bar(name, least["weft"], HIDDEN, True, note=note)]
        case = measure(Case(mpi, "halo", 8), ways, [extent.many, 0], extent.rounds, lab)
        pairs = zip(case.in_rounds("weft", "alone_s"), case.in_rounds("alone", "alone_s"))
        shares = [weft / alone for weft, alone in pairs]
        yield case, [ratios(f"{mpi}, 2 nodes, halo of 8 B, of the program alone", WORSE, shares)]


# Of waiting: as it is by default, polling, and asleep in the library's own call.
WAYS = {
    "thread": ["--engine", "thread"],
    "yield": ["--engine", "thread", "--backoff", "yield"],
    "tcc": ["--engine", "tcc"],
}
BACKOFFS = ("quiet", "yield", "baton")


def quiet(mpi: str, extent: Extent) -> Iterator[tuple[Case | None, list[Bar]]]:
    """A long MPI_Iallreduce between two nodes of the lab, while the ranks sleep: the thread has a
    core of its own. Then nothing."""
    with Lab(nodes=2, mpi=mpi) as lab:
        words = [extent.repetitions, RATIO, "sleep"]
        case = measure(Case(mpi, "allreduce", LONG), WAYS, words, extent.rounds, lab)
    taken = {way: case.per_second(way, "other_cpu_s") for way in WAYS}
    more = [own - worker for own, worker in zip(taken["thread"], taken["tcc"], strict=True)]
    notes = []
    for way in WAYS:
        sleeps = statistics.median(case.per_second(way, "other_switches"))
        notes.append(f"{way} {statistics.median(taken[way]):.3f} s, {sleeps:.0f} sleeps")
    what = f"{mpi}, processor time for a second of communication, more than tcc"
    note = f"[{min(more):.2f}, {max(more):.2f}] in {len(more)} rounds; {'; '.join(notes)}"
    hidden = case.in_rounds("thread", "hidden")
    yield (
        case,
        [
            Bar(what, statistics.median(more), QUIET_S, unit=" s", note=note),
            ratios(f"{mpi}, hidden meanwhile", HIDDEN, hidden, at_least=True),
        ],
    )
    for backoff in BACKOFFS:
        yield None, idle(mpi, backoff, extent.idle_s)


def idle(mpi: str, backoff: str, seconds: int) -> list[Bar]:
    """With nothing outstanding, after a collective that the thread has carried out."""
    weft = ["--engine", "thread", "--backoff", backoff]
    said = run_job(mpi, 2, None, "idle", [seconds], weft, JOB_SECONDS)
    found = re.findall(r"thread (weft\S*): (\d+) ticks, (\d+) wakes", said)
    if not found:
        raise SystemExit(f"bars: idle shows no thread of Weft:\n{said}")
    what = f"{mpi}, {backoff}, nothing outstanding"
    return [
        Bar(f"{what}, {name} in {seconds} s", sum(int(row[place]) for row in found), 0)
        for name, place in (("CPU ticks", 1), ("wake-ups", 2))
    ]
