"""Windows that programs plant and time themselves, against what the advisor says of them: in C,
Fortran and mpi4py (tools/windows), of one machine's two ranks.

A window is right within 2 % or 20 µs; on heap and static memory of more than a page it is known.
Each window is held against the closest of the times that its function took by its own clock, since
not the same calls are watched as are timed, and what takes the core away makes some of them longer.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bar_jobs import run_command

from weft import installation, mpi_libraries
from weft.advise import analysis, sites, store

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
    off_us: float  # the median

    @property
    def is_right(self) -> bool:
        return abs(self.off_us) <= max(sites.LITTLE_US, sites.PART * self.own_us)

    @property
    def is_missing(self) -> bool:
        return self.measured_us is None and self.function not in MAY_BE_UNKNOWN

    def in_words(self) -> str:
        what = f"{self.mpi}, {self.language}, {self.function}, {self.planted_ms:g} ms planted"
        if self.measured_us is None:
            return f"{what}: unknown"
        verdict = "" if self.is_right else ", wrong"
        return f"{what}: own {self.own_us:.1f} µs, off by {self.off_us:+.1f} µs{verdict}"

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


def own_times(own: Path) -> dict[str, list[float]]:
    """Of each function, over all ranks."""
    found = defaultdict(list)
    for rank in (0, 1):
        for line in own.with_name(f"{own.name}.{rank}").read_text().splitlines():
            function, us = line.split()
            found[function].append(float(us))
    return found


def held_against(own: list[float], site: sites.Site | None) -> tuple[float | None, float]:
    """The median window and by how much windows are off."""
    if site is None or site.window_us is None:
        return None, 0.0
    windows = [us for us in site.after.most if us is not None]
    offs = [min((us - one for one in own), key=abs) for us in windows]
    return statistics.median(windows), statistics.median(offs)


def measure_job(mpi: str, language: str, program: list, ms: float, directory: Path) -> list[Found]:
    own, record = directory / "own", directory / "record"
    words = [WEFT, "advise", "--mpi", mpi, "--overhead", "100%", "--record", record]
    words += ["--out", directory / "page.html", "--"]
    launcher = mpi_libraries.implementation(mpi).launcher(2)
    run_command([*words, *launcher, *program, ms, CALLS, own], mpi, JOB_SECONDS)
    advice = analysis.analyse(store.read(record))
    seen = {site.function.partition(".")[0]: site for site in advice.sites}
    return [
        Found(
            *(mpi, language, function, ms, statistics.median(times)),
            *held_against(times, seen.get(function)),
        )
        for function, times in own_times(own).items()
    ]


def measure(mpi: str) -> Iterator[Found]:
    with tempfile.TemporaryDirectory() as directory:
        for language, program in programs(mpi, Path(directory)):
            for ms in PLANTED_MS:
                yield from measure_job(mpi, language, program, ms, Path(directory))
