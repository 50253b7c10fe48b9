"""Does the advisor's first line say what the best measured choice says: on one node and in the lab,
of programs that gain without a change, by a change, and not at all.

The best choice: Weft without a change where weft try finds that faster; else the change where the
changed program with Weft is faster than what the program was, with Weft or without; else neither.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bar_jobs import run_command

from weft.measurements.statistics import NOTICEABLE
from weft.system import installation, mpi_libraries
from weft.trying.rounds import FASTER, UNDECIDED

JOB_SECONDS = 600
PAIRS = 5  # of the program as it was and as it was changed
WEFT = installation.ROOT / ".venv/bin/weft"
SOURCE = installation.ROOT / "tests/cli/programs/first_line.c"
FREE, CHANGE, NONE = "without a change", "by a change", "none"
UNKNOWN = "not known: the machine is too busy for weft try to decide"
OPEN = "left open"
SAID = {
    "with Weft, and without a change, the run is": FREE,
    "Weft may shorten it without a change": OPEN,
    "a change of the program wins": CHANGE,
}


@dataclass(frozen=True)
class Case:
    kind: str
    rounds: int
    in_lab: bool
    least_cores: int = 2  # fewer leave no choice to measure

    @property
    def name(self) -> str:
        return f"{self.kind}, {'2 nodes' if self.in_lab else '2 ranks'}"


CASES = (
    Case("free", 300, False),
    Case("room", 50, False, least_cores=4),  # one for each rank that moves its data
    Case("needed", 2000, False),
    Case("started", 50, True),
    Case("room", 50, True),
    Case("needed", 150, True),
)


@dataclass
class Found:
    mpi: str
    case: str
    first_line: str
    with_weft: str  # what weft try says
    times_as_fast: float  # by Weft
    as_it_was_s: list[float] = field(default_factory=list)  # of the faster way, pair by pair
    changed_s: list[float] = field(default_factory=list)

    @property
    def said(self) -> str:
        return next((what for words, what in SAID.items() if words in self.first_line), NONE)

    @property
    def by_the_change(self) -> float:
        """How many times as fast."""
        return statistics.median(w / c for w, c in zip(self.as_it_was_s, self.changed_s))

    @property
    def best(self) -> str:
        if self.with_weft == UNDECIDED:
            return UNKNOWN
        if self.with_weft == FASTER:
            return FREE
        return CHANGE if self.by_the_change > 1 + NOTICEABLE else NONE

    @property
    def is_right(self) -> bool:
        return self.said == self.best

    def in_words(self) -> str:
        return (
            f"{self.mpi}, {self.case}: {self.first_line}\n  weft try: {self.with_weft},"
            f" {self.times_as_fast:.2f}; changed: {self.by_the_change:.2f} times as fast; best:"
            f" {self.best}{': right' if self.is_right else ''}"
        )

    def to_json(self) -> dict:
        return asdict(self) | {"said": self.said, "best": self.best}


def launcher(mpi: str, case: Case) -> list:
    if case.in_lab:
        return [WEFT, "lab", "run", "--mpi", mpi, "--nodes", "2", "--per-node", "1", "--"]
    return mpi_libraries.implementation(mpi).launcher(2)


def built(mpi: str, directory: Path) -> Path:
    library = mpi_libraries.implementation(mpi)
    program = directory / f"first_line-{mpi}"
    words = [library.prefix / "bin/mpicc", "-g", "-O1", SOURCE, "-o", program]
    words += [f"-Wl,-rpath,{library.prefix / 'lib'}"]
    environment = {**os.environ, **library.environment()}
    subprocess.run([str(w) for w in words], check=True, timeout=60, env=environment)
    return program


def seconds(mpi: str, case: Case, program: Path, form: str, with_weft: bool) -> float:
    weft = [installation.weft_command(), "run", "--"] if with_weft else []
    words = [*launcher(mpi, case), *weft, program, case.kind, form, case.rounds]
    said = run_command(words, mpi, JOB_SECONDS).splitlines()
    return float(next(line.split()[1] for line in said if line.startswith("seconds ")))


def measure_once(mpi: str, case: Case, directory: Path) -> Found:
    command = [*launcher(mpi, case), built(mpi, directory), case.kind]
    files = ["--json", directory / "advice.json", "--out", directory / "page.html"]
    advise = [WEFT, "advise", "--mpi", mpi, *files, "--record", directory / "record"]
    said = run_command([*advise, "--", *command, "as-it-was", case.rounds], mpi, JOB_SECONDS)
    first = next(line for line in said.splitlines() if "of the time is in" in line or "%" in line)
    tried = directory / "try.json"
    trial = [WEFT, "try", "--time-budget", "90s", "--json", tried, "--", *command]
    run_command([*trial, "as-it-was", case.rounds], mpi, JOB_SECONDS)
    way = json.loads(tried.read_text())["ways"][1]
    times = way["times_as_fast"]["median"]
    found = Found(mpi, case.name, first, way["verdict"], times)
    for _ in range(PAIRS):
        as_it_was = seconds(mpi, case, command[-2], "as-it-was", times > 1)
        found.as_it_was_s.append(as_it_was)
        found.changed_s.append(seconds(mpi, case, command[-2], "changed", True))
    return found


def measure(mpi: str) -> Iterator[Found]:
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as directory:
        for case in CASES:
            if cores >= case.least_cores:
                yield measure_once(mpi, case, Path(directory))
