"""The layout of a lab: nodes, addresses, cores and rates.

It is checked outside the sandbox before anything is created, and used inside."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

NETWORK = "10.77.0.0/24"
LAUNCH_HOST = "weft-lab"
LAUNCH_ADDRESS = "10.77.0.254"
SWITCH = "weft-switch"  # Weft's program that delays frames
MAX_NODES = 64
RATE_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
NANOSECONDS = {"us": 10**3, "ms": 10**6, "s": 10**9}
MAX_DELAY_NS = 10**9
# The token bucket of an idle link fills up to the burst, which the link then sends at full speed. A
# program without overlap profits from that. With a smaller burst a link idles if its sender shares
# a core with computation (docs/lab.md).
BURST_SECONDS, LEAST_BURST_KB = 0.002, 256


class LabError(Exception):
    """Raised for a fault that the user can correct; the message says what is wrong."""


@dataclass
class Plan:
    nodes: int
    per_node: int = 1
    rate: str = "200mbit"
    burst: str = ""
    # This delay applies to each frame between two nodes. The delays by rate and system are added to
    # it.
    delay_ns: int = 0
    # This is the list of cores of each node, as taskset takes it.
    cores: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> list[str]:
        return [f"weft{i}" for i in range(self.nodes)]

    @staticmethod
    def address(node: int) -> str:
        return f"10.77.0.{node + 1}"

    @property
    def rate_bits_per_second(self) -> float:
        return bits_per_second(self.rate)


def make_plan(
    nodes: int,
    per_node: int,
    rate: str,
    burst: str | None,
    cores: str | Sequence[str] | None,
    delay: str = "0",
) -> Plan:
    """Returns a plan. Raises LabError for impossible values.

    `burst` is None for what passes in BURST_SECONDS, but at least LEAST_BURST_KB. `cores` is text
    as for --cores, or a list for each node as taskset takes it."""
    if not 1 <= nodes <= MAX_NODES:
        raise LabError(f"--nodes must be between 1 and {MAX_NODES}, not {nodes}")
    if per_node < 1:
        raise LabError(f"--per-node must be at least 1, not {per_node}")
    if (
        not re.fullmatch(r"\d+(\.\d+)?(bit|kbit|mbit|gbit)", rate)
        or float(re.match(r"[\d.]+", rate)[0]) <= 0
    ):
        raise LabError(f"--rate needs a number with bit, kbit, mbit or gbit, not '{rate}'")
    if burst is not None and not re.fullmatch(r"[1-9]\d*(b|kb|mb)", burst):
        raise LabError(f"--burst needs a number with b, kb or mb, not '{burst}'")
    delay_ns = parse_delay(delay)
    allowed = sorted(os.sched_getaffinity(0))
    if isinstance(cores, str):
        shares = parse_cores(cores, allowed)
    else:
        shares = list(cores or ()) or share_cores(nodes, per_node, allowed)
    of_nodes = [shares[i % len(shares)] for i in range(nodes)]
    return Plan(nodes, per_node, rate, burst or usual_burst(rate), delay_ns, of_nodes)


def bits_per_second(rate: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", rate).groups()
    return float(number) * RATE_BITS[unit]


def usual_burst(rate: str) -> str:
    kilobytes = round(bits_per_second(rate) / 8 / 1024 * BURST_SECONDS)
    return f"{max(kilobytes, LEAST_BURST_KB)}kb"


def parse_delay(text: str) -> int:
    """Returns the nanoseconds of a text such as `1ms`, `50us` or `0`. Raises LabError for any other
    text."""
    if text == "0":
        return 0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", text)
    if not match or not 0 <= (delay_ns := round(float(match[1]) * NANOSECONDS[match[2]])) <= (
        MAX_DELAY_NS
    ):
        raise LabError(f"--delay needs a time of at most 1s, such as 1ms or 50us, not '{text}'")
    return delay_ns


def share_cores(nodes: int, per_node: int, allowed: list[int]) -> list[str]:
    """Gives each rank a core if there are enough, otherwise equal shares, otherwise one core in
    turn."""
    count = len(allowed)
    if nodes >= count or nodes * per_node <= count:
        width = per_node if nodes * per_node <= count else 1
        starts = [i * width % count for i in range(nodes)]
        return [",".join(map(str, allowed[start : start + width])) for start in starts]
    bounds = [i * count // nodes for i in range(nodes + 1)]
    return [",".join(map(str, allowed[bounds[i] : bounds[i + 1]])) for i in range(nodes)]


def parse_cores(text: str, allowed: list[int]) -> list[str]:
    """Returns the cores of each node from text such as `0,1,2-3`. Entries are used in turn, and may
    be ranges. Raises LabError for unusable cores."""
    entries = text.split(",")
    for entry in entries:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", entry)
        if not match:
            raise LabError(f"--cores needs cores such as 0,1 or 0-1,2-3, not '{entry}'")
        first, last = int(match[1]), int(match[2] or match[1])
        if any(core not in allowed for core in range(first, last + 1)) or last < first:
            raise LabError(f"--cores names {entry}; usable here: {','.join(map(str, allowed))}")
    return entries
