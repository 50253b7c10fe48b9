"""What learning is worth: whole programs under engine auto, learning included, against the better
of the library's own overlap and its blocking calls, and against the best single engine.

The programs (bench/steps) take turns, so that a machine that changes changes for all. Their
computation is a share of the library's blocking communication, measured first.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from bar_jobs import run_job

from weft.lab import Lab

COLLECTIVES = ("allreduce", "alltoall", "bcast", "allgather")
JOB_SECONDS = 300
# Of the library's blocking call, without computation: so many steps, or the first number if they
# take long.
FEW_STEPS, MANY_STEPS, LONG_US = 20, 1000, 2000


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    sizes: tuple[str, ...] = ("8", "4KiB", "64KiB", "1MiB")
    shares: tuple[float, ...] = (0.1, 1.0)  # of communication
    steps: int = 1000
    seconds: float = 5.0  # or so long, if that is less
    rounds: int = 3
    engines: tuple[str, ...] = ()  # beside auto, for the comparison with the best one,
    compared_sizes: tuple[str, ...] = ("64KiB", "1MiB")  # at these sizes
    compared_share: float = 1.0  # and this share
    on_one_node: bool = False  # else two ranks on two nodes of the lab

    def engines_at(self, size: str, share: float) -> tuple[str, ...]:
        is_compared = size in self.compared_sizes and share == self.compared_share
        return self.engines if is_compared else ()


# Programs of 1000 calls or 5 s between nodes; on one node, where calls are short, of 1 s.
IN_LAB = Extent(engines=("function", "thread", "assist"))
ON_ONE_NODE = Extent(steps=200_000, seconds=1, engines=("function", "thread"), on_one_node=True)


@dataclass
class Point:
    """One program; seconds by what it ran under."""

    mpi: str
    collective: str
    size: str
    share: float
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.collective} {self.size}, computation {self.share:g} of communication"

    def ratios(self, what: str, others: tuple[str, ...]) -> list[float]:
        """In each round, of the best of the others' medians."""
        best = min(statistics.median(self.seconds[other]) for other in others)
        return [seconds / best for seconds in self.seconds[what]]

    def is_compared(self, engines: tuple[str, ...]) -> bool:
        return all(engine in self.seconds for engine in engines)


class Jobs:
    """Runs steps on two ranks in one place."""

    def __init__(self, lab: Lab | None, mpi: str, directory: Path) -> None:
        self.lab = lab
        self.mpi = mpi
        self.directory = directory

    def run(self, options: list, weft: list | None) -> list[float]:
        said = run_job(self.mpi, 2, self.lab, "steps", options, weft, JOB_SECONDS)
        return [float(word) for word in said.split()]


def measure_point(jobs: Jobs, point: Point, extent: Extent) -> None:
    call = ["--collective", point.collective, "--bytes", point.size]
    for count in (FEW_STEPS, MANY_STEPS):
        only = [*call, "--steps", count, "--blocking", 1, "--work", 0]
        _, us_per_step, ns_per_iteration = jobs.run(only, None)
        if us_per_step > LONG_US:
            break
    work = int(point.share * us_per_step * 1000 / ns_per_iteration)
    about_us = us_per_step * (1 + point.share)
    steps = max(60, min(extent.steps, int(extent.seconds * 1e6 / about_us)))
    program = [*call, "--steps", steps, "--work", work]
    plans = jobs.directory / f"{point.mpi}-{point.collective}-{point.size}-{point.share:g}"
    ways: dict[str, tuple[list, list | None]] = {
        "blocking": ([*program, "--blocking", 1], None),
        "native": (program, None),
        "auto": (program, ["--plan-cache", "none"]),
        "auto, warm": (program, ["--plan-cache", plans]),
    }
    engines = extent.engines_at(point.size, point.share)
    ways |= {engine: (program, ["--engine", engine]) for engine in engines}
    jobs.run(program, ["--plan-cache", plans])
    for _ in range(extent.rounds):
        for name, (options, weft) in ways.items():
            point.seconds.setdefault(name, []).append(jobs.run(options, weft)[0])


def measure(extent: Extent, mpi: str) -> Iterator[Point]:
    with (
        tempfile.TemporaryDirectory() as directory,
        nullcontext() if extent.on_one_node else Lab(nodes=2, mpi=mpi) as lab,
    ):
        jobs = Jobs(lab, mpi, Path(directory))
        for collective in COLLECTIVES:
            for size in extent.sizes:
                for share in extent.shares:
                    point = Point(mpi, collective, size, share)
                    measure_point(jobs, point, extent)
                    yield point
