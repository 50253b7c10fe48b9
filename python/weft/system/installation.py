"""Where the parts of this Weft lie: its command, its libraries, its MPI programs.

Why one place: the command line, the lab, the demo and the tests must all mean the same files.
The package runs from the source tree, from a prefix (P/lib/weft/python), or from a Python
environment into which the wheel was installed; in the last two the parts lie alike below P.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def source_tree() -> Path | None:
    """The source tree that this package is part of, if it is."""
    above = PACKAGE.parents[1]
    return above if (above / "CMakeLists.txt").exists() else None


def prefix_above(package: Path) -> Path | None:
    """The nearest folder above with Weft's command and libraries: the prefix of an installation."""
    for above in package.parents:
        if (above / "bin" / "weft").exists() and (above / "lib" / "weft").is_dir():
            return above
    return None


SOURCE = source_tree()
# Parts added by Weft's set-up (.mpi, .deps) are below ROOT.
ROOT = SOURCE or prefix_above(PACKAGE) or Path(sys.prefix)
# Variable WEFT_BUILD_DIR: the build that commands in the source tree use, if it is not build/.
BUILD = Path(os.environ.get("WEFT_BUILD_DIR", ROOT / "build"))
# How to get what is missing.
REMEDY = "build it with: make build" if SOURCE else "install Weft again"


# Launchers tell their processes by these which rank they are, as in src/base/first_rank.cc.
RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


def is_rank() -> bool:
    """Whether a launcher has started this process as a rank of a job."""
    return any(os.environ.get(name) for name in RANK_VARIABLES)


def weft_command() -> Path:
    """The native `weft`: of the installation; in the source tree beside this Python, else built."""
    beside = (Path(sys.prefix) if SOURCE else ROOT) / "bin" / "weft"
    return beside if beside.exists() or not SOURCE else BUILD / "bin" / "weft"


def site_file() -> Path:
    """The file of defaults for all users of this installation, which need not be there."""
    prefix = weft_command().resolve().parent.parent
    return Path("/etc/weft.conf") if prefix == Path("/usr") else prefix / "etc" / "weft.conf"


def preload_library(family: str) -> Path | None:
    """The library that `weft run` would load for an MPI family; None if it is not there."""
    prefix = weft_command().parent.parent
    name = f"libweft-{family}.so"
    for path in (prefix / "lib" / "weft" / name, prefix / "lib" / name):
        if path.exists():
            return path
    return None


def native_part(name: str) -> Path:
    """A program of Weft's own that needs no MPI library, such as weft-cores."""
    return (BUILD / "bin" if SOURCE else ROOT / "libexec" / "weft") / name


def mpi_program(mpi: str, name: str) -> Path:
    """A measuring program, as compiled for an MPI library or, in an installation, for a family."""
    programs = BUILD / "bin" if SOURCE else ROOT / "libexec" / "weft"
    return programs / mpi / name
