"""Finds the parts of this Weft: its command, its libraries, its MPI programs.

The command line, the lab, the demo and the tests all use this module, so that they use the same
files. The package runs from the source tree, from a prefix (P/lib/weft/python), or from a Python
environment into which the wheel was installed. In the last two cases the parts have the same places
below P."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def source_tree() -> Path | None:
    """Returns the source tree that contains this package; None if it is installed."""
    above = PACKAGE.parents[1]
    return above if (above / "CMakeLists.txt").exists() else None


def prefix_above(package: Path) -> Path | None:
    """Returns the nearest folder above the package with Weft's command and libraries, which is the
    prefix of an installation; None if there is none."""
    for above in package.parents:
        if (above / "bin" / "weft").exists() and (above / "lib" / "weft").is_dir():
            return above
    return None


SOURCE = source_tree()
# Parts added by Weft's set-up (.mpi, .deps) are below ROOT.
ROOT = SOURCE or prefix_above(PACKAGE) or Path(sys.prefix)
# Variable WEFT_BUILD_DIR: the build that commands in the source tree use, if it is not build/.
BUILD = Path(os.environ.get("WEFT_BUILD_DIR", ROOT / "build"))
# This tells users how to get a missing part.
REMEDY = "build it with: make build" if SOURCE else "install Weft again"


# Launchers set these variables to the number of the rank. src/base/first_rank.cc has the same list.
RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


def is_rank() -> bool:
    """Returns whether a launcher has started this process as a rank of a job."""
    return any(os.environ.get(name) for name in RANK_VARIABLES)


def weft_command() -> Path:
    """Returns the native command `weft` of the installation. In the source tree it is the one
    beside this Python, or else the built one."""
    beside = (Path(sys.prefix) if SOURCE else ROOT) / "bin" / "weft"
    return beside if beside.exists() or not SOURCE else BUILD / "bin" / "weft"


def site_file() -> Path:
    """Returns the path of the file of defaults for all users of this installation. The file need
    not exist."""
    prefix = weft_command().resolve().parent.parent
    return Path("/etc/weft.conf") if prefix == Path("/usr") else prefix / "etc" / "weft.conf"


def preload_library(family: str) -> Path | None:
    """Returns the library that `weft run` would load for an MPI family; None if it does not
    exist."""
    prefix = weft_command().parent.parent
    name = f"libweft-{family}.so"
    for path in (prefix / "lib" / "weft" / name, prefix / "lib" / name):
        if path.exists():
            return path
    return None


def native_part(name: str) -> Path:
    """Returns the path of a program that needs no MPI library, such as weft-cores."""
    return (BUILD / "bin" if SOURCE else ROOT / "libexec" / "weft") / name


def mpi_program(mpi: str, name: str) -> Path:
    """Returns the path of a measuring program. It is compiled for each MPI library, or in an
    installation for each ABI family."""
    programs = BUILD / "bin" if SOURCE else ROOT / "libexec" / "weft"
    return programs / mpi / name
