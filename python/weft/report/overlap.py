"""Rows of a comparison from two measurements: the program without Weft, and with it.

Why apart from the page: the terminal's table, the page and tests must say the same.
The files come from bench/overlap (schema weft-overlap/1); docs/benchmarking.md has the formula.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

SCHEMA = "weft-overlap/1"
WITHOUT = "without Weft"
# Below this share of the time, two candidates count as equally fast.
NOTICEABLE = 0.02
# More than all of it cannot be hidden: beyond this share, what was to be hidden, or behind which,
# took longer alone than together.
MOST_HIDDEN = 1.05
MEASURE_AGAIN = "measure again on a quiet machine."


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, value: dict, scale: float = 1.0) -> Spread:
        return cls(value["median"] * scale, value["low"] * scale, value["high"] * scale)


@dataclass(frozen=True)
class Row:
    """One candidate: an engine, or the program without Weft. Times in milliseconds."""

    name: str
    communication_ms: float
    computation: Spread
    total: Spread
    hidden: float
    against_without: float  # times as fast as the same program without Weft
    against_native: float  # times as fast as engine native, in the same run


@dataclass(frozen=True)
class Comparison:
    """All candidates of one collective."""

    collective: str
    size_bytes: int
    ranks: int
    mpi: str
    repetitions: int
    rows: tuple[Row, ...]

    @property
    def call(self) -> str:
        return f"MPI_I{self.collective}"

    @property
    def without(self) -> Row:
        return self.rows[0]

    @property
    def engines(self) -> tuple[Row, ...]:
        return self.rows[1:]

    @property
    def best(self) -> Row:
        """The fastest engine; `native` where no other is noticeably faster."""
        fastest = self.fastest
        native = next((row for row in self.engines if row.name == "native"), fastest)
        return fastest if gains(native, fastest) else native

    @property
    def fastest(self) -> Row:
        return min(self.engines, key=lambda row: row.total.median)

    @property
    def ideal_ms(self) -> float:
        row = self.engines[0]
        return max(row.communication_ms, row.computation.median)

    @property
    def sum_ms(self) -> float:
        row = self.engines[0]
        return row.communication_ms + row.computation.median

    @property
    def sentence(self) -> str:
        """What the figures say, also where Weft has nothing to add."""
        finding, most = self._finding, max(self.rows, key=lambda row: row.hidden)
        if most.hidden <= MOST_HIDDEN:
            return finding
        return (
            f"{finding} But {most.name} cannot hide {percent(most.hidden)}: communication or"
            " computation was measured alone while the machine was busy"
            + ("." if finding.endswith(MEASURE_AGAIN) else f"; {MEASURE_AGAIN}")
        )

    @property
    def _finding(self) -> str:
        best, without = self.best, self.without
        if best.name == "native" or not gains(without, best):
            by_itself = (
                f"{self.call}: the MPI library by itself hides {share(without.hidden)}"
                f" ({without.total.median:.0f} ms); "
            )
            if self.fastest.name != "native" and is_noticeable(without, self.fastest):
                return by_itself + (
                    f"engine {self.fastest.name} took {self.fastest.total.median:.0f} ms, but the"
                    f" measurements spread too much to call that a gain: {MEASURE_AGAIN}"
                )
            return by_itself + (
                "engine native, which leaves the call to it, is the right choice, and Weft has"
                " nothing to add."
            )
        return (
            f"{self.call}: engine {best.name} hides {share(best.hidden)} and takes"
            f" {best.total.median:.0f} ms; without Weft the same program hides"
            f" {share(without.hidden)} and takes {without.total.median:.0f} ms."
            f" With Weft it is {best.against_without:.2f} times as fast."
        )


def gains(slow: Row, fast: Row) -> bool:
    """Noticeably faster, and beyond the spread of both."""
    return is_noticeable(slow, fast) and fast.total.high < slow.total.low


def is_noticeable(slow: Row, fast: Row) -> bool:
    return fast.total.median < (1 - NOTICEABLE) * slow.total.median


def share(hidden: float) -> str:
    """For sentences: overlap that cost time has hidden nothing."""
    return f"{percent(hidden)} of the communication" if hidden > 0.005 else "nothing"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %".replace("-", "−")


def read(path: Path) -> dict:
    """A measurement; ValueError if the file is something else."""
    data = json.loads(path.read_text())
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path} is not a measurement of schema {SCHEMA}")
    return data


def row(name: str, run: dict, engine: dict, without_us: float, native_us: float) -> Row:
    total_us = engine["total_us"]["median"]
    return Row(
        name=name,
        communication_ms=run["communication_us"] / 1000,
        computation=Spread.of(run["computation_us"], 0.001),
        total=Spread.of(engine["total_us"], 0.001),
        hidden=engine["hidden"]["median"],
        against_without=without_us / total_us,
        against_native=native_us / total_us,
    )


def compare(without: dict, weft: dict) -> Comparison:
    """`without`: measured with no Weft loaded, so that its only engine is the library's own."""
    plain = without["engines"][0]
    plain_us = plain["total_us"]["median"]
    by_name = {engine["engine"]: engine for engine in weft["engines"]}
    native_us = by_name["native"]["total_us"]["median"]
    rows = [row(WITHOUT, without, plain, plain_us, native_us)]
    rows += [row(name, weft, engine, plain_us, native_us) for name, engine in by_name.items()]
    return Comparison(
        collective=weft["collective"],
        size_bytes=weft["bytes"],
        ranks=weft["ranks"],
        mpi=" ".join(weft["mpi"].split()),
        repetitions=weft["repetitions"],
        rows=tuple(rows),
    )
