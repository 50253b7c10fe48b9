"""Compares the gain of a patch by `weft advise --apply` with the promise of the report."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from weft.system import installation

from .check import Figure
from .jobs import WEFT, At, JobFailed, median

SOURCE = installation.ROOT / "tests/cli/programs/patch/live.c"
# Jobs take 1 to 2 s. Each entry has the number of steps, and the milliseconds of computation beside
# a sum.
SIZES = ((120, 3), (80, 10), (150, 1))
ROUNDS = 2
BUDGET = "60s"
NOTHING = "no call is worth a change"


@dataclass(frozen=True)
class Kept:
    """The promised and the measured speedup, over the faster unchanged program, without Weft or
    with it. The promise ranges from the time of the program without Weft to the gain in the
    report."""

    least: float
    promised: float
    low: float
    median: float
    high: float
    keep: bool | None  # verdict of the command; None if it is undecided

    @property
    def is_within(self) -> bool:
        return self.low <= self.promised and self.high >= self.least

    def __str__(self) -> str:
        measured = f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"
        return f"{measured} of {self.least:.2f} to {self.promised:.2f}"


def applied(at: At, steps: int, ms: int) -> Kept | None:
    """Returns the result of a patch; None if the report finds no call worth a change."""
    folder = at.directory / f"{steps}-{ms}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(SOURCE, folder / "app.c")
    prefix = at.library.prefix
    flags = f"-g -O1 -DSTEPS={steps} -DMS={ms} -Wl,-rpath,{prefix / 'lib'}"
    build = f"{prefix / 'bin/mpicc'} {flags} app.c -o app"
    here = ("env", "-C", folder)
    at.command(*here, *build.split())
    options = ("--apply", "--build", build, "--time-budget", BUDGET, "--json", "change.json")
    words = [WEFT, "advise", "--mpi", at.mpi, "--no-sample", *options, "--"]
    try:
        at.command(*here, *words, *at.launcher(at.where), "./app")
    except JobFailed as why:
        if NOTHING in str(why):
            return None
        raise
    found = json.loads((folder / "change.json").read_text())
    ways = found["ways"]
    at.keep(steps=steps, ms=ms, load=os.getloadavg()[0], change=found)
    if not ways:
        return None
    alone, base = median(ways[0]["seconds"]), min(median(one["seconds"]) for one in ways[:-1])
    gain = (ways[-1]["times_as_fast"][end] for end in ("low", "median", "high"))
    promised = found["promised_at_most"] or math.inf
    return Kept(base / alone, promised, *gain, found["headline"]["keep"])


def promises(at: At) -> Iterator[Figure]:
    found = [applied(at, *one) for one in SIZES for _ in range(at.few_or(ROUNDS))]
    told = [one for one in found if one is not None]
    note = f"times as fast: {', '.join(map(str, told))}; load {os.getloadavg()[0]:.1f}"
    share = sum(one.is_within for one in told) / len(told) if told else None
    yield Figure("measured within the promise", share, note=note)
    # The command refuses each patch that loses, and removes everything of it.
    lost = [one for one in told if one.high < 1]
    kept = sum(one.keep is True for one in lost)
    yield Figure("patches kept that lose", float(kept), note=f"{len(lost)} lose")
