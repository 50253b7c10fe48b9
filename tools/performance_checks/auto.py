"""Compares engine auto with the program without Weft: single calls (bench/table), and whole
programs including the time for learning (bench/steps)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from weft.measurements import statistics

from .check import Figure
from .jobs import At, in_turn, median

Point = tuple[str, str, int]  # name of the call, its form, and bytes

WORSE = 1.03  # ratio of a point to the program alone
SHORT_IN_LAB = 1024  # up to these bytes calls in the lab may be slower by the following ratio
WORSE_IN_LAB = 1.1
RUNS, PAIRS = 3, 3
SIZES, SHORT_SIZES = "8,64,1KiB,8KiB,64KiB,256KiB,1MiB,4MiB", "8,1KiB,64KiB,256KiB"
FEW_SIZES, SHORT_FEW_SIZES = "8,1KiB,64KiB,1MiB,4MiB", "8,64KiB"  # sizes if a call takes long


def calls_us(at: At, options: Sequence, weft: Sequence | None) -> dict[Point, float]:
    """Returns the median time of each point in us."""

    def told_by(*more: str) -> dict[Point, float]:
        lines = map(str.split, at.job("table", [*options, *more], weft).splitlines())
        return {(call, form, int(size)): float(us) for call, form, size, _, us in lines}

    if at.mpi != "intelmpi":
        return told_by()
    # Intel MPI's persistent allgather causes a segmentation fault (2021.18), also without Weft.
    found = told_by("--forms", "blocking,nonblocking,point")
    others = {call for call, form, _ in found if form == "blocking"} - {"allgather"}
    if at.where.ranks == 2:  # with three ranks, other persistent collectives fail as well
        found |= told_by("--forms", "persistent", "--calls", ",".join(sorted(others)))
    return found


def run(at: At, slow: bool) -> dict[Point, float]:
    """Returns the ratio of each point's medians, with Weft to without."""
    if slow:
        sizes, samples = SHORT_FEW_SIZES if at.short else FEW_SIZES, [2, "--least-calls", 1]
    else:
        sizes, samples = SHORT_SIZES if at.short else SIZES, [3 if at.short else 5]
    options = ["--bytes", sizes, "--samples", *samples]
    plans = ["--plan-cache", at.directory / "plans"]  # the file does not exist at first
    ways = {
        "weft": partial(calls_us, at, options, plans),
        "alone": partial(calls_us, at, options, None),
    }
    weft, alone = in_turn(ways, 1 if slow else PAIRS).values()
    return {
        point: median([times[point] for times in weft]) / median([times[point] for times in alone])
        for point in weft[0]
    }


def nothing(at: At) -> Iterator[Figure]:
    """Measures the cost of Weft if it gains nothing. A run has several pairs of jobs with Weft and
    without. A point is worse if the ratio of its medians exceeds the limit in every run."""
    crowded = not (at.where.nodes or at.where.has_cores)
    if crowded and at.short:
        return
    slow, runs = crowded or at.where.nodes > 0, 1 if crowded or at.short else RUNS
    found = [run(at, slow) for _ in range(runs)]
    ratios = {point: [one[point] for one in found] for point in found[0]}
    medians = [median(shares) for (_, form, _), shares in ratios.items() if form != "point"]
    note = f"least {min(medians):.2f}, most {max(medians):.2f}"
    what = f"auto / program alone{', fewer cores than ranks' if crowded else ''}"
    yield Figure(what, statistics.of(medians), note=note)
    if crowded:
        return
    worse = {}
    for (call, form, size), shares in ratios.items():
        if min(shares) > (WORSE_IN_LAB if at.where.nodes and size <= SHORT_IN_LAB else WORSE):
            worse[f"{call} {form} {size} B"] = min(shares)
    note = ", ".join(f"{point} {worse[point]:.2f}" for point in sorted(worse, key=worse.get)[::-1])
    yield Figure("points where auto is slower", len(worse), f"{len(ratios)} points", note)


COLLECTIVES = ("allreduce", "alltoall", "bcast", "allgather")
# These are the sizes, and the amounts of computation as shares of the communication.
GRID = ("8", "4KiB", "64KiB", "1MiB"), (0.1, 1.0)
SHORT_GRID = ("4KiB", "1MiB"), (1.0,)
# Single engines are compared at these sizes and this share.
COMPARED_SIZES, COMPARED_SHARE = ("64KiB", "1MiB"), 1.0
LEARNING_ROUNDS, LEAST_STEPS = 3, 60
# These are numbers of steps with the library's blocking call and without computation. The first is
# used if steps take longer than the given us.
FEW_STEPS, MANY_STEPS, LONG_US = 20, 1000, 2000
NOTHING = ("native", "blocking")
Seconds = dict[str, list[float]]  # seconds of each round, by engine or way


def steps(at: At, options: Sequence, weft: Sequence | None) -> list[float]:
    """Returns the seconds of the whole program and the us of each step; without computation also
    the ns of an iteration."""
    return [float(word) for word in at.job("steps", options, weft).split()]


def measure(at: At, collective: str, size: str, share: float, engines: Sequence[str]) -> Seconds:
    """Measures programs of 1000 calls or 5 s between nodes. On one node, where calls are short,
    they take 1 s."""
    most, seconds = (1000, 5.0) if at.where.nodes else (200_000, 1.0)
    call = ["--collective", collective, "--bytes", size]
    for count in (FEW_STEPS, MANY_STEPS):
        only = [*call, "--steps", count, "--blocking", 1, "--work", 0]
        _, us_per_step, ns_per_iteration = steps(at, only, None)
        if us_per_step > LONG_US:
            break
    work = int(share * us_per_step * 1000 / ns_per_iteration)
    about = int(seconds * 1e6 / (us_per_step * (1 + share)))
    program = [*call, "--steps", max(LEAST_STEPS, min(most, about)), "--work", work]
    plans = ["--plan-cache", at.directory / f"{collective}-{size}-{share:g}"]
    ways = {
        "blocking": partial(steps, at, [*program, "--blocking", 1], None),
        "native": partial(steps, at, program, None),
        "auto": partial(steps, at, program, ["--plan-cache", "none"]),
        "auto, warm": partial(steps, at, program, plans),
    }
    if size in COMPARED_SIZES and share == COMPARED_SHARE:
        ways |= {name: partial(steps, at, program, ["--engine", name]) for name in engines}
    steps(at, program, plans)
    found = in_turn(ways, at.few_or(LEARNING_ROUNDS))
    return {way: [seconds for seconds, *_ in rounds] for way, rounds in found.items()}


def of_best(seconds: Seconds, way: str, others: Sequence[str]) -> list[float]:
    """Returns the ratio of each round's time to the best of the other ways' medians."""
    best = min(median(seconds[other]) for other in others)
    return [one / best for one in seconds[way]]


def learning(at: At) -> Iterator[Figure]:
    """Measures engine auto including its learning. It is compared with the better of the library's
    own overlap and its blocking calls, and with the best single engine. The computation is a share
    of the library's blocking communication."""
    engines = ("function", "thread", "assist") if at.where.nodes else ("function", "thread")
    single, points = (*NOTHING, *engines), {}
    for case in product(COLLECTIVES, *(SHORT_GRID if at.short else GRID)):
        points["{} {}, computation {:g}".format(*case)] = measure(at, *case, engines)
    at.keep(seconds=points)

    def medians(way: str, others: Sequence[str]) -> statistics.Statistic:
        there = [seconds for seconds in points.values() if seconds.keys() >= set(others)]
        return statistics.of([median(of_best(seconds, way, others)) for seconds in there])

    yield Figure("auto / better of native and blocking", medians("auto", NOTHING))
    least = {name: min(of_best(seconds, "auto", NOTHING)) for name, seconds in points.items()}
    worse = [f"{name} {least[name]:.2f}" for name in points if least[name] > WORSE]
    yield Figure("points where auto is slower", len(worse), note="; ".join(worse))
    yield Figure("auto / best single engine", medians("auto", single))
    yield Figure("auto with a warm cache / best single engine", medians("auto, warm", single))
