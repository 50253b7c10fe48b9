"""Derives values of a machine's description from measured messages (`weft sim --calibrate`).

Only times of single messages are used, and for nodes that share cores also that of a short
allreduce."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from weft.bench.settings import SettingsError, lab_words
from weft.data.stored import ResultError, parse
from weft.lab import Lab, LabError
from weft.sim.native import SimError
from weft.system import building, mpi_libraries
from weft.system.mpi_libraries import Implementation, MpiError
from weft.system.probe import how_to_build

KIB = 1024
# This window holds any message, which then moves by itself once both sides have agreed.
WHOLE = 1 << 40
LONG = 1 << 20  # bytes from which the rate alone determines a message's time
FEW = 0.02  # a burst that saves a smaller share of the longest message's time is ignored
WITHIN = 0.8  # share of a burst; a message up to this length passes at the burst's rate
STREAMS = 16 * KIB  # bytes from which a message's start-up hardly affects its rate
TIMEOUT_S = 280


@dataclass(frozen=True)
class PingPong:
    """The output of bench/pingpong.cc; times in microseconds."""

    gap_us: float
    send_us: float
    receive_us: float
    poll_us: float
    eager_bytes: int
    left_us: float  # remaining time of the longest message that has begun and was then not polled
    unlooked_us: float  # time of the longest message that was not polled since it was posted
    one_way: list[tuple[int, float]]
    exchange: list[tuple[int, float]]  # times of one message in each direction at once
    # The two fields after this one are the times that each side's core works on a message of this
    # size.
    core_bytes: int
    sender_core_us: float
    receiver_core_us: float


def parsed(text: str) -> PingPong:
    try:
        found = parse(PingPong, text, "what pingpong has printed")
    except ResultError as error:
        raise SimError(str(error)) from None
    if len([size for size, _ in found.one_way if size >= LONG]) < 2:
        raise SimError("pingpong measured fewer than two lengths of 1 MiB and more")
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Returns the slope of the least-squares line."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return over / sum((x - mean_x) ** 2 for x, _ in points)


def overhead_us(found: PingPong) -> float:
    return (found.send_us + found.receive_us) / 2


def network_of(found: PingPong) -> dict[str, float | int]:
    """Returns those fields of `network` that follow from messages between two nodes.

    A message takes overhead, gap, its bytes at their rate, latency, and overhead again. A long one
    has a handshake first, which adds two latencies and one overhead."""
    shortest, longest = found.one_way[0], found.one_way[-1]
    overhead, gap = overhead_us(found), found.gap_us
    latency = max(0.0, shortest[1] - 2 * overhead - gap)
    rate = 1 / slope([(size, us) for size, us in found.one_way if size >= LONG])

    def moving(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        asks = 2 * latency + overhead
        return [
            (size, max(1e-3, us - points[0][1] - (asks if size > found.eager_bytes else 0)))
            for size, us in points
        ]

    size, moving_us = moving([shortest, longest])[1]
    burst = size - rate * moving_us
    pace = 0.0
    if burst > FEW * size:
        pace = slope_within(moving(found.one_way), WITHIN * burst)
    peak = 1 / max(pace, 1e-6) if pace else 0.0
    if peak <= rate:
        burst = peak = 0.0
    bound = slope_within(moving(found.exchange), WITHIN * burst if burst else longest[0])
    sender, receiver = work_per_kib(found, bound * KIB)
    return {
        "latency_us": round(latency, 3),
        "overhead_us": round(overhead, 3),
        "gap_us": round(gap, 3),
        "bytes_per_us": round(rate, 3),
        "eager_bytes": found.eager_bytes,
        "burst_bytes": round(burst),
        "burst_bytes_per_us": round(peak, 3),
        "send_us_per_kib": round(sender, 4),
        "recv_us_per_kib": round(receiver, 4),
        "window_bytes": window_of(found, rate, burst),
    }


def slope_within(points: Sequence[tuple[int, float]], most: float) -> float:
    """Returns the slope for lengths up to `most` that are long enough to show a rate; 0 if there
    are too few."""
    within = [(size, us) for size, us in points if STREAMS <= size <= most]
    return slope(within) if len(within) > 1 else 0.0


def work_per_kib(found: PingPong, bound_us: float) -> tuple[float, float]:
    """Returns the core time of sender and receiver per KiB.

    Both are small differences of long times. The time of an exchange per KiB bounds their sum,
    since each core both sends and receives in it. A bound of 0 means that it is not known."""
    kib = found.core_bytes / KIB
    sender, receiver = (
        max(0.0, us - overhead_us(found)) / kib
        for us in (found.sender_core_us, found.receiver_core_us)
    )
    less = min(1.0, bound_us / (sender + receiver)) if bound_us > 0 < sender + receiver else 1.0
    return less * sender, less * receiver


def window_of(found: PingPong, rate: float, burst: float) -> int:
    """Returns the bytes that were transferred before a core polled again. The remaining bytes found
    a full token bucket."""
    size, alone_us = found.one_way[-1]
    left = min(size, rate * found.left_us + burst)
    if found.left_us > alone_us / 10:
        return max(4 * KIB, round(size - left))
    return WHOLE if found.unlooked_us > alone_us / 2 else 0


def message_of(found: PingPong) -> dict[str, float | int]:
    """Returns those fields of `message` that follow from messages inside a node."""
    return {"overhead_us": round(overhead_us(found), 3), "eager_bytes": found.eager_bytes}


def described(machine: dict[str, Any], how: str, **groups: dict[str, float | int]) -> None:
    """Puts values into a machine's description, with their source."""
    for group, values in groups.items():
        for name, value in values.items():
            machine[group][name] = value
            machine["sources"][f"{group}.{name}"] = how


def node_of_the_lab(machine: dict[str, Any], cores: int) -> dict[str, Any]:
    """Returns the cores and NUMA nodes of a node that has this many of the machine's cores."""
    cores = max(1, cores)
    return {"cores": cores, "numa_nodes": min(machine["numa_nodes"], cores)}


def program_of(mpi: Implementation, name: str) -> str:
    program = mpi.program(name)
    if not building.is_there(program):
        raise SimError(f"{program} is missing; {how_to_build(mpi)}")
    return str(program)


def said_by(
    mpi: Implementation, command: list[str], ranks: int, lab: Optional[Lab], limit_s: int
) -> str:
    """Runs a measuring program, in the lab or on this node, and returns its output."""
    if lab:
        done = lab.run(command, capture=True, timeout=limit_s)
    else:
        environment = {**os.environ, **mpi.environment()}
        command = [*mpi.launcher(ranks), *command]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=limit_s
        )
    if done.returncode != 0:
        said = (done.stderr or done.stdout or "").strip()
        raise SimError(f"{' '.join(command)} failed under {mpi.name}: {said}")
    return done.stdout or ""


def in_the_node(mpi: Implementation) -> PingPong:
    command = [program_of(mpi, "pingpong"), "--pause-us", "0"]
    return parsed(said_by(mpi, command, 2, None, TIMEOUT_S))


def in_the_lab(mpi: Implementation, words: dict[str, Any]) -> PingPong:
    with Lab(2, 1, words["rate"], words["burst"], mpi, delay=words["delay"]) as lab:
        return parsed(said_by(mpi, [program_of(mpi, "pingpong")], 2, lab, TIMEOUT_S))


def turn_us(mpi: Implementation, words: dict[str, Any]) -> float:
    """Returns the time that a short message waits until its receiver runs, if nodes share cores.
    It is measured with an allreduce of 8 bytes, which has one round of messages for each power
    of two."""
    command = [program_of(mpi, "latency"), "--collective", "allreduce", "--bytes", "8"]
    nodes = words["nodes"]
    with Lab(nodes, 1, words["rate"], words["burst"], mpi, delay=words["delay"]) as lab:
        said = said_by(mpi, [*command, "--forms", "blocking"], nodes, lab, TIMEOUT_S)
    return float(said.split()[-1]) / math.ceil(math.log2(nodes))


def with_messages(machine: dict[str, Any], lab: str | None, mpi_name: str | None) -> None:
    """Measures messages and adds the values to the machine's description. Without --lab only
    messages inside this node are measured."""
    try:
        mpi = mpi_libraries.chosen(mpi_name)
        words = lab_words(lab) if lab else None
        inside = in_the_node(mpi)
        how = f"measured by weft sim --calibrate, {mpi.name} {mpi.version}"
        described(machine, how, message=message_of(inside), core={"poll_us": inside.poll_us})
        machine["about"] = "Measured; the network has usual values: give --lab to measure one."
        if not words:
            return
        between = in_the_lab(mpi, words)
        is_crowded = words["nodes"] > len(os.sched_getaffinity(0))
        turn = turn_us(mpi, words) if is_crowded else 0.0
    except (MpiError, LabError, SettingsError, subprocess.TimeoutExpired) as error:
        raise SimError(str(error)) from None
    where = f"{how}, lab {words['rate']}, burst {words['burst']}, delay {words['delay']}"
    network = network_of(between)
    described(machine, where, network=network, core={"poll_us": between.poll_us})
    latency = turn - 2 * network["overhead_us"] - network["gap_us"]
    if latency > network["latency_us"]:
        shared = f"{where}, {words['nodes']} nodes in turn on {machine['cores']} cores"
        described(machine, shared, network={"latency_us": round(latency, 3)})
    machine["about"] = "Measured; a node of the lab."
    cores = machine["cores"]
    machine.update(node_of_the_lab(machine, cores // words["nodes"]))
    machine["sources"]["cores"] = f"{cores} cores, shared out to {words['nodes']} nodes"
