"""JHPCN jh250041, topic 3: the pipelined method in lower precision, by pipecg's table of all of it.

Efficiency is processor time: of an iteration, or until the solution is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.bench import kernel_runs, places
from weft.data import files
from weft.reproduce.findings import CANNOT, MEASURED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.measured import Bench, NotMeasured
from weft.reproduce.published import Claim, named
from weft.system import building, mpi_libraries
from weft.system.probe import how_to_build

PROGRAM = "pipecg"
STUDY = "--what study --method pipelined --grid 40x40x40 --iterations 800 --repetitions 3"
WELL, ILL = "well conditioned", "ill conditioned"
PROBLEMS = {
    WELL: "--coefficients poisson",
    ILL: "--coefficients heterogeneous --contrast 1e4",
}
NEARLY = 1.05  # times the iterations of double
TWICE = 1.75  # from here on it is about twice as efficient
ROW = re.compile(
    r"^\| (?P<precision>[\w-]+) \| (?P<by>\w+) \| (?P<iterations>\d+) \| (?P<time>[\d.]+)"
    r" \| (?P<residual>\S+) \| (?P<end>.+) \|$"
)
CONVERGED = "converged"
DOUBLE = ("double", "none")
DRAWN = (
    *(DOUBLE, ("mixed", "replacement"), ("mixed-vectors", "replacement")),
    *(("single", "refinement"), ("single", "both")),
)


@dataclass(frozen=True)
class Outcome:
    """Of one precision, stabilised in one way; `time`: of an iteration, in that of double."""

    iterations: int
    time: float
    end: str

    @property
    def converged(self) -> bool:
        return self.end == CONVERGED

    @property
    def whole(self) -> float:
        """Time until the end, in iterations of double."""
        return self.iterations * self.time


Table = dict[tuple[str, str], Outcome]  # by precision, and what stabilises it


def table(text: str) -> Table:
    """From what the program prints."""
    rows = (ROW.match(line.strip()) for line in text.splitlines())
    return {
        (row["precision"], row["by"]): Outcome(
            int(row["iterations"]), float(row["time"]), row["end"]
        )
        for row in rows
        if row
    }


def run(mpi: str, options: str) -> str:
    """What the program prints, on one rank without Weft."""
    library = mpi_libraries.implementation(mpi)
    program = library.program(PROGRAM)
    if not building.is_there(program):
        raise NotMeasured(f"{program} is missing; {how_to_build(library)}")
    job = places.LauncherPlace("mpiexec").start(mpi, 1, [str(program), *options.split()], {})
    status = kernel_runs.wait(job)
    said = job.said()
    if status != 0 or not table(said):
        last = (said.strip().splitlines() or ["no output"])[-1]
        raise NotMeasured(f"{PROGRAM} under {mpi} ended with status {status}: {last}")
    return said


def part(bench: Bench) -> Part:
    mpi = bench.mpis[0]
    tables = {}
    bench.folder.mkdir(parents=True, exist_ok=True)
    for problem, words in PROBLEMS.items():
        said = run(mpi, f"{STUDY} {words}")
        files.write_text(bench.folder / f"precision-{problem.split()[0]}.txt", said)
        tables[problem] = table(said)
    return Part(
        findings=findings(tables[WELL], tables[ILL]),
        figures=[figure(tables)],
        conditions=f"Measured: {PROGRAM} {STUDY}, on one rank under {mpi}; processor time; tables"
        f" in {bench.folder}: precision-well.txt, precision-ill.txt. Mixed: matrix and"
        " preconditioner in single precision, all else in double; mixed-vectors: the vectors in"
        " single, too. The report does not say which it means.",
    )


def findings(well: Table, ill: Table) -> list[Finding]:
    nearly, twice, both = named("precision").claims
    return [
        mixed_with_replacement(nearly, well),
        single_with_refinement(twice, well, ill),
        refinement_with_replacement(both, well, ill),
    ]


def lacking(*needed: tuple[Table, Sequence[tuple[str, str]]]) -> str:
    """What the program did not say."""
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
    here = f"double {iterations(double)}; mixed {iterations(mixed)}; with single vectors, too,"
    here += f" {iterations(vectors)}"
    holds = mixed.converged and mixed.iterations <= NEARLY * double.iterations
    return claim.found(MEASURED, WELL, here, verdict_if(holds), READING)


READING = "Mixed is read as matrix and preconditioner in single precision."


def single_with_refinement(claim: Claim, well: Table, ill: Table) -> Finding:
    rows = (("single", "refinement"), ("mixed", "replacement"))
    if why := lacking((well, rows[:1]), (ill, rows)):
        return claim.found(MEASURED, f"{WELL}, {ILL}", "", CANNOT, why)
    quick = well[rows[0]]
    efficiency = 1 / quick.time
    single, mixed = (ill[row] for row in rows)
    inferior = mixed.converged and (not single.converged or single.whole > mixed.whole)
    here = f"{WELL} {efficiency:.2f} times as efficient per iteration{_trouble(quick)}; {ILL}, in"
    here += f" iterations of double: single with refinement {ends(single)}, mixed with replacement"
    here += f" {ends(mixed)}, {1 / mixed.time:.2f} times as efficient per iteration"
    parts = {
        f"the {WELL} part": quick.converged and efficiency >= TWICE,
        f"the {ILL} part": inferior,
    }
    return of_both(claim, here, parts, single.converged or mixed.converged)


def refinement_with_replacement(claim: Claim, well: Table, ill: Table) -> Finding:
    rows = (("single", "refinement"), ("single", "both"))
    if why := lacking((well, rows), (ill, rows)):
        return claim.found(MEASURED, f"{WELL}, {ILL}", "", CANNOT, why)
    parts, told = {}, []
    for problem, found in ((WELL, well), (ILL, ill)):
        refined, both = (found[row] for row in rows)
        better = both.converged and (not refined.converged or both.whole < refined.whole)
        parts[f"the {problem} part"] = better == (problem == WELL)
        told.append(f"{problem}: refinement {ends(refined)}, with replacement {ends(both)}")
    here = f"in iterations of double, {'; '.join(told)}"
    return of_both(claim, here, parts, any(ill[row].converged for row in rows))


def of_both(claim: Claim, here: str, parts: dict[str, bool], decided: bool) -> Finding:
    """Where both forms fail when ill conditioned, neither is the worse one."""
    on = f"{WELL}, {ILL}"
    if not decided and parts[f"the {WELL} part"]:
        why = f"The {WELL} part holds; {ILL}, neither of the two converges."
        return claim.found(MEASURED, on, here, CANNOT, why)
    if not decided:
        parts = {}
    return claim.found(MEASURED, on, here, verdict_if(decided and all(parts.values())), only(parts))


def only(parts: dict[str, bool]) -> str:
    """Which part holds, where not all do."""
    held = [name for name, holds in parts.items() if holds]
    return f"Only {held[0]} holds." if held and len(held) < len(parts) else ""


def iterations(outcome: Outcome) -> str:
    return f"{outcome.iterations} iterations" + _trouble(outcome)


def ends(outcome: Outcome) -> str:
    return f"{outcome.whole:.0f}" + _trouble(outcome)


def _trouble(outcome: Outcome) -> str:
    return "" if outcome.converged else f" ({outcome.end})"


def figure(tables: dict[str, Table]) -> Figure:
    """Time of an iteration; what did not converge is drawn, too: its iterations were timed."""
    lines = [
        Line(problem, [], [found[row].time if row in found else None for row in DRAWN])
        for problem, found in tables.items()
    ]
    names = [f"{precision}, {by}" for precision, by in DRAWN]
    published = {("single", "refinement"): 1 / 2, ("mixed", "replacement"): 1 / 1.33}
    lines.append(Line("published", [], [published.get(row) for row in DRAWN]))
    return Figure(
        "Time of one iteration, published and found", "", "in that of double", lines, True, names
    )
