"""Calls mpi4py with buffers and with objects: advise_python.py MILLISECONDS CALLS."""

import sys
import time
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
ms, calls = float(sys.argv[1]), int(sys.argv[2])
send, receive = array("d", [1]) * 40_000, array("d", [0]) * 40_000


def busy():
    end = time.monotonic() + ms / 1e3
    while time.monotonic() < end:
        pass


def with_buffers():
    comm.Allreduce(send, receive)
    busy()
    return receive[7]


def with_objects():
    return comm.allgather({"rank": comm.rank})


for _ in range(calls):
    assert with_buffers() == comm.size
    assert [one["rank"] for one in with_objects()] == list(range(comm.size))
