"""Replays the recorded calls, rank by rank, with other costs and other computation between them.

A rank computes between two calls as long as in the record, times a factor. In a call it waits for
those ranks whose data it needs, and then for as long as the collective takes. Other recorded times
are not used, since only the computation and the order of calls are the same on another machine."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.advise.names import base_name, is_nonblocking
from weft.advise.predict.costs import Operation, Places
from weft.advise.predict.scaling import Scale, plain
from weft.advise.sites import Site
from weft.advise.store import Stored
from weft.advise.stretches import KNOWN, OTHERS, ROOTED, Call, Stretch

FROM_ROOT, TO_ROOT = ("bcast", "scatter"), ("reduce", "gather")
OF_BLOCKS = (*(kind for kind, blocks in KNOWN.items() if blocks), *ROOTED)
SIMULATED = {"reduce_scatter": "reduce_scatter_block"}  # the simulated collective has equal blocks
# A neighbourhood collective is simulated with this number of ranks, so that each has two
# neighbours.
NEIGHBORS = 3
LEAST_BYTES = 8


def is_replayed(site: Site) -> bool:
    """Returns whether the simulator knows the site's collective, and all calls of the site are of
    one kind."""
    kind = plain(base_name(site.call))
    known = kind in (*KNOWN, *ROOTED, "exscan") or is_neighborhood(kind)
    others = site.frames[0].function.startswith(OTHERS)
    return known and site.comm_size > 1 and not others and not kind.endswith("w")


def is_neighborhood(kind: str) -> bool:
    return kind.startswith("neighbor_")


@dataclass(frozen=True)
class Geometry:
    """The ranks of the record and of the machine, and how many share a node there."""

    recorded: int
    ranks: int
    per_node: int

    @property
    def ratio(self) -> float:
        return self.ranks / self.recorded

    def _grown(self, number: int) -> int:
        """Scales a number with the power by which the number of ranks grows. A row of a square grid
        of ranks, for example, grows by the root."""
        if self.recorded < 2 or self.ranks == self.recorded:
            return number
        return max(1, round(number ** (math.log(self.ranks) / math.log(self.recorded))))

    def places(self, members: Sequence[int]) -> Places:
        """Returns the placement of a communicator with these ranks in the record."""
        if len(members) == self.recorded:
            return Places(self.ranks, math.ceil(self.ranks / self.per_node))
        stride = min(b - a for a, b in zip(members, members[1:])) if len(members) > 1 else 1
        ranks, stride = self._grown(len(members)), self._grown(stride)
        on_node = max(1, self.per_node // stride)
        nodes = math.ceil(ranks / on_node)
        return Places(ranks, nodes, max(1, self.per_node // on_node) if nodes > 1 else 1)


def operation_of(
    call: Call, bytes_of: dict[tuple[int, int], float], scale: Scale, geometry: Geometry
) -> Operation:
    """Returns the operation to simulate. If blocks differ, the rank with the largest counts
    decides."""
    kind = plain(base_name(call.site.call))
    places = geometry.places(call.members)
    own = [bytes_of.get((rank, row["site"]), call.site.bytes) for rank, row in call.rows.items()]
    size = max(own) if kind in OF_BLOCKS or is_neighborhood(kind) else call.site.bytes
    size *= geometry.ratio ** scale.of_site(call.site, kind)
    if is_neighborhood(kind):
        near = min(NEIGHBORS, places.ranks)
        nodes = near if geometry.per_node == 1 else min(2, places.nodes)
        near_places = Places(near, nodes)
        return Operation("alltoall", max(LEAST_BYTES, round(size / max(1, near - 1))), near_places)
    if kind in OF_BLOCKS:
        size /= places.ranks
    return Operation(SIMULATED.get(kind, kind), max(LEAST_BYTES, round(size)), places)


def needed(call: Call, kind: str, rank: int) -> list[int]:
    """Returns the ranks for whose data a rank waits in a call."""
    row = call.rows[rank]
    number = row["comm_rank"]
    if kind in FROM_ROOT:
        return [r for r, other in call.rows.items() if other["comm_rank"] == row["root"]]
    if kind in TO_ROOT and number != row["root"]:
        return []
    if kind in ("scan", "exscan"):
        return [r for r, other in call.rows.items() if other["comm_rank"] <= number]
    if is_neighborhood(kind):
        return [r for r, other in call.rows.items() if abs(other["comm_rank"] - number) <= 1]
    return list(call.rows)


@dataclass
class Times:
    """Times in the calls of one site, over all ranks, in microseconds: as recorded, and on the
    machine."""

    recorded_us: float = 0.0
    predicted_us: float = 0.0
    transfer_us: float = 0.0  # part of the time on the machine that is no waiting


@dataclass
class Bucket:
    """A rate limiter's token bucket: the bytes that a node's link passes at once, and the time of
    the last update."""

    size: float
    rate: float  # bytes per microsecond that refill it
    level: float = 0.0
    at_us: float = 0.0

    def fill(self, now_us: float) -> float:
        self.level = min(self.size, self.level + self.rate * max(0.0, now_us - self.at_us))
        self.at_us = max(self.at_us, now_us)
        return self.level / self.size if self.size else 1.0

    def sent(self, bytes_: float, now_us: float) -> None:
        """Takes the bytes of a transfer out of the bucket. Bytes that refilled it during the
        transfer are used, too."""
        self.fill(now_us)
        self.level = max(0.0, self.level - bytes_)


def computation(stretch: Stretch) -> Iterator[tuple[Call, dict[int, float]]]:
    """Yields each call with the microseconds that each rank computes before it. This is 0 before a
    rank's first call, since the time before that is not known."""
    left_ns: dict[int, int] = {}
    for call in stretch.calls:
        arrived = {rank: row["arrived_ns"] for rank, row in call.rows.items()}
        yield call, {rank: max(0, at - left_ns.get(rank, at)) / 1e3 for rank, at in arrived.items()}
        left_ns |= {rank: row["left_ns"] for rank, row in call.rows.items()}


class Charge(NamedTuple):
    """The cost of a call on the machine."""

    us: float
    link_bytes: float = 0.0  # bytes that one node sends
    # The last of the additional ranks arrives later by this number of standard deviations of the
    # arrivals.
    later: float = 0.0


@dataclass
class Replay:
    """Replays stretches one by one. `charge` returns the cost of a call at the present fill of the
    bucket."""

    computation: float  # factor of the recorded computation
    charge: Callable[[Call, float], Charge]
    bucket: Bucket = field(default_factory=lambda: Bucket(0.0, 0.0))

    def run(self, stretch: Stretch, times: dict[int, Times]) -> None:
        """Replays one stretch, and adds the results to the times of the sites, by their id."""
        now: dict[int, float] = {}
        self.bucket.at_us, self.bucket.level = 0.0, self.bucket.size
        for call, gaps in computation(stretch):
            came = {r: now.get(r, 0.0) + us * self.computation for r, us in gaps.items()}
            now |= self._carried_out(call, came, times)

    def _carried_out(
        self, call: Call, came: dict[int, float], times: dict[int, Times]
    ) -> dict[int, float]:
        kind = plain(base_name(call.site.call))
        last = max(came.values())
        charge = self.charge(call, self.bucket.fill(last))
        later_us = charge.later * spread(list(came.values()))
        steps = max(1, math.ceil(math.log2(max(2, len(came)))))
        gone = {}
        for rank, own in came.items():
            whom = needed(call, kind, rank)
            begin = max([own, *(came[one] for one in whom)])
            begin += later_us if len(whom) > 1 else 0.0
            part = charge.us if whom else charge.us / steps  # a leaf of a tree has one step
            gone[rank] = begin + part
            found = times.setdefault(id(call.sites[rank]), Times())
            found.predicted_us += gone[rank] - own
            found.transfer_us += part
            found.recorded_us += recorded_us(call, rank)
        self.bucket.sent(charge.link_bytes, last + charge.us)
        return gone


def recorded_us(call: Call, rank: int) -> float:
    row, site = call.rows[rank], call.sites[rank]
    waited = (site.waited_us or 0.0) if is_nonblocking(site.call) else 0.0
    return (row["left_ns"] - row["arrived_ns"]) / 1e3 + waited


def spread(values: Sequence[float]) -> float:
    """Returns the standard deviation."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((one - mean) ** 2 for one in values) / max(1, len(values) - 1))


def bytes_of_sites(stored: Stored) -> dict[tuple[int, int], float]:
    found = defaultdict(float)
    for row in stored["site"]:
        found[row["rank"], row["site"]] = row["bytes"] / max(1, row["calls"])
    return dict(found)
