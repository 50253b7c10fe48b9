"""Finds the MPI library to which a program is linked, and an installed one that can start it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.system import mpi_libraries
from weft.system.mpi_libraries import Implementation, MpiError

# A library of the standard ABI is not among these: such a program runs with any MPI library.
FAMILY_OF = {"libmpi.so.12": "mpich", "libmpich.so.12": "mpich", "libmpi.so.40": "openmpi"}
TITLES = {"mpich": "MPICH", "openmpi": "Open MPI", "intelmpi": "Intel MPI"}
NEEDED = re.compile(r"^\s*(libmpi(?:ch)?\.so\.\d+) => (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Linked:
    program: str
    soname: str
    library: Path | None  # path of the library; None if the loader does not find it

    @property
    def family(self) -> str:
        return FAMILY_OF[self.soname]

    @property
    def words(self) -> str:
        return f"{self.program} is linked to {TITLES[self.family]} ({self.soname})"


def linked(command: Sequence[str], path: str | None = None) -> Linked | None:
    """Returns the MPI library of the first word of the command that is a program linked to one;
    None if there is none."""
    for word in command:
        file = None if word.startswith("-") else shutil.which(word, path=path)
        found = NEEDED.search(mpi_libraries.output_of(["ldd", file])) if file else None
        if found and found[1] in FAMILY_OF:
            there = Path(found[2]) if found[2].startswith("/") else None
            return Linked(word, found[1], there)
    return None


def chosen(word: str | None, program: Linked | None) -> Implementation:
    """Returns the library for `--mpi WORD`; without a word the program's own. Raises MpiError if
    the program cannot run with it."""
    if not program:
        return mpi_libraries.chosen(word)
    if not word and (own := own_library(program)):
        return own
    mpi = mpi_libraries.chosen(word)
    if mpi.family != program.family:
        other = f"--mpi {program.family}, or --mpi /path/to/mpiexec"
        raise MpiError(
            f"{program.words}, and {TITLES[mpi.name]} cannot start it;"
            f" write {other} of the program's own library"
        )
    return mpi


def own_library(program: Linked) -> Implementation | None:
    """Returns the installed library that the loader finds for the program, or else the first of its
    family with Weft's programs; None if there is none."""
    same = [mpi for mpi in mpi_libraries.found() if mpi.family == program.family]
    file = program.library.resolve() if program.library else None
    exact = [mpi for mpi in same if mpi.library.resolve() == file]
    built = [mpi for mpi in same if mpi.program("weft-probe").exists()]
    return next(iter([*exact, *built, *same]), None)


def path_for_loader(mpi: Implementation) -> str:
    """Returns the shell command after which the loader finds the library by its name; an empty
    string if it finds it already.

    Programs that were linked by the library's own mpicc find an embedded library by themselves.
    Others, such as mpi4py, open it by its name."""
    name = mpi_libraries.FAMILY_LIBRARY[mpi.family]
    opening = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({name!r})"]
    if subprocess.run(opening, capture_output=True, check=False).returncode == 0:
        return ""
    place = mpi.environment()["LD_LIBRARY_PATH"].split(os.pathsep)[0]
    return f"export LD_LIBRARY_PATH={shlex.quote(place)}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
