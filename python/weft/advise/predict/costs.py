"""Simulates times of collectives on a described machine, by kind and size.

A collective with too many messages for the simulator is simulated on fewer nodes. Its time is
extrapolated by the power law between the two largest numbers of nodes."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from weft.sim import native

MOST_MESSAGES = 400_000  # most messages of one simulation, so that it takes about a second
MOST_RANKS_OF_THREADS = 2048  # most ranks of one simulation if each has a progress thread
FILLS = (0.0, 0.5, 1.0)  # shares of a full bucket in the network's rate limiter
KIB = 1024


class Places(NamedTuple):
    """The placement of a communicator's ranks. `shared` is the number of such communicators that
    use the link of one node."""

    ranks: int
    nodes: int
    shared: int = 1


class Operation(NamedTuple):
    kind: str
    bytes: int  # bytes of the data, or of one block if there are several
    places: Places


@dataclass(frozen=True)
class Cost:
    us: float  # time in us after the last rank arrives
    link_bytes: float = 0.0  # bytes that one node sends
    total_us: float = 0.0  # time in us with the computation that it overlaps with
    is_exact: bool = True  # simulated at its real size, without extrapolation


# These are the algorithms of the MPI library, each with the number of bytes up to which it is
# taken. They are MPICH's rules (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005); other libraries
# have similar ones.
RULES: dict[str, tuple[tuple[float, str], ...]] = {
    "allreduce": ((2 * KIB, "recursive-doubling"), (math.inf, "rabenseifner")),
    "reduce": ((2 * KIB, "binomial"), (math.inf, "rabenseifner")),
    "bcast": ((12 * KIB, "binomial"), (math.inf, "scatter-allgather")),
    "alltoall": ((256, "bruck"), (32 * KIB, "linear"), (math.inf, "pairwise")),
    "reduce_scatter_block": ((512 * KIB, "recursive-halving"), (math.inf, "pairwise")),
}
# These are the rules for allgather, by the bytes of all blocks.
ALLGATHER = ((80 * KIB, "bruck"), (math.inf, "ring"))
FEW_RANKS = 8  # below this number, ranks exchange blocks directly, and broadcast along a tree
OF_ALL_PAIRS = ("allgather", "alltoall", "reduce_scatter_block")


def library_algorithm(kind: str, bytes_: int, ranks: int) -> str | None:
    """Returns the algorithm of the MPI library. Returns None if Weft has only one algorithm for the
    collective, or takes the same as the libraries."""
    if kind == "bcast" and ranks < FEW_RANKS:
        return "binomial"
    if kind == "alltoall" and ranks < FEW_RANKS:
        return "linear"
    rule = ALLGATHER if kind == "allgather" else RULES.get(kind, ())
    size = bytes_ * ranks if kind == "allgather" else bytes_
    return next((name for most, name in rule if size <= most), None)


def messages(kind: str, ranks: int) -> float:
    """Returns an upper bound of the messages or blocks that all ranks send."""
    if kind in OF_ALL_PAIRS:
        return float(ranks) * ranks
    return 2.0 * ranks * math.ceil(math.log2(max(2, ranks)))


class Costs:
    """Costs of collectives on one machine. Simulated results are cached."""

    def __init__(self, machine: Path) -> None:
        self.path = machine
        self.facts: dict[str, Any] = json.loads(machine.read_text())
        self.directory = tempfile.TemporaryDirectory(prefix="weft-predict-")
        self._known: dict[tuple, Cost] = {}

    @property
    def burst(self) -> float:
        """Returns the bytes that the network's rate limiter lets pass at once after a pause; 0 if
        it has no limiter."""
        return float(self.facts["network"].get("burst_bytes", 0))

    @property
    def rate(self) -> float:
        """Returns the bytes per microsecond of a node's link."""
        return float(self.facts["network"]["bytes_per_us"])

    def library(self, operation: Operation, fill: float = 1.0) -> Cost:
        """Returns the cost of a collective by the MPI library, whose algorithm also sends messages
        inside nodes. `fill`: the share of the rate limiter's bucket that is full."""
        if not self.burst or operation.places.nodes == 1:
            return self._at(operation, 1.0)
        place = min(max(fill, 0.0), 1.0) * (len(FILLS) - 1)
        low = min(int(place), len(FILLS) - 2)
        one, other = (self._at(operation, FILLS[low + i]) for i in (0, 1))
        return replace(one, us=one.us + (place - low) * (other.us - one.us))

    def _at(self, operation: Operation, fill: float) -> Cost:
        kind, size, places = operation
        algorithm = library_algorithm(kind, size, places.ranks)
        options = {"engine": "blocking", "transport": "mpi", "algorithm": algorithm}
        return self._extended(operation, algorithm, fill, options)

    def auto(self, operation: Operation) -> Cost:
        """Returns the cost of a blocking collective by Weft, or that by the library if it is
        less."""
        own = self._extended(operation, None, 1.0, {"engine": "blocking"})
        return min(own, self._at(operation, 1.0), key=lambda cost: cost.us)

    def hidden(self, operation: Operation, window_us: float) -> float:
        """Returns the share of Weft's collective that runs behind this much computation."""
        while operation.places.ranks > MOST_RANKS_OF_THREADS and operation.places.nodes > 1:
            operation = operation._replace(places=halved(operation.places))
        alone = self.auto(operation).us
        options = {"engine": "thread", "compute": f"{max(window_us, 0.0):.3f}"}
        beside = self._extended(operation, None, 1.0, options)
        return min(1.0, max(0.0, (alone + window_us - beside.total_us) / max(alone, 1e-9)))

    def _extended(
        self, operation: Operation, algorithm: str | None, fill: float, options: dict[str, Any]
    ) -> Cost:
        key = (operation, algorithm, fill, *options.values())
        if key not in self._known:
            self._known[key] = self._computed(operation, algorithm, fill, options)
        return self._known[key]

    def _computed(
        self, operation: Operation, algorithm: str | None, fill: float, options: dict[str, Any]
    ) -> Cost:
        places = operation.places
        if places.ranks < 2:
            return Cost(0.0)
        too_many = messages(operation.kind, places.ranks) > MOST_MESSAGES
        if not too_many or places.nodes < 4:
            return self._simulated(operation, fill, options)
        half, quarter = halved(places), halved(halved(places))
        one, two = (
            self._extended(operation._replace(places=less), algorithm, fill, options)
            for less in (half, quarter)
        )
        power = math.log(max(1.0, one.us / max(two.us, 1e-9))) / math.log(
            half.nodes / quarter.nodes
        )
        grows = (places.nodes / half.nodes) ** power
        return Cost(one.us * grows, one.link_bytes * grows, one.total_us * grows, is_exact=False)

    def _simulated(self, operation: Operation, fill: float, options: dict[str, Any]) -> Cost:
        kind, size, (ranks, nodes, shared) = operation
        words = {"collective": kind, "bytes": size, "ranks": ranks, "nodes": nodes}
        file = self._file(fill, shared)
        run = native.simulate(file, **words, **{"placement": "bind", **options})
        # This is approximately the share of messages that stay inside a node.
        here = (ranks / nodes - 1) / (ranks - 1)
        return Cost(
            run.communication_us, run.message_bytes * (1 - here) * shared / nodes, run.total_us
        )

    def _file(self, fill: float, shared: int) -> str:
        """Returns the file of a machine whose rate limiter's bucket is partly empty, and whose link
        is shared with other communicators."""
        if shared == 1 and (fill == 1.0 or not self.burst):
            return str(self.path)
        file = Path(self.directory.name) / f"machine-{fill:g}-{shared}.json"
        if not file.exists():
            network = dict(self.facts["network"])
            for name in ("bytes_per_us", "burst_bytes", "burst_bytes_per_us"):
                network[name] = network.get(name, 0) / shared
            network["burst_bytes"] = round(fill * network["burst_bytes"])
            file.write_text(json.dumps({**self.facts, "network": network}))
        return str(file)


def halved(places: Places) -> Places:
    """Returns half of the nodes with as many ranks on each."""
    nodes = max(1, places.nodes // 2)
    return places._replace(nodes=nodes, ranks=max(1, places.ranks * nodes // places.nodes))
