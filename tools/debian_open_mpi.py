"""Environment of programs that Debian builds with its Open MPI and that are unpacked in a folder.
It is needed since nothing sets up alternatives (BLAS, LAPACK) there, and Open MPI looks for its
parts where it would be installed. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path

LAUNCHER = "usr/bin/mpiexec.openmpi"
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mca_base_component_show_load_errors": "0",
    "OMPI_MCA_mpi_yield_when_idle": "1",  # other work on the machine disturbs less
    # Open MPI 4 looks for ssh or rsh also where it needs none, and a new machine may have neither.
    "OMPI_MCA_plm_rsh_agent": "sh",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader",
    "PMIX_MCA_pcompress_base_silence_warning": "1",
    "OMP_NUM_THREADS": "1",
}


def environment(place: Path, *more: Path) -> dict[str, str]:
    """Variables for programs and launcher of `place`, on top of this process's. more: further
    folders of libraries. What does not lie there is the system's."""
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
    """Returns words before a program on a launcher's command line by which its libraries are found:
    Open MPI 5 replaces the variable by a folder of its own if OPAL_PREFIX is set."""
    path = environment.get("LD_LIBRARY_PATH")
    return ["env", f"LD_LIBRARY_PATH={path}"] if path else []
