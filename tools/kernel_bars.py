"""What overlap is worth in the kernels: engine auto against their blocking form, and against the
best named engine, over links of 200 Mbit/s between two and four nodes of the lab.

Sizes are meant to make communication 30 to 60 % of the blocking time; a bar says how much it was.
All variants of a kernel run interleaved in one job; a ratio is of two runs of the same repetition.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.bench import kernels
from weft.bench.kernels import BLOCKING, Run

NAMED = ("native", "function", "thread", "tcc", "assist")
BEST = 1.03  # most that auto may take of the best named engine
WANTED = (0.3, 0.6)  # communication's share of the blocking time


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


CASES = (
    Case("cpals", "--dimensions 3000x2000x1500 --entries 1000000 --rank 16 --iterations 2", 0.80),
    Case("pipecg", "--grid 100x100x100 --method pipelined --tolerance 1e-2", 0.85, "delay=1ms"),
    Case("fft3d", "--grid 64x64x64", 1.00),
    Case("atmosphere", "--truncation 128 --steps 1", 0.85),
)


@dataclass
class Comparison:
    """Auto's times as shares of others', run by run."""

    what: str
    limit: float
    ratios: list[float]
    remarks: list[str] = field(default_factory=list)

    @property
    def figure(self) -> float:
        return statistics.median(self.ratios)

    @property
    def note(self) -> str:
        low, _, high = statistics.quantiles(self.ratios, n=4)
        return "; ".join((f"[{low:.2f}, {high:.2f}] of {len(self.ratios)} runs", *self.remarks))


def compared(run: Run, case: Case, what: str) -> list[Comparison]:
    def against(other: str) -> list[float]:
        pairs = zip(run.samples_us["auto"], run.samples_us[other], strict=True)
        return [auto / theirs for auto, theirs in pairs]

    share = run.communication_share
    told = f"communication {share:.0%}"
    if not WANTED[0] <= share <= WANTED[1]:
        told += f", not {WANTED[0]:.0%} to {WANTED[1]:.0%}"
    best = min(NAMED, key=lambda engine: run.times_us[engine].median)
    return [
        Comparison(f"{what}, auto of blocking", case.limit, against(BLOCKING), [told]),
        Comparison(f"{what}, auto of the best named engine", BEST, against(best), [best]),
    ]


def measure(mpis: list[str], repetitions: int, short: bool) -> Iterator[tuple[Run, list]]:
    """`short`: two nodes, and few runs."""
    for mpi in mpis:
        for case in CASES:
            for nodes in case.nodes[: 1 if short else None]:
                count = 3 if short else repetitions
                run = kernels.measure(case.program, case.options(nodes, count), mpi)
                yield run, compared(run, case, f"{mpi}, {nodes} nodes, {case.program}")
