"""Which blocking calls in a row do not need each other, so that they could be in flight together.

Why by the order of events and not by lengths of time: observing an access takes time itself, so
that a result which is used at once seems to have been left alone for a while. But its first use
came before the next call, or it came after that call's end, however long either took.

A call does not need the one before it where four things are so: the result of the first was left
alone until the second was over, what the first sent was not written until then, what the second
sends was not written since the first began, and neither writes memory that the other uses. Of
several in a row each has to be so against all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from weft.advise.names import base_name
from weft.advise.record import AFTER, BEFORE, CALL, SENT
from weft.advise.sites import Site
from weft.advise.store import Stored

FROM_ROOT, TO_ROOT = ("bcast", "scatter", "scatterv"), ("reduce", "gather", "gatherv")
# A gap before a call that counts as none: of the call's time, or what observing takes.
BEHIND, OBSERVING_NS = 0.1, 100_000
ALWAYS = 3  # times per rank that one call came behind another: that is no chance
SEEN = 3  # windows at least, of all ranks, on either side
LOOP = 3  # calls of one place in a row: of two a third may need the first
COMPARED = 16  # calls before one whose buffers are compared (src/advise/buffers.h)


@dataclass
class Calls:
    """Blocking calls of one rank, in their order, with the windows that were observed of them."""

    site: list[Site]
    began: list[int]
    ended: list[int]
    apart: list[int]
    left_alone: dict[int, int] = field(default_factory=dict)  # by call: until then
    written: dict[int, int] = field(default_factory=dict)  # by call: not since then
    sent_again: dict[int, int] = field(default_factory=dict)  # by call: written first then

    def is_behind(self, i: int) -> bool:
        """Whether call i comes right behind the one before it."""
        gap = self.began[i] - self.ended[i - 1]
        return gap < max(OBSERVING_NS, BEHIND * (self.ended[i] - self.began[i]))

    def rows(self) -> Iterable[range]:
        """Calls that come right behind each other."""
        first = 0
        for i in range(1, len(self.site) + 1):
            if i == len(self.site) or not self.is_behind(i):
                yield range(first, i)
                first = i


def calls_by_rank(stored: Stored, sites: list[Site]) -> dict[int, Calls]:
    of_member = {member: site for site in sites for member in site.members}
    events: dict[int, list[dict]] = defaultdict(list)
    for row in stored["event"]:
        if (row["rank"], row["site"]) in of_member:
            events[row["rank"]].append(row)
    return {rank: calls_of(rows, of_member) for rank, rows in events.items()}


def calls_of(rows: list[dict], of_member: dict[tuple[int, int], Site]) -> Calls:
    made = sorted((row for row in rows if row["what"] == CALL), key=lambda row: row["began_ns"])
    # Earlier records do not say how far calls are apart, and so give no such advice.
    columns = ([row.get(name, 0) for row in made] for name in ("began_ns", "ended_ns", "apart"))
    calls = Calls([of_member[row["rank"], row["site"]] for row in made], *columns)
    for row in rows:
        site = of_member[row["rank"], row["site"]]
        if row["what"] in (AFTER, SENT):
            i = bisect_right(calls.ended, row["began_ns"]) - 1
            if i >= 0 and calls.site[i] is site:
                ends = calls.left_alone if row["what"] == AFTER else calls.sent_again
                ends[i] = row["ended_ns"]
        elif row["what"] == BEFORE:
            i = bisect_right(calls.began, row["ended_ns"]) - 1
            if i >= 0 and calls.site[i] is site and calls.began[i] == row["ended_ns"]:
                calls.written[i] = row["began_ns"]
    return calls


@dataclass
class Evidence:
    """The evidence about two sites of which the second is called directly after the first."""

    times: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # by rank
    left_alone: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # windows, by rank
    written: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    # Watched windows of send buffers, by rank.
    watched: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    longest: int = 0  # calls of one place in a row
    against: bool = False

    def is_enough(self, first: Site, second: Site) -> bool:
        if self.against or (first is second and self.longest < LOOP):
            return False
        ranks = {rank for rank, _ in first.members} & {rank for rank, _ in second.members}
        received, sent = base_name(first.call), base_name(second.call)
        # The root of a broadcast has no result of it, and of what goes to the root only that one.
        having = len(ranks) - 1 if received == "bcast" else 1 if received in TO_ROOT else len(ranks)
        return (
            all(self.times[rank] >= ALWAYS for rank in ranks)
            and is_seen(self.left_alone, having)
            and is_seen(self.written, 1 if sent in FROM_ROOT else len(ranks))
            and is_seen(self.watched, 1 if received in FROM_ROOT else len(ranks))
        )


def is_seen(windows: dict[int, int], ranks: int) -> bool:
    return sum(windows.values()) >= SEEN and len(windows) >= ranks


def together(calls: Calls, row: range) -> Iterable[tuple[int, int, int]]:
    """Yields for each call of a row but the first: its index, and the first and last index of those
    that would be in flight with it and its predecessor. At one site these are all consecutive
    calls."""
    for _, same in groupby(row, key=lambda i: id(calls.site[i])):
        own = list(same)
        if own[0] > row[0]:
            yield own[0], own[0] - 1, own[0]
        for i in own[1:]:
            yield i, own[0], own[-1]


def weigh(calls: Calls, row: range, rank: int, found: dict[tuple[int, int], Evidence]) -> None:
    """Adds the evidence of a row of calls about each two neighbours."""
    for i, first, last in together(calls, row):
        one = found[id(calls.site[i - 1]), id(calls.site[i])]
        one.times[rank] += 1
        one.longest = max(one.longest, 1 + last - first)
        one.against |= calls.apart[i] < min(i - first, COMPARED)
        if i - 1 in calls.left_alone:
            one.left_alone[rank] += 1
            one.against |= calls.left_alone[i - 1] < calls.ended[last]
        if i - 1 in calls.written or i - 1 in calls.sent_again:
            one.watched[rank] += 1
        one.against |= calls.sent_again.get(i - 1, calls.ended[last]) < calls.ended[last]
        if i in calls.written:
            one.written[rank] += 1
            one.against |= calls.written[i] > calls.began[first]


def independent(stored: Stored, sites: list[Site]) -> list[tuple[Site, Site]]:
    """Blocking calls in a row that do not need each other. Both may be one site, in a loop."""
    found: dict[tuple[int, int], Evidence] = defaultdict(Evidence)
    for rank, calls in calls_by_rank(stored, sites).items():
        for row in calls.rows():
            weigh(calls, row, rank, found)
    return [
        (first, second)
        for first in sites
        for second in sites
        if (id(first), id(second)) in found
        and "barrier" not in (base_name(first.call), base_name(second.call))
        and found[id(first), id(second)].is_enough(first, second)
    ]
