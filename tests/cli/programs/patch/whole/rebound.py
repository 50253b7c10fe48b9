"""Buffers whose names get other arrays, in loops and by swapping.

EXPECT swapped: changed
EXPECT renewed: left: names total
EXPECT accumulated: left: may write part
EXPECT condition: changed
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


def swapped():
    part, following, total = numpy.ones(N), numpy.full(N, 2.0), numpy.zeros(N)
    result = 0.0
    for step in range(STEPS):
        comm.Allreduce(part, total)  # CALL swapped
        result += busy()
        part, following = following, part
        result += total[step]
    return result


def renewed():
    part, total = numpy.ones(N), numpy.zeros(N)
    comm.Allreduce(part, total)  # CALL renewed
    total = total + 1
    return busy() + total[0]


def accumulated():
    part, total = numpy.ones(N), numpy.zeros(N)
    comm.Allreduce(part, total)  # CALL accumulated
    part += 1
    return busy() + total[0]


def condition():
    part, total = numpy.array([64.0]), numpy.zeros(1)
    total[0] = rounds = 9
    while total[0] > 1 and rounds < 100:
        part *= 0.5
        comm.Allreduce(part, total)  # CALL condition
        rounds += 1
        busy()
    return rounds + part[0]


answers = swapped(), renewed(), accumulated(), condition()
if comm.rank == 0:
    print(*answers)
