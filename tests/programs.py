"""Which files of tests/mpi make up the conformance program, for tests that build it another way."""

from weft import installation

_OTHERS = {
    "planted.cc",
    "exchange_rows.cc",
    "reductions.cc",
    "shared_buffers.cc",
    "attachable_memory.cc",
    "device_memory.cc",
}
CONFORMANCE = [
    path for path in (installation.ROOT / "tests/mpi").glob("*.cc") if path.name not in _OTHERS
]
