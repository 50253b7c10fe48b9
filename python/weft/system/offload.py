"""Finds out whether the network hardware may carry out an MPI library's collectives, such as by
SHARP.

An installed component may still decline a communicator when the program runs, and present ones
accept only some, mainly MPI_COMM_WORLD. The result is therefore what could be used, and never that
it is."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from weft.system.mpi_libraries import Implementation

# These offload collectives to network hardware: components of Open MPI, libraries of the others.
OFFLOADING = ("hcoll", "ucc", "sharp")
# Environment variables that begin with these names control the offload.
VARIABLES = re.compile(
    r"(HCOLL|UCC|SHARP_COLL|OMPI_MCA_coll_(hcoll|ucc)|MPIR_CVAR_ENABLE_HCOLL|I_MPI_COLL_EXTERNAL)"
)
DEVICES = Path("/sys/class/infiniband")


def offload_of(mpi: Implementation) -> list[str]:
    """Returns those of OFFLOADING that the library can use, as far as that is visible."""
    if mpi.name == "openmpi":
        ompi_info = mpi.mpiexec.with_name("ompi_info")
        return components(output_of([ompi_info, "--parsable"], mpi))
    return linked(output_of(["ldd", mpi.library], mpi)) if mpi.library else []


def components(listing: str) -> list[str]:
    """Returns those of OFFLOADING among the lines of `ompi_info --parsable`, such as
    mca:coll:hcoll:version:…"""
    there = set(re.findall(r"^mca:coll:(\w+):", listing, re.MULTILINE))
    return [name for name in OFFLOADING if name in there]


def linked(listing: str) -> list[str]:
    """Returns those of OFFLOADING among the lines of `ldd`. A library that `ldd` does not find is
    left out."""
    there = set(re.findall(r"^\s*lib(\w+?)(?:_coll)?\.so\S* => /", listing, re.MULTILINE))
    return [name for name in OFFLOADING if name in there]


def output_of(command: list, mpi: Implementation) -> str:
    """Returns the output of a command; an empty string if it cannot be run."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=30,
            env={**os.environ, **mpi.environment()},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def network_devices() -> list[str]:
    return sorted(path.name for path in DEVICES.glob("*"))


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: value for name, value in sorted(environment.items()) if VARIABLES.match(name)}


def in_words(
    found: Mapping[str, list[str]], devices: list[str], settings: Mapping[str, str]
) -> str:
    """Returns a sentence about the offload. `found` has names of OFFLOADING by MPI library."""
    able = [f"{mpi} ({', '.join(names)})" for mpi, names in found.items() if names]
    network = f"InfiniBand devices: {', '.join(devices) or 'none'}"
    if not able or not devices:
        parts = "; ".join(able) or "no MPI library with " + ", ".join(OFFLOADING)
        text = f"none: {parts}; {network}; collectives between leaders are the library's software"
    else:
        text = (
            f"{'; '.join(able)}; {network}; may serve collectives between leaders "
            "(--algorithm K=hierarchical-library), if it takes their communicator"
        )
    told = [f"{name}={value}" for name, value in settings.items()]
    return text + ("; set: " + " ".join(told) if told else "")
