"""A script without functions: calls at the top, under a condition and in a `with`.

EXPECT top: changed
EXPECT loop: changed
EXPECT condition: changed
EXPECT timed: changed
EXPECT one_line: left: several statements
"""

import contextlib

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
N = 20000
part, total = numpy.arange(N, dtype="d"), numpy.zeros(N)
table = numpy.ones((50, 50))


@contextlib.contextmanager
def timer(name):
    yield name


comm.Allreduce(part, total)  # CALL top
table = table @ table / 50
answer = table[0, 0]
answer += total[1]

for step in range(10):
    comm.Allreduce(part, total, op=MPI.MAX)  # CALL loop
    table = table @ table / 50
    answer += total[step]
    part[step] += table[0, 0]

if part[0] > 0:
    comm.Bcast(part, root=0)  # CALL condition
    table = table @ table / 50
answer += part[0]

with timer("sum"):
    comm.Allreduce(part, total)  # CALL timed
    table = table @ table / 50
answer += total[3]

comm.Allreduce(part, total); table = table @ table / 50  # noqa: E702  # fmt: skip  # CALL one_line
answer += total[4] + table[1, 1]

if comm.rank == 0:
    print(answer)
