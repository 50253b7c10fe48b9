"""Decides which jobs measure which candidates, and which candidates cannot run here, with the
reason.

The engines of a candidate share one job, where each communicator has its own. MPI library,
placement, back-off and algorithm hold for a whole process, and therefore need separate jobs. The
jobs of a case alternate in rounds."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field, replace
from itertools import product

from weft.bench.settings import LIBRARY_ASYNC, Settings
from weft.measurements.result import CANNOT_RUN, Candidate
from weft.system import building, info, installation, mpi_libraries
from weft.system.probe import ProbeError, how_to_build, run_probe

# The threads of these engines are placed, and back off.
THREADED = ("assist", "thread", "tcc", "agent", "auto")
SCHEDULED = ("function", "thread", "agent", "auto")  # engines that carry out Weft's algorithms
ASYNC_VARIABLES = {
    "mpich": {"MPICH_ASYNC_PROGRESS": "1"},
    "intelmpi": {"I_MPI_ASYNC_PROGRESS": "1"},
}
NO_ASYNC = "Open MPI has no asynchronous progress of its own that could be switched on"


@dataclass
class Variant:
    """The contents of one job: an MPI library, settings of the whole process, and its engines."""

    mpi: str  # MPI library as --mpi names it
    placement: str
    backoff: str
    algorithm: str  # name of the algorithm; "selected" if Weft chooses
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def library_async(self) -> bool:
        return any(candidate.engine == LIBRARY_ASYNC for candidate in self.candidates)

    @property
    def label(self) -> str:
        words = [self.mpi, self.placement, self.backoff, self.algorithm]
        rest = [w for w in words[1:] if w not in ("bind", "quiet", "selected", "none")]
        return " ".join([self.mpi, *(["own progress"] if self.library_async else []), *rest])

    @property
    def environment(self) -> dict[str, str]:
        kind = mpi_libraries.implementation(self.mpi).name
        return ASYNC_VARIABLES[kind] if self.library_async else {}

    def front(self, collective: str) -> list[str]:
        """Returns the words before the program; empty if the MPI library runs without Weft."""
        if self.library_async:
            return []
        # The engines of communicators are given as hints. A process-wide engine must be named as
        # well: without one Weft may leave the whole job to the library, and only engine agent
        # starts agents.
        of_job = "agent" if any(c.engine == "agent" for c in self.candidates) else "thread"
        words = [str(installation.weft_command()), "run", "--engine", of_job]
        words += ["--placement", self.placement, "--backoff", self.backoff]
        if self.algorithm != "selected":
            words += ["--algorithm", f"{collective}={self.algorithm}"]
        return [*words, "--"]


def candidate(mpi: str, engine: str, placement: str, backoff: str, algorithm: str) -> Candidate:
    """Returns the candidate without settings that have no effect on its engine."""
    threaded = engine in THREADED
    return Candidate(
        mpi=mpi,
        engine=engine,
        placement=placement if threaded else "none",
        backoff=backoff if threaded else "none",
        algorithm=algorithm if engine in SCHEDULED else "library",
    )


def version_label(mpi: str, library: str) -> str:
    """Returns a label such as `mpich 5.0.2` from the library's version text. If the user gave a
    path, the path is added."""
    found = re.search(r"\d+(\.\d+)+", library)
    kind = mpi_libraries.implementation(mpi).name
    place = "" if mpi == kind else f" ({mpi})"
    return (f"{kind} {found[0]}" if found else kind) + place


def mpi_facts(mpi: str) -> tuple[str, str, str]:
    """Returns the label and the thread level of an MPI library, and the reason why no job can run
    with it; the reason is empty if one can."""
    library = mpi_libraries.implementation(mpi)
    if not library.present:
        target = mpi_libraries.make_target(library.name)
        return mpi, "", f"{mpi} is not here; get it with: {target}"
    if not building.is_there(library.program("nbceff")):
        return mpi, "", f"{library.program('nbceff')} is missing; {how_to_build(library)}"
    try:
        facts = run_probe(library)
    except ProbeError as error:
        return mpi, "", str(error)
    return version_label(mpi, facts["library"]), facts["thread_level"], ""


def algorithm_problem(collective: str, algorithm: str, ranks: int) -> str:
    """Returns why Weft's algorithm cannot carry out this collective; an empty string if it can."""
    if algorithm == "selected":
        return ""
    command = [str(installation.weft_command()), "schedule", collective]
    command += ["--algorithm", algorithm, "--ranks", str(ranks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    said = done.stderr.strip().splitlines()
    return said[-1].removeprefix("weft schedule: ") if done.returncode and said else ""


def engine_problem(mpi: str, engine: str, thread_level: str) -> str:
    library = mpi_libraries.implementation(mpi)
    if engine == LIBRARY_ASYNC:
        return "" if library.name in ASYNC_VARIABLES else NO_ASYNC
    return info.engines(library.family, thread_level)[engine] or ""


class Plan:
    """The jobs of one case, and the candidates that are left out of them."""

    def __init__(self, settings: Settings, collective: str, ranks: int) -> None:
        self.settings = settings
        self.variants: list[Variant] = []
        self.left_out: list[Candidate] = []
        self.seen: set[tuple] = set()
        self.problems = {
            name: algorithm_problem(collective, name, ranks) for name in settings.algorithms
        }
        for mpi in settings.mpis:
            self.add_mpi(mpi, *mpi_facts(mpi))

    def add_mpi(self, mpi: str, label: str, thread_level: str, problem: str) -> None:
        settings = self.settings
        own = [engine for engine in settings.engines if engine != LIBRARY_ASYNC]
        axes = product(settings.placements, settings.backoffs, settings.algorithms)
        for placement, backoff, algorithm in axes:
            variant = Variant(mpi, placement, backoff, algorithm)
            for engine in own:
                self.add(variant, candidate(label, engine, *variant_words(variant)), problem)
            if not problem:
                self.judge(variant, thread_level)
        if LIBRARY_ASYNC in settings.engines:
            variant = Variant(mpi, "none", "none", "selected")
            self.add(variant, Candidate(label, LIBRARY_ASYNC), problem)
            if not problem:
                self.judge(variant, thread_level)

    def add(self, variant: Variant, new: Candidate, problem: str) -> None:
        if new.key in self.seen:
            return
        self.seen.add(new.key)
        if problem:
            self.left_out.append(replace(new, status=CANNOT_RUN, reason=problem))
        else:
            variant.candidates.append(new)

    def judge(self, variant: Variant, thread_level: str) -> None:
        """Adds the variant if any of its candidates can run, and records why the others cannot."""
        kept = []
        for new in variant.candidates:
            reason = engine_problem(variant.mpi, new.engine, thread_level)
            reason = reason or self.problems.get(new.algorithm, "")
            if reason:
                self.left_out.append(replace(new, status=CANNOT_RUN, reason=reason))
            else:
                kept.append(new)
        variant.candidates = kept
        if kept:
            self.variants.append(variant)


def variant_words(variant: Variant) -> tuple[str, str, str]:
    return variant.placement, variant.backoff, variant.algorithm
