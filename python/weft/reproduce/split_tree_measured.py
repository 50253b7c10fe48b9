"""Denis et al., section 7: split trees on this machine, compared with the MPI library's own
collectives.

The benchmark's program `overlap` runs with ranks on some of the cores. They share an amount of work
that takes all cores together as long as the blocking collective. Each number of levels is measured
in separate jobs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from weft.bench import kernel_runs, places
from weft.bench.variants import ASYNC_VARIABLES
from weft.cores import native
from weft.measurements import statistics
from weft.measurements.decisions import Decision, every, is_shorter, some_shorter
from weft.measurements.effect import duration
from weft.measurements.result import Statistic
from weft.measurements.statistics import leads
from weft.reproduce.claims import Claim
from weft.reproduce.findings import CANNOT, MEASURED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.measured import ERRORS, Bench, NotMeasured, decided
from weft.reproduce.published import named
from weft.reproduce.split_tree import SPLITS
from weft.system import building, installation, mpi_libraries
from weft.system.probe import how_to_build

PROGRAM, BYTES = "overlap", "2MiB"
COLLECTIVE = "reduce"  # the collective of figures 18 to 21
REPETITIONS = 9
FLAGGED = "intelmpi"


# ---- Jobs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """The results of a job. `totals` has the time of collective and computation together, by
    engine."""

    blocking: Statistic
    computation: Statistic
    totals: dict[str, Statistic]
    iterations: int
    wrong: int  # number of wrong results

    @property
    def in_turn(self) -> Statistic:
        """Returns the time of the blocking collective followed by the computation."""
        one, other = self.blocking, self.computation
        sums = (one.median + other.median, one.low + other.low, one.high + other.high)
        return Statistic(*sums, min(one.n, other.n))


def job_of(found: Mapping[str, Any]) -> Job:
    """Returns the results from the JSON of the program."""

    def statistic(entry: Mapping[str, Any]) -> Statistic:
        return statistics.of(entry["samples"])

    totals = {one["engine"]: statistic(one["total_us"]) for one in found["engines"]}
    times = (statistic(found["blocking_us"]), statistic(found["computation_us"]))
    return Job(*times, totals, found["iterations"], found["wrong"])


def on_cores(mpi: str, ranks: int, options: list[str], weft: list[str], **variables: str) -> Job:
    """Runs a job with each rank on a core of its own. `weft` has its options; if it is empty, the
    job runs without Weft."""
    library = mpi_libraries.implementation(mpi)
    program = library.program(PROGRAM)
    if not building.is_there(program):
        raise NotMeasured(f"{program} is missing; {how_to_build(library)}")
    placed, _ = native.ask(native.Placement, ["place", "--ranks", str(ranks)])
    words = [*kernel_runs.bound_to(placed.ranks)]
    if weft:
        words += [str(installation.weft_command()), "run", *weft, "--"]
    words += [str(program), "--collective", COLLECTIVE, "--bytes", BYTES, *options]
    words += ["--repetitions", str(REPETITIONS)]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "figures.json"
        words += ["--json", str(file)]
        job = places.LauncherPlace("mpiexec").start(mpi, ranks, words, variables)
        status = kernel_runs.wait(job)
        if not file.exists():
            last = (job.said().strip().splitlines() or ["no output"])[-1]
            raise NotMeasured(f"{PROGRAM} under {mpi} ended with status {status}: {last}")
        return job_of(json.loads(file.read_text()))


def split(levels: int) -> list[str]:
    words = ["--engine", "thread", "--placement", "numa", "--transport", "mpi"]
    return [*words, "--algorithm", f"{COLLECTIVE}=binomial", "--split", str(levels)]


# ---- Jobs with all numbers of ranks -------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """The measured times. `by_ranks` has them by number of ranks and number of levels. `model` has
    the number of levels that the model chooses."""

    cores: int
    all_cores: Job
    by_ranks: dict[int, dict[int, Job]]
    model: dict[int, int]


def ranks_of(cores: int) -> list[int]:
    """Returns the numbers of ranks that leave between one core and a quarter of the cores free."""
    free = {1, 2, max(2, cores // 8), cores // 4}
    return sorted({cores - count for count in free} & {*range(2, cores)})


def measure(mpi: str, cores: int) -> Measured:
    all_cores = on_cores(mpi, cores, ["--engines", "native"], [])
    by_ranks, model = {}, {}
    for ranks in ranks_of(cores):
        iterations = str(max(1, all_cores.iterations * cores // ranks))
        options = ["--engines", "native,thread", "--iterations", iterations]
        by_ranks[ranks] = {s: on_cores(mpi, ranks, options, split(s)) for s in SPLITS}
        words = ["model", "--cores", str(cores), "--ranks", str(ranks), "--collective", COLLECTIVE]
        model[ranks] = min(native.ask(native.Model, words)[0].S, SPLITS[-1])
    return Measured(cores, all_cores, by_ranks, model)


# ---- Verdicts ---------------------------------------------------------------------------------


def findings_of(mpi: str, found: Measured) -> list[Finding]:
    grows, beats_blocking, fewer, beats_library, *_ = named("split-tree").claims[3:]
    on = f"I{COLLECTIVE} on {found.cores} cores, {mpi}"
    threads = {n: totals_of(jobs, "thread") for n, jobs in found.by_ranks.items()}
    best = {n: min(times, key=lambda s: times[s].median) for n, times in threads.items()}
    most = max(threads)
    blocking = found.by_ranks[most][0].in_turn
    by_model = {n: threads[n][levels] for n, levels in found.model.items()}
    library = {n: jobs[found.model[n]].totals["native"] for n, jobs in found.by_ranks.items()}
    every_total = [time for times in threads.values() for time in times.values()]
    least = min(every_total, key=lambda time: time.median)
    beside_library = {
        n: f"Weft {duration(time.median)}, {mpi} {duration(library[n].median)}"
        for n, time in by_model.items()
    }
    return [
        decided(grows, on, told({n: f"S = {s}" for n, s in best.items()}), rises(threads)),
        decided(
            beats_blocking,
            on,
            f"{most} ranks: S = {best[most]} {duration(threads[most][best[most]].median)}, blocking"
            f" {duration(blocking.median)}",
            some_shorter(threads[most].values(), blocking),
        ),
        decided(
            fewer,
            on,
            f"{duration(least.median)}, with ranks on all cores"
            f" {duration(found.all_cores.in_turn.median)}",
            some_shorter(every_total, found.all_cores.in_turn),
        ),
        decided(
            beats_library,
            on,
            told(beside_library),
            every(is_shorter(time, library[n]) for n, time in by_model.items()),
        ),
    ]


def totals_of(jobs: dict[int, Job], engine: str) -> dict[int, Statistic]:
    return {levels: job.totals[engine] for levels, job in jobs.items()}


def told(by_ranks: dict[int, str]) -> str:
    return "; ".join(f"{ranks} ranks: {text}" for ranks, text in by_ranks.items())


def leader(times: dict[int, Statistic]) -> Optional[int]:
    """Returns the number of levels that is faster than all others beyond the spread; None if there
    is none."""
    for levels, time in times.items():
        if all(leads(time, other) for name, other in times.items() if name != levels):
            return levels
    return None


def rises(by_ranks: dict[int, dict[int, Statistic]]) -> Decision:
    """Returns whether the best number of levels grows with the ranks and never falls; None if that
    is undecided."""
    best = [leader(by_ranks[ranks]) for ranks in sorted(by_ranks)]
    known = [levels for levels in best if levels is not None]
    pairs = list(zip(known, known[1:]))
    if any(after < before for before, after in pairs):
        return False
    if any(after > before for before, after in pairs):
        return True
    return False if len(known) == len(best) > 1 else None


def of_flags(claim: Claim, mpi: str, cores: int) -> Finding:
    """Returns the finding on the MPI library's variables for asynchronous progress, with ranks on
    all cores except one, but at least two."""
    ranks = max(2, cores - 1)
    options = ["--engines", "native"]
    usual = on_cores(mpi, ranks, options, [])
    options += ["--iterations", str(usual.iterations)]
    usual = on_cores(mpi, ranks, options, [])
    flagged = on_cores(mpi, ranks, options, [], **ASYNC_VARIABLES[FLAGGED])
    one, other = usual.totals["native"], flagged.totals["native"]
    here = f"without them {duration(one.median)}, with them {duration(other.median)}"
    on = f"I{COLLECTIVE}, {ranks} ranks on {cores} cores, {mpi}"
    return decided(claim, on, here, is_shorter(one, other))


def of_libraries(claim: Claim, found: dict[str, Measured]) -> Finding:
    wrong = {
        mpi: sum(job.wrong for jobs in one.by_ranks.values() for job in jobs.values())
        for mpi, one in found.items()
    }
    here = "; ".join(f"{mpi}: {count} wrong results" for mpi, count in wrong.items())
    if len(wrong) < 2 and not any(wrong.values()):
        return claim.found(MEASURED, "", here, CANNOT, "fewer than two MPI libraries ran it")
    return claim.found(MEASURED, "", here, verdict_if(not any(wrong.values())))


# ---- Whole experiment ---------------------------------------------------------------------------


def libraries(bench: Bench) -> list[str]:
    """Returns the requested MPI libraries, or else all installed ones, since the statement is about
    several."""
    return bench.mpis if bench.mpi else [library.name for library in mpi_libraries.found()]


def part(bench: Bench) -> Part:
    *of_trees, of_variables, of_all = named("split-tree").claims[3:]
    findings, figures, found, why = [], [], {}, of_trees[0].here.cores_in_words
    if bench.cores >= of_trees[0].here.cores:
        for mpi in libraries(bench):
            try:
                found[mpi] = measure(mpi, bench.cores)
            except ERRORS as error:
                why = f"{mpi}: it failed: {' '.join(str(error).split())}"
                findings += [claim.untested(MEASURED, why) for claim in of_trees]
                continue
            findings += findings_of(mpi, found[mpi])
            figures.append(figure(mpi, found[mpi]))
        findings.append(of_libraries(of_all, found))
    else:
        findings += [claim.untested(MEASURED, why) for claim in (*of_trees, of_all)]
    return Part(
        findings=[*findings, flags(of_variables, bench)],
        figures=figures,
        conditions=f"Measured: {PROGRAM} --collective {COLLECTIVE} --bytes {BYTES}, each rank on a"
        " core of its own and threads by numa; the work of all cores together is the same, and"
        " takes as long there as the blocking collective.",
    )


def flags(claim: Claim, bench: Bench) -> Finding:
    if FLAGGED not in libraries(bench):
        return claim.untested(MEASURED, "needs Intel MPI")
    try:
        return of_flags(claim, FLAGGED, bench.cores)
    except ERRORS as error:
        return claim.untested(MEASURED, f"it failed: {' '.join(str(error).split())}")


def figure(mpi: str, found: Measured) -> Figure:
    x = [float(ranks) for ranks in found.by_ranks]
    lines = [
        Line(f"S = {s}", x, [jobs[s].totals["thread"].median for jobs in found.by_ranks.values()])
        for s in SPLITS
    ]
    own = [jobs[0].totals["native"].median for jobs in found.by_ranks.values()]
    in_turn = [jobs[0].in_turn.median for jobs in found.by_ranks.values()]
    lines += [Line(f"{mpi}'s own", x, [*own]), Line("blocking", x, [*in_turn])]
    title = f"I{COLLECTIVE} of {BYTES} on {found.cores} cores, {mpi}"
    return Figure(title, "ranks", "µs, with computation", lines)
