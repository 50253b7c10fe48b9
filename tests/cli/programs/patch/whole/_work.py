"""What programs of Python do beside their calls."""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
N = 20000


def busy(count=300):
    x = 1.0
    for i in range(count):
        x = 0.5 * x + 1 / (x + i)
    return x


def pair():
    return numpy.arange(N, dtype="d"), numpy.zeros(N)
