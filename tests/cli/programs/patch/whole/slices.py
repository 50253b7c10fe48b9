"""Slices of arrays as buffers.

EXPECT front: changed
EXPECT other_half: left: names field
EXPECT computed: left: cannot be told by a name
EXPECT typed: changed
EXPECT row: changed
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


def front(part, total):
    comm.Allreduce(part[: N // 2], total[: N // 2])  # CALL front
    result = busy()
    return result + total[1]


def other_half(field):
    comm.Bcast(field[: N // 2], root=0)  # CALL other_half
    field[N // 2] += 1
    return busy() + field[0]


def computed(part, total):
    comm.Allreduce(2 * part, total)  # CALL computed
    result = busy()
    return result + total[2]


def typed(part, total, count):
    comm.Allreduce([part, count, MPI.DOUBLE], [total, count, MPI.DOUBLE], op=MPI.MAX)  # CALL typed
    count = 3
    result = busy() + count
    return result + total[count]


def row(table):
    for step in range(len(table)):
        comm.Bcast(table[step], root=0)  # CALL row
        busy()
        table[step, 0] += step
    return table[1, 1]


part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
table = numpy.arange(2.0 * N).reshape(2, N)
for _ in range(STEPS):
    results = front(part, total), other_half(part), computed(part, total)
    results += typed(part, total, N), row(table)
if comm.rank == 0:
    print(*results)
