"""Generators, which go on when their caller wants, and functions that raise.

EXPECT yielded: left: may leave this place
EXPECT before_yield: changed
EXPECT lazy: left: leads to its result
EXPECT raised: left: may leave this place
EXPECT tried: left: an exception may pass by the wait
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


def check(step):
    if step == 3:
        raise ValueError("step")


def yielded(part, total):
    for step in range(STEPS):
        comm.Allreduce(part, total)  # CALL yielded
        yield step
        busy()


def before_yield(part, total):
    for _ in range(STEPS):
        comm.Allreduce(part, total)  # CALL before_yield
        result = busy()
        yield result + total[0]


def lazy(part, total):
    values = (one for one in total)
    comm.Allreduce(part, total)  # CALL lazy
    result = next(values)
    return result + busy()


def raised(part, total, step):
    comm.Allreduce(part, total)  # CALL raised
    check(step)
    return busy() + total[0]


def tried(part, total):
    try:
        comm.Allreduce(part, total)  # CALL tried
        busy()
        return total[0]
    except ValueError:
        return 0.0


part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
result = 0.0
for step in yielded(part, total):
    part[0] += step
    result += total[0]
for value in before_yield(part, total):
    part[0] += 1
    result += value
for step in range(STEPS):
    try:
        result += raised(part, total, step)
    except ValueError:
        result -= 1
    result += lazy(part, total) + tried(part, total)
if comm.rank == 0:
    print(result)
