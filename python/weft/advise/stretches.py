"""Stretches of the recorded collectives, in their order, as each rank's steps of a replay.

Why stretches and not single calls: what a call takes depends on those before it, such as on what a
link has still to carry, and time that one call saves may be waited for in the next.

In a stretch a rank computes for as long as it was outside of the collectives that are replayed, so
it comes to each call as late as it came in the record. A call that is changed is started, earlier
than it was called where the change says so, and waited for when its result was first touched.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import chain, count
from math import inf

from weft.advise.names import base_name, is_nonblocking
from weft.advise.sites import Site, is_vector
from weft.advise.store import Stored

# Length of a stretch; the shorter one is used if there are no long ones.
LONG_NS, SHORT_NS = 150_000_000, 5_000_000
LEAST_CALLS, MOST_CALLS = 3, 400
# Calls of all ranks in a stretch, so that the plan of a large job stays small.
ALL_RANKS_CALLS = 16_000
ALL_NS, MOST = 1_500_000_000, 8  # length of all stretches together; most stretches
OF_CHANGED = 2  # stretches at least that have calls of a site that is changed
# Collectives that the replay program knows: whether a call's bytes are blocks of all ranks; for
# those in ROOTED, at the root.
KNOWN = {"allreduce": False, "bcast": False, "reduce": False, "scan": False, "barrier": False}
KNOWN |= {"allgather": True, "alltoall": True, "reduce_scatter": True, "reduce_scatter_block": True}
ROOTED = ("gather", "scatter")
OTHERS = "call sites beyond"  # the record's name for further call sites (src/advise/record.h)
APART = ("min", "max", "prod")  # MPI libraries may take other times for these than for sums


def collective(call: str) -> str:
    """As the replay program calls it: blocks of different lengths become equal ones."""
    name = base_name(call)
    return name[:-1] if is_vector(name) else name


def is_known(site: Site) -> bool:
    """Not of calls beyond those that a rank keeps apart, either, which are of many kinds."""
    others = site.frames[0].function.startswith(OTHERS)
    return collective(site.call) in (*KNOWN, *ROOTED) and site.comm_size > 1 and not others


@dataclass(eq=False)
class Call:
    """A collective that all its ranks kept."""

    comm: str
    sequence: int
    rows: dict[int, dict]  # rows of `arrival`, by rank
    sites: dict[int, Site]

    @cached_property
    def first_ns(self) -> int:
        return min(row["arrived_ns"] for row in self.rows.values())

    @cached_property
    def name(self) -> str:
        return collective(self.site.call)

    @cached_property
    def site(self) -> Site:
        """Returns the call's site; the root's if ranks have different ones."""
        at_root = (rank for rank, row in self.rows.items() if row["comm_rank"] == row["root"])
        return self.sites[next(at_root, min(self.rows))]

    @cached_property
    def bytes(self) -> int:
        """Returns the bytes that the call's count argument describes."""
        of_all = self.name in ROOTED or KNOWN[self.name]
        return max(8, round(self.site.bytes / (self.site.comm_size if of_all else 1)))

    @cached_property
    def members(self) -> tuple[int, ...]:
        return tuple(sorted(self.rows))

    @cached_property
    def operation(self) -> tuple:
        """Returns the operation that the replay program creates once. Unknown operators count as
        sums."""
        op = self.site.op if self.site.op in APART else "sum"
        return self.name, self.bytes, self.members, op


@dataclass
class Stretch:
    calls: list[Call] = field(default_factory=list)
    ends_ns: dict[int, int] = field(default_factory=dict)  # by rank: when it went on to the next

    @property
    def length_ns(self) -> int:
        last = max(row["left_ns"] for row in self.calls[-1].rows.values())
        return last - self.calls[0].first_ns

    @property
    def recorded_ns(self) -> int:
        """With the computation after it, as far as that is replayed."""
        return max(
            [self.length_ns, *(end - self.calls[0].first_ns for end in self.ends_ns.values())]
        )

    def calls_at(self, site: Site) -> int:
        """Returns the calls of the rank that makes most of them."""
        of_ranks = Counter(
            rank for call in self.calls for rank, own in call.sites.items() if own is site
        )
        return max(of_ranks.values(), default=0)


def calls_of(
    stored: Stored, sites: list[Site], wanted: Callable[[Site], bool] = is_known
) -> list[Call]:
    """In an order that is that of each rank."""
    site_of = {member: site for site in sites if wanted(site) for member in site.members}
    rows: dict[tuple, dict[int, dict]] = defaultdict(dict)
    for one in stored["arrival"]:
        if (one["rank"], one["site"]) in site_of:
            rows[one["comm"], one["sequence"]][one["rank"]] = one
    found = []
    for (comm, sequence), by_rank in rows.items():
        call_sites = {rank: site_of[rank, row["site"]] for rank, row in by_rank.items()}
        if len(by_rank) == next(iter(call_sites.values())).comm_size:
            found.append(Call(comm, sequence, by_rank, call_sites))
    return in_order(found)


def in_order(calls: list[Call]) -> list[Call]:
    """By their beginnings where no rank's own order says more. Where the orders of ranks contradict
    each other, as those of non-blocking calls and of started plans may, the first to begin goes
    before."""
    of_rank: dict[int, deque[Call]] = defaultdict(deque)
    arrivals = [
        (row["arrived_ns"], rank, call) for call in calls for rank, row in call.rows.items()
    ]
    for _, rank, call in sorted(arrivals, key=lambda one: one[0]):
        of_rank[rank].append(call)
    missing = {id(call): len(call.rows) for call in calls}  # ranks of which it is not yet the next
    ready: list[tuple[int, str, int, Call]] = []
    found: dict[int, Call] = {}

    def comes_next(rank: int) -> None:
        while of_rank[rank] and id(of_rank[rank][0]) in found:
            of_rank[rank].popleft()
        if of_rank[rank]:
            call = of_rank[rank][0]
            missing[id(call)] -= 1
            if not missing[id(call)]:
                heappush(ready, (call.first_ns, call.comm, call.sequence, call))

    for rank in list(of_rank):
        comes_next(rank)
    by_beginning = iter(sorted(calls, key=lambda call: call.first_ns))
    while len(found) < len(calls):
        if ready:
            call = heappop(ready)[-1]
        else:
            call = next(one for one in by_beginning if id(one) not in found)
        found[id(call)] = call
        for rank in call.rows:
            if of_rank[rank][0] is call:
                comes_next(rank)
    return list(found.values())


def stretches_of(stored: Stored, sites: list[Site], changes: Sequence[Site] = ()) -> list[Stretch]:
    """Evenly chosen from all that there are, and some for each site that is changed."""
    good = usable(cut(stored, calls_of(stored, sites)))
    if not good:
        return []
    typical = sum(one.length_ns for one in good) / len(good)
    chosen = evenly(good, max(2, min(MOST, int(ALL_NS / max(1.0, typical)))))
    for site in changes:
        there = [one for one in good if one.calls_at(site)]
        lacking = OF_CHANGED - sum(one in chosen for one in there)
        chosen += evenly([one for one in there if one not in chosen], max(0, lacking))
    return chosen


def evenly(all_: list, count: int) -> list:
    if len(all_) <= count:
        return list(all_)
    return [all_[i * len(all_) // count] for i in range(count)]


def usable(whole: list[Stretch]) -> list[Stretch]:
    good = [one for one in whole if len(one.calls) >= LEAST_CALLS] or whole
    good = [one for one in good if one.length_ns >= SHORT_NS] or good
    # A program's beginning and end are like nothing else.
    return good[1:-1] if len(good) > 3 else good


def cut(stored: Stored, calls: list[Call]) -> list[Stretch]:
    """Into stretches that a replay can repeat."""
    ranks = max((row["ranks"] for row in stored["rank"]), default=1)
    most_calls = max(LEAST_CALLS, min(MOST_CALLS, ALL_RANKS_CALLS // max(1, ranks)))
    return parted(stored, calls, most_calls, LONG_NS)


def parted(
    stored: Stored, calls: list[Call], most_calls: float = inf, most_ns: float = inf
) -> list[Stretch]:
    """A stretch ends in any case where some rank did not keep what came next."""
    kept: dict[str, set[int]] = defaultdict(set)
    for row in stored["arrival"]:
        kept[row["comm"]].add(row["sequence"])
    whole: list[Stretch] = []
    last: dict[str, int] = {}
    for call in calls:
        before = last.get(call.comm)
        follows = before is None or all(n in kept[call.comm] for n in range(before, call.sequence))
        now = whole[-1] if whole else None
        enough = now and len(now.calls) >= LEAST_CALLS and now.length_ns >= most_ns
        if not now or not follows or enough or len(now.calls) >= most_calls:
            if now and follows:
                now.ends_ns = {rank: row["arrived_ns"] for rank, row in call.rows.items()}
            if not follows:
                last.clear()
            whole.append(now := Stretch())
        last[call.comm] = call.sequence
        now.calls.append(call)
    return whole


def after_windows(stretch: Stretch, rank: int) -> float:
    """Returns the end of the last known window, for use if nothing is known of what came next."""
    last = next(call for call in reversed(stretch.calls) if rank in call.rows)
    site, left_ns = last.sites[rank], last.rows[rank]["left_ns"]
    if is_nonblocking(site.call):  # whose window begins with the end of its wait
        return left_ns
    return left_ns + max(site.after.least, default=0.0) * 1e3


@dataclass
class _Pending:
    due_ns: float
    waited_ns: float  # the record's time in the call that waited
    slot: int
    operation: tuple
    number: int
    changed: bool  # it was blocking in the record


MOST_IN_FLIGHT = 8  # operations in flight of one kind, each with buffers of its own


class Steps:
    """The steps of one rank in one stretch: "c MICROSECONDS" computes, "b K" makes call K, "s K
    SLOT" starts it, "w SLOT" waits."""

    def __init__(
        self, rank: int, stretch: Stretch, numbers: dict[tuple, int], changed: Site | None
    ):
        self.rank, self.numbers, self.changed = rank, numbers, changed
        self.words: list[str] = []
        self.pending: list[_Pending] = []
        self.slots = 0
        own = [call for call in stretch.calls if rank in call.rows]
        if not own:
            return
        self.now = float(stretch.calls[0].first_ns)
        for call in own:
            self._call(call)
        self._advance(max(self.now, float(stretch.ends_ns.get(rank, after_windows(stretch, rank)))))
        for one in sorted(self.pending, key=lambda one: one.due_ns):
            self.words.append(f"w {one.slot}")

    def _compute(self, until_ns: float) -> None:
        if until_ns > self.now:
            self.words.append(f"c {(until_ns - self.now) / 1e3:.1f}")
            self.now = until_ns

    def _advance(self, until_ns: float) -> None:
        """Computes, and waits for what falls due meanwhile."""
        for one in sorted(self.pending, key=lambda one: one.due_ns):
            if one.due_ns > until_ns:
                break
            self._compute(one.due_ns)
            self._wait(one)
        self._compute(until_ns)

    def _wait(self, one: _Pending) -> None:
        self.pending.remove(one)
        self.words.append(f"w {one.slot}")
        self.now += one.waited_ns

    def _number(self, operation: tuple) -> int:
        """Returns the number of a copy of the operation whose buffers are free: each one in flight
        has its own."""
        in_use = {one.number for one in self.pending}
        keys = chain((operation,), ((*operation, copy) for copy in count(2)))
        numbers = (self.numbers.setdefault(key, len(self.numbers)) for key in keys)
        return next(number for number in numbers if number not in in_use)

    def _start(self, operation: tuple, due_ns: float, waited_ns: float, changed: bool) -> None:
        number = self._number(operation)
        self.words.append(f"s {number} {self.slots}")
        self.pending.append(_Pending(due_ns, waited_ns, self.slots, operation, number, changed))
        self.slots += 1

    def _call(self, call: Call) -> None:
        row, site, operation = call.rows[self.rank], call.sites[self.rank], call.operation
        # All its ranks start it then.
        changed = self.changed if self.changed in call.sites.values() else None
        before = changed.before.bounds if changed and changed.earlier_us else None
        self._advance(max(self.now, row["arrived_ns"] - (before[0] * 1e3 if before else 0.0)))
        # Changed calls reuse the same buffers. In the record they may have been in flight together,
        # with several buffers.
        same = [one for one in self.pending if one.operation == operation]
        for i, one in enumerate(same):
            if one.changed or i <= len(same) - MOST_IN_FLIGHT:
                self._wait(one)
        if changed:
            windows = changed.after.least or [0.0]
            window = changed.can_run_us(windows[call.sequence % len(windows)])
            self._start(operation, row["left_ns"] + window * 1e3, 0.0, changed=True)
            self._advance(max(self.now, row["arrived_ns"]))
        elif is_nonblocking(site.call):
            due = row["left_ns"] + (site.between_us or 0.0) * 1e3
            self._start(operation, due, (site.waited_us or 0.0) * 1e3, changed=False)
        else:
            self.words.append(f"b {self._number(operation)}")
        self.now = max(self.now, float(row["left_ns"]))


def plan(stored: Stored, stretches: list[Stretch], changes: list[Site]) -> str:
    """The replay program's file (bench/replay.cc): the first form is as it was, in each further one
    one site is changed."""
    ranks = max(row["ranks"] for row in stored["rank"])
    operations: dict[tuple, int] = {}
    for stretch in stretches:
        for call in stretch.calls:
            operations.setdefault(call.operation, len(operations))
    steps = [
        Steps(rank, stretch, operations, changed).words
        for stretch in stretches
        for changed in (None, *changes)
        for rank in range(ranks)
    ]
    groups = {members: i for i, members in enumerate(dict.fromkeys(one[2] for one in operations))}
    lines = [str(len(groups))]
    lines += [" ".join(map(str, (len(members), *members))) for members in groups]
    lines += [str(len(operations))]
    lines += [f"{name} {bytes_} {groups[ms]} {op}" for name, bytes_, ms, op, *_ in operations]
    lines += [f"{len(stretches)} {1 + len(changes)}"]
    lines += [" ".join([str(len(words)), *words]) for words in steps]
    return "\n".join(lines) + "\n"
