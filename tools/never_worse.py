"""Engine auto against the program alone: every call, form and size, and where it is slower.

A job with Weft and one without take turns. A run is several such pairs; a point is worse where the
ratio of its medians is above the limit in every run.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bar_jobs import run_job

from weft.lab import Lab

Point = tuple[str, str, int]  # call, form, bytes

WORSE = 1.03  # ratio of a point to the program alone
SHORT_IN_LAB = 1024  # bytes, up to which the lab may be slower by as much as
WORSE_IN_LAB = 1.1
JOB_SECONDS = 900


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    sizes: str
    lab_sizes: str  # also where ranks share cores
    ranks: tuple[int, ...]
    runs: int  # one where there is no bar, since ranks share cores
    pairs: int  # of jobs, in a run on one node; where it takes long, one
    samples: int = 5
    samples_if_slow: int = 2


WHOLE = Extent("8,64,1KiB,8KiB,64KiB,256KiB,1MiB,4MiB", "8,1KiB,64KiB,1MiB,4MiB", (2, 3, 4), 3, 3)
SHORT = Extent("8,1KiB,64KiB,256KiB", "8,64KiB", (2,), 1, 3, 3)


@dataclass
class Place:
    """Where ranks run, and what was measured there: for each run and point, times without Weft and
    with it."""

    mpi: str
    ranks: int
    in_lab: bool
    runs: list[dict[Point, tuple[list[float], list[float]]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        where = f"{self.ranks} nodes" if self.in_lab else f"{self.ranks} ranks"
        return f"{self.mpi}, {where}"

    @property
    def has_bar(self) -> bool:
        return self.in_lab or self.ranks <= len(os.sched_getaffinity(0))

    def ratios(self) -> dict[Point, list[float]]:
        """Of each point, one a run."""
        found: dict[Point, list[float]] = {}
        for run in self.runs:
            for point, (alone, weft) in run.items():
                ratio = statistics.median(weft) / statistics.median(alone)
                found.setdefault(point, []).append(ratio)
        return found

    def limit(self, point: Point) -> float:
        return WORSE_IN_LAB if self.in_lab and point[2] <= SHORT_IN_LAB else WORSE

    def worse(self) -> dict[Point, list[float]]:
        """The worst first."""
        points = {p: r for p, r in self.ratios().items() if min(r) > self.limit(p)}
        return dict(sorted(points.items(), key=lambda item: -min(item[1])))


def one_job(place: Place, lab: Lab | None, options: list, weft: bool, cache: Path) -> dict:
    plans = ["--plan-cache", cache] if weft else None

    def told_by(*more: str) -> dict[Point, float]:
        said = run_job(place.mpi, place.ranks, lab, "table", [*options, *more], plans, JOB_SECONDS)
        lines = (line.split() for line in said.splitlines())
        return {(call, form, int(size)): float(median) for call, form, size, _, median in lines}

    if place.mpi != "intelmpi":
        return told_by()
    # Its persistent allgather ends by a segmentation fault (2021.18), without Weft, too.
    found = told_by("--forms", "blocking,nonblocking,point")
    others = {call for call, form, _ in found if form == "blocking"} - {"allgather"}
    if place.ranks == 2:  # of three, others of them end the job
        found |= told_by("--forms", "persistent", "--calls", ",".join(sorted(others)))
    return found


def one_run(place: Place, lab: Lab | None, extent: Extent, cache: Path) -> None:
    times: dict[Point, tuple[list[float], list[float]]] = {}
    slow = place.in_lab or not place.has_bar
    words = ["--bytes", extent.sizes, "--samples", extent.samples]
    if slow:
        words = ["--bytes", extent.lab_sizes, "--samples", extent.samples_if_slow]
        words += ["--least-calls", 1]
    for _ in range(1 if slow else extent.pairs):
        for weft in (False, True):
            for point, us in one_job(place, lab, words, weft, cache).items():
                times.setdefault(point, ([], []))[weft].append(us)
    place.runs.append(times)


def measure(extent: Extent, libraries: list[str]) -> Iterator[Place]:
    """One place after the other; all with one cache of plans, which is empty at first."""
    with tempfile.TemporaryDirectory() as directory:
        cache = Path(directory) / "plans"
        for mpi in libraries:
            for ranks in extent.ranks:
                place = Place(mpi, ranks, in_lab=False)
                for _ in range(extent.runs if place.has_bar else 1):
                    one_run(place, None, extent, cache)
                yield place
            place = Place(mpi, 2, in_lab=True)
            with Lab(nodes=2, mpi=mpi) as lab:
                for _ in range(extent.runs):
                    one_run(place, lab, extent, cache)
            yield place
