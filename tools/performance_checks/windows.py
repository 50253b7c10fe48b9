"""Compares windows that programs plant and time themselves with the advisor's figures: in C,
Fortran and mpi4py (tools/windows), on two ranks of one machine.

A window is right within 2 % or 20 µs. On heap and static memory of more than a page the advisor
must know it. Each window is compared with the time for which its own call was left alone by the
program's clock, so that both include time in which the core was taken away. The record's timeline
tells which call that was."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from weft.advise import analysis, sites, store
from weft.advise.record import AFTER, CALL, WAIT

from .check import Figure
from .jobs import At, median

SOURCES = Path(__file__).parents[1] / "windows"
PLANTED_MS, SHORT_PLANTED_MS = (0, 0.2, 2, 10, 50), (0.2, 10)
CALLS = 24  # calls of each function
MAY_BE_UNKNOWN = ("stack", "number")
OwnTimes = dict[int, list[float]]  # times by rank, in the order of the calls


@dataclass(frozen=True)
class Found:
    language: str
    function: str
    planted_ms: float
    own_us: float  # median by the program's own clock
    # This is the error of each call's window; empty if the advisor does not know the window.
    offs_us: list[float]

    @property
    def is_right(self) -> bool:
        most_us = max(sites.LITTLE_US, sites.PART * self.own_us)
        return bool(self.offs_us) and abs(median(self.offs_us)) <= most_us

    @property
    def is_missing(self) -> bool:
        return not self.offs_us and self.function not in MAY_BE_UNKNOWN

    def __str__(self) -> str:
        return f"{self.language} {self.function} {self.planted_ms:g} ms"


def programs(at: At) -> Iterator[tuple[str, list]]:
    """Yields the command of each language for which this machine has a compiler or interpreter."""
    prefix = at.library.prefix
    linked = [f"-L{prefix}/lib", "-lmpifort", "-lmpi", f"-Wl,-rpath,{prefix}/lib"]
    fortran = ["-fallow-argument-mismatch", f"-I{prefix}/include", *linked]
    compilers = {
        "C": ("c", shutil.which("mpicc", path=prefix / "bin"), [], "mpi.h"),
        "Fortran": ("F90", shutil.which("gfortran"), fortran, "mpif.h"),
    }
    for language, (suffix, compiler, options, header) in compilers.items():
        if compiler and (prefix / "include" / header).exists():
            target = at.directory / f"planted-{language}"
            words = ["-g", "-O1", "-fno-inline", SOURCES / f"planted.{suffix}", "-o", target]
            at.command(compiler, *words, *options)
            yield language, [target]
    if importlib.util.find_spec("mpi4py"):
        interpreter = ["env", f"MPI4PY_LIBMPI={at.library.library}", sys.executable]
        yield "mpi4py", [*interpreter, SOURCES / "planted.py"]


def own_times(own: Path) -> dict[str, OwnTimes]:
    """Returns the program's own times, by function."""
    found: dict[str, OwnTimes] = defaultdict(lambda: {0: [], 1: []})
    for rank in (0, 1):
        lines = own.with_name(f"{own.name}.{rank}").read_text().splitlines()
        for function, us in map(str.split, lines):
            found[function][rank].append(float(us))
    return found


def watched(stored: store.Stored, site: sites.Site) -> Iterator[tuple[int, int, float]]:
    """Yields for each window its rank, the number of its call, and its us. The call is the last one
    that ended before the window began."""
    for member in sorted(site.members):
        events = [row for row in stored["event"] if (row["rank"], row["site"]) == member]
        ends = sorted(row["ended_ns"] for row in events if row["what"] in (CALL, WAIT))
        for row in events:
            if row["what"] == AFTER:
                us = (row["ended_ns"] - row["began_ns"]) / 1e3
                yield member[0], bisect_right(ends, row["began_ns"]) - 1, us


def off_us(own: OwnTimes, site: sites.Site | None, stored: store.Stored) -> list[float]:
    """Returns the error of each window of a site in us; an empty list if the advisor has no precise
    figure."""
    if site is None or site.window_us is None:
        return []
    return [us - own[rank][call] for rank, call, us in watched(stored, site)]


def measure(at: At, language: str, program: list, ms: float) -> Iterator[Found]:
    own, launcher = at.directory / "own", at.launcher(at.where)
    at.command(*at.advising("--overhead", "100%"), *launcher, *program, ms, CALLS, own)
    stored = store.read(at.directory / "record")
    seen = {site.function.partition(".")[0]: site for site in analysis.analyse(stored).sites}
    for function, times in own_times(own).items():
        offs = off_us(times, seen.get(function), stored)
        yield Found(language, function, ms, median(times[0] + times[1]), offs)


def windows(at: At) -> Iterator[Figure]:
    cases = product(list(programs(at)), SHORT_PLANTED_MS if at.short else PLANTED_MS)
    found = [one for (*program,), ms in cases for one in measure(at, *program, ms)]
    at.keep(windows=[asdict(one) | {"is_right": one.is_right} for one in found])
    known = [one for one in found if one.offs_us]
    wrong = ", ".join(str(one) for one in known if not one.is_right)
    note = f"of {len(known)} medians of {', '.join(dict.fromkeys(one.language for one in found))}"
    share = sum(one.is_right for one in known) / len(known) if known else None
    yield Figure(
        "right within 2 % or 20 µs", share, note=note + (f"; wrong: {wrong}" if wrong else "")
    )
    yield Figure("unknown on heap and static memory", sum(one.is_missing for one in found))
