"""NumPy's views: names that share memory with a buffer, and copies that do not.

EXPECT view: left: names half
EXPECT reshaped: left: names table
EXPECT copied: changed
EXPECT kept: left: names table
"""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
N, STEPS = 20000, 10


def busy(count=300):
    x = 1.0
    for i in range(count):
        x = 0.5 * x + 1 / (x + i)
    return x


def view():
    part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
    half = total[N // 2 :]
    comm.Allreduce(part, total)  # CALL view
    half[0] = 7
    return busy() + total[N // 2]


def reshaped():
    part = numpy.arange(N, dtype="d")
    table = part.reshape(-1, 2)
    comm.Bcast(part, root=0)  # CALL reshaped
    table[1, 1] = 8
    return busy() + part[3]


def copied():
    part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
    saved = numpy.array(part)
    comm.Allreduce(part, total)  # CALL copied
    saved *= 2
    result = busy() + saved[5]
    return result + total[5]


def kept():
    part = numpy.arange(N, dtype="d")
    table = numpy.array(part, copy=None)
    comm.Bcast(part, root=0)  # CALL kept
    table[2] = 9
    return busy() + part[2]


results = [(view(), reshaped(), copied(), kept()) for _ in range(STEPS)]
if comm.rank == 0:
    print(*results[-1])
