"""Rows of a comparison: what jobs without Weft and jobs with it measured of one collective.

Why apart from the page: the terminal's table, the page and tests must say the same.
The files come from bench/overlap (schema weft-overlap/1); docs/benchmarking.md has the formula.
"""

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
# Nobody changes anything for less: an interval that ends below says that there is no gain.
WORTH = 1.05
# A gain is known well where its interval's ends are no further apart than this.
NARROW = 1.15
# More than all of it cannot be hidden: beyond this share, what was to be hidden, or behind which,
# took longer alone than together.
MOST_HIDDEN = 1.05
# A time whose interval is wider than so much of its median, and a hidden share whose interval is
# wider than this, are no figures to go by.
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
    weft: Optional[str]  # the version; None: not loaded
    iterations: int
    wrong: int
    computation_us: Times
    blocking_us: Times
    engines: list[EngineTimes]


@dataclass(frozen=True)
class CallJob:
    """The output of a job that makes calls one after the other (--latency); the blocking ones are
    used."""

    collective: str
    bytes: int
    ranks: int
    mpi: str
    weft: Optional[str]
    wrong: int
    blocking_us: Times


def read(path: Path) -> Job:
    """A measurement; ResultError if the file is something else."""
    return stored.read(Job, path, SCHEMA)


def read_calls(path: Path) -> CallJob:
    return stored.read(CallJob, path, SCHEMA)


# ---- Figures ----------------------------------------------------------------------------------


@dataclass
class Pool:
    """The samples of several jobs of one kind, in milliseconds."""

    # Maps the communicating engine to its times.
    alone: dict[str, list[float]] = field(default_factory=dict)
    computation: list[float] = field(default_factory=list)
    totals: dict[str, list[float]] = field(default_factory=dict)  # engine -> times

    def add(self, job: Job) -> None:
        self.computation += milliseconds(job.computation_us)
        self.alone.setdefault("", []).extend(milliseconds(job.blocking_us))
        for engine in job.engines:
            self.alone.setdefault(engine.engine, []).extend(milliseconds(engine.immediate_us))
            self.totals.setdefault(engine.engine, []).extend(milliseconds(engine.total_us))

    @property
    def communication(self) -> Statistic:
        """Returns the time of the fastest one without computation."""
        return min(map(statistics.of, self.alone.values()), key=lambda time: time.median)


def milliseconds(times: Times) -> list[float]:
    return [us / 1000 for us in times.samples]


@dataclass(frozen=True)
class Row:
    """A candidate: an engine, or the program without Weft. Times in milliseconds."""

    name: str
    communication: Statistic
    computation: Statistic
    total: Statistic
    gain: Statistic | None  # times as fast as without Weft; None: it is that

    @property
    def times(self) -> tuple[Statistic, Statistic, Statistic]:
        return self.communication, self.computation, self.total

    @property
    def hidden(self) -> float:
        return hidden_share(*(time.median for time in self.times))

    @property
    def is_clear(self) -> bool:
        """How much is hidden: it can be, and what the three intervals permit is about as much."""
        ends = itertools.product(*((time.low, time.high) for time in self.times))
        shares = [hidden_share(*times) for times in ends]
        return self.hidden >= LEAST_HIDDEN and max(shares) - min(shares) <= WIDE


@dataclass(frozen=True)
class Comparison:
    """All candidates of one collective."""

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
        """The best of all rows, and those that are as fast within the intervals."""
        return choice.best(
            self.rows, lambda row: row.total, lambda row: choice.simplicity(row.name, row.name)
        )

    @property
    def shown(self) -> Row:
        """The engine that sentences are about: the best one, or else the fastest of Weft's own."""
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
        """Returns the gain of the engine shown."""
        return self.shown.gain

    @property
    def decided(self) -> bool:
        """More measuring would change little."""
        return is_decided(self.finding, self.gain)

    @property
    def headline(self) -> str:
        return headline(self.finding, self.gain)

    @property
    def best(self) -> Row | None:
        """The engine to use; None where that cannot be told."""
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
        """Communication and computation alone are figures to hold others against."""
        row = self.engines[0]
        return all(map(figure, (row.communication, row.computation)))

    @property
    def samples(self) -> int:
        return min(row.total.n for row in self.rows)

    @property
    def sentence(self) -> str:
        """Returns the finding as a sentence, also if Weft has no gain or nothing can be told."""
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
    """A blocking call in shared memory, without Weft and with it. Times in microseconds."""

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
    """Returns what is known of a gain, in a few words."""
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
    """`1.31 to 1.42 times`, or only what is certain where the interval is wide."""
    if not is_narrow(gain):
        return f"at least {floor(gain.low)} (in the median {gain.median:.2f}) times"
    return f"{floor(gain.low)} to {ceiling(gain.high)} times"


def floor(value: float) -> str:
    return f"{math.floor(100 * value) / 100:.2f}"


def ceiling(value: float) -> str:
    return f"{math.ceil(100 * value) / 100:.2f}"


def interval(gain: Statistic | None) -> str:
    """Returns a row's interval; "" if there is none, or too few samples for one."""
    return f"{floor(gain.low)}–{ceiling(gain.high)}" if gain and gain.is_certain else ""


def size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def hiding(row: Row) -> str:
    """For sentences, before what it takes; overlap that cost time has hidden nothing."""
    if not row.is_clear:
        return ""
    part = f"{percent(row.hidden)} of the communication" if row.hidden > 0.005 else "nothing"
    return f" hides {part} and"


def hidden(row: Row) -> str:
    """For tables."""
    return percent(row.hidden) if row.is_clear else ""


def figure(time: Statistic) -> str:
    """For tables, of what stands there without its interval; empty where that is wide."""
    return "" if time.high - time.low > WIDE * time.median else f"{time.median:.1f}"


def remarks(rows: Sequence[Row]) -> str:
    """Explains the empty cells; "" if there are none."""
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
    """`without`: jobs with no Weft loaded, so that their only engine is the library's own."""
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
    """ "MPICH Version:      5.0.2" -> "MPICH 5.0.2"."""
    return " ".join(mpi.replace("Version:", "").split())
