"""What the Python programs here share with those of C (work.h)."""

import sys
from array import array

from mpi4py import MPI

STEPS, N, MS = map(int, sys.argv[1:]) if sys.argv[1:] else (100, 40000, 4)
PER_MS = 20000  # steps of the computation in a millisecond, about


def busy(x):
    for _ in range(MS * PER_MS):
        x = x * 0.999999 + 1e-6
    return x


def zeros():
    return array("d", bytes(8 * N))


def ended(answer):
    if MPI.COMM_WORLD.rank == 0:
        print(f"{answer:.10g}")
