"""Derives the meaning of a benchmark: curves over the amount of computation, crossings, winners,
advice.

The page, the terminal, the picture and the tests all use it, so that they agree. A lead counts only
if it exceeds both confidence intervals and 2 %; otherwise there is "no difference". The blocking
call is a contender, too, with its time plus that of the computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from weft.measurements import choice, statistics
from weft.measurements.result import (
    FEWEST,
    Alone,
    Candidate,
    Point,
    Result,
    Statistic,
    ranks_in_words,
)
from weft.measurements.statistics import FASTER, SAME, SLOWER

BLOCKING = "blocking"


@dataclass(frozen=True)
class Reading:
    """A candidate's result at one amount of computation."""

    total: Statistic
    # This is the share of the communication that was hidden; None if the possible share is too
    # small to be told.
    hidden: float | None
    # This is the time of the computation relative to that alone; None if nothing runs beside it, or
    # too little.
    slowdown: float | None

    @property
    def slowed(self) -> float | None:
        """Returns by which share the computation takes longer; None if that is not known."""
        return None if self.slowdown is None else self.slowdown - 1


@dataclass(frozen=True)
class Curve:
    """A candidate's results over the amounts of computation. A candidate that hung may lack
    some."""

    name: str
    engine: str
    mpi: str
    readings: dict[int, Reading]

    @property
    def is_blocking(self) -> bool:
        return self.engine == BLOCKING


@dataclass(frozen=True)
class Crossing:
    """The point at which the candidate `before`, which is faster to its left, is overtaken by
    `after`. Times are in microseconds."""

    before: str
    after: str
    at_us: float
    low_us: float  # between low_us and high_us the confidence intervals of the two overlap
    high_us: float


@dataclass(frozen=True)
class Standing:
    """The best candidate at one amount of computation, and those that are as fast within the spread
    (see choice.py)."""

    leader: Curve
    tied: tuple[Curve, ...]

    @property
    def undecided(self) -> bool:
        """Returns whether the blocking call is among several fastest candidates."""
        return bool(self.tied) and any(c.is_blocking for c in self.all)

    def is_certain(self, amount: int) -> bool:
        """Returns whether all fastest candidates have enough samples for an interval. Otherwise it
        is unknown which one leads."""
        return all(curve.readings[amount].total.is_certain for curve in self.all)

    @property
    def all(self) -> tuple[Curve, ...]:
        return (self.leader, *self.tied)


@dataclass(frozen=True)
class Segment:
    """Consecutive amounts of computation with one verdict."""

    verdict: str
    first: int
    last: int


@dataclass(frozen=True)
class Case:
    """A collective of one size on one number of ranks, with all candidates."""

    collective: str
    size_bytes: int
    ranks: int
    nodes: int
    kernel: str
    communication_us: float
    computation_us: tuple[float, ...]  # time of the computation, for each amount of it
    curves: tuple[Curve, ...]  # curves of the candidates, with the blocking call first
    numbers: tuple[int, ...] = ()  # original numbers of the amounts of computation

    @property
    def call(self) -> str:
        return f"MPI_I{self.collective}"

    @property
    def blocking_call(self) -> str:
        return f"MPI_{self.collective.capitalize()}"

    @property
    def title(self) -> str:
        nodes = f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}"
        where = f"{ranks_in_words(self.ranks)} on {nodes}"
        kernel = f", {self.kernel}" if self.kernel else ""
        return f"{self.call}, {size(self.size_bytes)}, {where}{kernel}"

    @property
    def group(self) -> tuple[str, int, int, str]:
        """Returns the key of the case's group. Cases of one group differ only in size, and share a
        heat map."""
        return (self.collective, self.ranks, self.nodes, self.kernel)

    @property
    def unit(self) -> tuple[str, float]:
        """Returns the unit in which all times of the case are shown, and its microseconds."""
        longest = max(r.total.median for c in self.curves for r in c.readings.values())
        return ("µs", 1.0) if longest < 2000 else ("ms", 1000.0)

    @property
    def amounts(self) -> range:
        return range(len(self.computation_us))

    @property
    def blocking(self) -> Curve:
        return self.curves[0]

    @property
    def candidates(self) -> tuple[Curve, ...]:
        return self.curves[1:]

    @property
    def ideal_us(self) -> list[float]:
        return [max(self.communication_us, x) for x in self.computation_us]

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        return tuple(self.standing(amount) for amount in self.amounts)

    def standing(self, amount: int) -> Standing:
        present = [curve for curve in self.curves if amount in curve.readings]
        leader, tied = choice.best(present, lambda c: c.readings[amount].total, simplicity)
        return Standing(leader, tuple(tied))

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """Returns the crossings of each candidate with the blocking call, and of each two
        candidates that lead somewhere."""
        leaders = [c for c in self.candidates if any(s.leader is c for s in self.standings)]
        pairs = [(self.blocking, curve) for curve in self.candidates]
        pairs += [(a, b) for i, a in enumerate(leaders) for b in leaders[i + 1 :]]
        found = [
            crossing
            for a, b in pairs
            for crossing in crossings(a, b, self.computation_us)
            if self._decided(crossing, a, b)
        ]
        return tuple(sorted(found, key=lambda crossing: crossing.at_us))

    def _decided(self, crossing: Crossing, a: Curve, b: Curve) -> bool:
        """Returns whether each of the two leads beyond the spread on its side of the crossing.
        Otherwise the lines cross by chance."""
        before, after = (a, b) if a.name == crossing.before else (b, a)
        common = before.readings.keys() & after.readings.keys()
        sides = [(self.computation_us[amount] <= crossing.at_us, amount) for amount in common]
        return any(left and verdict(before, after, k) == FASTER for left, k in sides) and any(
            not left and verdict(after, before, k) == FASTER for left, k in sides
        )


def simplicity(curve: Curve) -> tuple[int, int]:
    return choice.simplicity(curve.engine, curve.name)


def verdict(one: Curve, other: Curve, amount: int) -> str:
    """Returns whether `one` is faster than, slower than or the same as `other`."""
    return statistics.verdict(one.readings[amount].total, other.readings[amount].total)


def crossings(one: Curve, other: Curve, x_us: Sequence[float]) -> list[Crossing]:
    """Returns the points at which the medians, joined by straight lines, cross."""
    common = sorted(one.readings.keys() & other.readings.keys())
    gap = [_gap(one, other, amount) for amount in common]
    x = [x_us[amount] for amount in common]
    found, previous = [], None
    for i, (_, middle, _) in enumerate(gap):
        if middle == 0:
            continue
        if previous is not None and gap[previous][1] * middle < 0:
            at = _root(x, [g[1] for g in gap], previous, i)
            before, after = (one, other) if middle > 0 else (other, one)
            low, high = _overlap(x, gap, at)
            found.append(Crossing(before.name, after.name, at, low, high))
        previous = i
    return found


def _gap(one: Curve, other: Curve, amount: int) -> tuple[float, float, float]:
    """Returns one − other: the least, the medians' and the largest difference that the intervals
    permit."""
    a, b = one.readings[amount].total, other.readings[amount].total
    return (a.low - b.high, a.median - b.median, a.high - b.low)


def _root(x: Sequence[float], y: Sequence[float], left: int, right: int) -> float:
    if right - left > 1:  # the medians are equal in between; the middle of that range is returned
        return (x[left + 1] + x[right - 1]) / 2
    return x[left] + (x[right] - x[left]) * y[left] / (y[left] - y[right])


def _overlap(x: Sequence[float], gap: Sequence[tuple], at: float) -> tuple[float, float]:
    """Returns the range around `at` in which the two intervals overlap, at most up to the ends of
    the curves."""
    ends = [zero for edge in (0, 2) for zero in _zeros(x, [g[edge] for g in gap])]
    low = max((zero for zero in ends if zero <= at), default=x[0])
    high = min((zero for zero in ends if zero >= at), default=x[-1])
    return low, high


def _zeros(x: Sequence[float], y: Sequence[float]) -> list[float]:
    """Returns the zeros of the line through the points."""
    places = range(len(x) - 1)
    return [_root(x, y, i, i + 1) for i in places if y[i] * y[i + 1] <= 0 and y[i] != y[i + 1]]


# ---- From a result to cases -------------------------------------------------------------------


def cases(result: Result) -> list[Case]:
    """Returns all cases, sorted by collective, ranks, kernel and size."""
    groups: dict[tuple, list[Point]] = {}
    for point in result.points:
        groups.setdefault((*point.case, point.kernel), []).append(point)
    several = len({point.mpi for point in result.points}) > 1
    found = [_case(key, points, result, several) for key, points in groups.items()]
    return sorted(found, key=lambda case: (*case.group, case.size_bytes))


def _case(key: tuple, points: list[Point], result: Result, several: bool) -> Case:
    collective, size_bytes, ranks, nodes, kernel = key
    numbered = _numbered(points)
    amounts = sorted({amount for amount, _ in numbered})
    x_us = [median(p.computation_us for a, p in numbered if a == amount) for amount in amounts]
    curves: dict[tuple, Curve] = {}
    for amount, point in numbered:
        if point.key not in curves:
            candidate = Candidate(*point.key)
            curves[point.key] = Curve(_name(candidate, several), point.engine, point.mpi, {})
        reading = Reading(point.total_us, point.known_share, point.known_slowdown)
        curves[point.key].readings[amounts.index(amount)] = reading
    communication_us = min(point.communication_us for point in points)
    named = _distinct(list(curves.values()), list(curves))
    blocking = [curve for curve in named if curve.is_blocking]
    if not blocking:
        alone = [a for a in result.alone if _case_of(a) == (collective, size_bytes, ranks, nodes)]
        blocking = [_blocking(alone, communication_us, x_us, several)]
    fastest = min(blocking, key=lambda c: median(r.total.median for r in c.readings.values()))
    rest = [curve for curve in named if not curve.is_blocking]
    where = (collective, size_bytes, ranks, nodes, kernel)
    return Case(*where, communication_us, tuple(x_us), (fastest, *rest), tuple(amounts))


def _numbered(points: list[Point]) -> list[tuple[int, Point]]:
    """Returns each point with the number of its amount of computation. Files of other tools may
    lack the numbers, and are numbered by time."""
    seen = [(point.key, point.amount) for point in points]
    if len(set(seen)) == len(seen):
        return [(point.amount, point) for point in points]
    places = {}
    for point in points:
        places.setdefault(point.key, []).append(point.computation_us)
    return [(sorted(places[point.key]).index(point.computation_us), point) for point in points]


def _name(candidate: Candidate, several: bool) -> str:
    label = candidate.label
    return label if several else label.partition(" ")[2]


def _distinct(curves: list[Curve], keys: list[tuple]) -> list[Curve]:
    """Returns the curves with longer names if two have the same. A name usually leaves out some
    settings."""
    names = [curve.name for curve in curves]
    result = []
    for curve, key in zip(curves, keys):
        if names.count(curve.name) > 1:
            usual = [word for word in key[2:] if word not in ("none", "library")]
            curve = replace(curve, name=" ".join([key[0], key[1], *usual]))
        result.append(curve)
    return result


def _case_of(alone: Alone) -> tuple[str, int, int, int]:
    return (alone.collective, alone.bytes, alone.ranks, alone.nodes)


def _blocking(
    alone: list[Alone], communication_us: float, x_us: Sequence[float], several: bool
) -> Curve:
    """Returns the curve of the fastest MPI library's blocking call followed by the computation."""
    best = min(alone, key=lambda a: a.blocking_us.median, default=None)
    time = (
        best.blocking_us
        if best
        else Statistic(communication_us, communication_us, communication_us, FEWEST)
    )
    name = f"{best.mpi.split()[0]} {BLOCKING}" if best and several else BLOCKING
    readings = {}
    for amount, x in enumerate(x_us):
        total = Statistic(time.median + x, time.low + x, time.high + x, time.n)
        readings[amount] = Reading(total, None, None)
    return Curve(name, BLOCKING, best.mpi if best else "", readings)


# ---- Advice -----------------------------------------------------------------------------------


def recommended(case: Case) -> Curve | None:
    """Returns the candidate to use where overlap pays; None if it pays at no amount of
    computation."""
    pays = [a for a in case.amounts if any(_beats(c, case, a) for c in case.candidates)]
    if not pays:
        return None

    def cost(curve: Curve) -> float:
        best = [min(c.readings[a].total.median for c in _present(case, a)) for a in pays]
        return sum(
            curve.readings[a].total.median / b if a in curve.readings else 10.0
            for a, b in zip(pays, best)
        )

    leading = [c for c in case.candidates if any(_beats(c, case, a) for a in pays)]
    best = min(leading, key=cost)
    equal = [c for c in leading if c.mpi == best.mpi and _as_good(c, best, case, pays)]
    return min(equal, key=simplicity)


def advised(case: Case) -> Curve | None:
    """Returns the curve that a picture emphasises: the recommended candidate's, or the blocking
    call's if it should stay. Returns None if that is undecided."""
    curve = recommended(case)
    return case.blocking if curve is None and _is_certain(case) else curve


def _is_certain(case: Case) -> bool:
    return all(r.total.is_certain for curve in case.curves for r in curve.readings.values())


def _present(case: Case, amount: int) -> list[Curve]:
    return [curve for curve in case.candidates if amount in curve.readings]


def _beats(curve: Curve, case: Case, amount: int) -> bool:
    return amount in curve.readings and verdict(curve, case.blocking, amount) == FASTER


def _as_good(curve: Curve, best: Curve, case: Case, amounts: Sequence[int]) -> bool:
    """Returns whether the curve is never noticeably slower than the best one, and ahead of the
    blocking call wherever the best one is."""
    return all(
        amount in curve.readings
        and (amount not in best.readings or verdict(best, curve, amount) != FASTER)
        and (_beats(curve, case, amount) or not _beats(best, case, amount))
        for amount in amounts
    )


def segments(case: Case, curve: Curve) -> list[Segment]:
    """Returns the verdicts of the curve against the blocking call. Neighbouring amounts with one
    verdict form one segment."""
    found: list[Segment] = []
    for amount in case.amounts:
        if amount not in curve.readings:
            continue
        word = verdict(curve, case.blocking, amount)
        if found and found[-1].verdict == word:
            found[-1] = replace(found[-1], last=amount)
        else:
            found.append(Segment(word, amount, amount))
    return found


def advice(case: Case) -> str:
    """Returns one or two sentences that say what to call, and from which amount of computation
    on."""
    curve = recommended(case)
    if curve is None:
        return _no_gain(case)
    parts = segments(case, curve)
    winning = [i for i, part in enumerate(parts) if part.verdict == FASTER]
    with_engine = f"{case.call} with {_described(curve, case)}"
    if len(parts) == 1:
        where = f"at every amount measured ({_span(case, parts[0])})"
        text = f"use {with_engine}: it is faster than blocking {where}"
    else:
        ranges = " and ".join(_range(case, curve, parts, i) for i in winning)
        text = f"use {with_engine} {ranges}"
        text += _outside("below", parts[: winning[0]])
        text += _outside("above", parts[winning[-1] + 1 :])
    return f"{text}. {_gain(case, curve)}{_others(case, curve, parts)}"


def _no_gain(case: Case) -> str:
    last = duration(case.computation_us[-1])
    verdicts = [
        verdict(curve, case.blocking, a) for a in case.amounts for curve in _present(case, a)
    ]
    if not verdicts:
        return "no candidate was measured."
    if not _is_certain(case):
        return (
            f"not decided: some have fewer than {FEWEST} samples, too few for a confidence"
            " interval; measure longer (--time-budget)."
        )
    if SAME not in verdicts:
        return (
            f"stay with {case.blocking_call}: it is faster than every non-blocking candidate, up to"
            f" {last} of computation."
        )
    return (
        f"no difference: up to {last} of computation no non-blocking candidate is faster than"
        f" {case.blocking_call} by more than the spread; stay with the blocking call."
    )


def _described(curve: Curve, case: Case) -> str:
    return f"engine {curve.name}" if curve.name.startswith(curve.engine) else curve.name


def _span(case: Case, part: Segment) -> str:
    first, last = case.computation_us[part.first], case.computation_us[part.last]
    if part.first == part.last:
        return f"{duration(first)} of computation"
    return f"{duration(first)} to {duration(last)} of computation"


def boundary_us(case: Case, curve: Curve, parts: Sequence[Segment], i: int, at_end: bool) -> float:
    """Returns the border of a segment in us: the crossing, or the segment's outermost amount if the
    neighbour is a tie."""
    part = parts[i]
    k = i + 1 if at_end else i - 1
    if parts[k].verdict == SLOWER:
        edges = sorted((part.last, parts[k].first) if at_end else (parts[k].last, part.first))
        low, high = (case.computation_us[edge] for edge in edges)
        for crossing in crossings(curve, case.blocking, case.computation_us):
            if low <= crossing.at_us <= high:
                return crossing.at_us
    return case.computation_us[part.last if at_end else part.first]


def _range(case: Case, curve: Curve, parts: Sequence[Segment], i: int) -> str:
    own = case.computation_us[parts[i].first]
    if len(case.amounts) == 2 and boundary_us(case, curve, parts, i, i == 0) == own:
        every = listing([duration(us) for us in case.computation_us])
        return f"at {duration(own)} of computation (measured at {every} only)"
    begin = None if i == 0 else duration(boundary_us(case, curve, parts, i, False))
    end = None if i == len(parts) - 1 else duration(boundary_us(case, curve, parts, i, True))
    if begin is None:
        return f"up to {end} of computation"
    if end is None:
        return f"from {begin} of computation on"
    if begin == end:
        return f"at {begin} of computation"
    return f"from {begin} to {end} of computation"


def _outside(where: str, parts: Sequence[Segment]) -> str:
    verdicts = {part.verdict for part in parts}
    if not verdicts:
        return ""
    if verdicts == {SLOWER}:
        return f"; {where}, blocking is faster"
    if verdicts == {SAME}:
        return f"; {where}, there is no difference to blocking"
    return f"; {where}, blocking is as fast or faster"


def _gain(case: Case, curve: Curve) -> str:
    saved = {
        amount: 1 - reading.total.median / case.blocking.readings[amount].total.median
        for amount, reading in curve.readings.items()
    }
    most = max(saved, key=saved.__getitem__)
    where = duration(case.computation_us[most])
    return f"It saves up to {percent(saved[most])} of the time, at {where} of computation."


def _others(case: Case, curve: Curve, parts: Sequence[Segment]) -> str:
    """Returns a sentence about candidates that are as fast as the recommended one where it pays,
    and about those that are faster somewhere."""
    pays = [a for p in parts if p.verdict == FASTER for a in range(p.first, p.last + 1)]
    pays = [amount for amount in pays if amount in curve.readings]
    equal, ahead = [], []
    for other in case.candidates:
        if other is curve or not all(amount in other.readings for amount in pays):
            continue
        words = [verdict(other, curve, amount) for amount in pays]
        if all(word == SAME for word in words):
            equal.append(other.name)
        elif FASTER in words:
            at = [duration(case.computation_us[a]) for a, w in zip(pays, words) if w == FASTER]
            ahead.append(f"{_described(other, case)} is faster still at {listing(at)}")
    text = f" As fast within the spread: {listing(equal)}." if equal else ""
    return text + "".join(f" {sentence[0].upper()}{sentence[1:]}." for sentence in ahead)


# ---- Formats ----------------------------------------------------------------------------------


def listing(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}"


def duration(us: float) -> str:
    """Returns the time with three digits and a fitting unit: 0.4 ms, 12 µs, 1.25 s."""
    for scale, unit, below in ((1.0, "µs", 99.5), (1e3, "ms", 999.5), (1e6, "s", float("inf"))):
        if abs(us) / scale < below:
            return f"{us / scale:.3g} {unit}"
    raise ValueError(f"{us} is no time")


def figure(us: float, case: Case) -> str:
    """Returns the time with three digits in the case's unit, without the unit's name."""
    value = us / case.unit[1]
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def figures(time: Statistic, case: Case) -> tuple[str, str]:
    """Returns the median and its interval. They have four digits if three do not distinguish the
    interval's ends."""
    digits = 3 if figure(time.low, case) != figure(time.high, case) else 4
    values = (us / case.unit[1] for us in (time.median, time.low, time.high))
    median, *ends = (rounded(value, digits) for value in values)
    return median, "–".join(ends)


def rounded(value: float, digits: int = 3) -> str:
    """Returns the value with all its digits, including trailing zeros, as in a column."""
    return f"{value:.0f}" if value >= 1000 else f"{value:#.{digits}g}".rstrip(".")


def size(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def percent(share: float | None) -> str:
    """Returns the share in per cent; an empty string if it is not known."""
    return "" if share is None else f"{hundredths(share)} %"


def hundredths(share: float | None) -> str:
    """Returns the share in per cent without the sign, for columns; an empty string if it is not
    known."""
    return "" if share is None else f"{round(100 * share)}".replace("-", "−")
