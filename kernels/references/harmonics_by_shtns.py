"""The transforms of SHTns beside those of kernels/atmosphere: the same coefficients, one core.

Run by tools/compare-kernels, which has references/harmonics.cc transform the file of coefficients
that this writes: `begin TRUNCATION WAVES`, then `compare TRUNCATION REPETITIONS WAVES GRID BACK`.
Ours are those of P(n, m) exp(i m x), where P's square has the integral 1 over the sine of the
latitude; SHTns's are of functions whose square has the integral 1 over the sphere: times the root
of 2 pi.
"""

from __future__ import annotations

import json
import math
import sys
import time
from statistics import median

import shtns  # isort: skip  (first: where it is not there, numpy may not be, either)
import numpy


def begin(truncation: int, waves: str) -> None:
    """At random, the smaller the larger n is, as of a smooth field; those of m = 0 are real."""
    random = numpy.random.default_rng(1)
    parts = []
    for m in range(truncation + 1):
        count = truncation + 1 - m
        one = random.standard_normal(count) + 1j * (m > 0) * random.standard_normal(count)
        parts.append(one / (1.0 + numpy.arange(m, truncation + 1)))
    numpy.concatenate(parts).tofile(waves)


def compare(truncation: int, repetitions: int, waves: str, grid: str, back: str) -> dict:
    norm = shtns.sht_orthonormal | shtns.SHT_NO_CS_PHASE
    transform = shtns.sht(truncation, truncation, norm=norm)
    longitudes = 8
    while longitudes < 3 * truncation + 1:
        longitudes *= 2
    latitudes = longitudes // 2
    # 0: near the poles, too, no value is taken for none.
    transform.set_grid(latitudes, longitudes, shtns.sht_gauss | shtns.SHT_PHI_CONTIGUOUS, 0)
    ours, ours_back = numpy.fromfile(waves, complex), numpy.fromfile(back, complex)
    places = [transform.idx(n, m) for m in range(truncation + 1) for n in range(m, truncation + 1)]
    theirs = transform.spec_array()
    theirs[places] = ours * math.sqrt(2 * math.pi)
    there_ms, back_ms = [], []
    for _ in range(repetitions):
        begin_s = time.process_time()
        field = transform.synth(theirs)
        there_ms.append(1e3 * (time.process_time() - begin_s))
        begin_s = time.process_time()
        again = transform.analys(field)
        back_ms.append(1e3 * (time.process_time() - begin_s))
    ours_grid = numpy.fromfile(grid).reshape(latitudes, longitudes)
    found = again[places] / math.sqrt(2 * math.pi)
    return {
        "version": shtns.__version__,
        "to_grid_ms": median(there_ms),
        "to_waves_ms": median(back_ms),
        "grid_differs": abs(ours_grid - field).max() / abs(field).max(),
        "waves_differs": abs(ours_back - found).max() / abs(ours).max(),
        "ours_from_input": abs(ours_back - ours).max() / abs(ours).max(),
        "theirs_from_input": abs(found - ours).max() / abs(ours).max(),
    }


if __name__ == "__main__":
    what, truncation, *rest = sys.argv[1:]
    if what == "begin":
        begin(int(truncation), *rest)
    else:
        print(json.dumps(compare(int(truncation), int(rest[0]), *rest[1:])))
