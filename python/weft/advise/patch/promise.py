"""Promises the gain of a patch: recorded calls are replayed as they were, with Weft and without,
and as the patch makes them, with Weft. These are the three programs that `weft advise --apply`
compares, so a plan, another algorithm and the node's memory count as they do there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any, Optional

from weft.advise import verify
from weft.advise.analysis import Advice
from weft.advise.patch.write import Change
from weft.advise.store import Stored
from weft.advise.stretches import (
    Changed,
    Form,
    Stretch,
    calls_of,
    evenly,
    is_known,
    stretches_of,
)
from weft.advise.verify import FIRST_RUN, NotReplayed, Pace, Times
from weft.measurements import statistics
from weft.measurements.result import Statistic

ROUNDS, STRETCHES = 9, 3
# Most ns of one stretch, and of all together. The ends of a long stretch matter little.
STRETCH_NS = 600_000_000


@dataclass
class Promise:
    """Times of the unchanged program with Weft and of the changed one, round by round, divided by
    the time without Weft."""

    with_weft: list[float]
    changed: list[float]  # times if each wait stands where the record has the first use
    # The patch may have to place a wait before the measured first use of the result. These are the
    # times of the changed program if each such wait follows its call at once. The real times lie
    # between `waiting` and `changed`. The list is empty if there is no such wait.
    waiting: list[float]
    # Share by which the replayed unchanged calls differ from the recorded ones.
    error: float = 0.0

    @property
    def is_beside_weft(self) -> bool:
        """Returns whether Weft shortens the unchanged program."""
        return median(self.with_weft) < 1

    @property
    def base(self) -> list[float]:
        """Returns the times of the faster unchanged program."""
        return self.with_weft if self.is_beside_weft else [1.0] * len(self.with_weft)

    def gain(self, times: list[float]) -> Statistic:
        return statistics.of([one / own for one, own in zip(self.base, times)])

    @property
    def times_as_fast(self) -> Statistic:
        most = self.gain(self.changed)
        least = self.gain(self.waiting) if self.waiting else most
        middle = (least.median + most.median) / 2
        low, high = min(least.low, most.low), max(least.high, most.high)
        return Statistic(middle, low / (1 + self.error), high * (1 + self.error), most.n)

    def is_kept(self, gain: Statistic) -> bool:
        """Returns whether the interval of a measured gain overlaps the promised one."""
        own = self.times_as_fast
        return gain.low <= own.high and gain.high >= own.low

    def to_json(self) -> dict[str, Any]:
        own = self.times_as_fast
        return {
            **{"low": own.low, "median": own.median, "high": own.high, "rounds": own.n},
            "beside": "unchanged with Weft" if self.is_beside_weft else "without Weft",
        }


def forms_of(changes: Iterable[Change], advice: Advice) -> list[Form]:
    """Returns the form that the patch makes. If the source has waits before the measured first use,
    also returns a form in which they follow their calls at once."""
    late: list[Changed] = []
    soon: list[Changed] = []
    for one in changes:
        wish = one.wish
        for site in advice.sites:
            frame = site.frames[0]
            if (frame.file, frame.line, site.call) == (wish.file, wish.line, wish.call):
                late.append(Changed(site, one.is_earlier, one.is_planned))
                soon.append(Changed(site, one.is_earlier, one.is_planned, one.is_late))
    return [late] if late == soon else [late, soon]


def share_of_calls(stored: Stored, advice: Advice) -> float:
    """Returns the part of the run between its first collective and its last one."""
    calls = calls_of(stored, advice.sites)
    first = min(call.first_ns for call in calls)
    last = max(row["left_ns"] for call in calls for row in call.rows.values())
    return min(1.0, (last - first) / 1e3 / advice.elapsed_us)


def of_round(
    library: Times, auto: Times, forms: int, share: float, elapsed_us: float
) -> Optional[list[float]]:
    """Returns the times of the whole run in each form with Weft, divided by the time without Weft.
    Returns None if a job was ended early, or if its first run was disturbed so much that no time
    would be left."""
    stretches = [number for number, _ in library if number != FIRST_RUN]
    wanted = [(number, form) for number in stretches for form in range(1 + forms)]
    if not stretches or not auto.keys() >= set(wanted):
        return None
    was = unchanged_us(library)
    sums = [sum(auto[number, form] for number in stretches) for form in range(1 + forms)]
    begins = [
        (begin_us(auto, form) - begin_us(library, 0)) / elapsed_us for form in range(len(sums))
    ]
    times = [1 + share * (own / was - 1) + begin for own, begin in zip(sums, begins)]
    return times if min(times) > 0 else None


def unchanged_us(library: Times) -> float:
    return sum(us for (number, _), us in library.items() if number != FIRST_RUN)


def begin_us(times: Times, form: int) -> float:
    """Returns how much longer a form's first run takes than a later one, since requests are
    initialised and Weft has learnt nothing yet."""
    return times[FIRST_RUN, form] - times[0, form] if (FIRST_RUN, form) in times else 0.0


def chosen(stretches: list[Stretch]) -> list[Stretch]:
    """Returns a few of these stretches, which together are no longer than STRETCH_NS."""
    longest = max((one.length_ns for one in stretches), default=1)
    return evenly(stretches, max(1, min(STRETCHES, int(STRETCH_NS / max(1, longest)))))


def replayed(
    command: list[str],
    mpi: str,
    stored: Stored,
    advice: Advice,
    changes: list[Change],
    budget_s: float,
) -> Promise:
    """Replays recorded calls as they were and as the changes make them. Raises NotReplayed, which
    says why nothing can be promised."""
    forms = forms_of(changes, advice)
    sites = [one.site for one in forms[0]]
    if unknown := [site.call for site in sites if not is_known(site)]:
        raise NotReplayed(f"{unknown[0]} is not among the calls that can be replayed")
    if own_types := [one for change in changes for one in change.own_types]:
        raise NotReplayed(f"{own_types[0]} is a data type of the program's, which no replay has")
    stretches = chosen(stretches_of(stored, advice.sites, sites, STRETCH_NS))
    if not any(one.calls_at(site) for one in stretches for site in sites):
        raise NotReplayed("no changed call has what it needs")
    recorded_us = sum(one.recorded_ns for one in stretches) / 1e3
    share, found, errors = share_of_calls(stored, advice), [], []
    for times in verify.rounds(command, mpi, stored, stretches, forms, Pace(budget_s, ROUNDS)):
        if one := of_round(*times, len(forms), share, advice.elapsed_us):
            found.append(one)
            errors.append(unchanged_us(times[0]) / recorded_us - 1)
    if not found:
        raise NotReplayed("no replay came to its end")
    with_weft, changed, *waiting = map(list, zip(*found))
    return Promise(with_weft, changed, waiting[0] if waiting else [], abs(median(errors)))
