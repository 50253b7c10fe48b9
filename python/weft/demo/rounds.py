"""Measures until the gain is clear, in rounds of short jobs that alternate without and with Weft.

Other load on the machine then affects both kinds of jobs alike. After each round the confidence
intervals decide whether another one is needed (docs/benchmarking.md)."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.demo.place import DemoError, Place
from weft.report import overlap
from weft.report.overlap import CallComparison, CallJob, Comparison, Job
from weft.system import installation, mpi_libraries

COLLECTIVES = ("allreduce", "alltoall", "bcast")
ENGINES = ("native", "function", "thread", "tcc", "assist")
REPETITIONS = 3  # repetitions in a job; few, so that both kinds of job alternate often
# Blocking calls are measured in batches. They show the gain of Weft in shared memory.
CALLS = (("allreduce", "64KiB"), ("allreduce", "1MiB"))
BATCHES, BATCH = 9, 50
LEAST_JOB_SECONDS = 10.0
EXPECTED_ROUND_SECONDS = 10.0  # assumed duration of a round until the first one has been measured


@dataclass
class Subject:
    """A collective, and the jobs that have measured it."""

    collective: str
    size: str
    blocking: bool = False
    # These are the measured jobs without Weft. They are of type Job, or CallJob for a blocking
    # call.
    without: list = field(default_factory=list)
    weft: list = field(default_factory=list)
    round_s: float = EXPECTED_ROUND_SECONDS  # duration of the longest round

    @property
    def name(self) -> str:
        if self.blocking:
            return f"MPI_{self.collective.capitalize()} of {self.size[:-3]} {self.size[-3:]}"
        return f"MPI_I{self.collective}"

    @property
    def rounds(self) -> int:
        return min(len(self.without), len(self.weft))

    @property
    def comparison(self) -> Comparison | CallComparison | None:
        compare = overlap.compare_calls if self.blocking else overlap.compare
        return compare(self.without, self.weft) if self.rounds else None

    @property
    def decided(self) -> bool:
        found = self.comparison
        return found is not None and found.decided

    @property
    def order(self) -> tuple[bool, bool]:
        """Returns whether each of a round's two jobs runs with Weft. The order alternates, so that
        a drift favours neither."""
        return (False, True) if self.rounds % 2 == 0 else (True, False)


@dataclass
class State:
    """The progress that is shown in the terminal."""

    subject: Subject
    with_weft: bool
    elapsed_s: float
    left_s: float


class Rounds:
    """The measurement of one collective after the other, and then again of those that are
    undecided."""

    def __init__(
        self,
        where: Place,
        mpi: mpi_libraries.Implementation,
        seconds: float,
        tell: Callable[[State], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.where = where
        self.mpi = mpi
        self.clock = clock
        self.begin = clock()
        self.seconds = seconds
        self.tell = tell
        calls = () if where.is_lab else CALLS
        self.subjects = [Subject(*call, blocking=True) for call in calls]
        self.subjects += [Subject(collective, where.size) for collective in COLLECTIVES]

    @property
    def left_s(self) -> float:
        return self.seconds - (self.clock() - self.begin)

    def measure(self) -> Iterator[Subject]:
        """Yields a subject whenever a round of it has been measured."""
        for place, subject in enumerate(self.subjects):
            until_s = self.left_s - self.left_s / (len(self.subjects) - place)
            while self.go_on(subject, until_s):
                self.round(subject)
                yield subject
        while waiting := [s for s in self.subjects if self.go_on(s, 0.0)]:
            subject = min(waiting, key=lambda s: s.rounds)
            self.round(subject)
            yield subject

    def go_on(self, subject: Subject, until_s: float) -> bool:
        """Returns whether the subject is undecided and another round would end while more than
        `until_s` are left."""
        if subject.decided:
            return False
        first = subject.rounds == 0 and self.left_s > LEAST_JOB_SECONDS
        return first or self.left_s - subject.round_s > until_s

    def round(self, subject: Subject) -> None:
        begin = self.clock()
        for with_weft in subject.order:
            self.tell(State(subject, with_weft, self.clock() - self.begin, self.left_s))
            jobs = subject.weft if with_weft else subject.without
            jobs.append(self.job(subject, with_weft))
        took_s = self.clock() - begin
        subject.round_s = max(took_s, subject.round_s) if subject.rounds > 1 else took_s

    def job(self, subject: Subject, with_weft: bool) -> Job | CallJob:
        """Runs a job. All jobs of a subject do the same work as its first one. Raises DemoError if
        the job fails."""
        with tempfile.TemporaryDirectory() as directory:
            answer = Path(directory) / "overlap.json"
            command = self.command(subject, with_weft, answer)
            limit_s = max(self.left_s, LEAST_JOB_SECONDS)
            try:
                status, said = self.where.run(command, limit_s)
            except subprocess.TimeoutExpired:
                text = f"{' '.join(command)} did not end within {limit_s:.0f} s; try: weft doctor"
                raise DemoError(text) from None
            if status != 0:
                raise DemoError(f"{' '.join(command)} ended with status {status}:\n{said.strip()}")
            return (overlap.read_calls if subject.blocking else overlap.read)(answer)

    def command(self, subject: Subject, with_weft: bool, answer: Path) -> list[str]:
        # The engines of communicators are given as hints. A process-wide engine must be named as
        # well: without one Weft may leave the whole job to the library.
        engine = "auto" if subject.blocking else "thread"
        front = [str(installation.weft_command()), "run", "--engine", engine, "--"]
        words = [*(front if with_weft else []), str(self.mpi.program("overlap"))]
        words += ["--collective", subject.collective, "--bytes", subject.size]
        words += ["--seed", str(subject.rounds + 1), "--json", str(answer)]
        if subject.blocking:
            words += ["--latency", "--engines", engine]
            return [*words, "--repetitions", str(BATCHES), "--batch", str(BATCH)]
        engines = ENGINES if with_weft else ENGINES[:1]
        words += ["--engines", ",".join(engines), "--repetitions", str(REPETITIONS)]
        if subject.without:
            words += ["--iterations", str(subject.without[0].iterations)]
        return words
