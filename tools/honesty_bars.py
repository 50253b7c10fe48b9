"""Is the interval true that the advisor names: for programs in their blocking form, with the calls
replayed, against what the changed programs win with Weft.

The changed program's calls go through Weft. So what the advisor says Weft wins without a change is
added to both ends.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bar_jobs import run_command

from weft.advise.verify import WIDTH_OF_HIGH, WIDTH_OF_RUN
from weft.system import installation, mpi_libraries

JOB_SECONDS = 600
PAIRS = 5  # of the program as it was and as it was changed


@dataclass(frozen=True)
class Case:
    program: str
    arguments: str
    steps: int  # of a job
    in_lab: bool

    @property
    def name(self) -> str:
        return f"{self.program}, {'2 nodes' if self.in_lab else '2 ranks'}"


CASES = (
    Case("iallreduce_kernel", "--elements 10000", 300, True),
    Case("iallreduce_kernel", "--elements 10000", 10_000, False),
    Case("gemv_alltoall", "--order 4000 --bytes 5000000", 30, True),
    Case("gemv_alltoall", "--order 4000 --bytes 5000000", 100, False),
)


@dataclass
class Found:
    """Microseconds over the whole run."""

    mpi: str
    case: str
    low: float  # of the gain by the change
    high: float
    free_low: float  # of what Weft wins without a change
    free_high: float
    won: list[float]  # pair by pair
    run: float  # as it was

    @property
    def off(self) -> float:
        """How far the interval and the pairs lie apart, as a part of the run; 0: they overlap."""
        low, high = self.ends
        return max(0.0, low - max(self.won), min(self.won) - high) / self.run

    @property
    def ends(self) -> tuple[float, float]:
        """Of all that is named."""
        return self.low + self.free_low, self.high + self.free_high

    @property
    def is_narrow(self) -> bool:
        return self.high - self.low <= max(self.high * WIDTH_OF_HIGH, self.run * WIDTH_OF_RUN)

    def in_words(self) -> str:
        least, most = (100 * end(self.won) / self.run for end in (min, max))
        low, high = (100 * end / self.run for end in self.ends)
        own = " to ".join(f"{100 * end / self.run:.1f}" for end in (self.low, self.high))
        verdict = f"off by {self.off:.1%}" if self.off else "true"
        verdict += "" if self.is_narrow else ", wide"
        return (
            f"{self.mpi}, {self.case}: {low:.1f} to {high:.1f} % of the run ({own} by the change),"
            f" won {least:.1f} to {most:.1f} %: {verdict}"
        )

    def to_json(self) -> dict:
        return asdict(self) | {"off": self.off, "is_narrow": self.is_narrow}


WEFT = installation.ROOT / ".venv/bin/weft"


def launcher(mpi: str, case: Case) -> list:
    if case.in_lab:
        return [WEFT, "lab", "run", "--mpi", mpi, "--nodes", "2", "--per-node", "1", "--"]
    return mpi_libraries.implementation(mpi).launcher(2)


def step_us(mpi: str, case: Case, form: str, directory: Path) -> float:
    """Of one step, on the slowest rank."""
    program = mpi_libraries.implementation(mpi).program(case.program)
    path = directory / "times.json"
    weft = [installation.weft_command(), "run", "--"] if form == "overlapped" else []
    words = [*launcher(mpi, case), *weft, program, *case.arguments.split(), "--form", form]
    words += ["--engines", "auto", "--repetitions", case.steps, "--json", path]
    run_command(words, mpi, JOB_SECONDS)
    (variant,) = json.loads(path.read_text())["variants"]
    return statistics.mean(variant["samples_us"])


def intervals(sites: list[dict], case: Case) -> list[float]:
    """Of all sites of the kernel together, in as many steps as are timed: both ends of the gain,
    and of what Weft wins without a change. What measures the kernel (trials.h) calls MPI, too, and
    there are steps that are not timed."""
    ends = [0.0] * 4
    for site in sites:
        # Known where the kernels were built with lines.
        if site["file"] and Path(site["file"]).name != f"{case.program}.cc":
            continue
        in_a_step = site["calls"] // case.steps
        part = in_a_step * case.steps / site["calls"]
        gain, free = site["gain_us"], site["free_bounds_us"] or {"least": 0.0, "most": 0.0}
        of_site = (gain["low"], gain["high"], free["least"], free["most"])
        ends = [end + part * (more or 0.0) for end, more in zip(ends, of_site)]
    return ends


def measure_once(mpi: str, case: Case, directory: Path) -> Found:
    program = mpi_libraries.implementation(mpi).program(case.program)
    advice = directory / "advice.json"
    words = [WEFT, "advise", "--verify", "--time-budget", "30min", "--mpi", mpi, "--json", advice]
    words += ["--out", directory / "page.html", "--record", directory / "record"]
    blocking = [program, *case.arguments.split(), "--form", "blocking"]
    words += ["--", *launcher(mpi, case), *blocking, "--repetitions", case.steps]
    run_command(words, mpi, JOB_SECONDS)
    ends = intervals(json.loads(advice.read_text())["sites"], case)
    before, won = [], []
    for _ in range(PAIRS):
        before.append(step_us(mpi, case, "blocking", directory))
        won.append((before[-1] - step_us(mpi, case, "overlapped", directory)) * case.steps)
    return Found(mpi, case.name, *ends, won, statistics.median(before) * case.steps)


def measure(mpi: str, rounds: int) -> Iterator[Found]:
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(rounds):
            for case in CASES:
                yield measure_once(mpi, case, Path(directory))
