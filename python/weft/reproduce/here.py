"""Checks which requirements of the papers' experiments this machine meets."""

from __future__ import annotations

from dataclasses import dataclass

from weft.reproduce.claims import Needs
from weft.system import gpu, info, mpi_libraries


@dataclass(frozen=True)
class Machine:
    cores: int
    gpu_problem: str  # why no GPU can be used; empty if one can
    mpis: tuple[str, ...]  # names of the installed MPI libraries


def this_machine() -> Machine:
    return Machine(
        cores=len(info.whole_cores()),
        gpu_problem=gpu.facts()["problem"] or "",
        mpis=tuple(sorted({mpi.name for mpi in mpi_libraries.found()})),
    )


def lacking(needs: Needs, machine: Machine) -> str:
    """Returns why a measurement cannot be made on the machine; an empty string if it can."""
    if needs.gpu and machine.gpu_problem:
        return f"needs a GPU: {machine.gpu_problem}"
    if machine.cores < needs.cores:
        return f"{needs.cores_in_words}; here {are(machine.cores)}"
    if len(machine.mpis) < needs.mpis:
        return f"needs {needs.mpis} MPI libraries; here {are(len(machine.mpis))}"
    return ""


def are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
