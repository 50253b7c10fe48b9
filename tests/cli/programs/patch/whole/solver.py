"""A class whose buffers are members, a communicator of a part, and arrays that a function keeps.

EXPECT own: left: not local
EXPECT own_alone: changed
EXPECT of_part: changed
EXPECT registered: left: refresh
EXPECT aliased: left: may write
"""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
N, STEPS = 20000, 10
registry = {}


def busy(count=300):
    x = 1.0
    for i in range(count):
        x = 0.5 * x + 1 / (x + i)
    return x


def register(name, array):
    registry[name] = array


def refresh():
    for array in registry.values():
        array[0] += 1


class Solver:
    def __init__(self):
        self.part, self.total = numpy.arange(N, dtype="d"), numpy.zeros(N)
        self.group = comm.Split(comm.rank % 2, comm.rank)

    def renew(self):
        self.part[0] += 1

    def own(self):
        comm.Allreduce(self.part, self.total)  # CALL own
        self.renew()
        return busy() + self.total[0]

    def own_alone(self):
        comm.Allreduce(self.part, self.total)  # CALL own_alone
        result = 0.0
        for i in range(300):
            result = 0.5 * result + i
        return result + self.total[0]

    def of_part(self):
        part, total = numpy.ones(N), numpy.zeros(N)
        self.group.Allreduce(part, total, op=MPI.MAX)  # CALL of_part
        result = busy()
        return result + total[0]


def registered(part, total):
    comm.Allreduce(part, total)  # CALL registered
    refresh()
    return busy() + total[0]


def aliased(part, other, total):
    comm.Allreduce(part, total)  # CALL aliased
    other[1] += 1
    return busy() + total[1]


solver = Solver()
part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
register("part", part)
for _ in range(STEPS):
    results = solver.own(), solver.own_alone(), solver.of_part()
    results += registered(part, total), aliased(part, part, total)
if comm.rank == 0:
    print(*results)
