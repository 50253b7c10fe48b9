"""What overlap is worth in the kernels: engine auto against their blocking form, and against the
best named engine, over links of 200 Mbit/s between two and four nodes of the lab.

Sizes are meant to make communication 30 to 60 % of the blocking time; a bar says how much it was.
All variants of a kernel run interleaved in one job; a ratio is of two runs of the same repetition.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bar import Bar

from weft.bench import kernels
from weft.bench.kernels import BLOCKING, Run
from weft.bench.settings import SettingsError

NAMED = ("native", "function", "thread", "tcc", "assist")
BEST = 1.03  # most that auto may take of the best named engine
WANTED = (0.3, 0.6)  # communication's share of the blocking time
JOB_SECONDS = 600
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


# Each rank's rows are more than passes the links at full speed.
TENSOR = "--dimensions 12000x8000x6000 --rank 16 --iterations 10 --exchange overlapped"
CASES = (
    Case("cpals", f"{TENSOR} --entries 4000000", 0.80, nodes=(2,)),
    Case("cpals", f"{TENSOR} --entries 8000000", 0.80, nodes=(4,)),
    Case("pipecg", "--grid 100x100x100 --method pipelined --tolerance 1e-2", 0.85, "delay=1ms"),
    Case("fft3d", "--grid 64x64x64", 1.00),
    # Its messages are shorter than what passes the lab's links at full speed else.
    Case("atmosphere", "--truncation 170 --steps 2", 0.85, "burst=64kb"),
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


def measure(
    mpis: Iterable[str], repetitions: int, short: bool
) -> Iterator[tuple[Run | None, list[Bar]]]:
    """`short`: two nodes, and few runs. None: the kernel came to no result."""
    for mpi in mpis:
        for case in CASES:
            for nodes in (nodes for nodes in case.nodes if nodes == 2 or not short):
                count = min(3, repetitions) if short else repetitions
                what = f"{mpi}, {nodes} nodes, {case.program}"
                try:
                    run = kernels.measure(
                        case.program, case.options(nodes, count), mpi, JOB_SECONDS
                    )
                except SettingsError as error:
                    yield None, not_measured(case, what, str(error))
                else:
                    yield run, compared(run, case, what)
