"""Each function calls one collective. "CALL name" marks its line."""

import sys

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
N, TIMES = map(int, sys.argv[1:]) if sys.argv[1:] else (64, 1)


def busy(count):
    x = 1.0
    for i in range(count):
        x = 0.5 * x + 1 / (x + i)
    return x


def plain():
    part, total = numpy.arange(N, dtype="d"), numpy.empty(N)
    comm.Allreduce(part, total, op=MPI.SUM)  # CALL plain
    result = busy(20)
    return result + total[0] + total[5]


def view():
    part = numpy.arange(N, dtype="d")
    total = numpy.empty(N)
    half = total[N // 2 :]
    comm.Allreduce([part, MPI.DOUBLE], [total, MPI.DOUBLE])  # CALL view
    result = busy(20) + half[0]
    return result + total[0]


def closure():
    part = numpy.arange(N, dtype="d")

    def change():
        part[0] = 7

    comm.Bcast(part, root=0)  # CALL closure
    change()
    return part[0]


def repeated():
    part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
    result = 0.0
    for step in range(3):
        part += step
        comm.Allreduce(part, total)  # CALL repeated
        result += busy(20)
        if step > 1:
            break
        result += total[0]
    return result + total[0]


def objects():
    total = comm.allreduce(3)  # CALL objects
    return busy(20) + total


class Field:
    def __init__(self):
        self.part, self.total = numpy.arange(N, dtype="d"), numpy.zeros(N)

    def first(self):
        return self.total[0]

    def method(self):
        comm.Allreduce(self.part, self.total)  # CALL method
        result = busy(20) + self.first()
        return result + self.total[0]


for _ in range(TIMES):
    answers = plain(), view(), closure(), repeated(), objects(), Field().method()
for answer in answers:
    if comm.rank == 0:
        print(answer)
