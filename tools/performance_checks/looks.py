"""Whether a call is slower with Weft than without, at several looks that are some time apart.

Why several: a machine has states, since its host moves the cores. A point that is slower at one
look only met a state for a moment; one that is slower at more than one is Weft's fault. Beside it
stands the program alone, measured against itself in the same way, which shows the noise."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from weft.measurements import statistics
from weft.system import mpi_libraries

from .auto import calls_us
from .jobs import At, Session, in_turn, median, node

BYTES = "8,1KiB,16KiB,64KiB,256KiB"
CALLS = "bcast,gather,scatter,allgather,alltoall,reduce,allreduce"
FORMS = "blocking,nonblocking"
SLOWER = 1.05
SCHEMA = "weft-never-worse/1"

Ratios = dict[str, float]  # by point


@dataclass(frozen=True)
class Look:
    """The ratios of the points' medians to those of the program alone."""

    at: str  # when it began
    weft: Ratios
    alone: Ratios  # of the program alone, too


@dataclass(frozen=True)
class Settings:
    """What all looks of a file have in common."""

    mpi: str
    ranks: int
    rounds: int


def take_look(settings: Settings) -> Look:
    """Jobs with Weft and two without take turns, so that a change of state meets all three."""
    began = datetime.now(timezone.utc).isoformat(timespec="seconds")
    options = ["--bytes", BYTES, "--calls", CALLS, "--forms", FORMS, "--samples", 5]
    with At(Session([settings.mpi]), "never-worse", settings.mpi, [node(settings.ranks)]) as at:
        plans = ["--plan-cache", at.directory / "plans"]
        ways = {
            "weft": partial(calls_us, at, options, plans),
            "alone": partial(calls_us, at, options, None),
            "again": partial(calls_us, at, options, None),
        }
        found = in_turn(ways, settings.rounds)

    def ratios(way: str) -> Ratios:
        medians = {
            point: [median([times[point] for times in found[name]]) for name in (way, "alone")]
            for point in found["alone"][0]
        }
        return {
            "{} {} {} B".format(*point): round(own / alone, 3)
            for point, (own, alone) in medians.items()
        }

    return Look(began, ratios("weft"), ratios("again"))


def read(path: Path, settings: Settings) -> list[Look]:
    """The looks that the file has; those of other settings are refused."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text())
    if kept.get("schema") != SCHEMA or kept["settings"] != asdict(settings):
        raise SystemExit(f"{path} is of other settings; name another file")
    return [Look(**look) for look in kept["looks"]]


def write(path: Path, settings: Settings, looks: Sequence[Look]) -> None:
    kept = {"schema": SCHEMA, "settings": asdict(settings), "looks": list(map(asdict, looks))}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")


def slower_points(looks: Sequence[Ratios]) -> dict[str, int]:
    """At how many looks each point is slower."""
    times = {point: sum(look[point] > SLOWER for look in looks) for point in looks[0]}
    return {point: count for point, count in times.items() if count}


def table(looks: Sequence[Look]) -> str:
    """The ratios of all points at each look, with Weft and beside it alone, for a page."""
    head = [f"{look.at[11:16]}" for look in looks]
    columns = ["call", *head, *(f"alone {one}" for one in head)]
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    for point in looks[0].weft:
        shares = [look.weft[point] for look in looks] + [look.alone[point] for look in looks]
        lines.append(f"| {point} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")
    return "\n".join(lines)


def verdict(looks: Sequence[Look]) -> str:
    """How many points are slower, with Weft and, beside it, alone."""
    lines = []
    for name, ratios in (
        ("with Weft", [look.weft for look in looks]),
        ("the program alone against itself", [look.alone for look in looks]),
    ):
        slower = slower_points(ratios)
        often = sorted(point for point, count in slower.items() if count > 1)
        middle = statistics.of([share for look in ratios for share in look.values()]).median
        lines.append(
            f"{name}: median {middle:.2f}; above {SLOWER}: {len(slower)} of {len(ratios[0])} points"
            f" at some look, {len(often)} at more than one{': ' if often else ''}{', '.join(often)}"
        )
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="tools/never-worse", description=__doc__)
    found.add_argument("file", type=Path, help="keeps the looks; one that exists is continued")
    found.add_argument("--mpi", default="mpich", choices=mpi_libraries.IMPLEMENTATIONS)
    found.add_argument("--ranks", type=int, default=2)
    found.add_argument("--rounds", type=int, default=9, help="of jobs within a look (9)")
    found.add_argument("--looks", type=int, default=5, help="in all (5); 0 takes none more")
    found.add_argument("--minutes", type=float, default=10, help="between looks (10)")
    return found


def main() -> int:
    """Returns 0 if no point is slower at more than one look."""
    arguments = parser().parse_args()
    settings = Settings(arguments.mpi, arguments.ranks, arguments.rounds)
    looks = read(arguments.file, settings)
    while len(looks) < arguments.looks:
        if looks:
            ago = datetime.now(timezone.utc) - datetime.fromisoformat(looks[-1].at)
            time.sleep(max(0.0, 60 * arguments.minutes - ago.total_seconds()))
        looks.append(take_look(settings))
        write(arguments.file, settings, looks)
        print(f"look {len(looks)} at {looks[-1].at}", flush=True)
    if not looks:
        raise SystemExit(f"{arguments.file} has no look")
    print(table(looks), verdict(looks), sep="\n\n")
    often = [count for count in slower_points([look.weft for look in looks]).values() if count > 1]
    return int(bool(often))
