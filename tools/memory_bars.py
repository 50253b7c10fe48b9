"""What blocking calls in a node's memory take, of the faster library's; initialisations of
persistent ones; and nodes with more ranks than cores.

Each round runs every job once; ratios are within a round.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bar import Bar, ratios

from weft.system import installation, mpi_libraries

ALTERNATIONS = 7
JOB_SECONDS = 400

# Most that a blocking allreduce in the node's memory may take of the faster library's.
IN_MEMORY = {8: 0.40, 4096: 0.45, 65536: 0.40, 1 << 20: 0.35, 8 << 20: 0.45}
LARGEST = max(IN_MEMORY)


# The same with buffers that ranks share, of the faster library's with such buffers or private ones.
SHARED = {65536: 0.15, 1 << 20: 0.20}
LIBRARIES = ("mpich", "openmpi")


def time_of_calls(
    mpi: str, launch: list, options: list, weft: list | None, **environment: str
) -> dict[str, float]:
    """The program `latency`: median times by form, in microseconds. weft: its options, if it
    runs."""
    library = mpi_libraries.implementation(mpi)
    front = [installation.weft_command(), "run", "--engine", "function", "--blocking"]
    front = [] if weft is None else [*front, *weft, "--"]
    command = [library.mpiexec, *launch, *front, library.program("latency"), *options]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **library.environment(), **environment},
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
    )
    if done.returncode != 0:
        raise SystemExit(f"bars: latency ended with status {done.returncode}:\n{done.stderr}")
    lines = (line.split() for line in done.stdout.splitlines())
    return {form: float(median) for form, _, _, median in lines}


def two_ranks(mpi: str) -> list:
    """Each on a core of its own."""
    return [*(("--bind-to", "core") if mpi == "openmpi" else ("-bind-to", "core")), "-n", 2]


@dataclass(frozen=True)
class Job:
    """Times of an allreduce between two ranks by form, and of the line that tells how far their
    cores are apart."""

    mpi: str
    weft: bool
    size: int
    shared: bool = False

    def measure(self) -> dict[str, float]:
        forms = "blocking,persistent,line" + (",copy" if self.size == LARGEST else "")
        options = ["--samples", 61, "--sample-ms", 1, "--bytes", self.size, "--forms", forms]
        options += ["--buffers", "shared" if self.shared else "private"]
        return time_of_calls(self.mpi, two_ranks(self.mpi), options, [] if self.weft else None)


class Machine:
    """Where a host moves virtual cores about, two of them are now near each other and now far
    apart; a job that met them far apart is run again."""

    TRIES = 5

    def __init__(self) -> None:
        self.least_line_us = float("inf")
        self.far_apart = 0

    def measure(self, job: Job) -> dict[str, float]:
        for _ in range(self.TRIES):
            times = job.measure()
            self.least_line_us = min(self.least_line_us, times["line"])
            if times["line"] < 2 * self.least_line_us:
                return times
        self.far_apart += 1
        return times


def node_memory(measurements: list[dict]) -> Iterator[Bar]:
    machine = Machine()
    both = (False, True)
    jobs = [Job(mpi, weft, size) for size in IN_MEMORY for mpi in LIBRARIES for weft in both]
    jobs += [Job(mpi, weft, size, True) for size in SHARED for mpi in LIBRARIES for weft in both]
    rounds = [{job: machine.measure(job) for job in jobs} for _ in range(ALTERNATIONS)]
    measurements += [
        asdict(job) | {"bytes": job.size, **times} for run in rounds for job, times in run.items()
    ]

    def of_the_faster(mpi: str, size: int, limit: float, shared: bool) -> Bar:
        theirs = [
            job for job in jobs if job.size == size and not job.weft and (shared or not job.shared)
        ]
        shares = [
            run[Job(mpi, True, size, shared)]["blocking"]
            / min(run[job]["blocking"] for job in theirs)
            for run in rounds
        ]
        where = "shared buffers" if shared else "memory"
        return ratios(f"{mpi}, allreduce {size} B in {where}, of the faster", limit, shares)

    for mpi in LIBRARIES:
        for size, limit in IN_MEMORY.items():
            yield of_the_faster(mpi, size, limit, shared=False)
        for size, limit in SHARED.items():
            yield of_the_faster(mpi, size, limit, shared=True)
        for size in IN_MEMORY:
            mine = [run[Job(mpi, True, size)] for run in rounds]
            shares = [times["persistent"] / times["blocking"] for times in mine]
            yield ratios(f"{mpi}, {size} B, persistent of Weft's blocking", 1.0, shares)
        # With private buffers each of p ranks must at least show n (p - 1) / p bytes, reduce as
        # many and take as many: 1.5 n for two.
        mine = [run[Job(mpi, True, LARGEST)] for run in rounds]
        shares = [1.5 * times["copy"] / times["blocking"] for times in mine]
        what = f"{mpi}, allreduce {LARGEST} B, of the least copies' bandwidth"
        yield ratios(what, 0.8, shares, at_least=True)
    shares = [
        run[Job("mpich", True, 8)]["persistent"] / run[Job("mpich", False, 8)]["persistent"]
        for run in rounds
    ]
    yield ratios("mpich, 8 B, persistent of the library's", 0.15, shares)
    lines = [times["line"] for run in rounds for times in run.values()]
    print(
        f"The other core's line was seen after {1000 * min(lines):.0f} to"
        f" {1000 * max(lines):.0f} ns; {machine.far_apart} of {len(lines)} jobs met the cores far"
        " apart only."
    )


def initialisations(measurements: list[dict]) -> Iterator[Bar]:
    """Of MPI_Allreduce_init, the first of its job: with an empty cache of plans, and with one in
    which nothing is left to be measured."""
    most_that_measure = 4  # jobs, until a plan is kept
    for mpi in LIBRARIES:
        for size in IN_MEMORY:
            options = ["--forms", "init", "--samples", 1, "--bytes", size]
            with tempfile.TemporaryDirectory() as directory:
                cache = Path(directory) / "plans"
                weft = ["--plan-cache", cache]

                def job(mpi=mpi, options=options, weft=weft) -> float:
                    return time_of_calls(mpi, two_ranks(mpi), options, weft)["init"]

                first = []
                for _ in range(ALTERNATIONS):
                    cache.unlink(missing_ok=True)
                    first.append(job() / 1000)
                for _ in range(most_that_measure):
                    job()
                known = [job() for _ in range(ALTERNATIONS)]
            what = f"{mpi}, {size} B, initialisation"
            measurements.append({"what": what, "first_ms": first, "known_us": known})
            for name, times, limit, unit in (
                ("the first", first, 10, " ms"),
                ("of a known plan", known, 200, " us"),
            ):
                note = f"[{min(times):.3g}, {max(times):.3g}] of {len(times)} jobs"
                median = statistics.median(times)
                yield Bar(f"{what}, {name}", median, limit, unit=unit, note=note)


def crowded(measurements: list[dict]) -> Iterator[Bar]:
    """More ranks than two cores, of a library whose waits yield: MPICH's do not, and take longer by
    orders of magnitude."""
    for ranks in (3, 4, 5, 7, 8):
        launch = ["--bind-to", "none", "--oversubscribe", "-n", ranks]
        for size in (8, 65536):
            options = ["--samples", 9, "--sample-ms", 20, "--bytes", size]
            shares = []
            for _ in range(ALTERNATIONS):
                ours, theirs = (
                    time_of_calls(
                        "openmpi", launch, options, weft, OMPI_MCA_mpi_yield_when_idle="1"
                    )["blocking"]
                    for weft in ([], None)
                )
                shares.append(ours / theirs)
            what = f"openmpi, {ranks} ranks, allreduce {size} B of the library's"
            measurements.append({"what": what, "shares": shares})
            yield ratios(what, 1.1, shares)
