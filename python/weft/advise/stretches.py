"""Cuts stretches out of the recorded collectives, in their order, and writes the steps of each rank
for a replay.

Stretches are replayed instead of single calls. The time of a call depends on those before it, such
as on messages that still occupy a link, and time that one call saves may be spent waiting in the
next.

In a stretch a rank computes for as long as it was outside of the replayed collectives, so that it
arrives at each call as late as in the record. A changed call is started where the change starts it,
and waited for when its result was first accessed."""

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

# These are lengths of a stretch. The shorter one is used if there are no long stretches.
LONG_NS, SHORT_NS = 150_000_000, 5_000_000
LEAST_CALLS, MOST_CALLS = 3, 400
# This limits the calls of all ranks in a stretch, so that the plan of a large job stays small.
ALL_RANKS_CALLS = 16_000
ALL_NS, MOST = 1_500_000_000, 8  # total length of all stretches in ns; largest number of stretches
OF_CHANGED = 2  # least number of stretches with calls of a changed site
# The replay program knows these collectives. The value says whether a call's bytes consist of a
# block per rank. For the collectives in ROOTED that holds at the root.
KNOWN = {"allreduce": False, "bcast": False, "reduce": False, "scan": False, "barrier": False}
KNOWN |= {"allgather": True, "alltoall": True, "reduce_scatter": True, "reduce_scatter_block": True}
ROOTED = ("gather", "scatter")
# The record has this name for the rest of the call sites (src/advise/record.h).
OTHERS = "call sites beyond"
APART = ("min", "max", "prod")  # operators whose time may differ from that of a sum


def collective(call: str) -> str:
    """Returns the replay program's name of a collective. Vector collectives are replayed with equal
    blocks."""
    name = base_name(call)
    return name[:-1] if is_vector(name) else name


def is_known(site: Site) -> bool:
    """Returns whether the site can be replayed. The record's collection of surplus sites cannot,
    since it mixes collectives."""
    others = site.frames[0].function.startswith(OTHERS)
    return collective(site.call) in (*KNOWN, *ROOTED) and site.comm_size > 1 and not others


@dataclass(frozen=True)
class Changed:
    """How one form of a replay makes a site's calls."""

    site: Site
    earlier: bool = True  # they start earlier, where that wins something
    planned: bool = False  # they are starts of a persistent request
    late: bool = True  # they are waited for at the first touch of the result; else at once


Form = Sequence[Changed]  # an empty one is the program as it was


@dataclass(eq=False)
class Call:
    """A collective call that all its ranks have recorded."""

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
        """Returns the call's site. If the ranks call it at different sites, this is the root's."""
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
    # Maps a rank to the time at which its next call began.
    ends_ns: dict[int, int] = field(default_factory=dict)

    @property
    def length_ns(self) -> int:
        last = max(row["left_ns"] for row in self.calls[-1].rows.values())
        return last - self.calls[0].first_ns

    @property
    def recorded_ns(self) -> int:
        """Returns the length of the stretch in ns, with the computation behind it as far as that is
        replayed."""
        return max(
            [self.length_ns, *(end - self.calls[0].first_ns for end in self.ends_ns.values())]
        )

    def calls_at(self, site: Site) -> int:
        """Returns the number of calls at this site of the rank that makes most of them."""
        of_ranks = Counter(
            rank for call in self.calls for rank, own in call.sites.items() if own is site
        )
        return max(of_ranks.values(), default=0)


def calls_of(
    stored: Stored, sites: list[Site], wanted: Callable[[Site], bool] = is_known
) -> list[Call]:
    """Returns the calls of the wanted sites that all ranks have recorded, in an order that agrees
    with each rank's."""
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
    """Sorts calls by the order of each rank, and by their beginnings where no rank orders them.

    Ranks may contradict each other, for example with non-blocking calls or persistent requests.
    Then the call that began first goes first."""
    of_rank: dict[int, deque[Call]] = defaultdict(deque)
    arrivals = [
        (row["arrived_ns"], rank, call) for call in calls for rank, row in call.rows.items()
    ]
    for _, rank, call in sorted(arrivals, key=lambda one: one[0]):
        of_rank[rank].append(call)
    # This is the number of ranks whose next call it is not yet.
    missing = {id(call): len(call.rows) for call in calls}
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


def stretches_of(
    stored: Stored, sites: list[Site], changes: Sequence[Site] = (), long_ns: float = LONG_NS
) -> list[Stretch]:
    """Returns stretches of at most about `long_ns` ns that are evenly chosen from the record, and
    some for each site that is changed."""
    good = usable(cut(stored, calls_of(stored, sites), long_ns))
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
    # The beginning and the end of a program are not representative.
    return good[1:-1] if len(good) > 3 else good


def cut(stored: Stored, calls: list[Call], long_ns: float = LONG_NS) -> list[Stretch]:
    """Cuts the calls into stretches that a replay can repeat."""
    ranks = max((row["ranks"] for row in stored["rank"]), default=1)
    most_calls = max(LEAST_CALLS, min(MOST_CALLS, ALL_RANKS_CALLS // max(1, ranks)))
    return parted(stored, calls, most_calls, long_ns)


def parted(
    stored: Stored, calls: list[Call], most_calls: float = inf, most_ns: float = inf
) -> list[Stretch]:
    """Cuts the calls into stretches of at most `most_calls` calls and `most_ns` ns. A stretch also
    ends where some rank has not recorded the next call."""
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
    """Returns the end of the last known idle time of a result, for use if nothing is known of what
    came next."""
    last = next(call for call in reversed(stretch.calls) if rank in call.rows)
    site, left_ns = last.sites[rank], last.rows[rank]["left_ns"]
    # the result of a non-blocking call is left alone from the end of its wait
    if is_nonblocking(site.call):
        return left_ns
    return left_ns + max(site.after.least, default=0.0) * 1e3


@dataclass
class _Pending:
    due_ns: float
    waited_ns: float  # time in ns that the completing call took in the record
    slot: int
    operation: tuple
    number: int
    changed: bool  # the call was blocking in the record


MOST_IN_FLIGHT = 8  # most operations of one kind in flight, each with its own buffers


class Steps:
    """The steps of one rank in one stretch: "c MICROSECONDS" computes, "b K" makes call K, "s K
    SLOT" starts it, "p K SLOT" as a persistent request, "w SLOT" waits."""

    def __init__(self, rank: int, stretch: Stretch, numbers: dict[tuple, int], form: Form):
        self.rank, self.numbers, self.form = rank, numbers, form
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
        """Computes until this time, and waits for the calls that become due before it."""
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
        """Returns the number of a copy of the operation whose buffers are free. Each operation in
        flight has its own copy."""
        in_use = {one.number for one in self.pending}
        keys = chain((operation,), ((*operation, copy) for copy in count(2)))
        numbers = (self.numbers.setdefault(key, len(self.numbers)) for key in keys)
        return next(number for number in numbers if number not in in_use)

    def _start(
        self, operation: tuple, due_ns: float, waited_ns: float, changed: Changed | None
    ) -> None:
        number, is_changed = self._number(operation), changed is not None
        self.words.append(f"{'p' if changed and changed.planned else 's'} {number} {self.slots}")
        self.pending.append(_Pending(due_ns, waited_ns, self.slots, operation, number, is_changed))
        self.slots += 1

    def _changed(self, call: Call) -> Changed | None:
        """All its ranks make it so."""
        sites = [id(one) for one in call.sites.values()]
        return next((one for one in self.form if id(one.site) in sites), None)

    def _call(self, call: Call) -> None:
        row, site, operation = call.rows[self.rank], call.sites[self.rank], call.operation
        changed = self._changed(call)
        is_earlier = changed is not None and changed.earlier and changed.site.earlier_us
        before = changed.site.before.bounds if changed and is_earlier else None
        self._advance(max(self.now, row["arrived_ns"] - (before[0] * 1e3 if before else 0.0)))
        # Changed calls reuse the same buffers. In the record they may have been in flight together,
        # with several buffers.
        same = [one for one in self.pending if one.operation == operation]
        for i, one in enumerate(same):
            if one.changed or i <= len(same) - MOST_IN_FLIGHT:
                self._wait(one)
        if changed:
            windows = changed.site.after.least or [0.0]
            window = changed.site.can_run_us(windows[call.sequence % len(windows)])
            due = row["left_ns"] + (window * 1e3 if changed.late else 0.0)
            self._start(operation, due, 0.0, changed)
            self._advance(max(self.now, row["arrived_ns"]))
        elif is_nonblocking(site.call):
            due = row["left_ns"] + (site.between_us or 0.0) * 1e3
            self._start(operation, due, (site.waited_us or 0.0) * 1e3, None)
        else:
            self.words.append(f"b {self._number(operation)}")
        self.now = max(self.now, float(row["left_ns"]))


def plan(stored: Stored, stretches: list[Stretch], forms: Sequence[Form]) -> str:
    """The replay program's file (bench/replay.cc): the program as it was, then these forms."""
    ranks = max(row["ranks"] for row in stored["rank"])
    operations: dict[tuple, int] = {}
    for stretch in stretches:
        for call in stretch.calls:
            operations.setdefault(call.operation, len(operations))
    steps = [
        Steps(rank, stretch, operations, form).words
        for stretch in stretches
        for form in ((), *forms)
        for rank in range(ranks)
    ]
    groups = {members: i for i, members in enumerate(dict.fromkeys(one[2] for one in operations))}
    lines = [str(len(groups))]
    lines += [" ".join(map(str, (len(members), *members))) for members in groups]
    lines += [str(len(operations))]
    lines += [f"{name} {bytes_} {groups[ms]} {op}" for name, bytes_, ms, op, *_ in operations]
    lines += [f"{len(stretches)} {1 + len(forms)}"]
    lines += [" ".join([str(len(words)), *words]) for words in steps]
    return "\n".join(lines) + "\n"
