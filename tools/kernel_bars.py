"""What overlap is worth in the kernels: engine auto against their blocking form, and against the
best named engine, over links of 200 Mbit/s between two and four nodes of the lab. Before that, that
there is no straw man to overlap with: one rank's speed beside the memory's, FFTW's, and what the
core computes in registers alone.

Sizes are meant to make communication 30 to 60 % of the blocking time; a bar says how much it was.
All variants of a kernel run interleaved in one job; a ratio is of two runs of the same repetition.
"""

from __future__ import annotations

import math
import os
import re
import statistics
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bar import Bar

from weft.bench import kernel_runs
from weft.bench.settings import SettingsError
from weft.measurements.kernels import BLOCKING, Run
from weft.system import mpi_libraries

NAMED = ("native", "function", "thread", "tcc", "assist")
BEST = 1.03  # most that auto may take of the best named engine
WANTED = (0.3, 0.6)  # communication's share of the blocking time
JOB_SECONDS = 1200
OF_BLOCKING, OF_BEST = "auto of blocking", "auto of the best named engine"


@dataclass(frozen=True)
class Case:
    """`limit`: the most that auto may take of the blocking form."""

    program: str
    arguments: str
    limit: float
    lab: str = ""
    nodes: tuple[int, ...] = (2, 4)

    def options(self, nodes: int, repetitions: int) -> dict:
        return {
            "lab": ",".join(filter(None, (f"nodes={nodes},rate=200mbit", self.lab))),
            "arguments": f"{self.arguments} --repetitions {repetitions}",
            "engines": ",".join((*NAMED, "auto")),
        }


@dataclass(frozen=True)
class Speed:
    """`--what speed` on one rank. `limit`: at least such a share, or of FFTW's time at most."""

    program: str
    arguments: str
    limit: float
    at_least: bool = True
    of: str = "the memory's bandwidth"


# A product's share is of what must be moved, where the kernel says how much that is.
SPEED_LINE = re.compile(
    r"^(.+?): (.+), (?:share|ratio) (\S+) (\[\S+\])$(?:\n +of these bytes (.+): share (\S+))?", re.M
)
SPEEDS = (
    Speed("pipecg", "--grid 100x100x100", 0.6),
    Speed("cpals", "--dimensions 400000x300000x200000 --entries 2000000 --rank 16", 0.6),
    # SHTns's transform to the grid has about 0.2 (docs/kernels/atmosphere.md): twice its time.
    Speed("atmosphere", "--truncation 340", 0.1, of="multiply-adds alone"),
    Speed("fft3d", "--grid 64x64x64", 1.2, False, "FFTW's time"),
    Speed("fft3d", "--grid 128x128x128", 1.2, False, "FFTW's time"),
)

# Each rank's rows are more than passes the links at full speed. With a third of the iterations,
# which is fewer than such decompositions need, learning would take 5 to 8 % of a run.
TENSOR = "--dimensions 12000x8000x6000 --rank 16 --iterations 30 --exchange overlapped"
CASES = (
    Case("cpals", f"{TENSOR} --entries 9000000", 0.80, nodes=(2,)),
    Case("cpals", f"{TENSOR} --entries 18000000", 0.80, nodes=(4,)),
    Case("pipecg", "--grid 100x100x100 --method pipelined --tolerance 1e-2", 0.85, "delay=1ms"),
    Case("fft3d", "--grid 64x64x64", 1.00),
    # Its messages are shorter than what passes the lab's links at full speed else.
    Case("atmosphere", "--truncation 340 --steps 2", 0.85, "burst=64kb"),
)


def compared(run: Run, case: Case, what: str) -> list[Bar]:
    """Auto's times as shares of others', run by run."""

    def against(other: str, name: str, limit: float, remark: str) -> Bar:
        pairs = zip(run.samples_us["auto"], run.samples_us[other], strict=True)
        shares = [auto / theirs for auto, theirs in pairs]
        note = f"[{quartile(shares, 1):.2f}, {quartile(shares, 3):.2f}] of {len(shares)} runs"
        return Bar(f"{what}, {name}", statistics.median(shares), limit, note=f"{note}; {remark}")

    share = run.communication_share
    told = f"communication {share:.0%}"
    if not WANTED[0] <= share <= WANTED[1]:
        told += f", not {WANTED[0]:.0%} to {WANTED[1]:.0%}"
    best = min(NAMED, key=lambda engine: run.times_us[engine].median)
    return [
        against(BLOCKING, OF_BLOCKING, case.limit, told),
        against(best, OF_BEST, BEST, best),
    ]


def quartile(samples: list[float], which: int) -> float:
    if len(samples) == 1:
        return samples[0]
    return statistics.quantiles(samples, n=4, method="inclusive")[which - 1]


def not_measured(case: Case, what: str, why: str) -> list[Bar]:
    """Both are missed."""
    limits = ((OF_BLOCKING, case.limit), (OF_BEST, BEST))
    return [Bar(f"{what}, {name}", math.inf, limit, note=why) for name, limit in limits]


def speeds(mpi: str, repetitions: int) -> Iterator[Bar]:
    """Without Weft, by processor time."""
    library = mpi_libraries.implementation(mpi)
    for case in SPEEDS:
        words = (str(library.mpiexec), "-n", "1", str(library.program(case.program)))
        words += ("--what", "speed", *case.arguments.split(), "--repetitions", str(repetitions))
        what = f"1 rank, {case.program} {case.arguments.split()[1]}"
        try:
            done = subprocess.run(
                words,
                env={**os.environ, **library.environment()},
                capture_output=True,
                text=True,
                timeout=JOB_SECONDS,
            )
            said = done.stdout if done.returncode == 0 else ""  # else what it says may be wrong
            why = f"status {done.returncode}: {(done.stdout + done.stderr).strip()[-200:]}"
        except (OSError, subprocess.TimeoutExpired) as error:
            said, why = "", str(error)
        found = SPEED_LINE.findall(said)
        for name, rates, share, quartiles, moved, of_moved in found:
            told = f"{share} {quartiles} of {repetitions} runs; {rates}"
            told += f"; must be moved: {moved.split(' must')[0]}" if moved else ""
            figure = float(of_moved or share)
            yield Bar(f"{what}, {name} of {case.of}", figure, case.limit, case.at_least, note=told)
        if not found:
            worst = 0.0 if case.at_least else math.inf
            yield Bar(f"{what}, speed", worst, case.limit, case.at_least, note=why)


def in_lab(
    mpis: Iterable[str], repetitions: int, short: bool
) -> Iterator[tuple[Run | None, list[Bar]]]:
    """`short`: two nodes, and few runs. None: the kernel came to no result."""
    for mpi in mpis:
        for case in CASES:
            for nodes in (nodes for nodes in case.nodes if nodes == 2 or not short):
                count = min(3, repetitions) if short else repetitions
                what = f"{mpi}, {nodes} nodes, {case.program}"
                try:
                    run = kernel_runs.measure(
                        case.program, case.options(nodes, count), mpi, JOB_SECONDS
                    )
                except SettingsError as error:
                    yield None, not_measured(case, what, str(error))
                else:
                    yield run, compared(run, case, what)


def measure(
    mpis: list[str], repetitions: int, short: bool
) -> Iterator[tuple[Run | None, list[Bar]]]:
    """One rank's speed, which no library changes, under the first of them, then in the lab."""
    for bar in speeds(mpis[0], min(3, repetitions) if short else repetitions):
        yield None, [bar]
    yield from in_lab(mpis, repetitions, short)
