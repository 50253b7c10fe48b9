"""Plants windows with mpi4py, as planted.c does: planted.py MILLISECONDS CALLS FILE."""

import sys
import time
from array import array
from pathlib import Path

from mpi4py import MPI

comm = MPI.COMM_WORLD
ms, calls = float(sys.argv[1]), int(sys.argv[2])
send, small = array("d", [1]) * 160_000, array("d", [0]) * 4096
large = array("d", [0]) * 160_000


def leave():
    returned = time.perf_counter()
    while time.perf_counter() < returned + ms / 1e3:
        pass
    return (time.perf_counter() - returned) * 1e6


def heap():
    comm.Allreduce([send, 4096, MPI.DOUBLE], small)
    us = leave()
    small[2048]
    return us


def wide():
    comm.Allreduce(send, large)
    us = leave()
    large[2048]
    return us


def completed():
    comm.Iallreduce(send, large).Wait()
    us = leave()
    large[2048]
    return us


with Path(f"{sys.argv[3]}.{comm.rank}").open("w") as own:
    for _ in range(calls):
        for case in (heap, wide, completed):
            own.write(f"{case.__name__} {case():.3f}\n")
