"""Measures blocking and persistent allreduces in a node's memory (bench/latency), their
initialisation, and nodes with more ranks than cores.

Each round runs every job once, and ratios are formed within a round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from weft.measurements import statistics

from .check import Figure
from .jobs import At, in_turn, ratio

SIZES = (8, 4096, 65536, 1 << 20, 8 << 20)
SHARED_SIZES = (65536, 1 << 20)  # sizes that are also measured with buffers that ranks share
LARGEST = max(SIZES)
ROUNDS, TRIES = 7, 5
MOST_THAT_MEASURE = 4  # most jobs that measure before a plan is stored
FUNCTION = ("--engine", "function", "--blocking")
LIBRARIES = ("mpich", "openmpi")  # Weft is compared with the faster of these
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}

Times = dict[str, float]  # median time in us by form


def times_of_calls(at: At, options: Sequence, weft: Sequence | None, **more) -> Times:
    lines = map(str.split, at.job("latency", options, weft, **more).splitlines())
    return {form: float(median) for form, _, _, median in lines}


def node(at: At) -> Iterator[Figure]:
    """Measures Weft's calls and those of all libraries, and compares with the fastest library.

    A host may move virtual cores, so that two of them are near each other at one time and far apart
    at another. A job whose transfer of a cache line took more than twice the least is run again."""
    libraries = [mpi for mpi in LIBRARIES if mpi in at.session.libraries]
    lines_us: list[float] = []

    def job(who: str, size: int, buffers: str) -> Times:
        forms = "blocking,persistent,line" + (",copy" if size == LARGEST else "")
        options = ["--samples", 61, "--sample-ms", 1, "--bytes", size, "--forms", forms]
        weft, mpi = (FUNCTION, at.mpi) if who == "weft" else (None, who)
        for _ in range(TRIES):
            times = times_of_calls(at, [*options, "--buffers", buffers], weft, mpi=mpi)
            lines_us.append(times["line"])
            if times["line"] < 2 * min(lines_us):
                break
        return times

    cases = [(size, "private") for size in SIZES] + [(size, "shared") for size in SHARED_SIZES]
    names = [(who, *case) for case in cases for who in ("weft", *libraries)]
    found = in_turn({name: partial(job, *name) for name in names}, at.few_or(ROUNDS))

    def times(who: str, size: int, form: str, buffers: str = "private") -> list[float]:
        return [one[form] for one in found[who, size, buffers]]

    for size, buffers in cases:
        kinds = {"private", buffers}
        theirs = [times(who, size, "blocking", kind) for who in libraries for kind in kinds]
        fastest = [min(times) for times in zip(*theirs)]
        share = ratio(times("weft", size, "blocking", buffers), fastest)
        where = " in shared buffers" if buffers == "shared" else ""
        yield Figure(f"{size} B{where}: Weft / faster library", share, "allreduce")
    for size in SIZES:
        share = ratio(times("weft", size, "persistent"), times("weft", size, "blocking"))
        yield Figure("persistent / blocking", share, f"{size} B")
    # With private buffers each of p ranks must copy at least n (p - 1) / p bytes to where others
    # read them, reduce as many, and read as many. With two ranks that is 1.5 n.
    copies = [1.5 * us for us in times("weft", LARGEST, "copy")]
    share = ratio(copies, times("weft", LARGEST, "blocking"))
    yield Figure("bandwidth / that of the least copies", share, f"{LARGEST} B")
    note = f"a line after {1000 * min(lines_us):.0f} to {1000 * max(lines_us):.0f} ns"
    share = ratio(times("weft", 8, "persistent"), times(at.mpi, 8, "persistent"))
    yield Figure(f"persistent / {at.mpi}'s", share, "8 B", note)


def initialisations(at: At) -> Iterator[Figure]:
    """Measures the first MPI_Allreduce_init of a job: with an empty cache of plans, and with one in
    which nothing remains to be measured."""
    for size in SIZES:
        of, cache = f"initialisation of {size} B", at.directory / f"plans-{size}"

        def init_us(size: int = size, cache=cache, known: bool = True) -> float:
            if not known:
                cache.unlink(missing_ok=True)
            options = ["--forms", "init", "--samples", 1, "--bytes", size]
            return times_of_calls(at, options, [*FUNCTION, "--plan-cache", cache])["init"]

        first_ms = [init_us(known=False) / 1000 for _ in range(at.few_or(ROUNDS))]
        for _ in range(MOST_THAT_MEASURE):
            init_us()
        known_us = [init_us() for _ in range(at.few_or(ROUNDS))]
        yield Figure("the first", statistics.of(first_ms), of)
        yield Figure("of a known plan", statistics.of(known_us), of)


def crowded(at: At) -> Iterator[Figure]:
    """Measures more ranks than cores, on two cores, with a library whose waits yield. Those of
    MPICH do not, and take longer by orders of magnitude."""
    for size in (8, 65536):
        options = ["--samples", 9, "--sample-ms", 20, "--bytes", size]
        call = partial(times_of_calls, at, options, **YIELDING)
        ways = {"weft": partial(call, FUNCTION), "alone": partial(call, None)}
        found = in_turn(ways, at.few_or(ROUNDS)).values()
        own, theirs = ([times["blocking"] for times in rounds] for rounds in found)
        yield Figure("Weft / library", ratio(own, theirs), f"allreduce {size} B")
