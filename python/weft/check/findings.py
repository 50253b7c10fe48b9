"""What the ranks have found, and what a comparison of their collectives shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.advise import places
from weft.advise.record import RankRecord, text

ROOTED = ("cast", "educe", "ather", "catter")  # in names of calls that have a root
NO_ROOT = ("all", "reduce_scatter", "neighbor")


@dataclass(frozen=True)
class Place:
    module: str = ""
    offset: int = 0
    where: str = ""  # of an interpreter's program

    def shown(self, frames: dict[tuple[str, int], list[places.Frame]]) -> str:
        if self.where:
            return str(places.of_interpreter(self.where)[0])
        return str(frames[self.module, self.offset][0]) if self.module else ""


@dataclass
class Finding:
    rule: str
    call: str
    start: Place
    other: Place  # the access, or the other call
    other_call: str = ""
    ranks: list[int] = field(default_factory=list)


def place(module: str, offset: str, where: str) -> Place:
    return Place(module, int(offset), where)


def told(directory: Path) -> Iterator[tuple[int, Finding]]:
    """By the ranks, a line each (src/advise/check.cc)."""
    for path in sorted(directory.glob("check-*")):
        for line in path.read_text(errors="replace").splitlines():
            rule, rank, call, *rest = line.split("\t")
            yield int(rank), Finding(rule, call, place(*rest[:3]), place(*rest[3:]))


def has_root(call: str) -> bool:
    name = call.lower()
    return any(part in name for part in ROOTED) and not any(part in name for part in NO_ROOT)


def out_of_order(records: Iterable[RankRecord]) -> Iterator[tuple[int, Finding]]:
    """The first call of each communicator that differs from that of its lowest rank. Blocking calls
    never match non-blocking ones, so the name tells."""
    first: dict[tuple[int, int], tuple[str, int, Place]] = {}
    wrong: set[tuple[int, int]] = set()
    for one in records:
        for arrival in sorted(one.arrivals, key=lambda a: (a.comm, a.sequence)):
            site = one.sites[arrival.site]
            call = one.totals[site.call].name.decode()
            root = arrival.root if has_root(call) else 0
            here = Place(one.modules[site.module], site.offset, text(site.where))
            call_there, root_there, there = first.setdefault(
                (arrival.comm, arrival.sequence), (call, root, here)
            )
            key = (arrival.comm, one.head.rank)
            if (call, root) != (call_there, root_there) and key not in wrong:
                wrong.add(key)
                yield one.head.rank, Finding("order", call, here, there, call_there)


def gathered(found: Iterable[tuple[int, Finding]]) -> list[Finding]:
    """One for each mistake, with all its ranks."""
    by_place: dict[tuple, Finding] = {}
    ranks: dict[tuple, set[int]] = defaultdict(set)
    for rank, one in found:
        key = (one.rule, one.call, one.start, one.other)
        by_place.setdefault(key, one)
        ranks[key].add(rank)
    for key, one in by_place.items():
        one.ranks = sorted(ranks[key])
    return list(by_place.values())


def as_data(found: list[Finding]) -> list[dict]:
    wanted = {(p.module, p.offset) for one in found for p in (one.start, one.other) if p.module}
    frames = places.resolve(wanted)
    return [
        {
            "rule": one.rule,
            "call": one.call,
            "started": one.start.shown(frames),
            "place": one.other.shown(frames),
            "other_call": one.other_call,
            "ranks": one.ranks,
        }
        for one in found
    ]
