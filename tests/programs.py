"""Names the files of tests/mpi of which the conformance program consists, for tests that build it
another way."""

import re

from weft.system import installation

_FOLDER = installation.ROOT / "tests/mpi"
_LISTED = re.search(
    r"weft_mpi_program\(conformance\s+([^)]+)\)", (_FOLDER / "CMakeLists.txt").read_text()
)
CONFORMANCE = [_FOLDER / name for name in _LISTED[1].split()]
