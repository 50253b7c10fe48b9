"""Stretches of the recorded collectives, in their order, as each rank's steps of a replay.

Why stretches and not single calls: what a call takes depends on those before it, such as on what a
link has still to carry, and time that one call saves may be waited for in the next.

In a stretch a rank computes for as long as it was outside of the collectives that are replayed, so
it comes to each call as late as it came in the record. A call that is changed is started, earlier
than it was called where the change says so, and waited for when its result was first touched.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from weft.advise.sites import Site, base_name, is_nonblocking, is_vector
from weft.advise.store import Stored

LONG_NS, LEAST_CALLS, MOST_CALLS = 150_000_000, 3, 400  # of a stretch
ALL_NS, MOST = 1_500_000_000, 8  # of all together; stretches
# Of collectives that the replay program knows: whether a call's bytes are blocks of all ranks; of
# those that are ROOTED they are at the root.
KNOWN = {"allreduce": False, "bcast": False, "reduce": False, "scan": False, "barrier": False}
KNOWN |= {"allgather": True, "alltoall": True, "reduce_scatter": True, "reduce_scatter_block": True}
ROOTED = ("gather", "scatter")
APART = ("min", "max", "prod")  # MPI libraries may take other times for these than for sums


def collective(call: str) -> str:
    """As the replay program calls it: blocks of different lengths become equal ones."""
    name = base_name(call)
    return name[:-1] if is_vector(name) else name


def is_known(site: Site) -> bool:
    return collective(site.call) in (*KNOWN, *ROOTED) and site.comm_size > 1


@dataclass
class Call:
    """One collective that all its ranks kept."""

    comm: str
    sequence: int
    rows: dict[int, dict]  # of `arrival`, by rank
    sites: dict[int, Site]

    @property
    def first_ns(self) -> int:
        return min(row["arrived_ns"] for row in self.rows.values())

    @property
    def name(self) -> str:
        return collective(self.site.call)

    @property
    def site(self) -> Site:
        """Where the call stands; of ranks with different ones, the root's."""
        at_root = (rank for rank, row in self.rows.items() if row["comm_rank"] == row["root"])
        return self.sites[next(at_root, min(self.rows))]

    @property
    def bytes(self) -> int:
        """Of what the call's count argument describes."""
        of_all = self.name in ROOTED or KNOWN[self.name]
        return max(8, round(self.site.bytes / (self.site.comm_size if of_all else 1)))

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(sorted(self.rows))

    @property
    def operation(self) -> tuple:
        """What the replay program makes once. What is no other operator is a sum."""
        reduction = self.site.reduction
        return self.name, self.bytes, self.members, reduction if reduction in APART else "sum"


@dataclass
class Stretch:
    calls: list[Call] = field(default_factory=list)
    ends_ns: dict[int, int] = field(default_factory=dict)  # by rank: when it went on to the next

    @property
    def length_ns(self) -> int:
        last = max(row["left_ns"] for row in self.calls[-1].rows.values())
        return last - self.calls[0].first_ns

    def calls_at(self, site: Site) -> int:
        return sum(call.site is site for call in self.calls)


def calls_of(stored: Stored, sites: list[Site]) -> list[Call]:
    """In the order of their beginnings."""
    site_of = {member: site for site in sites if is_known(site) for member in site.members}
    rows: dict[tuple, dict[int, dict]] = defaultdict(dict)
    for one in stored["arrival"]:
        if (one["rank"], one["site"]) in site_of:
            rows[one["comm"], one["sequence"]][one["rank"]] = one
    found = []
    for (comm, sequence), by_rank in rows.items():
        call_sites = {rank: site_of[rank, row["site"]] for rank, row in by_rank.items()}
        if len(by_rank) == next(iter(call_sites.values())).comm_size:
            found.append(Call(comm, sequence, by_rank, call_sites))
    return sorted(found, key=lambda call: call.first_ns)


def stretches_of(stored: Stored, sites: list[Site]) -> list[Stretch]:
    """Evenly chosen from all that there are."""
    whole: list[Stretch] = [Stretch()]
    last: dict[str, int] = {}
    for call in calls_of(stored, sites):
        now = whole[-1]
        follows = last.get(call.comm, call.sequence - 1) == call.sequence - 1
        last[call.comm] = call.sequence
        enough = len(now.calls) >= LEAST_CALLS and now.length_ns >= LONG_NS
        if now.calls and (not follows or enough or len(now.calls) >= MOST_CALLS):
            if follows:
                for rank, row in call.rows.items():
                    now.ends_ns[rank] = row["arrived_ns"]
            whole.append(now := Stretch())
            last = {call.comm: call.sequence} if not follows else last
        now.calls.append(call)
    whole = [one for one in whole if one.calls]
    good = [one for one in whole if len(one.calls) >= LEAST_CALLS] or whole
    # Runs of calls between such as were not kept are short.
    good = [one for one in good if one.length_ns >= LONG_NS] or good
    if len(good) > 2:  # the program's beginning and end are like nothing else
        good = good[1:-1] if len(good) > 3 else good[1:]
    if not good:
        return []
    typical = sum(one.length_ns for one in good) / len(good)
    count = max(2, min(MOST, int(ALL_NS / max(1.0, typical))))
    if len(good) <= count:
        return good
    return [good[i * len(good) // count] for i in range(count)]


@dataclass
class _Pending:
    due_ns: float
    waited_ns: float  # the record's time in the call that waited
    slot: int
    operation: tuple


class Steps:
    """One rank's steps in one stretch: "c MICROSECONDS" computes, "b K" makes call K, "s K SLOT"
    starts it, "w SLOT" waits."""

    def __init__(self, rank: int, stretch: Stretch, numbers: dict[tuple, int], changed: Site | None):
        self.rank, self.numbers, self.changed = rank, numbers, changed
        self.words: list[str] = []
        self.pending: list[_Pending] = []
        self.slots = 0
        self.seen = 0  # calls that were changed
        own = [call for call in stretch.calls if rank in call.rows]
        if not own:
            return
        self.now = float(stretch.calls[0].first_ns)
        for call in own:
            self._call(call)
        self._advance(max(self.now, float(stretch.ends_ns.get(rank, 0))))
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

    def _start(self, operation: tuple, due_ns: float, waited_ns: float = 0.0) -> None:
        self.words.append(f"s {self.numbers[operation]} {self.slots}")
        self.pending.append(_Pending(due_ns, waited_ns, self.slots, operation))
        self.slots += 1

    def _call(self, call: Call) -> None:
        row, site, operation = call.rows[self.rank], call.sites[self.rank], call.operation
        is_changed = self.changed is not None and call.site is self.changed
        before = site.before.bounds if is_changed and site.earlier_us else None
        self._advance(max(self.now, row["arrived_ns"] - (before[0] * 1e3 if before else 0.0)))
        # Its buffers are in use until then.
        for one in [one for one in self.pending if one.operation == operation]:
            self._wait(one)
        if is_changed:
            windows = call.site.after.least or [0.0]
            window = windows[self.seen % len(windows)]
            self.seen += 1
            self._start(operation, row["left_ns"] + window * 1e3)
            self._advance(max(self.now, row["arrived_ns"]))
        elif is_nonblocking(site.call):
            due = row["left_ns"] + (site.between_us or 0.0) * 1e3
            self._start(operation, due, (site.waited_us or 0.0) * 1e3)
        else:
            self.words.append(f"b {self.numbers[operation]}")
        self.now = max(self.now, float(row["left_ns"]))


def plan(stored: Stored, stretches: list[Stretch], changes: list[Site]) -> str:
    """The replay program's file (bench/replay.cc): the first form is as it was, in each further one
    one site is changed."""
    ranks = max(row["ranks"] for row in stored["rank"])
    operations: dict[tuple, int] = {}
    for stretch in stretches:
        for call in stretch.calls:
            operations.setdefault(call.operation, len(operations))
    groups = {members: i for i, members in enumerate(dict.fromkeys(one[2] for one in operations))}
    lines = [str(len(groups))]
    lines += [" ".join(map(str, (len(members), *members))) for members in groups]
    lines += [str(len(operations))]
    lines += [f"{name} {bytes_} {groups[ms]} {op}" for name, bytes_, ms, op in operations]
    lines += [f"{len(stretches)} {1 + len(changes)}"]
    for stretch in stretches:
        for changed in (None, *changes):
            for rank in range(ranks):
                words = Steps(rank, stretch, operations, changed).words
                lines.append(" ".join([str(len(words)), *words]))
    return "\n".join(lines) + "\n"
