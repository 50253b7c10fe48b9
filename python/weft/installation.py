"""Where the parts of this Weft lie: its command, its libraries, its MPI programs.

Why one place: the command line, the lab, the demo and the tests must all mean the same files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WEFT_BUILD_DIR", ROOT / "build"))


def weft_command() -> Path:
    """The native `weft`: beside this Python, else in the build."""
    beside = Path(sys.prefix) / "bin" / "weft"
    return beside if beside.exists() else BUILD / "bin" / "weft"


def preload_library(family: str) -> Path | None:
    """The library that `weft run` would load for an MPI family; None if it is not built."""
    prefix = weft_command().parent.parent
    name = f"libweft-{family}.so"
    for path in (prefix / "lib" / "weft" / name, prefix / "lib" / name):
        if path.exists():
            return path
    return None


def mpi_program(mpi: str, name: str) -> Path:
    """A program of bench/, kernels/ or tools/, as compiled for an MPI library."""
    return BUILD / "bin" / mpi / name
