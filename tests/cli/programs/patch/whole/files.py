"""Files that one rank writes and others read, and arrays that are computed beside a call.

EXPECT written: left: ranks meet by a file
EXPECT beside: changed
"""

import tempfile
from pathlib import Path

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
N, STEPS = 20000, 10


def saved(path, step):
    field = numpy.zeros(N)
    if comm.rank == 0:
        numpy.save(path, numpy.full(N, step))
        field += step
    comm.Bcast(field, root=0)  # CALL written
    result = numpy.load(path).sum()
    return result + field.sum()


def beside(step):
    part, total = numpy.full(N, float(step)), numpy.zeros(N)
    table = numpy.ones((50, 50))
    comm.Allreduce(part, total)  # CALL beside
    for _ in range(5):
        table = numpy.dot(table, table) / 50
    result = table[0, 0]
    return result + total[step]


folder = Path(comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None))
results = [saved(str(folder / "field.npy"), step) - beside(step) for step in range(STEPS)]
comm.Barrier()
if comm.rank == 0:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    print(len(results), results[1] - results[0])
