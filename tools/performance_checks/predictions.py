"""Compares predictions of `weft advise --predict` for four nodes, from runs on two, with runs on
four.

Both have the same number of ranks on each node, and so on each core."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .check import Figure
from .jobs import WEFT, At, Where, in_turn, median

NEAR = 0.2
ROUNDS = 3
KERNELS = {
    "iallreduce_kernel": "--elements 10000 --repetitions 12",
    "pipecg": "--grid 40x40x40 --repetitions 3",
    "fft3d": "--grid 64x64x64 --repetitions 8",
    "cpals": "--dimensions 3000x2000x1500 --entries 300000 --repetitions 3",
    "atmosphere": "--truncation 85 --steps 2 --repetitions 8",
}
LAB = "nodes={},rate=200mbit"
QUANTITIES = ("time_us", "collectives_us")


@dataclass(frozen=True)
class Beside:
    """The figures of one kernel in us, round by round: the prediction with its interval, and the
    measured time."""

    kernel: str
    quantity: str
    predicted: list[dict[str, float]]
    measured: list[float]

    @property
    def ratio(self) -> float:
        return median([one["expected"] for one in self.predicted]) / median(self.measured)

    @property
    def is_near(self) -> bool:
        return abs(self.ratio - 1) <= NEAR

    @property
    def is_inside(self) -> bool:
        low, high = (median([one[end] for one in self.predicted]) for end in ("low", "high"))
        return low <= median(self.measured) <= high

    def __str__(self) -> str:
        what = self.quantity.removesuffix("_us")
        return f"{self.kernel} {what} {self.ratio:.2f}{'' if self.is_inside else ' outside'}"


def recorded(at: At, where: Where, kernel: str) -> dict[str, float]:
    """Returns the us of the whole run and of its collectives. The record is written to the check's
    directory."""
    program = [at.library.program(kernel), *KERNELS[kernel].split(), "--form", "blocking"]
    at.command(*at.advising("--no-sample", "--overhead=0"), *at.launcher(where), *program)
    figures = json.loads((at.directory / "json").read_text())["headline"]
    whole_us = figures["seconds"] * 1e6
    return dict(zip(QUANTITIES, (whole_us, whole_us * figures["collective_share"])))


def predicted(at: At, machine: Path, record: Where, there: Where, kernel: str) -> dict[str, dict]:
    recorded(at, record, kernel)
    options = ("--nodes", there.nodes, "--per-node", there.each, "--scale", "weak")
    found = at.directory / "prediction.json"
    words = ("--machine", machine, "--from", at.directory / "record", "--json", found)
    at.command(WEFT, "advise", "--predict", *options, *words)
    answer = json.loads(found.read_text())
    return {quantity: answer[quantity] for quantity in QUANTITIES}


def beside(at: At, machine: Path, kernel: str) -> Iterator[Beside]:
    record, there = at.places
    ways = {
        "predicted": partial(predicted, at, machine, record, there, kernel),
        "measured": partial(recorded, at, there, kernel),
    }
    found = in_turn(ways, at.few_or(ROUNDS))
    at.keep(kernel=kernel, load=os.getloadavg()[0], **found)
    for quantity in QUANTITIES:
        rounds = ([one[quantity] for one in found[way]] for way in ways)
        yield Beside(kernel, quantity, *rounds)


def predictions(at: At) -> Iterator[Figure]:
    """Measures the accuracy of predictions. The machine is described first, by single messages;
    nothing is fitted to the kernels."""
    machine = at.directory / "lab.json"
    lab = LAB.format(at.places[1].nodes)
    at.command(WEFT, "sim", "--calibrate", "--lab", lab, "--mpi", at.mpi, "--out", machine)
    found = [one for kernel in KERNELS for one in beside(at, machine, kernel)]
    load = f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"
    note = f"predicted / measured: {', '.join(map(str, found))}; {load}"
    near = sum(one.is_near for one in found) / len(found)
    yield Figure("predicted within 20 %", near, note=note)
    inside = sum(one.is_inside for one in found) / len(found)
    yield Figure("measured inside the interval", inside)
