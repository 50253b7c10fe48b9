"""MPI is finalised by a function of the library in the first argument, which Python calls once the
interpreter has ended."""

import ctypes
import sys

import mpi4py

mpi4py.rc.finalize = False

from mpi4py import MPI  # noqa: E402

MPI.COMM_WORLD.Barrier()
ends = ctypes.cast(ctypes.CDLL(sys.argv[1]).ends, ctypes.c_void_p)
if ctypes.pythonapi.Py_AtExit(ends) != 0:
    sys.exit("Python takes no function for its end")
