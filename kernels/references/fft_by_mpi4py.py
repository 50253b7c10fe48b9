"""The transforms of kernels/fft3d by mpi4py-fft on the same grid, in slabs (ranks 2x1) or pencils
(1x2), forward and back from what that leaves: times, and the errors against NumPy's serial
transform and the input.

Why: a reference for time and answers that packs nothing: it sends parts of arrays as MPI's types.
usage: fft_by_mpi4py.py GRID RANKS REPETITIONS FILE, such as 64x64x64 2x1 31 times.json
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray


def values(points: numpy.ndarray) -> numpy.ndarray:
    """Those of fourier::value_at."""

    def part(z: numpy.ndarray) -> numpy.ndarray:
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> numpy.uint64(31))) >> numpy.uint64(11)) * 2.0**-53 - 0.5

    odd, step = 2 * points.astype(numpy.uint64), numpy.uint64(0x9E3779B97F4A7C15)
    return part((odd + numpy.uint64(1)) * step) + 1j * part((odd + numpy.uint64(2)) * step)


def main() -> None:
    grid, ranks = ([int(word) for word in words.split("x")] for words in sys.argv[1:3])
    world = MPI.COMM_WORLD
    whole = values(numpy.arange(numpy.prod(grid))).reshape(grid)
    transform = PFFT(world, grid, dtype=complex, grid=ranks, backend="fftw")
    given, found = newDistArray(transform, False), newDistArray(transform, True)
    back = newDistArray(transform, False)
    times = {"forward": [], "backward": []}

    def timed(way: str, carry_out: Callable, *arrays: object) -> None:
        world.Barrier()
        begin = MPI.Wtime()
        carry_out(*arrays, normalize=False)
        times[way].append(world.allreduce(1e6 * (MPI.Wtime() - begin), MPI.MAX))

    for _ in range(int(sys.argv[3]) + 1):
        given[:] = whole[transform.local_slice(False)]
        timed("forward", transform.forward, given, found)
        timed("backward", transform.backward, found, back)
    right = numpy.fft.fftn(whole)[transform.local_slice(True)]
    begun = whole[transform.local_slice(False)]
    errors = {
        "forward": float(numpy.abs(numpy.asarray(found) - right).max()) / whole.size**0.5,
        "backward": float(numpy.abs(numpy.asarray(back) / whole.size - begun).max()),
    }
    said = {
        way: {"samples_us": times[way][1:], "error": world.allreduce(error, MPI.MAX)}
        for way, error in errors.items()
    }
    if world.rank == 0:
        Path(sys.argv[4]).write_text(json.dumps(said))


main()
