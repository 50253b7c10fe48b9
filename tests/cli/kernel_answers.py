"""Functions that read the output of kernels, for their tests."""

from __future__ import annotations

import math
import subprocess


def check(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 wrong results" in done.stdout
    return done.stdout


def refused(done: subprocess.CompletedProcess, name: str) -> str:
    """Returns the single sentence with which the kernel refuses its input."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{name}: ")]
    assert len(lines) == 1 and "us" not in done.stdout.split()
    return lines[0]


QUICK = ("--repetitions", 1)
SMALL = ("--grid", "7x5x6", *QUICK)


def sines_of_gauss(latitudes: int) -> list[float]:
    """Returns the sines of the Gaussian latitudes from north to south: roots of the Legendre
    polynomial, by bisection around estimates."""

    def legendre(x: float) -> float:
        before, now = 1.0, x
        for n in range(2, latitudes + 1):
            before, now = now, ((2 * n - 1) * x * now - (n - 1) * before) / n
        return now

    found = []
    for j in range(latitudes):
        north, south = (math.cos(math.pi * (j + k) / (latitudes + 0.5)) for k in (0.5, 1.0))
        for _ in range(60):
            middle = (north + south) / 2
            if (legendre(middle) > 0) == (legendre(north) > 0):
                north = middle
            else:
                south = middle
        found.append(north)
    return found
