"""Compares jobs without Weft and with it in one collective, row by row.

The terminal's table, the page and the tests use this module, so that they agree. The files come
from bench/overlap (schema weft-overlap/1). docs/benchmarking.md has the formula of the hidden
share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from weft.data import stored
from weft.measurements import choice, statistics
from weft.measurements.result import FEWEST, LEAST_HIDDEN, Statistic, hidden_share

SCHEMA = "weft-overlap/1"
WITHOUT = "without Weft"
NATIVE = "native"
# The possible findings of a comparison.
GAIN, NO_GAIN, CANNOT_TELL = "gain", "no gain", "cannot tell"
# A smaller gain is worth no change. If the interval ends below this ratio, the finding is that
# there is no gain.
WORTH = 1.05
# A gain is known well if the ratio of its interval's ends is at most this.
NARROW = 1.15
# At most all communication can be hidden. A share beyond this means that communication or
# computation took longer alone than together.
MOST_HIDDEN = 1.05
# A time whose interval is wider than this share of its median is not shown. Neither is a hidden
# share whose interval is wider than this.
WIDE = 0.5


# ---- Files ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times:
    samples: list[float]


@dataclass(frozen=True)
class EngineTimes:
    engine: str
    immediate_us: Times
    total_us: Times


@dataclass(frozen=True)
class Job:
    """The output of one job of bench/overlap."""

    collective: str
    bytes: int
    ranks: int
    mpi: str
    weft: Optional[str]  # version of Weft; None if it was not loaded
    iterations: int
    wrong: int
    computation_us: Times
    blocking_us: Times
    engines: list[EngineTimes]


@dataclass(frozen=True)
class CallJob:
    """The output of a job that makes calls one after the other (--latency). The blocking calls are
    used."""

    collective: str
    bytes: int
    ranks: int
    mpi: str
    weft: Optional[str]
    wrong: int
    blocking_us: Times


def read(path: Path) -> Job:
    """Returns the measurement in a file. Raises ResultError if the file is something else."""
    return stored.read(Job, path, SCHEMA)


def read_calls(path: Path) -> CallJob:
    return stored.read(CallJob, path, SCHEMA)


# ---- Figures ----------------------------------------------------------------------------------


@dataclass
class Pool:
    """The samples of several jobs of one kind, in milliseconds."""

    # This maps the engine that communicates to its times.
    alone: dict[str, list[float]] = field(default_factory=dict)
    computation: list[float] = field(default_factory=list)
    totals: dict[str, list[float]] = field(default_factory=dict)  # times by engine

    def add(self, job: Job) -> None:
        self.computation += milliseconds(job.computation_us)
        self.alone.setdefault("", []).extend(milliseconds(job.blocking_us))
        for engine in job.engines:
            self.alone.setdefault(engine.engine, []).extend(milliseconds(engine.immediate_us))
            self.totals.setdefault(engine.engine, []).extend(milliseconds(engine.total_us))

    @property
    def communication(self) -> Statistic:
        """Returns the time of the fastest engine without computation."""
        return min(map(statistics.of, self.alone.values()), key=lambda time: time.median)


def milliseconds(times: Times) -> list[float]:
    return [us / 1000 for us in times.samples]


@dataclass(frozen=True)
class Row:
    """A candidate: an engine, or the program without Weft. Times are in milliseconds."""

    name: str
    communication: Statistic
    computation: Statistic
    total: Statistic
    # This is the ratio of the time without Weft to this one's; None for the program without Weft.
    gain: Statistic | None

    @property
    def times(self) -> tuple[Statistic, Statistic, Statistic]:
        return self.communication, self.computation, self.total

    @property
    def hidden(self) -> float:
        return hidden_share(*(time.median for time in self.times))

    @property
    def is_clear(self) -> bool:
        """Returns whether the hidden share is known: overlap can cause it, and its interval is
        narrow."""
        ends = itertools.product(*((time.low, time.high) for time in self.times))
        shares = [hidden_share(*times) for times in ends]
        return self.hidden >= LEAST_HIDDEN and max(shares) - min(shares) <= WIDE


@dataclass(frozen=True)
class Comparison:
    """All candidates for one collective."""

    collective: str
    size_bytes: int
    ranks: int
    mpi: str
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
    def native(self) -> Row:
        return next(row for row in self.engines if row.name == NATIVE)

    @property
    def choice(self) -> tuple[Row, list[Row]]:
        """Returns the best of all rows, and those that are as fast within the intervals."""
        return choice.best(
            self.rows, lambda row: row.total, lambda row: choice.simplicity(row.name, row.name)
        )

    @property
    def shown(self) -> Row:
        """Returns the engine that sentences are about: the best row, or the fastest of Weft's
        engines if the program without Weft is best."""
        best, _ = self.choice
        own = [row for row in self.engines if row.name != NATIVE]
        if best is not self.without:
            return best
        return min(own, key=lambda row: row.total.median)

    @property
    def finding(self) -> str:
        best, _ = self.choice
        if best is not self.without:
            return GAIN
        gain = self.shown.gain
        return NO_GAIN if gain.is_certain and gain.high < WORTH else CANNOT_TELL

    @property
    def gain(self) -> Statistic:
        """Returns the gain of the engine that sentences are about."""
        return self.shown.gain

    @property
    def decided(self) -> bool:
        """Returns whether further measurements would change little."""
        return is_decided(self.finding, self.gain)

    @property
    def headline(self) -> str:
        return headline(self.finding, self.gain)

    @property
    def best(self) -> Row | None:
        """Returns the engine to use; None if that is undecided."""
        return {GAIN: self.shown, NO_GAIN: self.native, CANNOT_TELL: None}[self.finding]

    @property
    def ideal_ms(self) -> float:
        row = self.engines[0]
        return max(row.communication.median, row.computation.median)

    @property
    def sum_ms(self) -> float:
        row = self.engines[0]
        return row.communication.median + row.computation.median

    @property
    def alone_is_known(self) -> bool:
        """Returns whether the times of communication and computation alone are certain enough to
        compare with."""
        row = self.engines[0]
        return all(map(figure, (row.communication, row.computation)))

    @property
    def samples(self) -> int:
        return min(row.total.n for row in self.rows)

    @property
    def sentence(self) -> str:
        """Returns the finding as a sentence, also if Weft gains nothing or nothing is decided."""
        say = {GAIN: self._gain, NO_GAIN: self._no_gain, CANNOT_TELL: self._cannot_tell}
        text = f"{self.call}: {say[self.finding]()}"
        clear = [row for row in self.rows if row.is_clear]
        most = max(clear, key=lambda row: row.hidden, default=None)
        if most is None or most.hidden <= MOST_HIDDEN:
            return text
        return (
            f"{text} But {most.name} cannot hide {percent(most.hidden)}: the machine was busier"
            " while communication or computation ran alone."
        )

    def _gain(self) -> str:
        best, equal = self.choice
        without = self.without
        text = (
            f"{self.headline} with Weft. Engine {best.name}{hiding(best)} takes"
            f" {best.total.median:.0f} ms; without Weft the same program{hiding(without)} takes"
            f" {without.total.median:.0f} ms."
        )
        names = [row.name for row in equal]
        return f"{text} As fast within the intervals: {', '.join(names)}." if names else text

    def _no_gain(self) -> str:
        without = self.without
        return (
            f"Weft has nothing to add. The MPI library by itself{hiding(without)} takes"
            f" {without.total.median:.0f} ms, and the program is {self.headline} with an engine"
            " of Weft's; leave the call to the library (engine native)."
        )

    def _cannot_tell(self) -> str:
        if not self.gain.is_certain:
            return f"cannot tell: fewer than {FEWEST} measurements fitted into the time."
        return f"cannot tell on this machine now: {self.headline} with Weft. A quieter machine can."


@dataclass(frozen=True)
class CallComparison:
    """A blocking call in shared memory, without Weft and with it. Times are in microseconds."""

    collective: str
    size_bytes: int
    ranks: int
    mpi: str
    without: Statistic
    weft: Statistic

    @property
    def call(self) -> str:
        return f"MPI_{self.collective.capitalize()} of {size(self.size_bytes)}"

    @property
    def gain(self) -> Statistic:
        return statistics.ratio(self.without, self.weft)

    @property
    def finding(self) -> str:
        if statistics.leads(self.weft, self.without):
            return GAIN
        certain = self.gain.is_certain
        return NO_GAIN if certain and self.gain.high < WORTH else CANNOT_TELL

    @property
    def decided(self) -> bool:
        return is_decided(self.finding, self.gain)

    @property
    def headline(self) -> str:
        return headline(self.finding, self.gain)

    @property
    def samples(self) -> int:
        return self.gain.n

    @property
    def sentence(self) -> str:
        took = f"{self.weft.median:.1f} µs instead of {self.without.median:.1f}"
        return f"{self.call}, blocking: {self.headline} with Weft ({took})."


def is_decided(finding: str, gain: Statistic) -> bool:
    return finding == NO_GAIN or (finding == GAIN and is_narrow(gain))


def headline(finding: str, gain: Statistic) -> str:
    """Returns a short text about what is known of a gain."""
    if not gain.is_certain:
        return "not known"
    if finding == GAIN:
        return f"{times(gain)} as fast"
    if finding == NO_GAIN:
        return f"at most {ceiling(gain.high)} times as fast"
    return f"between {floor(gain.low)} and {ceiling(gain.high)} times as fast"


def is_narrow(gain: Statistic) -> bool:
    return gain.high <= NARROW * gain.low


def times(gain: Statistic) -> str:
    """Returns text such as `1.31 to 1.42 times`. If the interval is wide, it is only the certain
    part."""
    if not is_narrow(gain):
        return f"at least {floor(gain.low)} (in the median {gain.median:.2f}) times"
    return f"{floor(gain.low)} to {ceiling(gain.high)} times"


def floor(value: float) -> str:
    return f"{math.floor(100 * value) / 100:.2f}"


def ceiling(value: float) -> str:
    return f"{math.ceil(100 * value) / 100:.2f}"


def interval(gain: Statistic | None) -> str:
    """Returns a row's interval as text; an empty string if there is none or too few samples."""
    return f"{floor(gain.low)}–{ceiling(gain.high)}" if gain and gain.is_certain else ""


def size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def hiding(row: Row) -> str:
    """Returns the words about the hidden share that stand before the time in a sentence. Overlap
    that costs time has hidden nothing."""
    if not row.is_clear:
        return ""
    part = f"{percent(row.hidden)} of the communication" if row.hidden > 0.005 else "nothing"
    return f" hides {part} and"


def hidden(row: Row) -> str:
    """Returns the hidden share for a table; an empty string if it is not known."""
    return percent(row.hidden) if row.is_clear else ""


def figure(time: Statistic) -> str:
    """Returns a median for a table that shows no intervals; an empty string if its interval is
    wide."""
    return "" if time.high - time.low > WIDE * time.median else f"{time.median:.1f}"


def remarks(rows: Sequence[Row]) -> str:
    """Returns a sentence that explains empty cells; an empty string if there are none."""
    said = [figure(time) for row in rows for time in (row.communication, row.computation)]
    if all(said) and all(row.is_clear for row in rows):
        return ""
    return (
        "Empty: not decided; the interval is wider than half of the figure, or of what could be"
        " hidden."
    )


def percent(share: float) -> str:
    return f"{round(100 * share)} %".replace("-", "−")


def row(name: str, pool: Pool, engine: str, without: Statistic | None) -> Row:
    total = statistics.of(pool.totals[engine])
    return Row(
        name=name,
        communication=pool.communication,
        computation=statistics.of(pool.computation),
        total=total,
        gain=statistics.ratio(without, total) if without else None,
    )


def compare(without: Sequence[Job], weft: Sequence[Job]) -> Comparison:
    """Returns the comparison of two kinds of jobs. In the jobs `without` Weft the only engine is
    the MPI library's own."""
    plain, loaded = Pool(), Pool()
    for job in without:
        plain.add(job)
    for job in weft:
        loaded.add(job)
    rows = [row(WITHOUT, plain, next(iter(plain.totals)), None)]
    rows += [row(name, loaded, name, rows[0].total) for name in loaded.totals]
    one = weft[0]
    return Comparison(one.collective, one.bytes, one.ranks, library(one.mpi), tuple(rows))


def compare_calls(without: Sequence[CallJob], weft: Sequence[CallJob]) -> CallComparison:
    one = weft[0]
    pools = [[us for job in jobs for us in job.blocking_us.samples] for jobs in (without, weft)]
    times = map(statistics.of, pools)
    return CallComparison(one.collective, one.bytes, one.ranks, library(one.mpi), *times)


def library(mpi: str) -> str:
    """Returns a library's short name: "MPICH 5.0.2" for "MPICH Version: 5.0.2"."""
    return " ".join(mpi.replace("Version:", "").split())
