"""Makes consecutive calls of mpi4py in a helper function. Those of "needs" functions depend on each
other, those of "free" ones do not. advise_order.py ROUNDS prints a checksum."""

import mmap
import sys

from mpi4py import MPI

COUNT = 8192
comm = MPI.COMM_WORLD


def array():
    """Returns numbers that share their pages with no other data, and with no other process."""
    return memoryview(mmap.mmap(-1, COUNT * 8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)).cast(
        "d"
    )


def total(part, result):
    comm.Allreduce([part, MPI.DOUBLE], [result, MPI.DOUBLE])


def needs_the_total(part, result, other):
    total(part, result)
    part[0] = result[0] * 0.25
    total(part, other)
    return other[0]


def needs_one_buffer(part, result, other):
    total(part, result)
    total(other, result)
    return result[0]


def needs_a_decision(part, result, other, more):
    total(part, result)
    if result[0] < 1e300:
        total(other, more)
    return more[0]


def needs_objects(value):
    first = comm.allreduce(value)
    return comm.allreduce(first / 2)


def free_of_each_other(part, other, result, more):
    part[0] = other[0] = 1
    total(part, result)
    total(other, more)
    return result[0] + more[0]


def main():
    part, result, other, more = (array() for _ in range(4))
    free = [array() for _ in range(4)]
    found = 0.0
    for _ in range(int(sys.argv[1])):
        part[0] = 1
        found += needs_the_total(part, result, more)
        found += needs_one_buffer(part, result, other)
        found += needs_a_decision(part, result, other, more)
        found += needs_objects(1.0)
        found += free_of_each_other(*free)
    if comm.rank == 0:
        print(f"checksum {found:.3f}")


main()
