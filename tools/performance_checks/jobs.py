"""Runs the jobs of a check: on this node or in the lab, with Weft and without, alternating."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.lab import Lab, LabError
from weft.measurements import statistics
from weft.measurements.result import Statistic
from weft.system import installation, mpi_libraries

WEFT = installation.weft_command()
JOB_SECONDS = 1200
FEW = 2  # number of rounds and repetitions with --short

Words = Sequence[Any]


class JobFailed(Exception):
    """Raised if a job failed or took too long; the message has its output."""


@dataclass
class Session:
    """The options of the command, and everything that its jobs have measured."""

    libraries: Sequence[str]
    repetitions: int = 9
    short: bool = False
    measurements: list[dict] = field(default_factory=list)


@dataclass(frozen=True)
class Where:
    """A number of ranks on this node, or on each of several nodes of the lab."""

    each: int
    nodes: int = 0

    @property
    def ranks(self) -> int:
        return self.each * (self.nodes or 1)

    @property
    def has_cores(self) -> bool:
        return self.ranks <= len(os.sched_getaffinity(0))

    def __str__(self) -> str:
        ranks = f"{self.each} rank{'s' if self.each > 1 else ''}"
        return f"{self.nodes} nodes of {ranks}" if self.nodes else ranks


node = Where


def lab(nodes: int, each: int = 1) -> Where:
    return Where(each, nodes)


class At(ExitStack):
    """A check under one MPI library, with everything that its jobs need. If it has several places,
    `where` is the first."""

    def __init__(self, session: Session, check: str, mpi: str, places: Sequence[Where]) -> None:
        super().__init__()
        self.session = session
        self.check = check
        self.mpi = mpi
        self.library = mpi_libraries.implementation(mpi)
        self.places = places
        self.where = places[0]
        self.short = session.short
        self.repetitions = self.few_or(session.repetitions)  # repetitions within a job

    def __str__(self) -> str:
        return f"{self.mpi}, {' and '.join(map(str, self.places))}"

    def few_or(self, usual: int) -> int:
        return min(FEW, usual) if self.short else usual

    @cached_property
    def lab(self) -> Lab:
        return self.enter_context(Lab(self.where.nodes, self.where.each, mpi=self.mpi))

    @cached_property
    def directory(self) -> Path:
        return Path(self.enter_context(tempfile.TemporaryDirectory()))

    def keep(self, **measurement: Any) -> None:
        self.session.measurements.append({"check": self.check, "at": str(self)} | measurement)

    def job(
        self,
        program: str,
        options: Words,
        weft: Words | None = None,
        mpi: str = "",
        front: Words = (),
        **variables: str,
    ) -> str:
        """Returns the output of a measuring program. Each rank has a core if there are enough.

        `weft` has options of `weft run`; None means without Weft. `front` has words in front of the
        launcher on this node, which decide on which cores the ranks run."""
        library = mpi_libraries.implementation(mpi or self.mpi)
        with_weft = [] if weft is None else [WEFT, "run", *weft, "--"]
        words = [*with_weft, library.program(program), *options]
        if self.where.nodes:
            said = said_by(
                lambda: self.lab.run(words, variables, capture=True, timeout=JOB_SECONDS)
            )
        else:
            bind = "--bind-to" if library.name == "openmpi" else "-bind-to"
            own_cores = self.where.has_cores and not front
            bound = [bind, "core"] if own_cores else library.unbound()
            launch = [*front, library.mpiexec, "-n", self.where.ranks, *bound]
            said = run([*launch, *words], library.environment() | variables)
        self.keep(command=[str(word) for word in words], variables=variables, said=said)
        return said

    def figures(self, program: str, options: Words, *more: Any, **others: Any) -> dict:
        """Returns the JSON that a measuring program writes. The arguments are those of job()."""
        path = self.directory / "figures.json"
        self.job(program, [*options, "--json", path], *more, **others)
        found = self.session.measurements[-1]["said"] = json.loads(path.read_text())
        return found

    def launcher(self, where: Where) -> Words:
        """Returns the launcher's words, which Weft's commands expect in front of a program."""
        if not where.nodes:
            return self.library.launcher(where.ranks)
        options = ("--mpi", self.mpi, "--nodes", where.nodes, "--per-node", where.each)
        return [WEFT, "lab", "run", *options, "--"]

    def advising(self, *options: str) -> Words:
        """Returns the words of `weft advise` in front of a launcher. Its files are written to the
        check's directory."""
        files = [f"--{name}={self.directory / name}" for name in ("json", "out", "record")]
        return [WEFT, "advise", "--mpi", self.mpi, *files, *options, "--"]

    def command(self, *words: Any) -> str:
        """Returns what a command prints, in the environment of the MPI library."""
        return run(words, self.library.environment())


def run(words: Words, variables: Mapping[str, str]) -> str:
    options = {"env": {**os.environ, **variables}, "timeout": JOB_SECONDS}
    command = [str(word) for word in words]
    return said_by(lambda: subprocess.run(command, capture_output=True, text=True, **options))


def said_by(job: Callable[[], Any]) -> str:
    try:
        done = job()
    except (subprocess.TimeoutExpired, LabError, OSError) as error:
        raise JobFailed(str(error)) from None
    if done.returncode:
        what = f"{' '.join(done.args)} ended with status {done.returncode}"
        raise JobFailed(f"{what}: {done.stdout}{done.stderr}")
    return done.stdout


def in_turn(ways: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, list]:
    """Runs each way once in each round, and returns the results by way. Every other round has the
    reverse order, so that a drift favours none."""
    found: dict[Any, list] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            found[name].append(ways[name]())
    return found


def ratio(own: Sequence[float], others: Sequence[float]) -> Statistic:
    """Returns the median of the ratios of figures that were measured together."""
    return statistics.of([mine / other for mine, other in zip(own, others, strict=True)])


def median(samples: Sequence[float]) -> float:
    return statistics.of(samples).median
