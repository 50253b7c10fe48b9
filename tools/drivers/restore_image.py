"""Restores an image from blurred frames with missing pixels, by PyLops-MPI's least squares.

restore_image.py SIDE FRAMES ITERATIONS. Each rank has some of the frames, and all have the
image."""

import sys
import time

import numpy as np
import pylops
import pylops_mpi
from mpi4py import MPI

side, frames, iterations = (int(word) for word in sys.argv[1:])
world = MPI.COMM_WORLD
pixels = side * side
image = np.zeros((side, side))
image[side // 4 : side // 2, side // 3 : 2 * side // 3] = 1
image[side // 2 : 3 * side // 4 : 8] = 0.5
kernel = np.outer(np.hanning(7), np.hanning(7))
kernel /= kernel.sum()


def frame(number: int):
    """Returns the operator of one frame: a blur, and a random half of the pixels, which differs in
    each frame."""
    order = np.random.default_rng(number).permutation(pixels)
    blur = pylops.signalprocessing.Convolve2D((side, side), h=kernel, offset=(3, 3))
    return pylops.Restriction(pixels, np.sort(order[: pixels // 2])) * blur


def on_all_ranks(values: np.ndarray) -> pylops_mpi.DistributedArray:
    array = pylops_mpi.DistributedArray(
        global_shape=pixels, partition=pylops_mpi.Partition.BROADCAST
    )
    array[:] = values
    return array


camera = pylops_mpi.MPIVStack([frame(number) for number in range(world.rank, frames, world.size)])
seen = camera @ on_all_ranks(image.ravel())
start = on_all_ranks(np.zeros(pixels))
world.Barrier()
began = time.perf_counter()
restored, *_, costs = pylops_mpi.cgls(camera, seen, x0=start, niter=iterations)
world.Barrier()
seconds = time.perf_counter() - began
if world.rank == 0:
    for number, cost in enumerate(costs):
        print(f"result cost-{number}", repr(float(cost)))
    distance = np.linalg.norm(restored.asarray() - image.ravel())
    print("result distance", repr(float(distance)))
    print("seconds", seconds)
