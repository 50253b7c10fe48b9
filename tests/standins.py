"""Where the build puts the libraries of tests/device and tests/xpmem."""

from weft.system import installation

FOLDER = installation.BUILD / "tests" / "standins"
CUDA = FOLDER / "libcuda.so.1"  # the name by which Weft knows a driver
XPMEM = FOLDER / "libweft-xpmem-standin.so"
