"""Sums by ctypes, which looks each call up in the MPI library itself: ctypes_sum.py LIBRARY.

Each rank prints "right". LIBRARY is libmpi.so.12 or libmpi.so.40, whose handles differ."""

import sys
from ctypes import CDLL, addressof, byref, c_char, c_int, c_void_p

OPENMPI = sys.argv[1].endswith(".so.40")
MPI = CDLL(sys.argv[1])


def handle(number, symbol):
    """Returns a predefined handle. MPICH's handles are numbers, Open MPI's are addresses of
    variables."""
    return c_void_p(addressof(c_char.in_dll(MPI, symbol))) if OPENMPI else c_int(number)


WORLD = handle(0x44000000, "ompi_mpi_comm_world")
INT = handle(0x4C000405, "ompi_mpi_int")
SUM = handle(0x58000003, "ompi_mpi_op_sum")
NO_INFO = handle(0x1C000000, "ompi_mpi_info_null")
IGNORED = c_void_p(0 if OPENMPI else 1)
TIMES = 20

MPI.MPI_Init(None, None)
size, one, total = c_int(), c_int(1), c_int()
request = (c_void_p if OPENMPI else c_int)()
MPI.MPI_Comm_size(WORLD, byref(size))
sums = byref(one), byref(total), 1, INT, SUM, WORLD


def complete():
    MPI.MPI_Wait(byref(request), IGNORED)
    assert total.value == size.value
    total.value = 0


for _ in range(TIMES):
    MPI.MPI_Iallreduce(*sums, byref(request))
    complete()
MPI.MPI_Allreduce_init(*sums, NO_INFO, byref(request))
for _ in range(TIMES):
    MPI.MPI_Start(byref(request))
    complete()
MPI.MPI_Request_free(byref(request))
MPI.MPI_Finalize()
sys.stdout.write("right\n")
