"""The gain of patches of `weft advise --apply`, beside what replays of the record promised."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import fortran_binding

from weft.measurements.result import Statistic
from weft.system import installation

from .check import Figure
from .jobs import WEFT, At, JobFailed, median

SOURCES = installation.ROOT / "tests/cli/programs/patch/gain"
# Loops and a method, results of the round before, a derived type, and communicators that were split
# off. Each runs for about 1.4 s, and sends five times what a node of the lab may send at once.
PROGRAMS = (
    *("loop.c", "lagged.c", "column.c", "group.cpp", "transpose.cpp"),
    *("loop.f90", "lagged.f90", "loop.py", "lagged.py"),
)
SIZES = {"STEPS": 24, "N": 150000, "MS": 30}
BUDGET, SHORT_BUDGET = "92s", "20s"
NOTHING = "nothing is changed: "


@dataclass(frozen=True)
class Kept:
    """All figures are beside the faster unchanged program, without Weft or with it."""

    program: str
    promised: Statistic
    measured: Statistic
    keep: bool | None  # the command's verdict; None: nobody can tell

    @property
    def is_within(self) -> bool:
        """The measured interval overlaps the promised one."""
        one, own = self.measured, self.promised
        return one.low <= own.high and one.high >= own.low

    @property
    def is_known(self) -> bool:
        """Both have rounds enough for an interval."""
        return self.promised.is_certain and self.measured.is_certain

    @property
    def where(self) -> str:
        if not self.is_known:
            return "too few rounds to tell"
        if self.promised.low <= self.measured.median <= self.promised.high:
            return "inside"
        return "inside within the spread" if self.is_within else "outside"

    def __str__(self) -> str:
        one, own = self.measured, self.promised
        promised = f"{own.low:.2f} to {own.high:.2f} ({own.n})"
        measured = f"{one.median:.2f} [{one.low:.2f}, {one.high:.2f}] ({one.n})"
        return f"{self.program:14} {promised:20} {measured:24} {self.where}"


def compiler(at: At, program: str) -> list[str]:
    """Returns the words that compile a program in its folder; none for Python."""
    if program.endswith(".py"):
        return []
    prefix = at.library.prefix
    sizes = [f"-D{name}={value}" for name, value in SIZES.items()]
    options = ["-g", "-O1", *sizes, "-o", "app", f"-Wl,-rpath,{prefix / 'lib'}"]
    if program.endswith(".f90"):
        return [
            *fortran_binding.compiler(at.library, at.directory / "binding"),
            "work.f90",
            program,
            *options,
        ]
    wrapper = "mpicxx" if program.endswith(".cpp") else "mpicc"
    return [str(prefix / "bin" / wrapper), program, *options]


def applied(at: At, program: str) -> Kept | None:
    """None: no call is worth a change, or can be changed, or none can be replayed."""
    folder = at.directory / program
    shutil.copytree(SOURCES, folder)
    command = ["./app"]
    if build := compiler(at, program):
        at.command("env", "-C", folder, *build)
    else:
        sizes = map(str, SIZES.values())
        command = ["env", f"MPI4PY_LIBMPI={at.library.library}", sys.executable, program, *sizes]
    budget = SHORT_BUDGET if at.short else BUDGET
    options = ["--apply", "--time-budget", budget, "--json", "change.json"]
    options += ["--build", " ".join(build)] if build else []
    words = [WEFT, "advise", "--mpi", at.mpi, "--no-sample", *options, "--"]
    try:
        at.command("env", "-C", folder, *words, *at.launcher(at.where), *command)
    except JobFailed as why:
        if NOTHING in str(why):
            return None
        raise
    found = json.loads((folder / "change.json").read_text())
    at.keep(program=program, load=os.getloadavg()[0], change=found)
    if not found["ways"] or not found["promised"]:
        return None
    promised, gain = found["promised"], found["ways"][-1]["times_as_fast"]
    return Kept(program, statistic(promised), statistic(gain), found["headline"]["keep"])


def statistic(row: dict) -> Statistic:
    return Statistic(row["median"], row["low"], row["high"], row["rounds"])


def promises(at: At) -> Iterator[Figure]:
    print(
        f"{at}: times as fast (rounds)\n{'program':14} {'promised':20} {'measured':24}", flush=True
    )
    told = []
    for program in PROGRAMS:
        one = applied(at, program)
        print(one or f"{program:14} nothing is promised", flush=True)
        told += [one] if one and one.is_known else []
    note = f"of {len(told)} programs of {len(PROGRAMS)}; load {os.getloadavg()[0]:.1f}"
    share = sum(one.is_within for one in told) / len(told) if told else None
    yield Figure("measured within the promise", share, note=note)
    medians = sum(one.where == "inside" for one in told) / len(told) if told else None
    yield Figure("median within the promise", medians)
    widths = [one.promised.high / one.promised.low - 1 for one in told]
    yield Figure("width of the promise", median(widths) if widths else None)
    # The command says so of each patch that loses, and leaves nothing of it.
    lost = [one for one in told if one.measured.high < 1]
    kept = sum(one.keep is True for one in lost)
    yield Figure("patches kept that lose", float(kept), note=f"{len(lost)} lose")
