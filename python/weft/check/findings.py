"""Reads the mistakes that the ranks have found, and merges those of all ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.advise import places


@dataclass(frozen=True)
class Place:
    module: str = ""
    offset: int = 0
    where: str = ""  # "file:line:function" in an interpreted program

    def shown(self, frames: dict[tuple[str, int], list[places.Frame]]) -> str:
        if self.where:
            return str(places.of_interpreter(self.where)[0])
        return str(frames[self.module, self.offset][0]) if self.module else ""


@dataclass
class Finding:
    rule: str
    call: str
    start: Place
    other: Place  # place of the access, or of the other call
    other_call: str = ""
    detail: str = ""  # how the two calls differ
    ranks: list[int] = field(default_factory=list)

    def is_mistake(self) -> bool:
        """Returns whether the finding is a mistake of the program. MPI allows MPI_Comm_free while
        calls are pending, but some libraries fail then."""
        return (self.rule, self.other_call) != ("communicator-freed", "MPI_Comm_free")

    def key(self) -> tuple:
        return self.rule, self.call, self.start, self.other


def place(module: str, offset: str, where: str) -> Place:
    return Place(module, int(offset), where)


def told(directory: Path) -> Iterator[tuple[int, Finding]]:
    """Yields each finding with its rank. Each rank writes one line per finding
    (src/advise/findings.cc). The last line of a file may be incomplete and is skipped."""
    for path in sorted(directory.glob("check-*")):
        *lines, _ = path.read_text(errors="replace").split("\n")
        for line in lines:
            rule, rank, call, *rest = line.split("\t")
            start, other = place(*rest[:3]), place(*rest[3:6])
            yield int(rank), Finding(rule, call, start, other, *rest[6:])


def gathered(found: Iterable[tuple[int, Finding]]) -> list[Finding]:
    """Returns each mistake once, with all its ranks."""
    by_place: dict[tuple, Finding] = {}
    ranks: dict[tuple, set[int]] = defaultdict(set)
    for rank, one in found:
        key = one.key()
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
            "mistake": one.is_mistake(),
            "call": one.call,
            "started": one.start.shown(frames),
            "place": one.other.shown(frames),
            "other_call": one.other_call,
            "detail": one.detail,
            "ranks": one.ranks,
        }
        for one in found
    ]
