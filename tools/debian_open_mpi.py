"""Sets up the environment for programs that Debian builds with its Open MPI, unpacked into a
folder.

An unpacked package has no alternatives (BLAS, LAPACK), and Open MPI looks for its parts where it
would be installed. This module needs only Python's standard library."""

from __future__ import annotations

import os
from pathlib import Path

LAUNCHER = "usr/bin/mpiexec.openmpi"
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mca_base_component_show_load_errors": "0",
    # Waiting ranks yield the core, so that other work on the machine disturbs less.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Open MPI 4 looks for ssh or rsh even if it needs none, and a new machine may have neither.
    "OMPI_MCA_plm_rsh_agent": "sh",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader",
    "PMIX_MCA_pcompress_base_silence_warning": "1",
    "OMP_NUM_THREADS": "1",
}


def environment(place: Path, *more: Path) -> dict[str, str]:
    """Returns the environment for programs and the launcher in `place`, with this process's
    variables.

    `more` has further folders of libraries. Libraries that are not in `place` are the system's."""
    folders = [*more]
    for directory in place.glob("usr/lib/*-linux-gnu*"):
        folders += [directory, place / "lib" / directory.name]
        folders += [directory / "blas", directory / "lapack"]
    found = [str(folder) for folder in folders if folder.is_dir()]
    before = os.environ.get("LD_LIBRARY_PATH")
    settings = {**SETTINGS}
    if found:
        settings["LD_LIBRARY_PATH"] = os.pathsep.join([*found, *([before] if before else [])])
    if library := next(place.glob("usr/lib/*/libmpi.so.40"), None):
        directory = library.parent
        settings |= {
            "OPAL_PREFIX": str(place / "usr"),
            "OPAL_LIBDIR": str(directory / "openmpi/lib"),
            "OPAL_PKGLIBDIR": str(next((directory / "openmpi/lib").glob("openmpi[0-9]*"))),
            "OPAL_PKGDATADIR": str(place / "usr/share/openmpi"),
            "PMIX_INSTALL_PREFIX": str(directory / "pmix2"),
        }
    return settings


def finds_libraries(environment: dict[str, str]) -> list[str]:
    """Returns the words in front of a program on a launcher's command line by which its libraries
    are found. They are needed since Open MPI 5 replaces LD_LIBRARY_PATH by its own folder if
    OPAL_PREFIX is set."""
    path = environment.get("LD_LIBRARY_PATH")
    return ["env", f"LD_LIBRARY_PATH={path}"] if path else []
