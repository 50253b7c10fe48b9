"""A benchmark's result: candidates, points, and the formats JSON (weft-bench/2) and CSV.

Reports, comparisons and other tools read results only by this module and by store.py (SQLite).
docs/benchmarking.md has the schema and the definitions."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from weft.data import files, json_file, stored

SCHEMA = "weft-bench/2"
SCHEMAS = (SCHEMA, "weft-bench/1")
MEASURED, CANNOT_RUN, STOPPED, FAILED = "measured", "cannot run", "stopped", "failed"
# If computation or communication is below this share of the time of both, it is too small to derive
# a hidden share or a slowdown from it.
SMALL = 0.1
# Trying to overlap hardly costs more than this share. A lower share means that other load on the
# machine differed from that during communication alone.
LEAST_HIDDEN = -2.0
FEWEST = 6  # with fewer samples no pair of them encloses the median with 95 %
Status = Literal["measured", "cannot run", "stopped", "failed"]


@dataclass(frozen=True)
class Statistic:
    """A median with its 95 % confidence interval."""

    median: float
    low: float
    high: float
    n: int  # number of samples; with fewer than FEWEST, low and high are only their range

    @property
    def is_certain(self) -> bool:
        return self.n >= FEWEST

    @property
    def half_width(self) -> float:
        """Returns half the width of the interval as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


@dataclass(frozen=True)
class Candidate:
    """A combination of MPI library, engine and settings that is measured. If `status` says that it
    was not measured, `reason` says why."""

    mpi: str
    engine: str
    placement: str = "none"  # "none" if the engine has no thread to place
    backoff: str = "none"
    algorithm: str = "library"  # "library" is the MPI library's own choice, "selected" is Weft's
    status: Status = MEASURED
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return (self.mpi, self.engine, self.placement, self.backoff, self.algorithm)

    @property
    def label(self) -> str:
        """Returns a readable name: the MPI library, the engine, and the settings that differ from
        the usual ones."""
        usual = ("none", "bind", "quiet", "library", "selected")
        rest = [word for word in self.key[2:] if word not in usual]
        return " ".join([self.mpi.split()[0], self.engine, *rest])


@dataclass(frozen=True)
class Alone:
    """Times of one candidate's communication in one case, without computation beside it."""

    mpi: str
    engine: str
    placement: str
    backoff: str
    algorithm: str
    collective: str
    bytes: int
    ranks: int
    nodes: int
    blocking_us: Statistic  # time of the blocking call of the candidate's MPI library
    immediate_us: Statistic  # time of a non-blocking call that is waited for at once


@dataclass(frozen=True)
class Point:
    """A candidate at one amount of computation. Times are medians of the slowest rank."""

    mpi: str
    engine: str
    placement: str
    backoff: str
    algorithm: str
    collective: str
    bytes: int
    ranks: int
    nodes: int
    computation_us: float  # time of the computation alone
    # This is the time of the best candidate without computation; the same for all engines.
    communication_us: float
    total_us: Statistic
    hidden: float  # share of the communication that was hidden; it may be negative or above 1
    # This is the time of the computation during the overlap, divided by that alone.
    slowdown_of_computation: float
    # This is the number of the amount of computation from 0; it is the same work for all
    # candidates.
    amount: int = 0
    kernel: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """Returns the candidate's key."""
        return (self.mpi, self.engine, self.placement, self.backoff, self.algorithm)

    @property
    def case(self) -> tuple[str, int, int, int]:
        return (self.collective, self.bytes, self.ranks, self.nodes)

    @property
    def known_share(self) -> float | None:
        """Returns `hidden`, or None if it cannot be trusted.

        That is so if the total time is less certain than what could be hidden, if that is too
        small, or if the share is lower than an overlap can cause."""
        uncertain_us = (self.total_us.high - self.total_us.low) / 2
        could_us = min(self.communication_us, self.computation_us)
        known = could_us > uncertain_us and not self.is_small(could_us)
        known = known and self.total_us.n > 1 and self.hidden >= LEAST_HIDDEN
        return self.hidden if known else None

    @property
    def known_slowdown(self) -> float | None:
        """Returns `slowdown_of_computation`; None if there is too little computation."""
        return None if self.is_small(self.computation_us) else self.slowdown_of_computation

    def is_small(self, us: float) -> bool:
        return us < SMALL * self.total_us.median


@dataclass
class Result:
    machine: dict[str, Any]
    points: list[Point] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    alone: list[Alone] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    complete: bool = True  # False if the run was stopped early; --resume continues it

    @property
    def measured_on(self) -> dict[str, Any]:
        """Returns the description of the machine. The burst of a lab is added to its network, since
        older results have it among the settings."""
        network, lab = self.machine.get("network"), self.settings.get("lab") or {}
        if not network or "burst" not in lab or "burst" in network:
            return self.machine
        named = network.replace(" links", f" links, burst {lab['burst']}")
        return {**self.machine, "network": named}

    def to_json(self, best: str = "") -> dict[str, Any]:
        """Returns the result as a document of the schema SCHEMA. `best` is the text about the
        leading candidate."""
        mpis = ", ".join(dict.fromkeys(one.mpi for one in self.candidates))
        ranks = sorted({point.ranks for point in self.points})
        headline = {"points": len(self.points), "complete": self.complete, "best": best}
        return {**stored.head(SCHEMA, headline, mpis, ranks), **asdict(self)}


def ranks_in_words(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def hidden_share(communication_us: float, computation_us: float, total_us: float) -> float:
    """Returns the share of the possible saving that was saved. It may be negative or above 1; 1
    means that all was hidden."""
    saved = communication_us + computation_us - total_us
    return saved / min(communication_us, computation_us)


def save_json(result: Result, path: Path, best: str = "") -> None:
    json_file.write(path, result.to_json(best))


def save_csv(result: Result, path: Path) -> None:
    """Writes one line per point. total_us becomes the columns total_us_median, total_us_low, …"""
    names = [f.name for f in fields(Point)]
    spread = [f.name for f in fields(Statistic)]
    header = [n for n in names if n != "total_us"] + [f"total_us_{n}" for n in spread]
    with files.whole(path, newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for point in result.points:
            values = [getattr(point, name) for name in names if name != "total_us"]
            writer.writerow(values + [getattr(point.total_us, name) for name in spread])


def load_json(path: Path) -> Result:
    """Returns the result in a JSON file. Raises ResultError, which names the wrong field."""
    return stored.read(Result, path, SCHEMAS)
