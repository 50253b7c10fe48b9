"""Windows that programs plant and time themselves, against what the advisor says of them: in C,
Fortran and mpi4py (tools/windows), of one machine's two ranks.

A window is right within 2 % or 20 µs; on heap and static memory of more than a page it is known.
Each window is held against the time that its own call was left alone by the program's clock: what
takes the core away in between both see. Which call that was, the record's timeline tells.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import sys
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bar_jobs import run_command

from weft.advise import analysis, sites, store
from weft.advise.record import AFTER, CALL, WAIT
from weft.system import installation, mpi_libraries

SOURCES = Path(__file__).parent / "windows"
WEFT = installation.ROOT / ".venv/bin/weft"
PLANTED_MS = (0, 0.2, 2, 10, 50)
CALLS = 24  # of each function
JOB_SECONDS = 300
MAY_BE_UNKNOWN = ("stack", "number")


@dataclass
class Found:
    mpi: str
    language: str
    function: str
    planted_ms: float
    own_us: float  # the median, by the program's own clock
    measured_us: float | None  # the median; None: unknown
    offs_us: list[float]  # call by call

    @property
    def most_us(self) -> float:
        return max(sites.LITTLE_US, sites.PART * self.own_us)

    @property
    def off_us(self) -> float:
        return statistics.median(self.offs_us or [0.0])

    @property
    def is_right(self) -> bool:
        return abs(self.off_us) <= self.most_us

    @property
    def right_calls(self) -> int:
        return sum(abs(us) <= self.most_us for us in self.offs_us)

    @property
    def is_missing(self) -> bool:
        return self.measured_us is None and self.function not in MAY_BE_UNKNOWN

    def in_words(self) -> str:
        what = f"{self.mpi}, {self.language}, {self.function}, {self.planted_ms:g} ms planted"
        if self.measured_us is None:
            return f"{what}: unknown"
        verdict = "" if self.is_right else ", wrong"
        calls = f"{self.right_calls} of {len(self.offs_us)} calls right"
        return f"{what}: own {self.own_us:.1f} µs, off by {self.off_us:+.1f} µs ({calls}){verdict}"

    def to_json(self) -> dict:
        return asdict(self) | {"is_right": self.is_right}


def compiler(library: mpi_libraries.Implementation) -> list | None:
    """Of Fortran; None: there is none for this library."""
    fortran = shutil.which("gfortran")
    if not fortran or not (library.prefix / "include/mpif.h").exists():
        return None
    linked = [f"-L{library.prefix}/lib", "-lmpifort", "-lmpi", f"-Wl,-rpath,{library.prefix}/lib"]
    return [fortran, f"-I{library.prefix}/include", "-fallow-argument-mismatch", *linked]


def programs(mpi: str, directory: Path) -> Iterator[tuple[str, list]]:
    """Each language's command, as far as the machine has it."""
    library = mpi_libraries.implementation(mpi)
    compilers = {"C": [library.prefix / "bin/mpicc"], "Fortran": compiler(library)}
    for (language, words), suffix in zip(compilers.items(), ("c", "F90")):
        if words and Path(words[0]).exists():
            target = directory / f"planted-{language}"
            source = SOURCES / f"planted.{suffix}"
            run_command(
                [words[0], "-g", "-O1", "-fno-inline", source, "-o", target, *words[1:]],
                mpi,
                JOB_SECONDS,
            )
            yield language, [target]
    if importlib.util.find_spec("mpi4py"):
        interpreter = ["env", f"MPI4PY_LIBMPI={library.library}", sys.executable]
        yield "mpi4py", [*interpreter, SOURCES / "planted.py"]


OwnTimes = dict[int, list[float]]  # by rank, call after call


def own_times(own: Path) -> dict[str, OwnTimes]:
    """Of each function."""
    found: dict[str, OwnTimes] = defaultdict(lambda: {0: [], 1: []})
    for rank in (0, 1):
        for line in own.with_name(f"{own.name}.{rank}").read_text().splitlines():
            function, us = line.split()
            found[function][rank].append(float(us))
    return found


def watched(stored: store.Stored, site: sites.Site) -> Iterator[tuple[int, int, float]]:
    """Of each window the rank, the number of the call, which was the last to end before the window
    began, and how long it was."""
    for member in sorted(site.members):
        events = [row for row in stored["event"] if (row["rank"], row["site"]) == member]
        ends = sorted(row["ended_ns"] for row in events if row["what"] in (CALL, WAIT))
        for row in events:
            if row["what"] == AFTER:
                us = (row["ended_ns"] - row["began_ns"]) / 1e3
                yield member[0], bisect_right(ends, row["began_ns"]) - 1, us


def held_against(
    own: OwnTimes, site: sites.Site | None, stored: store.Stored
) -> tuple[float | None, list[float]]:
    """The median window, and by how much each is off."""
    if site is None or site.window_us is None:
        return None, []
    offs = [us - own[rank][call] for rank, call, us in watched(stored, site)]
    return (site.window_us if offs else None), offs


def measure_job(mpi: str, language: str, program: list, ms: float, directory: Path) -> list[Found]:
    own, record = directory / "own", directory / "record"
    words = [WEFT, "advise", "--mpi", mpi, "--overhead", "100%", "--record", record]
    words += ["--out", directory / "page.html", "--"]
    launcher = mpi_libraries.implementation(mpi).launcher(2)
    run_command([*words, *launcher, *program, ms, CALLS, own], mpi, JOB_SECONDS)
    stored = store.read(record)
    advice = analysis.analyse(stored)
    seen = {site.function.partition(".")[0]: site for site in advice.sites}
    return [
        Found(
            *(mpi, language, function, ms, statistics.median(times[0] + times[1])),
            *held_against(times, seen.get(function), stored),
        )
        for function, times in own_times(own).items()
    ]


def measure(mpi: str) -> Iterator[Found]:
    with tempfile.TemporaryDirectory() as directory:
        for language, program in programs(mpi, Path(directory)):
            for ms in PLANTED_MS:
                yield from measure_job(mpi, language, program, ms, Path(directory))
