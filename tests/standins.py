"""Paths of the built libraries of tests/device and tests/xpmem, which replace drivers."""

from weft.system import installation

FOLDER = installation.BUILD / "tests" / "standins"
CUDA = FOLDER / "libcuda.so.1"  # Weft knows CUDA's driver by this file name
NCCL = FOLDER / "nccl"  # the folder in which a program finds NCCL by its file name
XPMEM = FOLDER / "libweft-xpmem-standin.so"
