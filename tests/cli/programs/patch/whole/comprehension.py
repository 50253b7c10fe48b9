"""Comprehensions, and lists that have buffers.

EXPECT inside: left: part of a larger expression
EXPECT read: left: leads to its result
EXPECT listed: left: may write field
EXPECT joined: left: names fields
EXPECT beside: changed
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


def inside(parts, total):
    counts = [comm.Allreduce(part, total) for part in parts]  # CALL inside
    return busy() + len(counts) + total[0]


def read(part, total):
    comm.Allreduce(part, total)  # CALL read
    squares = [one * one for one in total[:10]]
    return busy() + sum(squares)


def listed(part, total):
    fields = [part]
    comm.Allreduce(part, total)  # CALL listed
    for field in fields:
        field[0] += 1
    return busy() + total[0]


def joined(part, total):
    fields = [total] + [part]
    comm.Allreduce(part, total)  # CALL joined
    fields[1][2] += 1
    return busy() + total[2]


def beside(part, total):
    comm.Allreduce(part, total)  # CALL beside
    squares = [busy(i) for i in range(20)]
    return sum(squares) + total[1]


part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
for _ in range(STEPS):
    results = inside([part, part], total), read(part, total), listed(part, total)
    results += joined(part, total), beside(part, total)
if comm.rank == 0:
    print(*results)
