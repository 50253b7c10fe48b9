"""Tests kernels/atmosphere with flows that have no formula. They are compared with the same flow at
a higher resolution, and with the literature. Conserved quantities must stay constant."""

from __future__ import annotations

import array
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel_answers import sines_of_gauss

DAYS = 5
# These are numbers of latitudes and longitudes by truncation.
GRID = {10: (16, 32), 21: (32, 64), 42: (64, 128), 85: (128, 256)}
POINTS = 8  # number of points of an interpolation
FIGURES = re.compile(
    r"mass by (?P<mass>\S+)\nenergy differs by (?P<energy>\S+); "
    r"vorticity from (?P<least>\S+) to (?P<most>\S+) per second\n"
    r"potential enstrophy differs by (?P<enstrophy>\S+); potential vorticity at most "
    r"(?P<potential>\S+) per metre and second, at the beginning (?P<before>\S+)\n"
)


def flow(kernel, file: Path, case: str, truncation: int, *words: object) -> dict[str, float]:
    """Simulates five days. The file gets the fields at the beginning and at the end. Returns the
    printed figures."""
    seconds = 1200 if truncation < 42 else 600
    steps = DAYS * 86400 // seconds
    words = ("--what", "flow", "--case", case, "--truncation", truncation, *words)
    words += ("--steps", steps + 1, "--seconds", seconds, "--output", file, "--every", steps)
    done = kernel("atmosphere", *words, ranks=1)
    assert done.returncode == 0, done.stdout + done.stderr
    found = FIGURES.search(done.stdout).groupdict()
    return {name: float(value) for name, value in found.items()}


class Depths:
    """The depths at the end, times gravity, on the grid."""

    def __init__(self, file: Path, truncation: int) -> None:
        self.rows, self.columns = GRID[truncation]
        values = array.array("d", file.read_bytes())
        points = self.rows * self.columns
        assert len(values) == 6 * points
        self.values = values[5 * points :]
        self.latitudes = [math.asin(sine) for sine in sines_of_gauss(self.rows)]

    def meridian(self, column: int) -> list[tuple[float, float]]:
        """Returns latitudes and values of a meridian. Beyond the poles it continues on the opposite
        meridian."""
        here, there = (
            [(x, self.values[j * self.columns + c]) for j, x in enumerate(self.latitudes)]
            for c in (column, (column + self.columns // 2) % self.columns)
        )
        north = [(math.pi - x, value) for x, value in reversed(there[:POINTS])]
        south = [(-math.pi - x, value) for x, value in reversed(there[-POINTS:])]
        return north + here + south

    def at(self, latitudes: list[float], columns: int) -> Iterator[tuple[int, int, float]]:
        """Yields values at other latitudes, interpolated by polynomials along the meridians that
        both grids have."""
        for i in range(columns):
            line = self.meridian(i * (self.columns // columns))
            for j, latitude in enumerate(latitudes):
                near = sorted(line, key=lambda point: abs(point[0] - latitude))[:POINTS]
                yield i, j, interpolated(near, latitude)


def interpolated(points: list[tuple[float, float]], x: float) -> float:
    found = 0.0
    for i, (own, value) in enumerate(points):
        others = [other for k, (other, _) in enumerate(points) if k != i]
        found += value * math.prod((x - other) / (own - other) for other in others)
    return found


def distance(coarse: Depths, fine: Depths) -> float:
    """Returns the relative root mean square difference over the sphere, as defined in the
    literature."""
    sums = [0.0, 0.0]
    for i, j, value in fine.at(coarse.latitudes, coarse.columns):
        weight = math.cos(coarse.latitudes[j])  # Gaussian latitudes are nearly equidistant
        sums[0] += weight * (coarse.values[j * coarse.columns + i] - value) ** 2
        sums[1] += weight * value**2
    return math.sqrt(sums[0] / sums[1])


def test_the_flow_over_a_mountain_comes_nearer_to_itself_the_finer_it_is(kernel, tmp_path):
    """This is case 5 of Williamson. Its cone is not smooth, so that coefficients decrease
    slowly."""
    depths = {}
    for truncation in (10, 21, 42):
        figures = flow(kernel, tmp_path / "depths", "5", truncation)
        depths[truncation] = Depths(tmp_path / "depths", truncation)
        assert figures["mass"] < 1e-12
    assert figures["energy"] < 1e-7 and figures["enstrophy"] < 2e-6
    # A column of water keeps its potential vorticity, so that the maximum is constant.
    assert figures["potential"] == pytest.approx(figures["before"], rel=3e-3)
    far, near = (distance(depths[one], depths[42]) for one in (10, 21))
    assert near < 2e-3 and near < far / 2


def test_the_unstable_jet_keeps_what_the_water_keeps_and_comes_nearer_to_itself(kernel, tmp_path):
    """This is the jet of Galewsky for five days. On the fifth day its eddies roll up."""
    depths = {}
    for truncation in (21, 42):
        figures = flow(kernel, tmp_path / "depths", "galewsky", truncation)
        depths[truncation] = Depths(tmp_path / "depths", truncation)
        assert figures["mass"] < 1e-12
    assert figures["energy"] < 1e-7 and figures["enstrophy"] < 5e-5
    assert figures["least"] < -1e-4 and 1.2e-4 < figures["most"] < 1.6e-4
    assert distance(depths[21], depths[42]) < 1e-2
