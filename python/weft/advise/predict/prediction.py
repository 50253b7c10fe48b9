"""Predicts a recorded run on another machine: the time in collectives, the whole time, and the gain
by Weft and by the advised change, as intervals.

An interval covers three uncertainties. One is the error of the simulator against measured times.
One is the variation of the computation within the record. The third is waiting, which lies between
that of the record's ranks and that of the machine's number of ranks with normally distributed
arrivals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean, median

from weft.advise.analysis import Advice
from weft.advise.names import base_name, is_nonblocking
from weft.advise.predict.costs import Costs, Operation
from weft.advise.predict.replay import (
    Bucket,
    Charge,
    Geometry,
    Replay,
    Times,
    bytes_of_sites,
    computation,
    is_neighborhood,
    is_replayed,
    operation_of,
)
from weft.advise.predict.scaling import Scale, plain
from weft.advise.sites import Site
from weft.advise.store import Stored
from weft.advise.stretches import Call, Stretch, calls_of, parted
from weft.data.stored import ResultError
from weft.measurements import statistics

MODEL = 0.2  # relative error of the simulator in nine of ten measured cases (docs/simulator.md)
BLOCKS = 12  # number of blocks of a record's calls whose computation is compared
MOST_SPREAD = 0.5


@dataclass(frozen=True)
class Interval:
    low: float
    expected: float
    high: float

    def times(self, factor: float) -> Interval:
        return Interval(self.low * factor, self.expected * factor, self.high * factor)


@dataclass(frozen=True)
class SitePrediction:
    """The prediction for one call site, in microseconds of the average rank over the run."""

    site: Site
    bytes: float  # bytes that one rank passes to one call
    ranks: int
    recorded_us: float
    us: Interval
    waiting_us: float  # waiting for other ranks, within the expected time
    free_us: float  # time that Weft's engine auto saves
    # Time that the advised change saves beyond free_us; None if no change is advised, or if what it
    # saves is not known.
    change_us: float | None


@dataclass(frozen=True)
class Prediction:
    machine: str
    geometry: Geometry
    scale: Scale
    recorded_ranks: int
    recorded_us: float
    recorded_collective_us: float
    elapsed_us: Interval
    collective_us: Interval
    share: Interval
    free_us: Interval
    change_us: Interval | None
    sites: list[SitePrediction]
    assumptions: list[str] = field(default_factory=list)


def later(recorded: int, ranks: int) -> float:
    """Returns how much later the last of `ranks` ranks arrives, on average, than the last of
    `recorded` ranks. The unit is the standard deviation of the ranks' arrival times, which are
    taken as normally distributed (approximation by Blom, 1958)."""

    def last(n: int) -> float:
        return NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) if n > 1 else 0.0

    return max(0.0, last(ranks) - last(recorded))


def spread_of_computation(stretches: Sequence[Stretch]) -> float:
    """Returns the relative uncertainty of the median computation over blocks of the record."""
    gaps = [fmean(of_ranks.values()) for one in stretches for _, of_ranks in computation(one)]
    size = max(1, len(gaps) // BLOCKS)
    blocks = [sum(gaps[i : i + size]) for i in range(0, len(gaps) - size + 1, size)]
    if len(blocks) < 2 or not median(blocks):
        return 0.0
    return min(MOST_SPREAD, statistics.of(blocks).half_width)


class Machine:
    """The record's calls as operations on a machine, with their costs."""

    def __init__(self, stored: Stored, costs: Costs, geometry: Geometry, scale: Scale) -> None:
        self.costs, self.geometry, self.scale = costs, geometry, scale
        self.bytes_of = bytes_of_sites(stored)
        self.operations: dict[int, Operation] = {}

    def operation(self, call: Call) -> Operation:
        if id(call) not in self.operations:
            found = operation_of(call, self.bytes_of, self.scale, self.geometry)
            self.operations[id(call)] = found
        return self.operations[id(call)]

    def replayed(self, stretches: Sequence[Stretch], more_ranks: bool) -> dict[int, Times]:
        """Returns the times of each site, by its id. `more_ranks`: the last of the machine's larger
        number of ranks arrives later."""

        def charge(call: Call, fill: float) -> Charge:
            operation = self.operation(call)
            cost = self.costs.library(operation, fill)
            behind = 0.0
            if more_ranks and not is_neighborhood(plain_kind(call.site)):
                behind = later(len(call.rows), operation.places.ranks)
            return Charge(cost.us, cost.link_bytes, behind)

        faster = self.geometry.ratio**self.scale.computation
        replay = Replay(faster, charge, Bucket(self.costs.burst, self.costs.rate))
        times: dict[int, Times] = {}
        for one in stretches:
            replay.run(one, times)
        return times


def plain_kind(site: Site) -> str:
    return plain(base_name(site.call))


def operations_of_sites(machine: Machine, stretches: Sequence[Stretch]) -> dict[int, Operation]:
    """Returns the most frequent operation of each site, by the site's id."""
    count: dict[int, dict[Operation, int]] = defaultdict(lambda: defaultdict(int))
    for one in stretches:
        for call in one.calls:
            for site in call.sites.values():
                count[id(site)][machine.operation(call)] += 1
    return {site: max(found, key=lambda one: found[one]) for site, found in count.items()}


def window_us(site: Site) -> float | None:
    """Returns how many us the changed call can be in flight; None if that is not known."""
    if is_nonblocking(site.call):
        return site.between_us
    bounds = site.after.bounds
    if bounds is None:
        return None
    before = site.before.bounds
    earlier = before[0] if before and site.earlier_us else 0.0
    return site.can_run_us(bounds[0]) + earlier


def predict(
    stored: Stored, advice: Advice, costs: Costs, geometry: Geometry, scale: Scale
) -> Prediction:
    stretches = parted(stored, calls_of(stored, advice.sites, is_replayed))
    check_record(stored, advice, stretches)
    machine = Machine(stored, costs, geometry, scale)
    alike, expected = (machine.replayed(stretches, more) for more in (False, True))
    operations = operations_of_sites(machine, stretches)
    faster = geometry.ratio**scale.computation
    found: list[SitePrediction] = []
    in_replayed = 0.0
    for site in advice.sites:
        if not (times := expected.get(id(site))) or not times.recorded_us:
            continue
        recorded_us = site.time_us * len(site.members) / advice.reported
        part = recorded_us / times.recorded_us
        # The error is applied to the result. Replaying with other costs would fill a rate limiter's
        # bucket differently.
        error_us = MODEL * times.transfer_us
        ends = alike[id(site)].predicted_us - error_us, times.predicted_us
        us = Interval(*ends, times.predicted_us + error_us).times(part)
        in_replayed += recorded_us
        transfer_us = times.transfer_us * part
        free, change = won(site, operations[id(site)], costs, faster)
        found.append(
            SitePrediction(
                site=site,
                bytes=site.bytes * geometry.ratio ** scale.of_site(site, plain_kind(site)),
                ranks=operations[id(site)].places.ranks,
                recorded_us=recorded_us,
                us=us,
                waiting_us=us.expected - transfer_us,
                free_us=free * transfer_us,
                change_us=None
                if change is None or site not in advice.best
                else change * transfer_us,
            )
        )
    # Time in calls that the simulator does not know is scaled as computation.
    other_us = (advice.elapsed_us - in_replayed) * faster
    return summed(advice, machine, stretches, found, other_us)


def won(
    site: Site, operation: Operation, costs: Costs, faster: float
) -> tuple[float, float | None]:
    """Returns two shares of a call's time: what Weft saves without a change, and what the change
    saves in addition. The second is None if the idle time of the buffer is not known."""
    library, auto = costs.library(operation), costs.auto(operation)
    if library.us <= 0:
        return 0.0, None
    window = window_us(site)
    hidden = 0.0
    if window is not None and window > 0:
        hidden = costs.hidden(operation, window * faster) * auto.us / library.us
    free = 1 - auto.us / library.us
    return (free + hidden, None) if is_nonblocking(site.call) else (free, hidden)


def summed(
    advice: Advice,
    machine: Machine,
    stretches: Sequence[Stretch],
    sites: list[SitePrediction],
    other_us: float,
) -> Prediction:
    not_replayed_us = sum(
        site.time_us * len(site.members) / advice.reported
        for site in advice.sites
        if not any(one.site is site for one in sites)
    )
    collective = Interval(
        *(
            not_replayed_us + sum(getattr(one.us, end) for one in sites)
            for end in ("low", "expected", "high")
        )
    )
    varies = spread_of_computation(stretches)
    apart_us = max(0.0, other_us - not_replayed_us)

    def apart(end: float) -> float:
        """Returns the combined distance of both errors, which are independent."""
        return math.hypot(end - collective.expected, varies * apart_us)

    collective = Interval(
        max(0.0, collective.expected - apart(collective.low)),
        collective.expected,
        collective.expected + apart(collective.high),
    )
    whole = Interval(*(apart_us + getattr(collective, end) for end in ("low", "expected", "high")))
    shares = [
        getattr(collective, end) / max(1e-9, getattr(whole, end))
        for end in ("low", "expected", "high")
    ]
    changes = [one.change_us for one in sites if one.change_us is not None]
    return Prediction(
        machine=machine.costs.path.stem,
        geometry=machine.geometry,
        scale=machine.scale,
        recorded_ranks=advice.ranks,
        recorded_us=advice.elapsed_us,
        recorded_collective_us=advice.collective_share * advice.elapsed_us,
        elapsed_us=whole,
        collective_us=collective,
        share=Interval(*shares),
        free_us=difference(sites),
        change_us=Interval(*(sum(changes) * f for f in (1 - MODEL, 1, 1 + MODEL)))
        if changes
        else None,
        sites=sorted(sites, key=lambda one: -one.us.expected),
        assumptions=assumptions(advice, machine, sites, not_replayed_us, varies),
    )


def difference(sites: Sequence[SitePrediction]) -> Interval:
    """Returns the difference between the library's calls and Weft's, each with the simulator's
    error."""
    transfers = sum(one.us.expected - one.waiting_us for one in sites)
    free = sum(one.free_us for one in sites)
    error = MODEL * math.hypot(transfers, transfers - free) if free else 0.0
    return Interval(max(0.0, free - error), free, min(transfers, free + error))


def check_record(stored: Stored, advice: Advice, stretches: list[Stretch]) -> None:
    if stored.other_version:
        raise ResultError(
            f"{stored.path}: a prediction needs a record of this Weft's schema, and it has"
            f" {stored.other_version}: run weft advise again"
        )
    if not stretches:
        raise ResultError(
            f"{stored.path}: it has no collective that all its ranks kept, so there is nothing to"
            " replay"
        )
    if not any(us for one in stretches for _, gaps in computation(one) for us in gaps.values()):
        raise ResultError(
            f"{stored.path}: it has no computation between collectives, so nothing can be said of"
            " the run time: record the program, not one collective"
        )
    if not advice.finalized:
        raise ResultError(
            f"{stored.path}: the program did not come to MPI_Finalize, so its run time is not known"
        )


def assumptions(
    advice: Advice,
    machine: Machine,
    sites: list[SitePrediction],
    not_replayed_us: float,
    varies: float,
) -> list[str]:
    """Returns the assumptions of the prediction, one sentence each."""
    geometry, facts = machine.geometry, machine.costs.facts
    network = facts["network"]
    name = f"{machine.costs.path}"
    source = facts.get("sources", {}).get("network.latency_us") or facts.get("sources", {}).get(
        "network", "no source named"
    )
    found = [
        f"machine: {name}, {facts['cores']} cores per node, network of {network['latency_us']:g} µs"
        f" and {network['bytes_per_us']:g} MB/s ({source})",
        f"model: the simulator's times are within {MODEL:.0%} of measured ones in nine of ten cases"
        " (docs/simulator.md); the MPI library's algorithms are those of MPICH",
        machine.scale.words,
        "computation: a core there is as fast as one of the record; messages that are no"
        f" collectives count as computation, which varies by {varies:.0%} in the record",
    ]
    if geometry.ranks != geometry.recorded:
        found.append(
            f"imbalance: from as among the record's {geometry.recorded} ranks to as among"
            f" {geometry.ranks:,} ranks with normally distributed arrivals; a communicator grows by"
            " the power with which all ranks do"
        )
    if any(is_neighborhood(plain_kind(one.site)) for one in sites):
        found.append(
            "neighbourhood collectives: two neighbours each, and blocks of the recorded size where"
            " the record has one"
        )
    if any(not machine.costs.library(one).is_exact for one in set(machine.operations.values())):
        found.append(
            "size: collectives with too many messages are simulated on fewer nodes, and their time"
            " grows on by the same power"
        )
    if not_replayed_us > 0.01 * advice.elapsed_us:
        found.append(
            f"{not_replayed_us / advice.elapsed_us:.0%} of the recorded run is in collectives that"
            " the simulator does not know: they keep their time"
        )
    return found
