"""Finds consecutive blocking calls that do not depend on each other and could be in flight
together.

It compares the order of events and no lengths of time, since observing an access takes time itself:
a result that is used at once seems to have been left alone for a while. Its first use came either
before the next call, or after the end of that call, however long either took.

A call does not depend on the one before it under four conditions. The result of the first is left
alone until the end of the second. The data that the first sent is not written until then. The data
that the second sends is not written since the first began. Neither call writes memory that the
other uses. In a longer row each call must meet these conditions against all others."""

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
# A shorter gap before a call counts as none: a share of the call's time, or the cost of observing
# an access.
BEHIND, OBSERVING_NS = 0.1, 100_000
ALWAYS = 3  # least number of times per rank that one call follows another; fewer may be chance
SEEN = 3  # least number of observed idle times of all ranks, on either side of a call
LOOP = 3  # least number of consecutive calls of one site; with two, a third may need the first
# The buffers of a call are compared with those of this number of preceding calls
# (src/advise/buffers.h).
COMPARED = 16


@dataclass
class Calls:
    """The blocking calls of one rank in their order, with how long the program left their buffers
    alone before and after them, where that was observed."""

    site: list[Site]
    began: list[int]
    ended: list[int]
    apart: list[int]
    # Maps a call to the time in ns until which its result was not accessed.
    left_alone: dict[int, int] = field(default_factory=dict)
    # Maps a call to the time in ns since which its sent data was not written.
    written: dict[int, int] = field(default_factory=dict)
    # Maps a call to the time in ns at which its send buffer was written again.
    sent_again: dict[int, int] = field(default_factory=dict)

    def is_behind(self, i: int) -> bool:
        """Returns whether call i follows the one before it without a gap."""
        gap = self.began[i] - self.ended[i - 1]
        return gap < max(OBSERVING_NS, BEHIND * (self.ended[i] - self.began[i]))

    def rows(self) -> Iterable[range]:
        """Yields the ranges of calls that follow each other without a gap."""
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
    # Older records lack the distance between the buffers of calls, and so give no such advice.
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

    # This is the number of consecutive calls, by rank.
    times: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    # This counts the observations in which the result was left alone, by rank.
    left_alone: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    written: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    # This counts the observed idle times of send buffers, by rank.
    watched: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    longest: int = 0  # greatest number of consecutive calls of one site
    against: bool = False

    def is_enough(self, first: Site, second: Site) -> bool:
        if self.against or (first is second and self.longest < LOOP):
            return False
        ranks = {rank for rank, _ in first.members} & {rank for rank, _ in second.members}
        received, sent = base_name(first.call), base_name(second.call)
        # The root of a broadcast receives nothing from it. Of a collective to the root only the
        # root has a result.
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
    """Yields three indices for each call of a row after the first: its own, and those of the first
    and last call that would be in flight with it. At one site these are all consecutive calls."""
    for _, same in groupby(row, key=lambda i: id(calls.site[i])):
        own = list(same)
        if own[0] > row[0]:
            yield own[0], own[0] - 1, own[0]
        for i in own[1:]:
            yield i, own[0], own[-1]


def weigh(calls: Calls, row: range, rank: int, found: dict[tuple[int, int], Evidence]) -> None:
    """Adds the evidence of one row of consecutive calls about each pair of neighbours."""
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
    """Returns pairs of sites whose consecutive blocking calls do not depend on each other. Both
    sites of a pair may be the same, which is called in a loop."""
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
