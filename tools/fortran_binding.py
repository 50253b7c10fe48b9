"""MPI's Fortran calls for an MPI library that was built without them, as those of Python packages
are: as many as programs of tests and checks make.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from weft.system import installation
from weft.system.mpi_libraries import Implementation

SOURCE = installation.ROOT / "tests/cli/programs/fortran_binding.c"
LIMIT_S = 60


def compiler(library: Implementation, folder: Path) -> list[str]:
    """Returns the compiler with its options, after it has made the binding in the folder. A program
    gets mpif.h or `use mpi`."""
    variables = {**os.environ, **library.environment()}

    def made_by(*words: object) -> str:
        command = [str(word) for word in words]
        options = {"env": variables, "cwd": folder, "timeout": LIMIT_S}
        return subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, **options
        ).stdout

    folder.mkdir(exist_ok=True)
    place = f"-Wl,-rpath,{library.prefix / 'lib'}"
    compile_ = [library.prefix / "bin/mpicc", "-fPIC", SOURCE, place]
    made_by(*compile_, "-shared", "-o", "libmpifort.so")
    made_by(*compile_, "-DHEADER", "-o", "header")
    (folder / "mpif.h").write_text(made_by(*library.launcher(1), folder / "header"))
    (folder / "mpi.f90").write_text("module mpi\n  include 'mpif.h'\nend module mpi\n")
    made_by("gfortran", "-c", "mpi.f90", "-o", "mpi.o")
    linked = [f"-L{folder}", f"-Wl,-rpath,{folder}", place, "-Wl,--no-as-needed", "-lmpifort"]
    return ["gfortran", "-cpp", "-w", "-fallow-argument-mismatch", f"-I{folder}", *linked]
