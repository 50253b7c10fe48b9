"""The MPI libraries that Weft's commands use: where each lies, how its jobs start.

Why one place: the command line, the lab, the demo and the tests must all mean the same libraries.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from weft import installation

# Variable WEFT_MPI_DIR: the folder of embedded MPI libraries, if it is not .mpi/.
MPI_DIR = Path(os.environ.get("WEFT_MPI_DIR", installation.ROOT / ".mpi"))
IMPLEMENTATIONS = ("mpich", "openmpi", "intelmpi")
FAMILY = {"mpich": "mpich", "intelmpi": "mpich", "openmpi": "openmpi"}
FAMILY_LIBRARY = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}


@dataclass(frozen=True)
class Implementation:
    """One MPI library below .mpi/."""

    name: str
    prefix: Path

    @property
    def family(self) -> str:
        return FAMILY[self.name]

    @property
    def mpiexec(self) -> Path:
        hydra = self.prefix / "bin" / "mpiexec.hydra"
        return hydra if hydra.exists() else self.prefix / "bin" / "mpiexec"

    def launcher(self, ranks: int) -> list[str]:
        """Starts so many ranks on this machine, also more than it has cores."""
        free = ["--bind-to", "none", "--oversubscribe"] if self.name == "openmpi" else []
        return [str(self.mpiexec), "-n", str(ranks), *free]

    def program(self, name: str) -> Path:
        """A measuring program, as compiled for this MPI library or another one of its ABI."""
        own = installation.mpi_program(self.name, name)
        return own if own.exists() else installation.mpi_program(self.family, name)

    def environment(self) -> dict[str, str]:
        """What its mpiexec and programs need on top of the usual environment."""
        if self.name == "openmpi":
            names = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
            return {name + end: "1" for name in names for end in ("", "_CONFIRM")}
        if self.name == "intelmpi":
            # Its MPI library loads libfabric from the loader's path.
            before = os.environ.get("LD_LIBRARY_PATH")
            path = os.pathsep.join([str(self.prefix / "lib"), *([before] if before else [])])
            return {"I_MPI_ROOT": str(self.prefix), "LD_LIBRARY_PATH": path}
        return {}


def implementation(name: str) -> Implementation:
    return Implementation(name, MPI_DIR / name)


def present_implementations() -> list[Implementation]:
    found = (implementation(name) for name in IMPLEMENTATIONS)
    return [mpi for mpi in found if mpi.mpiexec.exists()]


def make_target(name: str) -> str:
    """The command that brings an MPI library."""
    return "make build" if name == "mpich" else "make mpis"
