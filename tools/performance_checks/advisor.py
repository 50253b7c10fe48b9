"""Checks whether the advisor is right, and measures its cost.

The first line of its advice, and the interval that it names, are compared with programs that were
changed. The cost is that of the kernels' time under the advisor."""

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

PAIRS = 5  # pairs of runs, of the original and of the changed program
UNDER_WEFT = (WEFT, "run", "--")

# ---- First line of the advice -----------------------------------------------------------------

SOURCE = installation.ROOT / "tests/cli/programs/first_line.c"
FREE, CHANGE, NONE = "without a change", "by a change", "none"
SAID = {
    "with Weft, and without a change, the run is": FREE,
    "Weft may shorten it without a change": "left open",
    "a change of the program wins": CHANGE,
}
# Each program has its number of rounds, which take about 1 s, and its milliseconds of computation,
# on one node and in the lab. Some programs gain without a change, some by a change, and some not at
# all. The differences are large enough for `weft try` to decide.
PROGRAMS = (
    (("free", 8000, 0), ("room", 4000, 0.2), ("needed", 30, 40)),
    (("started", 20, 40), ("room", 20, 40), ("needed", 30, 40)),
)
KNOWN = 0.8  # least share of programs whose best choice is known; with fewer there is no figure


def best_choice(verdict: str, by_the_change: float) -> str | None:
    """Returns the best choice for a program; None if `weft try` cannot decide.

    It is Weft without a change if `weft try` finds that faster. Otherwise it is the change, if the
    changed program with Weft is faster than the original at its best. Otherwise it is neither."""
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
    """Returns whether the first line names the best choice; None if that is not known."""
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


# ---- Interval of the gain ---------------------------------------------------------------------

INTERVAL_ROUNDS = 5
# These are programs with their arguments, and the steps of a job on one node and in the lab.
KERNELS = (
    ("iallreduce_kernel", "--elements 10000", (10_000, 300)),
    ("gemv_alltoall", "--order 4000 --bytes 5000000", (100, 30)),
)


@dataclass(frozen=True)
class Interval:
    """The named interval and the measured gains, in us over the whole run."""

    low: float  # lower end of the gain by the change
    high: float
    # This is the lower end of the gain by Weft without a change; calls of the changed program have
    # that, too.
    free_low: float
    free_high: float
    won: list[float]  # measured gain of each pair of runs
    run: float  # run time of the original program

    @property
    def off(self) -> float:
        """Returns the distance between the interval and the measured gains as a share of the run
        time; 0 if they overlap."""
        low, high = self.low + self.free_low, self.high + self.free_high
        return max(0.0, low - max(self.won), min(self.won) - high) / self.run

    @property
    def is_narrow(self) -> bool:
        return self.high - self.low <= max(self.high * WIDTH_OF_HIGH, self.run * WIDTH_OF_RUN)


def named_ends(sites: list[dict], program: str, steps: int) -> list[float]:
    """Returns both ends of the gain by the change, and of the gain by Weft without a change.

    They are summed over all sites of the kernel and over the steps that are timed. The kernel's
    harness (trials.h) calls MPI as well, and has further steps."""
    ends = [0.0] * 4
    for site in sites:
        # The file is known only if the kernels were built with debug information.
        if site["file"] and Path(site["file"]).name != f"{program}.cc":
            continue
        part = site["calls"] // steps * steps / site["calls"]
        gain, free = site["gain_us"], site["free_bounds_us"] or {"least": 0.0, "most": 0.0}
        of_site = (gain["low"], gain["high"], free["least"], free["most"])
        ends = [end + part * (more or 0.0) for end, more in zip(ends, of_site)]
    return ends


def run_us(at: At, front: Sequence, program: str, arguments: str, steps: int) -> float:
    """Returns the time in us of all steps of a kernel behind the words of `front`, each step by its
    slowest rank."""
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
    """Compares the gain that the advisor names after a replay with that of the changed program with
    Weft, in 20 runs."""
    found = []
    for program, arguments, steps in KERNELS * (1 if at.short else INTERVAL_ROUNDS):
        for where, count in zip(at.places, steps, strict=True):
            found.append(interval(at, program, arguments, count, where))
            at.keep(program=program, place=str(where), off=found[-1].off, **asdict(found[-1]))
    true = sum(one.off == 0 for one in found) / len(found)
    note = f"of {len(found)} runs; off by at most {max(one.off for one in found):.1%} of the run"
    yield Figure("the interval contains the gain", true, note=note)
    yield Figure("it is narrow", sum(one.is_narrow for one in found) / len(found))


# ---- Cost of the advisor ----------------------------------------------------------------------

COST_ROUNDS = 7
STEPS_US = 2.2e6  # approximate duration in us of a job's steps
LEAST_US = 1e5  # least duration in us from which the number of steps is computed
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
    """Returns a number of steps with which a job is long enough. `time_of` returns the time in us
    of a number of steps."""
    steps = 3
    while (us := time_of(steps)) < LEAST_US:
        steps *= 20
    return max(steps, math.ceil(steps * STEPS_US / us))


def slow_down(program: str, at: At) -> Iterator[Figure]:
    """Measures kernels without and with `weft advise`. Only the time of the steps counts, without
    the start and end of the job. tools/real-programs --way advise measures programs of Debian's
    packages."""
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
