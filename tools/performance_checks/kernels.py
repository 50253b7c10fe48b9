"""Measures the kernels: engine auto against the blocking form and the best named engine,
interleaved in one job over links of 200 Mbit/s, and the speed of one rank.

The sizes should make communication 30 to 60 % of the blocking time; a note says how much it was."""

from __future__ import annotations

import re
from collections.abc import Iterator

from weft.bench import kernel_runs
from weft.measurements import statistics
from weft.measurements.kernels import BLOCKING, Run

from .check import Figure
from .jobs import JOB_SECONDS, At, JobFailed, ratio

NAMED = ("native", "function", "thread", "tcc", "assist")
WANTED = (0.3, 0.6)  # communication's wanted share of the blocking time
SPEED_ROUNDS = 7
# Each rank's rows exceed the bytes that the links pass at full speed. With a third of these
# iterations, which is fewer than such decompositions need, learning would take 5 to 8 % of a run.
TENSOR = "--dimensions 12000x8000x6000 --rank 16 --iterations 30 --exchange overlapped --entries"
ARGUMENTS = {
    "cpals": {2: f"{TENSOR} 9000000", 4: f"{TENSOR} 18000000"},  # arguments by number of nodes
    "pipecg": dict.fromkeys((2, 4), "--grid 100x100x100 --method pipelined --tolerance 1e-2"),
    "fft3d": dict.fromkeys((2, 4), "--grid 64x64x64"),
    "atmosphere": dict.fromkeys((2, 4), "--truncation 340 --steps 2"),
}
# The messages of atmosphere are shorter than the default burst, which the lab's links pass at full
# speed.
LINKS = {"pipecg": ",delay=1ms", "atmosphere": ",burst=64kb"}


def compared(run: Run) -> Iterator[Figure]:
    share, (least, most) = run.communication_share, WANTED
    note = f"communication {share:.0%}"
    if not least <= share <= most:
        note += f", not {least:.0%} to {most:.0%}"
    best = min(NAMED, key=lambda engine: run.times_us[engine].median)
    auto = run.samples_us["auto"]
    yield Figure("auto / blocking", ratio(auto, run.samples_us[BLOCKING]), run.kernel, note)
    yield Figure("auto / best named engine", ratio(auto, run.samples_us[best]), run.kernel, best)


def overlap(program: str, at: At) -> Iterator[Figure]:
    """Measures the overlap of one kernel; with --short only on two nodes."""
    nodes = at.where.nodes
    if nodes == 2 or not at.short:
        options = {
            "lab": f"nodes={nodes},rate=200mbit{LINKS.get(program, '')}",
            "arguments": f"{ARGUMENTS[program][nodes]} --repetitions {at.repetitions}",
            "engines": ",".join((*NAMED, "auto")),
        }
        run = kernel_runs.measure(program, options, at.mpi, JOB_SECONDS)
        at.keep(**run.to_json())
        yield from compared(run)


# The share of a product refers to the bytes that must be moved, if the kernel prints it.
SPEED_LINE = re.compile(
    r"^(.+?): .+, (?:share|ratio) (\S+) \[\S+\]$(?:\n +of these bytes .+: share (\S+))?", re.M
)


def speed(program: str, arguments: str, quantity: str, at: At) -> Iterator[Figure]:
    """Measures the speed of a kernel without Weft, by processor time, for each product that the
    program reports."""
    words = ["--what", "speed", *arguments.split(), "--repetitions", 3]
    found: dict[str, list[float]] = {}
    for _ in range(at.few_or(SPEED_ROUNDS)):
        for name, share, of_moved in SPEED_LINE.findall(at.job(program, words)):
            found.setdefault(name, []).append(float(of_moved or share))
    for name, shares in found.items():
        yield Figure(quantity, statistics.of(shares), f"{program} {arguments.split()[1]}, {name}")
    if not found:
        raise JobFailed(f"{program} tells no speed")
