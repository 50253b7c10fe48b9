"""The papers' experiments on this machine: runs the presets of `weft bench` and evaluates their
results.

The benchmark runs and judges each experiment. Here a judgement becomes a verdict on each statement
of a paper, and a figure beside the published one."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional

from weft.bench import command
from weft.bench.experiments import NothingMeasuredError
from weft.bench.settings import SettingsError
from weft.cores.native import CoresError
from weft.data.stored import ResultError
from weft.lab import LabError
from weft.measurements import effect, judgements, kernels, presets, result
from weft.measurements.decisions import Decision, every, is_shorter, reaches, some_shorter
from weft.measurements.effect import duration
from weft.measurements.judgements import (
    MASTER,
    NORMAL,
    NUMA_SLOWER,
    ODD_EVEN_FASTER,
    TCC_CASES,
    THREADS_PUBLISHED,
    Judgement,
    in_flight,
    judge_placement,
)
from weft.measurements.kernels import BLOCKING, KernelResult, Run
from weft.measurements.presets import Preset
from weft.measurements.result import Result, Statistic
from weft.measurements.statistics import ratio
from weft.measurements.store import Store
from weft.reproduce.claims import Claim, Published
from weft.reproduce.findings import (
    CANNOT,
    DOES_NOT_HOLD,
    HOLDS,
    MEASURED,
    Figure,
    Finding,
    Line,
    Part,
    Verdict,
    verdict_if,
)
from weft.reproduce.placement import PLACEMENTS
from weft.sim.native import SimError
from weft.system import mpi_libraries
from weft.system.mpi_libraries import MpiError
from weft.system.probe import ProbeError

WITHIN_THE_SPREAD = "not decided: the times lie within the spread"
LARGE = 1.1  # ratio of times from which a difference counts as large


class NotMeasured(Exception):
    """Raised if an experiment was not measured; the message says why."""


# An experiment may end with these errors. Their messages are written for the user.
ERRORS = (NotMeasured, SettingsError, ResultError, LabError, MpiError, ProbeError, SimError)
ERRORS = (*ERRORS, CoresError, OSError)


# ---- Runs of presets --------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """The results of a benchmark preset's runs, and the reasons why other runs failed."""

    results: list[Result]
    failed: list[str] = field(default_factory=list)


@dataclass
class Bench:
    """Runs each preset once, and stores their files in one folder."""

    folder: Path
    cores: int
    mpi: Optional[str] = None  # MPI libraries as --mpi names them
    time_budget: Optional[str] = None
    known: dict[str, Any] = field(default_factory=dict)  # result or error by preset

    @property
    def mpis(self) -> list[str]:
        return mpi_libraries.words(self.mpi)

    def preset(self, name: str) -> Preset:
        return presets.presets(self.cores)[name]

    def runs(self, name: str) -> KernelResult:
        """Returns the results of a preset with a program of its own."""
        return self.once(name, self.run_program)

    def points(self, name: str) -> Points:
        """Returns the results of a preset of the benchmark."""
        return self.once(name, self.run_benchmark)

    def once(self, name: str, run: Callable[[str], Any]) -> Any:
        """Returns the result of a preset, which is run at the first request. A preset that failed
        is not tried again, and its error is raised each time."""
        if name not in self.known:
            # The folder is beside the page, and can be created if the page can.
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self.known[name] = run(name)
            except ERRORS as error:
                self.known[name] = error
        if isinstance(self.known[name], Exception):
            raise self.known[name]
        return self.known[name]

    def run_program(self, name: str) -> KernelResult:
        file = self.folder / f"{name}.json"
        try:
            status = self.carry_out(name, file)
        except NothingMeasuredError as error:
            raise NotMeasured("; ".join(error.reasons)) from None
        found = kernels.load(file) if status == 0 else None
        if found is None:
            raise NotMeasured("the preset has no run on this machine")
        return found

    def run_benchmark(self, name: str) -> Points:
        file = self.folder / f"{name}.sqlite"
        before = last_run(file)
        failed = []
        try:
            budget = {"time_budget": self.time_budget} if self.time_budget else {}
            self.carry_out(name, file, **budget)
        except ERRORS as error:
            failed = [str(error)]
        found = results_after(file, before)
        failed += not_run(found)
        measured = [one for one in found if one.points]
        if not measured:
            raise NotMeasured("; ".join(failed) or "no run came to a result")
        return Points(measured, failed)

    def carry_out(self, name: str, out: Path, **more: str) -> int:
        """Runs `weft bench --preset NAME -o OUT` without its output, and returns the exit
        status."""
        parameters = inspect.signature(command.bench).parameters
        usual = {key: one.default for key, one in parameters.items() if key != "context"}
        asked: dict[str, Any] = {"preset": name, "out": out, **more}
        if self.mpi:
            asked["mpi"] = self.mpi
        with contextlib.redirect_stdout(io.StringIO()):
            return command.carry_out_options({**usual, **asked}, set(asked))


def results_after(file: Path, before: int) -> list[Result]:
    """Returns the results of the runs added to the file since `before`."""
    if not file.exists():
        return []
    with Store(file, create=False) as store:
        return [store.result(run) for run in range(before + 1, last_run(file) + 1)]


def last_run(file: Path) -> int:
    with contextlib.suppress(ResultError), Store(file, create=False) as store:
        return store.last_run()
    return 0


def not_run(found: Sequence[Result]) -> list[str]:
    texts = [
        f"{one.label}: {one.reason}"
        for each in found
        for one in each.candidates
        if one.status != result.MEASURED
    ]
    return list(dict.fromkeys(texts))


# ---- Verdicts from judgements -------------------------------------------------------------------

VERDICTS: dict[str, tuple[Verdict, str]] = {
    judgements.HOLDS: (HOLDS, ""),
    judgements.IN_DIRECTION: (
        HOLDS,
        "It holds in direction; the figures are this machine's.",
    ),
    judgements.IN_PART: (DOES_NOT_HOLD, "It holds in part."),
    judgements.DOES_NOT_HOLD: (DOES_NOT_HOLD, ""),
    judgements.OPEN: (CANNOT, ""),
}


def judged(claim: Claim, on: str, judgement: Judgement) -> Finding:
    verdict, why = VERDICTS[judgement.verdict]
    text = str(judgement)  # findings are copied, and a Judgement cannot be
    if verdict == CANNOT:
        return claim.found(MEASURED, on, "", CANNOT, text)
    return claim.found(MEASURED, on, text, verdict, why)


# ---- Presets with a program of their own ------------------------------------------------------

THREADED = ("thread", "tcc", "assist")  # engines that need a core in addition to those of the ranks
PER_ROW, INNER, NO_CALLS, THREAD = (
    "overlapped, call per row, function",
    "overlapped, inner calls, function",
    "overlapped, no calls, function",
    "thread",
)
# In each pair TCC is compared with a progress thread. The first pair uses Weft's algorithm, the
# second the MPI library's own.
BY_ONE_ALGORITHM = (("linear, tcc", "linear, thread"), ("tcc", "assist"))
# These are the published speedups over no overlap, by the programs' variants, or values that follow
# from them.
FACTORS: dict[str, dict[str, float]] = {
    "tcc": TCC_CASES,
    "pipecg": {"halo only": 1.27 / 1.06, "thread": 1.27, MASTER: 1.27},
    "stencil": {"thread": 1.27 / 1.06},
    "iallreduce-kernel": {"native": 1 / (1 - 0.54)},
}


def each_run(one: Published, preset: Preset, runs: Sequence[Run]) -> list[Finding]:
    (claim,) = one.claims
    return [judged(claim, run.title, preset.judge(run)) for run in runs]


def tcc(one: Published, preset: Preset, runs: Sequence[Run]) -> list[Finding]:
    gains, _, order, beside_thread, several, one_algorithm, _ = one.claims
    alone = [run for run in runs if in_flight(run) == 1]
    found = [judged(gains, run.title, preset.judge(run)) for run in alone]
    found += faster(order, alone, PER_ROW, THREAD)
    found += faster(beside_thread, alone, "tcc", THREAD)
    for by_worker, by_thread in BY_ONE_ALGORITHM:
        found += faster(one_algorithm, alone, by_worker, by_thread)
    many = [run for run in runs if in_flight(run) > 1]
    return found + [judged(several, run.title, preset.judge(run)) for run in many]


def progress_calls(one: Published, preset: Preset, runs: Sequence[Run]) -> list[Finding]:
    called, _, where = one.claims
    runs = [run for run in runs if in_flight(run) == 1]
    return matters(called, runs, NO_CALLS, PER_ROW) + faster(where, runs, PER_ROW, INNER)


def faster(claim: Claim, runs: Sequence[Run], fast: str, slow: str) -> list[Finding]:
    """Returns findings on whether one variant is faster than another beyond the spread."""
    return beside(claim, runs, (fast, slow), is_shorter)


def matters(claim: Claim, runs: Sequence[Run], without: str, usual: str) -> list[Finding]:
    """Returns findings on whether a variant takes much longer than the usual one."""
    return beside(
        claim, runs, (without, usual), lambda one, other: reaches(ratio(one, other), LARGE)
    )


def beside(
    claim: Claim,
    runs: Sequence[Run],
    names: tuple[str, str],
    decide: Callable[[Statistic, Statistic], Decision],
) -> list[Finding]:
    """Returns a finding for each run, decided by two of its variants."""
    found = []
    for run in runs:
        if not set(names) <= run.times_us.keys():
            why = f"{' or '.join(sorted({*names} - run.times_us.keys()))} was not measured"
            found.append(claim.found(MEASURED, run.title, "", CANNOT, why))
            continue
        first, second = (run.times_us[name] for name in names)
        here = f"{names[0]} {duration(first.median)}; {names[1]} {duration(second.median)}"
        found.append(decided(claim, run.title, here, decide(first, second)))
    return found


def decided(claim: Claim, on: str, here: str, decision: Decision, why: str = "") -> Finding:
    """Returns a finding with the verdict that the intervals permit; it is undecided if `decision`
    is None."""
    if decision is None:
        return claim.found(MEASURED, on, here, CANNOT, WITHIN_THE_SPREAD)
    return claim.found(MEASURED, on, here, verdict_if(decision), why)


def series(one: Published, preset: Preset, runs: Sequence[Run]) -> list[Finding]:
    """Returns findings on the claims, one for each series, in the papers' order. Each MPI library
    is judged by itself."""
    *of_series, by_switches = one.claims
    found, libraries = [], dict.fromkeys(run.library for run in runs)
    for claim, name in zip(of_series, THREADS_PUBLISHED):
        for library in libraries:
            own = [run for run in runs if (run.library, run.series) == (library, name)]
            if own:
                found.append(judged(claim, f"{library}, {own[0].network}", preset.judge(own)))
    first = next(iter(THREADS_PUBLISHED))
    for library in libraries:
        cases = {r.case: r for r in runs if (r.library, r.series) == (library, first)}
        if {"Prog2", "Prog4"} <= cases.keys():
            two, four = (cases[name].times_us["thread"] for name in ("Prog2", "Prog4"))
            here = f"Prog2 {duration(two.median)}; Prog4 {duration(four.median)}"
            found.append(decided(by_switches, library, here, is_shorter(two, four)))
    return found


def atmosphere(one: Published, preset: Preset, runs: Sequence[Run]) -> list[Finding]:
    sections, output = one.claims
    return [
        judged(output if "nothing written" in run.times_us else sections, run.title, said)
        for run, said in ((run, preset.judge(run)) for run in runs)
    ]


def pipecg(one: Published, preset: Preset, runs: Sequence[Run]) -> list[Finding]:
    """Returns the findings on pipecg. Runs with threads test the statement about the master
    thread."""
    behind, on_master = one.claims
    threaded = [MASTER in run.times_us for run in runs]
    found = [
        judged(on_master if master else behind, run.title, preset.judge(run))
        for run, master in zip(runs, threaded)
    ]
    if not any(threaded):
        asked = any("cores_per_node" in run for run in preset.runs)
        lost = "no run with threads came to a result"
        found.append(on_master.untested(MEASURED, lost if asked else on_master.here.cores_in_words))
    return found


def iallreduce_kernel(one: Published, preset: Preset, runs: Sequence[Run]) -> list[Finding]:
    """Returns the findings on the kernel of three arrays. In shared memory the largest number of
    ranks is that of the cores."""
    saves, in_use = one.claims
    found = [judged(saves, run.title, preset.judge(run)) for run in runs]
    most = max((int(options["ranks"]) for options in preset.runs if not options["lab"]), default=0)
    for run in runs:
        if run.network.startswith("lab") or run.ranks != most:
            continue
        threaded = {name: run.times_us[name] for name in THREADED if name in run.times_us}
        gain = some_shorter(threaded.values(), run.blocking)
        told = [f"{name} {duration(time.median)}" for name, time in threaded.items()]
        here = "; ".join([f"blocking {duration(run.blocking.median)}", *told])
        found.append(decided(in_use, run.title, here, None if gain is None else not gain))
    return found


JUDGES: dict[str, Callable[[Published, Preset, Sequence[Run]], list[Finding]]] = {
    "tcc": tcc,
    "pipecg": pipecg,
    "progress-calls": progress_calls,
    "threads-per-core": series,
    "atmosphere": atmosphere,
    "iallreduce-kernel": iallreduce_kernel,
}


def of_programs(one: Published, preset: Preset, found: KernelResult) -> Part:
    judge = JUDGES.get(one.name, each_run)
    findings = judge(one, preset, found.runs)
    findings += without_a_run(one, findings, found.failed)
    if preset.series:
        figures = series_figures(found.runs)
    else:
        figures = [times_as_fast(run, published_for(run, preset)) for run in found.runs]
    return Part(findings, figures, could_not_run(found.failed))


def published_for(run: Run, preset: Preset) -> dict[str, float]:
    """Returns the published factors for a run; none if it has several collectives in flight, for
    which nothing was published."""
    return FACTORS.get(preset.name, {}) if in_flight(run) == 1 else {}


def without_a_run(one: Published, found: list[Finding], failed: Sequence[str]) -> list[Finding]:
    """Returns the statements that no run tests, with the reason. If the only run of a single
    statement failed, that statement is returned, too."""
    said = {(finding.where, finding.published) for finding in found}
    claims = one.claims_by(MEASURED)
    if len(claims) > 1 or not failed:
        claims = [claim for claim in claims if (claim.where, claim.words) not in said]
    why = "; ".join(dict.fromkeys(failed)) or "no run says anything about it"
    return [claim.untested(MEASURED, why) for claim in claims]


def could_not_run(failed: Sequence[str]) -> str:
    return f"Could not run: {'; '.join(dict.fromkeys(failed))}." if failed else ""


def times_as_fast(run: Run, published: dict[str, float]) -> Figure:
    """Returns a figure of each variant's speedup, beside the published figures."""
    names = [BLOCKING, *run.engines]
    here = [run.blocking.median / run.times_us[name].median for name in names]
    lines = [Line("here", [], [*here])]
    if published:
        lines.append(Line("published", [], [published.get(name) for name in names]))
    return Figure(run.title, "", "times as fast as blocking", lines, True, names)


def series_figures(runs: Sequence[Run]) -> list[Figure]:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.library, run.series), []).append(run)
    return [
        Figure(
            f"{library}: {name}",
            "",
            "ms",
            [Line("time", [], [time_of(run) / 1000 for run in group])],
            True,
            [run.case for run in group],
        )
        for (library, name), group in groups.items()
    ]


def time_of(run: Run) -> float:
    return (run.blocking if run.case == NORMAL else run.times_us["thread"]).median


# ---- Presets of the benchmark -----------------------------------------------------------------


def nbc_eff(one: Published, preset: Preset, found: Sequence[Result]) -> list[Finding]:
    _, _, by_amount, by_ranks, by_itself, _ = one.claims
    findings = []
    for each in found:
        titles = "; ".join(case.title for case in effect.cases(each))
        findings.append(judged(by_amount, titles, preset.judge(each)))
    findings.append(ranks_per_node(by_ranks, preset, found))
    return findings + [
        amounts_found(by_itself, each, case) for each in found for case in effect.cases(each)
    ]


AMOUNTS = 10


def amounts_found(claim: Claim, found: Result, case: effect.Case) -> Finding:
    """Returns a finding on whether the amounts of computation reach from less than the fastest
    communication to more than the slowest."""
    about = (case.collective, case.size_bytes, case.ranks)
    alone = [one for one in found.alone if (one.collective, one.bytes, one.ranks) == about]
    times = [time.median for one in alone for time in (one.blocking_us, one.immediate_us)]
    if not times:
        why = "no candidate's communication was measured alone"
        return claim.found(MEASURED, case.title, "", CANNOT, why)
    least, most = min(case.computation_us), max(case.computation_us)
    here = f"{len(case.computation_us)} amounts of {duration(least)} to {duration(most)};"
    here += f" communication takes {duration(min(times))} to {duration(max(times))}"
    holds = len(case.computation_us) == AMOUNTS and least < min(times) and most > max(times)
    return claim.found(MEASURED, case.title, here, verdict_if(holds))


def ranks_per_node(claim: Claim, preset: Preset, found: Sequence[Result]) -> Finding:
    """Returns a finding on whether other libraries lead if a node has more ranks."""
    leaders: dict[int, set[str]] = {}
    for each in found:
        for case in effect.cases(each):
            ahead = {s.leader.mpi for s in case.standings if not s.tied}
            leaders.setdefault(case.ranks // case.nodes, set()).update(ahead)
    here = "; ".join(
        f"{count} per node: {', '.join(sorted(names)) or 'none beyond the spread'}"
        for count, names in sorted(leaders.items())
    )
    if len(leaders) < 2:
        lost = "of the numbers of ranks per node only one was measured"
        why = lost if len(preset.runs) > 1 else claim.here.cores_in_words
        return claim.found(MEASURED, "", here, CANNOT, why)
    if not all(leaders.values()):
        return claim.found(MEASURED, "", here, CANNOT, WITHIN_THE_SPREAD)
    first, *others = leaders.values()
    return claim.found(MEASURED, "", here, verdict_if(any(names != first for names in others)))


def placement(one: Published, preset: Preset, found: Sequence[Result]) -> list[Finding]:
    """Returns the findings on placements. Each MPI library is judged by itself."""
    *_, three_times, _, half_of_numa, fastest, together = one.claims
    findings = []
    for each in found:
        for mpi in dict.fromkeys(alone.mpi for alone in each.alone):
            own = replace(each, alone=[alone for alone in each.alone if alone.mpi == mpi])
            on = "; ".join([mpi, *(case.title for case in effect.cases(each))])
            for claim, order in ((three_times, NUMA_SLOWER), (half_of_numa, ODD_EVEN_FASTER)):
                findings.append(judged(claim, on, judge_placement(own, [order])))
            alone = {one.placement: one.immediate_us for one in own.alone}
            findings.append(first_of(fastest, on, "bind", [alone]))
            findings.append(first_of(together, on, "odd-even", totals_by_amount(each, mpi)))
    return findings


def totals_by_amount(found: Result, mpi: str) -> list[dict[str, Statistic]]:
    """Returns for each amount of computation the total time by placement."""
    totals: dict[int, dict[str, Statistic]] = {}
    for point in found.points:
        if point.mpi == mpi:
            totals.setdefault(point.amount, {})[point.placement] = point.total_us
    return [*totals.values()]


def first_of(claim: Claim, on: str, first: str, cases: Sequence[dict[str, Statistic]]) -> Finding:
    """Returns a finding on whether one placement is faster than all others in each case."""
    others = [(case, name) for case in cases for name in PLACEMENTS if name != first]
    here = "; ".join(
        ", ".join(f"{name} {duration(time.median)}" for name, time in case.items())
        for case in cases
    )
    decision = every(
        is_shorter(case[first], case[name]) if {first, name} <= case.keys() else None
        for case, name in others
    )
    return decided(claim, on, here, decision)


BENCH_JUDGES: dict[str, Callable[[Published, Preset, Sequence[Result]], list[Finding]]] = {
    "nbc-eff": nbc_eff,
    "placement": placement,
}


def of_the_benchmark(one: Published, preset: Preset, found: Points) -> Part:
    figures = [curves(case) for each in found.results for case in effect.cases(each)]
    findings = BENCH_JUDGES[one.name](one, preset, found.results)
    said = could_not_run(found.failed)
    return Part(findings, figures, said)


def curves(case: effect.Case) -> Figure:
    """Returns a figure of the total time over the computation."""
    unit, scale = case.unit
    lines = []
    for curve in case.curves:
        amounts = sorted(curve.readings)
        x = [case.computation_us[amount] / scale for amount in amounts]
        y = [curve.readings[amount].total.median / scale for amount in amounts]
        lines.append(Line(curve.name, x, [*y]))
    return Figure(case.title, f"computation, {unit}", f"both together, {unit}", lines)


# ---- All experiments --------------------------------------------------------------------------


def part(one: Published, bench: Bench) -> Part:
    preset = bench.preset(one.preset)
    if preset.program:
        found, kept = of_programs(one, preset, bench.runs(preset.name)), "json"
    else:
        found, kept = of_the_benchmark(one, preset, bench.points(preset.name)), "sqlite"
    files = f"{preset.name}.{kept}, {preset.name}.html"
    said = f"Measured: {one.measured}; samples, and the preset's page, in {bench.folder}: {files}."
    if preset.not_available:
        said += f" Not measured here: {preset.not_available}"
    return replace(found, conditions=f"{said} {found.conditions}".strip())
