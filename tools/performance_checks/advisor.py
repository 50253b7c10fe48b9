"""Whether the advisor is right, and what it costs: the first line of its advice and the interval
that it names, beside programs that were changed; and the kernels' time with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from weft.advise.verify import WIDTH_OF_HIGH, WIDTH_OF_RUN
from weft.measurements.statistics import NOTICEABLE
from weft.system import installation
from weft.trying.rounds import FASTER, UNDECIDED

from .check import Figure
from .jobs import WEFT, At, Where, in_turn, median, ratio

PAIRS = 5  # of the program as it was and as it was changed
UNDER_WEFT = (WEFT, "run", "--")

# ---- The first line ---------------------------------------------------------------------------

SOURCE = installation.ROOT / "tests/cli/programs/first_line.c"
FREE, CHANGE, NONE = "without a change", "by a change", "none"
SAID = {
    "with Weft, and without a change, the run is": FREE,
    "Weft may shorten it without a change": "left open",
    "a change of the program wins": CHANGE,
}
# Programs with their rounds, which take about 1 s, and their milliseconds of computation: on one
# node, and in the lab. Some gain without a change, some by a change, and some not at all, and each
# by so much that `weft try` can tell.
PROGRAMS = (
    (("free", 8000, 0), ("room", 4000, 0.2), ("needed", 30, 40)),
    (("started", 20, 40), ("room", 20, 40), ("needed", 30, 40)),
)
KNOWN = 0.8  # of the programs: with fewer best choices nothing is told


def best_choice(verdict: str, by_the_change: float) -> str | None:
    """Weft without a change if weft try finds that faster; else the change if the changed program
    with Weft is faster than what it was at best; else neither. None: weft try cannot decide."""
    if verdict == UNDECIDED:
        return None
    if verdict == FASTER:
        return FREE
    return CHANGE if by_the_change > 1 + NOTICEABLE else NONE


def first_line(at: At) -> Iterator[Figure]:
    program, prefix = at.directory / "first_line", at.library.prefix
    options = ["-g", "-O1", f"-Wl,-rpath,{prefix / 'lib'}"]
    at.command(prefix / "bin/mpicc", *options, SOURCE, "-o", program)
    found = []
    for where, programs in zip(at.places, PROGRAMS, strict=True):
        for kind, *numbers in programs:
            found.append(is_right(at, where, program, kind, numbers))
    known = [one for one in found if one is not None]
    note = f"of {len(known)} programs whose best choice is known, and {len(found)} in all"
    enough = len(known) >= KNOWN * len(found)
    share = sum(known) / len(known) if known and enough else None
    yield Figure("right first lines", share, note=note)


def is_right(
    at: At, where: Where, program: Path, kind: str, numbers: Sequence[float]
) -> bool | None:
    """The first line says the best choice; None: that is not known."""
    launcher = at.launcher(where)
    was = [*launcher, program, kind, "as-it-was", *numbers]
    lines = at.command(*at.advising(), *was).splitlines()
    line = next(one for one in lines if "of the time is in" in one or "%" in one)
    said = next((what for words, what in SAID.items() if words in line), NONE)
    trial = at.directory / "try.json"
    at.command(WEFT, "try", "--runs", 30, "--time-budget", "120s", "--json", trial, "--", *was)
    way = json.loads(trial.read_text())["ways"][1]

    def seconds(form: str, front: Sequence) -> float:
        told = at.command(*launcher, *front, program, kind, form, *numbers).splitlines()
        return float(next(one.split()[1] for one in told if one.startswith("seconds ")))

    faster = UNDER_WEFT if way["times_as_fast"]["median"] > 1 else ()
    ways = {
        "as it was": partial(seconds, "as-it-was", faster),
        "changed": partial(seconds, "changed", UNDER_WEFT),
    }
    found = in_turn(ways, at.few_or(PAIRS))
    best = best_choice(way["verdict"], ratio(*found.values()).median)
    at.keep(command=was, first_line=line, said=said, best=best, weft_try=way, seconds=found)
    return said == best if best else None


# ---- The interval -----------------------------------------------------------------------------

INTERVAL_ROUNDS = 5
# Programs, arguments, and steps of a job: on one node, and in the lab.
KERNELS = (
    ("iallreduce_kernel", "--elements 10000", (10_000, 300)),
    ("gemv_alltoall", "--order 4000 --bytes 5000000", (100, 30)),
)


@dataclass(frozen=True)
class Interval:
    """Microseconds over the whole run."""

    low: float  # of the gain by the change
    high: float
    free_low: float  # of what Weft wins without a change; the changed program's calls have it, too
    free_high: float
    won: list[float]  # pair by pair
    run: float  # as it was

    @property
    def off(self) -> float:
        """How far the interval and the pairs lie apart, as a part of the run; 0: they overlap."""
        low, high = self.low + self.free_low, self.high + self.free_high
        return max(0.0, low - max(self.won), min(self.won) - high) / self.run

    @property
    def is_narrow(self) -> bool:
        return self.high - self.low <= max(self.high * WIDTH_OF_HIGH, self.run * WIDTH_OF_RUN)


def named_ends(sites: list[dict], program: str, steps: int) -> list[float]:
    """Both ends of the gain, and of what Weft wins without a change, over all sites of the kernel
    and the steps that are timed. Its harness (trials.h) calls MPI, too, and has other steps."""
    ends = [0.0] * 4
    for site in sites:
        # The file is known where the kernels were built with lines.
        if site["file"] and Path(site["file"]).name != f"{program}.cc":
            continue
        part = site["calls"] // steps * steps / site["calls"]
        gain, free = site["gain_us"], site["free_bounds_us"] or {"least": 0.0, "most": 0.0}
        of_site = (gain["low"], gain["high"], free["least"], free["most"])
        ends = [end + part * (more or 0.0) for end, more in zip(ends, of_site)]
    return ends


def run_us(at: At, front: Sequence, program: str, arguments: str, steps: int) -> float:
    """All steps of a kernel behind `front`, each by its slowest rank."""
    path = at.directory / "times.json"
    words = [*arguments.split(), "--repetitions", steps, "--json", path]
    at.command(*front, at.library.program(program), *words)
    (variant,) = json.loads(path.read_text())["variants"]
    return sum(variant["samples_us"])


def interval(at: At, program: str, arguments: str, steps: int, where: Where) -> Interval:
    launch, blocking = at.launcher(where), f"{arguments} --form blocking"
    kernel = [at.library.program(program), *blocking.split(), "--repetitions", steps]
    at.command(*at.advising("--verify", "--time-budget", "30min"), *launch, *kernel)
    sites = json.loads((at.directory / "json").read_text())["sites"]
    overlapped = f"{arguments} --form overlapped --engines auto"
    ways = {
        "blocking": partial(run_us, at, launch, program, blocking, steps),
        "overlapped": partial(run_us, at, [*launch, *UNDER_WEFT], program, overlapped, steps),
    }
    before, after = in_turn(ways, at.few_or(PAIRS)).values()
    won = [one - other for one, other in zip(before, after, strict=True)]
    return Interval(*named_ends(sites, program, steps), won, median(before))


def honesty(at: At) -> Iterator[Figure]:
    """The gain that the advisor names with the calls replayed, beside what the changed program wins
    with Weft: 20 runs."""
    found = []
    for program, arguments, steps in KERNELS * (1 if at.short else INTERVAL_ROUNDS):
        for where, count in zip(at.places, steps, strict=True):
            found.append(interval(at, program, arguments, count, where))
            at.keep(program=program, place=str(where), off=found[-1].off, **asdict(found[-1]))
    true = sum(one.off == 0 for one in found) / len(found)
    note = f"of {len(found)} runs; off by at most {max(one.off for one in found):.1%} of the run"
    yield Figure("the interval contains the gain", true, note=note)
    yield Figure("it is narrow", sum(one.is_narrow for one in found) / len(found))


# ---- The cost ---------------------------------------------------------------------------------

COST_ROUNDS = 7
STEPS_US = 2.2e6  # of a job, about
LEAST_US = 1e5  # in which steps are counted
ADVISED = {
    "iallreduce_kernel": "--elements 10000",
    "gemv_alltoall": "--order 2000 --bytes 1000000",
    "pipecg": "--grid 40x40x40",
    "cpals": "--dimensions 3000x2000x1500 --entries 300000",
    "fft3d": "--grid 64x64x64",
    "stencil": "--grid 96x96x96",
    "atmosphere": "--truncation 85 --steps 2",
}


def enough_steps(time_of: Callable[[int], float]) -> int:
    """So many that a job is long enough; time_of: a number of steps."""
    steps = 3
    while (us := time_of(steps)) < LEAST_US:
        steps *= 20
    return max(steps, math.ceil(steps * STEPS_US / us))


def slow_down(program: str, at: At) -> Iterator[Figure]:
    """Alone and with `weft advise`. A job's time is that of its steps: what starting and ending it
    takes is not in it. tools/real-programs --way advise measures programs of Debian's packages."""
    launch = at.launcher(at.where)
    arguments = f"{ADVISED[program]} --form blocking"
    steps = enough_steps(partial(run_us, at, launch, program, arguments))
    fronts = {"alone": launch, "advised": [*at.advising(), *launch]}
    ways = {
        way: partial(run_us, at, front, program, arguments, steps) for way, front in fronts.items()
    }
    found = in_turn(ways, at.few_or(COST_ROUNDS))
    at.keep(program=program, steps=steps, us=found)
    share = ratio(found["advised"], found["alone"])
    yield Figure("with weft advise / alone", share, program)
