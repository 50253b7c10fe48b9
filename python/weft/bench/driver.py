"""Carries out the measurement: first the range of computation, then rounds of jobs until the time
is used up.

The method is that of NBC-Eff. The time of communication alone, of all candidates, gives the range
of computation over which each has an effect. The range is divided evenly, and every candidate is
measured at every amount of computation."""

from __future__ import annotations

import math
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from weft.bench.jobs import Outcome, Watch
from weft.bench.kernel_runs import bound_to
from weft.bench.places import Place
from weft.bench.settings import Settings, amounts_us
from weft.bench.variants import Plan, Variant
from weft.cores import native
from weft.lab import LabError
from weft.measurements import statistics
from weft.measurements.result import FAILED, STOPPED, Candidate, ranks_in_words
from weft.measurements.store import Begun, Store
from weft.system import mpi_libraries

# Each variant is measured by this number of jobs, so that differences between jobs are not taken
# for differences between candidates.
ROUNDS = 3
RANGE_REPETITIONS = 6
RANGE_SECONDS = 6.0
RANGE_SHARE = 0.2  # greatest share of a case's time budget that is spent on finding the range
SHORTEST_JOB_SECONDS = 2.0


class ForeignRanks(Exception):
    """Raised if the job has another number of ranks than requested: its launcher did not connect
    them."""

    def __init__(self, ranks: int, wanted: int) -> None:
        super().__init__(
            f"the program found {ranks_in_words(ranks)} instead of {wanted}: the launcher does"
            " not connect the processes of this MPI library; with Slurm name its interface, such as"
            " --launcher 'srun --mpi=pmi2' (srun --mpi=list shows all)"
        )


@dataclass
class Progress:
    """The progress shown in the terminal. The driver updates it, and the command draws it."""

    doing: str = ""
    samples: int = 0
    elapsed_s: float = 0.0
    budget_s: float = 0.0
    notes: list[str] = field(default_factory=list)


@dataclass
class Case:
    """A case to measure: a collective, a size and a number of ranks. Its iterations are set when
    the range is known."""

    collective: str
    bytes: int
    ranks: int
    variants: list[Variant]
    number: int = 0  # number of the case in the store
    iterations: list[int] = field(default_factory=list)
    # Each entry is the time of one iteration of the computation, as measured by one job.
    iteration_us: list[float] = field(default_factory=list)
    nodes: int = 0
    samples: dict[tuple, list[float]] = field(default_factory=lambda: defaultdict(list))
    ended: set[tuple[tuple, int]] = field(default_factory=set)  # (candidate's key, round)

    def go_on(self, begun: Begun) -> None:
        """Takes over the measurements of an earlier part of the run."""
        self.number, self.nodes = begun.number, begun.nodes
        self.iteration_us, self.samples, self.ended = begun.iteration_us, begun.samples, begun.ended

    @property
    def label(self) -> str:
        return f"{self.collective}, {self.bytes} bytes, {ranks_in_words(self.ranks)}"

    @property
    def communication_us(self) -> list[float]:
        """Returns the median time of each candidate that communicates without computation, in
        us."""
        kinds = ("blocking", "immediate")
        found = [s for key, s in self.samples.items() if key[0] in kinds]
        return [statistics.of(samples).median for samples in found]

    def settled(self, tolerance: float) -> bool:
        return all(statistics.settled(samples, tolerance) for samples in self.samples.values())


class Driver:
    def __init__(
        self,
        settings: Settings,
        place: Place,
        store: Store,
        run: int,
        tick: Callable[[Progress], None] = lambda _: None,
        program: str = "nbceff",
        plan: Callable[[Settings, str, int], Plan] = Plan,
        retry: bool = False,
    ) -> None:
        self.settings = settings
        self.place = place
        self.store = store
        self.run = run
        self.tick = tick
        self.program = program
        self.plan = plan
        self.progress = Progress(budget_s=settings.time_budget_s)
        self.begin = time.monotonic()
        self.random = random.Random(settings.seed + store.jobs(run))
        # These are the keys of candidates that hung or failed. A resumed run includes those of its
        # earlier parts.
        self.lost: set[tuple] = set() if retry else store.lost(run)
        # With fixed work these are the ranks of the first case and its iterations, by collective
        # and size.
        self.base: dict[tuple[str, int], tuple[int, list[int]]] = {}
        # The name is unique to this process, since several may measure into one file.
        name = f".{store.path.name}.{run}.{os.getpid()}.samples.jsonl"
        self.samples_file = store.path.with_name(name)

    @property
    def left_s(self) -> float:
        return self.settings.time_budget_s - (time.monotonic() - self.begin)

    def measure(self) -> None:
        """Measures all cases. Each measurement is stored at once."""
        cases = self.settings.cases()
        try:
            for place, (collective, size, ranks) in enumerate(cases):
                plan = self.plan(self.settings, collective, ranks)
                for candidate in plan.left_out:
                    self.store.candidate(self.run, candidate)
                case = Case(collective, size, ranks, plan.variants)
                if begun := self.store.begun(self.run, collective, size, ranks):
                    case.go_on(begun)
                self.measure_case(case, self.left_s / (len(cases) - place))
            self.store.complete(self.run)
        finally:
            self.samples_file.unlink(missing_ok=True)

    def measure_case(self, case: Case, budget_s: float) -> None:
        end = time.monotonic() + budget_s
        self.find_range(case, budget_s)
        if not case.iterations:
            return
        for number in range(1, ROUNDS + 1):
            late = number > 1 and time.monotonic() > end
            if late or (number > 2 and case.settled(self.settings.tolerance)):
                break
            self.measure_round(case, number, end)
        if not case.settled(self.settings.tolerance):
            self.note_unsettled(case)

    def note_unsettled(self, case: Case) -> None:
        widths = [statistics.of(s).half_width for s in case.samples.values() if len(s) > 1]
        self.progress.notes.append(
            f"{case.label}: the time budget is used up; the widest interval is"
            f" ±{100 * max(widths, default=math.nan):.1f} %, --time-budget gives more"
        )

    def measure_round(self, case: Case, number: int, end: float) -> None:
        """Runs one job of each variant. Only the first round is completed even if the time is
        over."""
        variants = [variant for variant in case.variants if self.pending(case, variant, number)]
        self.random.shuffle(variants)
        for place, variant in enumerate(variants):
            if number > 1 and time.monotonic() > end:
                return
            jobs_left = (ROUNDS - number) * len(case.variants) + len(variants) - place
            what = f"{case.label}: round {number} of {ROUNDS}, {variant.label}"
            self.measure_variant(case, variant, number, self.slice_s(end, jobs_left), what)

    def slice_s(self, end: float, jobs: int) -> float:
        """Returns the share of each job in the time until `end`, in seconds."""
        return max((end - time.monotonic()) / jobs, SHORTEST_JOB_SECONDS)

    def find_range(self, case: Case, budget_s: float) -> None:
        """Measures communication alone for every candidate, and derives the amounts of computation
        from it."""
        slice_s = min(RANGE_SECONDS, budget_s * RANGE_SHARE / max(1, len(case.variants)))
        for variant in case.variants:
            what = f"{case.label}: communication alone, {variant.label}"
            self.measure_variant(case, variant, 0, slice_s, what)
        if not case.samples:
            return
        where = (case.collective, case.bytes, case.ranks, case.nodes)
        case.iterations = self.store.iterations(self.run, where) or self.choose(case)
        self.base.setdefault((case.collective, case.bytes), (case.ranks, case.iterations))
        for count, iterations in enumerate(case.iterations):
            self.store.insert(
                "INSERT OR IGNORE INTO amount VALUES (?, ?, ?)", (case.number, count, iterations)
            )

    def choose(self, case: Case) -> list[int]:
        """Returns the iterations of each amount of computation. With fixed work, these are the
        iterations of the case with most ranks, divided among this case's ranks."""
        base = self.base.get((case.collective, case.bytes))
        if self.settings.fixed_work and base:
            return [round(iterations * base[0] / case.ranks) for iterations in base[1]]
        targets_us = amounts_us(self.settings.amounts, case.communication_us)
        iteration_us = min(case.iteration_us)
        return sorted({max(1, round(target / iteration_us)) for target in targets_us})

    def pending(self, case: Case, variant: Variant, number: int) -> list[Candidate]:
        """Returns the variant's candidates that have not failed and have not been measured in this
        round."""
        left = (c for c in variant.candidates if c.key not in self.lost)
        return [c for c in left if (c.key, number) not in case.ended]

    def measure_variant(
        self, case: Case, variant: Variant, number: int, slice_s: float, what: str
    ) -> None:
        """Runs a job of the variant, and repeats it without the candidate that hung or failed in
        it."""
        end = time.monotonic() + slice_s
        while alive := self.pending(case, variant, number):
            self.progress.doing = what
            left_s = max(end - time.monotonic(), SHORTEST_JOB_SECONDS)
            outcome = self.one_job(case, variant, alive, number, left_s)
            if outcome.status == "done":
                return
            self.lose(alive, outcome)

    def lose(self, alive: list[Candidate], outcome: Outcome) -> None:
        """Records the candidate that hung or failed. This is the one that was being measured, or
        all candidates of the job if it is unknown."""
        status = STOPPED if outcome.status == "hung" else FAILED
        guilty = [c for c in alive if c.engine == outcome.engine] or alive
        if len(guilty) == 1 and outcome.engine == "":
            outcome.engine = guilty[0].engine
        for candidate in guilty:
            self.lost.add(candidate.key)
            reason = f"{outcome.said} during {outcome.doing}"
            self.store.candidate(self.run, replace(candidate, status=status, reason=reason))
            self.progress.notes.append(f"{candidate.label}: {status}: {reason}")

    def binding(self, case: Case) -> Sequence[str]:
        """Returns the arguments that bind ranks to cores, which are needed to compare placements:
        only then are some cores known to be free."""
        settings = self.settings
        if settings.lab or settings.launcher != "mpiexec" or {*settings.placements} <= {"bind"}:
            return []
        try:
            words = ["place", "--ranks", str(case.ranks)]
            placement, _ = native.ask(native.Placement, words)
        except native.CoresError:  # this machine has fewer cores than ranks
            return []
        return bound_to(placement.ranks)

    def command(self, case: Case, variant: Variant, alive: list[Candidate], slice_s: float):
        settings = self.settings
        program = mpi_libraries.implementation(variant.mpi).program(self.program)
        engines = ["native" if variant.library_async else c.engine for c in alive]
        words = [*self.binding(case), *variant.front(case.collective), str(program)]
        words += ["--collective", case.collective, "--bytes", str(case.bytes)]
        words += ["--engines", ",".join(engines), "--samples", str(self.samples_file)]
        words += ["--tolerance", str(settings.tolerance), "--kernel", settings.kernel]
        words += ["--seed", str(self.random.randrange(1, 2**31)), "--seconds", f"{slice_s:.3f}"]
        if settings.working_set_bytes:
            words += ["--working-set", str(settings.working_set_bytes)]
        if settings.compute_library:
            words += ["--compute-library", settings.compute_library]
        if case.iterations:
            words += ["--iterations", ",".join(map(str, case.iterations))]
        else:
            words += ["--repetitions", str(RANGE_REPETITIONS)]
        return words

    def one_job(
        self, case: Case, variant: Variant, alive: list[Candidate], number: int, slice_s: float
    ) -> Outcome:
        self.samples_file.unlink(missing_ok=True)
        words = self.command(case, variant, alive, slice_s)
        intake = Intake(self, case, variant, alive, number)
        self.draw()
        try:
            job = self.place.start(variant.mpi, case.ranks, words, variant.environment)
        except (LabError, OSError) as error:
            return Outcome("failed", str(error), "", "start-up")
        watch = Watch(job, self.samples_file, self.settings.hang_s, intake.take)
        try:
            outcome = watch.follow(self.draw)
            if outcome.status == "done":
                intake.end()
            return outcome
        except ForeignRanks as error:
            return Outcome("failed", str(error), "", "start-up")
        finally:
            intake.flush()

    def draw(self) -> None:
        self.progress.elapsed_s = time.monotonic() - self.begin
        self.tick(self.progress)


class Intake:
    """Stores the samples that one job prints, and adds them to the case."""

    def __init__(
        self, driver: Driver, case: Case, variant: Variant, alive: list[Candidate], number: int
    ) -> None:
        self.driver = driver
        self.case = case
        self.variant = variant
        self.alive = {
            "native" if variant.library_async else candidate.engine: candidate
            for candidate in alive
        }
        self.number = number
        self.job = 0
        self.iteration_us: float | None = None
        self.ids: dict[str, int] = {}
        self.rows: list[tuple] = []

    @property
    def mpi(self) -> str:
        return next(iter(self.alive.values())).mpi

    def take(self, line: dict) -> None:
        if "job" in line:
            self.begin(line)
        elif "iteration_us" in line:
            self.iteration_us = line["iteration_us"]
            self.case.iteration_us.append(self.iteration_us)
        elif "sample" in line:
            self.add(line)
        if len(self.rows) > 50:
            self.flush()

    def begin(self, line: dict) -> None:
        driver, case = self.driver, self.case
        if line["ranks"] != case.ranks:
            raise ForeignRanks(line["ranks"], case.ranks)
        case.nodes = line["nodes"]
        where = (case.collective, case.bytes, case.ranks, case.nodes)
        kernel = driver.settings.kernel_name
        case.number = driver.store.case(driver.run, where, kernel, [])
        own = self.variant.library_async
        self.job = driver.store.job(driver.run, case.number, self.mpi, own, self.number)
        for engine, candidate in self.alive.items():
            self.ids[engine] = driver.store.candidate(driver.run, candidate)

    def add(self, line: dict) -> None:
        engine = line.get("engine")
        if line.get("right") is False:
            self.wrong(engine)
            return
        iterations = line.get("iterations")
        amount = self.case.iterations.index(iterations) if iterations else None
        kind, us, inside = line["sample"], line["us"], line.get("computation_us")
        self.rows.append((self.ids.get(engine), kind, amount, us, inside))
        who = self.alive[engine].key if engine else (self.mpi, self.variant.library_async)
        self.case.samples[kind, who, amount].append(us)
        self.driver.progress.samples += 1

    def wrong(self, engine: str | None) -> None:
        """Excludes a candidate from further measurements after a wrong result."""
        driver = self.driver
        for candidate in [self.alive[engine]] if engine else self.alive.values():
            if candidate.key not in driver.lost:
                outcome = Outcome("failed", "a wrong result", engine or "", "the check")
                driver.lose([candidate], outcome)

    def end(self) -> None:
        """Marks the candidates that finished with right results, so that they are not measured
        again in this round."""
        done = {name: c for name, c in self.alive.items() if c.key not in self.driver.lost}
        self.case.ended |= {(candidate.key, self.number) for candidate in done.values()}
        numbers = [self.ids[name] for name in done]
        self.driver.store.end(self.case.number, numbers, self.number, self.iteration_us)

    def flush(self) -> None:
        self.driver.store.samples(self.job, self.rows)
        self.rows = []
