"""What `weft sim --calibrate` makes of measured messages: the values of a machine's description.

Only times of single messages between two ranks are looked at, none of a collective.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from weft import mpi_libraries
from weft.bench.settings import SettingsError, lab_words
from weft.lab import Lab, LabError
from weft.mpi_libraries import Implementation, MpiError
from weft.probe import how_to_build
from weft.sim.native import SimError
from weft.stored import ResultError, parse

KIB = 1024
WHOLE = 1 << 40  # a window that holds any message: it moves by itself once both sides agree
LONG = 1 << 20  # from here on a message's time is its rate's
FEW = 0.02  # a burst that saves less of the longest message's time is none
TIMEOUT_S = 280


@dataclass(frozen=True)
class PingPong:
    """What bench/pingpong.cc prints; times in microseconds."""

    gap_us: float
    send_us: float
    receive_us: float
    poll_us: float
    eager_bytes: int
    left_us: float  # of the longest message, when it has begun and nobody has looked since
    unlooked_us: float  # the same, when nobody has looked since it was posted
    one_way: list[tuple[int, float]]
    core: list[tuple[int, float, float]]  # bytes, what sender and receiver work


def parsed(text: str) -> PingPong:
    try:
        found = parse(PingPong, text, "what pingpong has printed")
    except ResultError as error:
        raise SimError(str(error)) from None
    if len([size for size, _ in found.one_way if size >= LONG]) < 2:
        raise SimError("pingpong measured fewer than two lengths of 1 MiB and more")
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line with the least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return over / sum((x - mean_x) ** 2 for x, _ in points)


def overhead_us(found: PingPong) -> float:
    return (found.send_us + found.receive_us) / 2


def network_of(found: PingPong) -> dict[str, float | int]:
    """The fields of `network` that messages between two nodes say something of.

    A message takes: overhead, gap, bytes at their rate, latency, overhead. A long one asks first,
    which takes two latencies and an overhead more.
    """
    shortest, longest = found.one_way[0], found.one_way[-1]
    overhead, gap = overhead_us(found), found.gap_us
    latency = max(0.0, shortest[1] - 2 * overhead - gap)
    rate = 1 / slope([(size, us) for size, us in found.one_way if size >= LONG])

    def moving_us(size: int, us: float) -> float:
        asks = 2 * latency + overhead if size > found.eager_bytes else 0
        return max(1e-3, us - shortest[1] - asks)

    burst = longest[0] - rate * moving_us(*longest)
    peak = 0.0
    if burst > FEW * longest[0]:
        # Of several lengths together: a single short one says little of a rate.
        most = min(found.eager_bytes, burst / 2)
        within = [(size, us) for size, us in found.one_way if size <= most]
        peak = 1 / max(slope(within), 1e-6) if len(within) > 1 else 0.0
    if peak <= rate:
        burst = peak = 0.0
    first, last = found.core[0], found.core[-1]
    span = (last[0] - first[0]) / KIB
    return {
        "latency_us": round(latency, 3),
        "overhead_us": round(overhead, 3),
        "gap_us": round(gap, 3),
        "bytes_per_us": round(rate, 3),
        "eager_bytes": found.eager_bytes,
        "burst_bytes": round(burst),
        "burst_bytes_per_us": round(peak, 3),
        "send_us_per_kib": round(max(0.0, last[1] - first[1]) / span, 4),
        "recv_us_per_kib": round(max(0.0, last[2] - first[2]) / span, 4),
        "window_bytes": window_of(found, rate, burst),
    }


def window_of(found: PingPong, rate: float, burst: float) -> int:
    """What had moved when a core looked again; what was left had a full bucket."""
    size, alone_us = found.one_way[-1]
    left = min(size, rate * found.left_us + burst)
    if found.left_us > alone_us / 10:
        return max(4 * KIB, round(size - left))
    return WHOLE if found.unlooked_us > alone_us / 2 else 0


def message_of(found: PingPong) -> dict[str, float | int]:
    """The fields of `message` that messages inside a node say something of."""
    return {"overhead_us": round(overhead_us(found), 3), "eager_bytes": found.eager_bytes}


def described(machine: dict[str, Any], how: str, **groups: dict[str, float | int]) -> None:
    """Puts values into a machine's description, with their source."""
    for group, values in groups.items():
        for name, value in values.items():
            machine[group][name] = value
            machine["sources"][f"{group}.{name}"] = how


def node_of_the_lab(machine: dict[str, Any], cores: int) -> dict[str, Any]:
    """What a node has that got this many of the machine's cores."""
    cores = max(1, cores)
    return {"cores": cores, "numa_nodes": min(machine["numa_nodes"], cores)}


def program_of(mpi: Implementation, name: str) -> str:
    program = mpi.program(name)
    if not program.exists():
        raise SimError(f"{program} is missing; {how_to_build(mpi)}")
    return str(program)


def said_by(
    mpi: Implementation, command: list[str], ranks: int, lab: Optional[Lab], limit_s: int
) -> str:
    """Runs a measuring program, in the lab or in this node; what it printed."""
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


def with_messages(machine: dict[str, Any], lab: str | None, mpi_name: str | None) -> None:
    """Measures messages; without --lab only those inside this node."""
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
    except (MpiError, LabError, SettingsError, subprocess.TimeoutExpired) as error:
        raise SimError(str(error)) from None
    where = f"{how}, lab {words['rate']}, burst {words['burst']}, delay {words['delay']}"
    described(machine, where, network=network_of(between), core={"poll_us": between.poll_us})
    machine["about"] = "Measured; a node of the lab."
    cores = machine["cores"]
    machine.update(node_of_the_lab(machine, cores // words["nodes"]))
    machine["sources"]["cores"] = f"{cores} cores, shared out to {words['nodes']} nodes"
