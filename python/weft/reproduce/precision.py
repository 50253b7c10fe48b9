"""JHPCN jh250041, topic 3: the pipelined method in lower precision, as measured by pipecg.

Efficiency is processor time, for one iteration or for the whole solution. Several jobs give an
interval of the time; the number of iterations is the same in all of them. The matrices exceed all
caches, since single precision gains time by reading less from memory."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.bench import kernel_runs, places
from weft.data import files
from weft.measurements import statistics
from weft.measurements.decisions import Decision, every, is_shorter, reaches
from weft.measurements.result import Statistic
from weft.reproduce.claims import Claim
from weft.reproduce.findings import CANNOT, MEASURED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.measured import Bench, NotMeasured
from weft.reproduce.published import named
from weft.system import building, mpi_libraries
from weft.system.probe import how_to_build

PROGRAM = "pipecg"
STUDY = "--what study --iterations 2000 --repetitions 1"
EDGES = (96, 128, 160, 192)  # edges of the grids that may be used
# A row has these bytes in single precision: seven entries and columns, and ten vectors.
BYTES_OF_A_ROW = 96
ROUNDS = 6  # number of jobs, which suffices for an interval
WELL, ILL = "well conditioned", "ill conditioned"
# Single precision cannot represent the entries of these problems exactly, as it can those of
# Poisson's problem.
PROBLEMS = {
    WELL: "--coefficients heterogeneous --contrast 10",
    ILL: "--coefficients heterogeneous --contrast 1e4",
}
# This is the ratio of iterations to those in double precision up to which they count as nearly
# equal.
NEARLY = 1.05
TWICE = 1.75  # ratio from which a precision counts as about twice as efficient
ROW = re.compile(
    r"^\| (?P<precision>[\w-]+) \| (?P<by>\w+) \| (?P<iterations>\d+) \| (?P<replacements>\d+)"
    r" \| (?P<time>[\d.]+) \| (?P<residual>\S+) \| (?P<end>.+) \|$"
)
CONVERGED = "converged"
DOUBLE = ("double", "none")
DRAWN = (
    *(DOUBLE, ("mixed", "replacement"), ("mixed-vectors", "replacement")),
    *(("single", "refinement"), ("single", "both")),
)


@dataclass(frozen=True)
class Outcome:
    """The result in one precision with one stabilisation. `time` is that of an iteration, relative
    to double precision."""

    iterations: int
    time: Statistic
    residual: float  # relative true residual
    end: str
    replacements: int = 0

    @property
    def converged(self) -> bool:
        return self.end == CONVERGED

    @property
    def efficiency(self) -> Statistic:
        """Returns the number of iterations in the time of one in double precision."""
        time = self.time
        return Statistic(1 / time.median, 1 / time.high, 1 / time.low, time.n)

    @property
    def whole(self) -> Statistic:
        """Returns the time of the whole solution, in iterations of double precision."""
        time, count = self.time, self.iterations
        return Statistic(count * time.median, count * time.low, count * time.high, time.n)


Table = dict[tuple[str, str], Outcome]  # results by precision and stabilisation


def table(texts: Sequence[str]) -> Table:
    """Returns the results from the program's output in each round."""
    rows: dict[tuple[str, str], list[re.Match[str]]] = {}
    for text in texts:
        for row in filter(None, (ROW.match(line.strip()) for line in text.splitlines())):
            rows.setdefault((row["precision"], row["by"]), []).append(row)
    return {
        key: Outcome(
            int(found[0]["iterations"]),
            statistics.of([float(row["time"]) for row in found]),
            float(found[0]["residual"]),
            found[0]["end"],
            int(found[0]["replacements"]),
        )
        for key, found in rows.items()
    }


def run(mpi: str, options: str) -> str:
    """Returns the program's output on one rank without Weft. Raises NotMeasured if it is missing or
    fails."""
    library = mpi_libraries.implementation(mpi)
    program = library.program(PROGRAM)
    if not building.is_there(program):
        raise NotMeasured(f"{program} is missing; {how_to_build(library)}")
    job = places.LauncherPlace("mpiexec").start(mpi, 1, [str(program), *options.split()], {})
    status = kernel_runs.wait(job)
    said = job.said()
    if status != 0 or not table([said]):
        last = (said.strip().splitlines() or ["no output"])[-1]
        raise NotMeasured(f"{PROGRAM} under {mpi} ended with status {status}: {last}")
    return said


def edge(cache_bytes: int) -> int:
    """Returns the edge of the smallest grid whose data in single precision are at least twice the
    cache."""
    large = (one for one in EDGES if BYTES_OF_A_ROW * one**3 >= 2 * cache_bytes)
    return next(large, EDGES[-1])


def last_cache_bytes() -> int:
    """Returns the bytes of the first core's largest cache; 0 if the system does not say."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    with contextlib.suppress(OSError, ValueError):
        return max((1024 * int(size.read_text().strip().rstrip("K")) for size in sizes), default=0)
    return 0


def study(mpi: str, method: str, problem: str, edge: int, rows: Sequence[tuple[str, str]]) -> str:
    """Returns the program's output for these precisions and stabilisations."""
    names = ",".join(f"{precision}/{by}" for precision, by in rows)
    words = f"{STUDY} --grid {edge}x{edge}x{edge} --method {method} --rows {names}"
    return run(mpi, f"{words} {PROBLEMS[problem]}")


def part(bench: Bench) -> Part:
    mpi, long = bench.mpis[0], edge(last_cache_bytes())
    said: dict[str, list[str]] = {problem: [] for problem in PROBLEMS}
    bench.folder.mkdir(parents=True, exist_ok=True)
    for _ in range(ROUNDS):
        for problem in PROBLEMS:
            said[problem].append(study(mpi, "pipelined", problem, long, DRAWN))
            file = bench.folder / f"precision-{problem.split()[0]}.txt"
            files.write_text(file, "\n".join(said[problem]))
    tables = {problem: table(texts) for problem, texts in said.items()}
    alone = {way: study(mpi, way, WELL, SHORT, REDUCED) for way in ("pipelined", "classic")}
    files.write_text(bench.folder / "precision-alone.txt", "\n".join(alone.values()))
    found = findings(tables[WELL], tables[ILL])
    return Part(
        findings=[*found, of_rounding(*(table([text]) for text in alone.values()))],
        figures=[figure(tables)],
        conditions=f"Measured: {PROGRAM} {STUDY} --grid {long}x{long}x{long}, on one rank under"
        f" {mpi}, {ROUNDS} times; processor time. Rounding without a stabilisation:"
        f" {SHORT}x{SHORT}x{SHORT}. Tables in {bench.folder}: precision-well.txt,"
        " precision-ill.txt, precision-alone.txt. Mixed:"
        " matrix and preconditioner in single precision, all else in double; mixed-vectors: the"
        " vectors in single, too. The report does not say which it means.",
    )


def findings(well: Table, ill: Table) -> list[Finding]:
    nearly, twice, both, _ = named("precision").claims
    return [
        mixed_with_replacement(nearly, well),
        single_with_refinement(twice, well, ill),
        refinement_with_replacement(both, well, ill),
    ]


SHORT = 40  # edge of the grid if only rounding matters
REDUCED = [(precision, "none") for precision in ("mixed", "mixed-vectors", "single")]


def of_rounding(pipelined: Table, classic: Table) -> Finding:
    """Returns the finding on rounding, from the final true residuals of both methods without a
    stabilisation."""
    claim = named("precision").claims[3]
    if why := lacking((pipelined, REDUCED), (classic, REDUCED)):
        return claim.found(MEASURED, WELL, "", CANNOT, why)
    told, worse = [], []
    for row in REDUCED:
        one, other = pipelined[row], classic[row]
        told.append(f"{row[0]} {one.residual:.1e} pipelined, {other.residual:.1e} classic")
        worse.append(one.residual > other.residual)
    here = f"true residual: {'; '.join(told)}"
    why = f"So in {worse.count(True)} of {len(worse)} precisions." if not all(worse) else ""
    return claim.found(MEASURED, WELL, here, verdict_if(all(worse)), why)


def lacking(*needed: tuple[Table, Sequence[tuple[str, str]]]) -> str:
    """Says which results the program did not print."""
    missing = [
        f"{precision} with {by}"
        for found, rows in needed
        for precision, by in rows
        if (precision, by) not in found
    ]
    return f"{', '.join(missing)} is missing in the program's table" if missing else ""


def mixed_with_replacement(claim: Claim, well: Table) -> Finding:
    rows = (DOUBLE, ("mixed", "replacement"), ("mixed-vectors", "replacement"))
    if why := lacking((well, rows)):
        return claim.found(MEASURED, WELL, "", CANNOT, why)
    double, mixed, vectors = (well[row] for row in rows)
    here = f"double {iterations(double)}; mixed {iterations(mixed)} with {mixed.replacements}"
    here += f" replacements; with single vectors, too, {iterations(vectors)} with"
    here += f" {vectors.replacements}"
    holds = mixed.converged and mixed.iterations <= NEARLY * double.iterations
    return claim.found(MEASURED, WELL, here, verdict_if(holds), READING)


READING = "Mixed is read as matrix and preconditioner in single precision."


def single_with_refinement(claim: Claim, well: Table, ill: Table) -> Finding:
    rows = (("single", "refinement"), ("mixed", "replacement"))
    if why := lacking((well, rows[:1]), (ill, rows)):
        return claim.found(MEASURED, f"{WELL}, {ILL}", "", CANNOT, why)
    quick = well[rows[0]]
    single, mixed = (ill[row] for row in rows)
    here = f"{WELL} {quick.efficiency.median:.2f} times as efficient per iteration"
    here += f"{_trouble(quick)}; {ILL}, in iterations of double: single with refinement"
    here += f" {ends(single)}, mixed with replacement {ends(mixed)},"
    here += f" {mixed.efficiency.median:.2f} times as efficient per iteration"
    twice = reaches(quick.efficiency, TWICE) if quick.converged else False
    return of_both(claim, here, twice, is_better(mixed, single))


def refinement_with_replacement(claim: Claim, well: Table, ill: Table) -> Finding:
    rows = (("single", "refinement"), ("single", "both"))
    if why := lacking((well, rows), (ill, rows)):
        return claim.found(MEASURED, f"{WELL}, {ILL}", "", CANNOT, why)
    told = []
    for problem, found in ((WELL, well), (ILL, ill)):
        refined, both = (found[row] for row in rows)
        told.append(f"{problem}: refinement {ends(refined)}, with replacement {ends(both)}")
    here = f"in iterations of double, {'; '.join(told)}"
    gains = is_better(well[rows[1]], well[rows[0]])
    return of_both(claim, here, gains, is_better(ill[rows[0]], ill[rows[1]]))


def is_better(one: Outcome, other: Outcome) -> Decision:
    """Returns whether the first solves in less time. One that does not converge is worse than one
    that does; two of these are undecided."""
    if one.converged and other.converged:
        return is_shorter(one.whole, other.whole)
    return one.converged if one.converged != other.converged else None


def of_both(claim: Claim, here: str, well: Decision, ill: Decision) -> Finding:
    """Returns the finding on a statement with a part for each problem."""
    on = f"{WELL}, {ILL}"
    parts = {f"the {WELL} part": well, f"the {ILL} part": ill}
    holds = every(parts.values())
    if holds is None:
        undecided = [name for name, part in parts.items() if part is None]
        why = f"not decided: {' and '.join(undecided)}, where neither converges, or the times lie"
        return claim.found(MEASURED, on, here, CANNOT, f"{why} within the spread")
    held = [name for name, part in parts.items() if part]
    why = f"Only {held[0]} holds." if held and not holds else ""
    return claim.found(MEASURED, on, here, verdict_if(holds), why)


def iterations(outcome: Outcome) -> str:
    return f"{outcome.iterations} iterations" + _trouble(outcome)


def ends(outcome: Outcome) -> str:
    return f"{outcome.whole.median:.0f}" + _trouble(outcome)


def _trouble(outcome: Outcome) -> str:
    return "" if outcome.converged else f" ({outcome.end})"


def figure(tables: dict[str, Table]) -> Figure:
    """Returns a figure of the time of an iteration. It includes precisions that did not converge,
    since their iterations were timed."""
    lines = [
        Line(problem, [], [found[row].time.median if row in found else None for row in DRAWN])
        for problem, found in tables.items()
    ]
    names = [f"{precision}, {by}" for precision, by in DRAWN]
    published = {("single", "refinement"): 1 / 2, ("mixed", "replacement"): 1 / 1.33}
    lines.append(Line("published", [], [published.get(row) for row in DRAWN]))
    return Figure(
        "Time of one iteration, published and found", "", "in that of double", lines, True, names
    )
