"""Shows MPI libraries and their thread levels, cores, NUMA nodes, engines that can run, offloading
to the network, and GPUs (`weft info`).

A probe is run with each library, since only MPI_Init_thread tells which thread level it grants."""

from __future__ import annotations

import os
import platform
import re
import resource
from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft.data import stored
from weft.system import gpu, installation, mpi_libraries, offload, one_copy, xpmem
from weft.system.mpi_libraries import Implementation
from weft.system.probe import ProbeError, run_probe

# The value says whether a thread of Weft's calls the MPI library concurrently with the application.
ENGINES = {
    "native": False,
    "assist": True,
    "function": False,
    "thread": True,
    "tcc": True,
    "agent": True,
    "auto": False,
}
NODES = Path("/sys/devices/system/node")
CPUS = Path("/sys/devices/system/cpu")


def collect() -> dict:
    libraries = [describe(mpi) for mpi in mpi_libraries.found()]
    own = machine()
    running = [title(mpi["library"]) for mpi in libraries if "problem" not in mpi]
    headline = {"libraries": len(running), "usable_cores": len(own["usable_cores"])}
    return {
        **stored.head("weft-info/2", headline, ", ".join(running)),
        "machine": own,
        "libraries": libraries,
        "not_here": not_here(),
        "preload_libraries": preload_libraries(),
    }


def whole_cores() -> list[int]:
    """Returns one CPU of each usable core. Hyper-threads of one core count as one."""
    found: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        found.setdefault(siblings.read_text() if siblings.exists() else str(cpu), cpu)
    return list(found.values())


def machine() -> dict:
    usable = sorted(os.sched_getaffinity(0))
    nodes = {
        path.name: (path / "cpulist").read_text().strip()
        for path in sorted(NODES.glob("node[0-9]*"))
    }
    return {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "numa_nodes": nodes,
        "without_a_copy": without_a_copy(),
        "one_copy": one_copy.measured(),
        "infiniband": offload.network_devices(),
        "offload_variables": offload.variables(),
        "gpu": gpu.facts(),
    }


def without_a_copy() -> dict:
    """Returns the ways in which ranks of a node may use each other's buffers. The value is None if
    the way is available, or else says why not."""
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return {
        "shared buffers": "addresses are limited (ulimit -v)" if limited else None,
        "xpmem": xpmem.problem(),
    }


def preload_libraries() -> dict:
    found = {
        family: installation.preload_library(family) for family in mpi_libraries.FAMILY_LIBRARY
    }
    return {family: str(path) if path else None for family, path in found.items()}


def not_here() -> dict:
    """Returns the kinds of MPI libraries that were not found, each with the command that installs
    it."""
    there = {mpi.name for mpi in mpi_libraries.found()}
    absent = [name for name in mpi_libraries.IMPLEMENTATIONS if name not in there]
    return {name: mpi_libraries.make_target(name) for name in absent}


def describe(mpi: Implementation) -> dict:
    """Describes an MPI library; with `problem` and no version if it does not run."""
    facts: dict = {"name": mpi.name, "family": mpi.family, "found_by": mpi.where}
    facts |= {"prefix": str(mpi.prefix), "mpiexec": str(mpi.mpiexec), "file": str(mpi.library)}
    facts["stands_before"] = mpi_libraries.FAMILY_LIBRARY[mpi.family]
    facts["abi"] = sorted(path.name for path in mpi.library.parent.glob("libmpi_abi.so.*"))[:1]
    try:
        facts |= run_probe(mpi)
    except ProbeError as error:
        return facts | {"problem": str(error)}
    facts["offload"] = offload.offload_of(mpi)
    return facts | {"engines": engines(mpi.family, facts["thread_level"])}


def engines(family: str, thread_level: str) -> dict:
    """Returns for each engine None if it can run, or else the reason why not."""
    if not installation.preload_library(family):
        reason = f"libweft-{family}.so is not there; {installation.REMEDY}"
        return dict.fromkeys(ENGINES, reason)
    threads = thread_level == "MPI_THREAD_MULTIPLE"
    reason = f"needs MPI_THREAD_MULTIPLE, the library grants {thread_level}"
    return {engine: reason if needs and not threads else None for engine, needs in ENGINES.items()}


def show(facts: dict) -> None:
    console = Console()
    hardware = facts["machine"]
    nodes = ", ".join(f"{name} ({cores})" for name, cores in hardware["numa_nodes"].items())
    console.print(f"Weft {facts['weft']} on {hardware['system']}")
    usable = len(hardware["usable_cores"])
    console.print(f"cores {hardware['cores']}, usable {usable}; NUMA: {nodes or 'not known'}")
    ways = [f"{way}: {why or 'yes'}" for way, why in hardware["without_a_copy"].items()]
    console.print("without a copy: " + "; ".join(ways), highlight=False, soft_wrap=True)
    words = one_copy.in_words(hardware["one_copy"])
    console.print(f"one copy by the system: {words}", highlight=False, soft_wrap=True)
    able = {mpi["name"]: mpi["offload"] for mpi in facts["libraries"] if "offload" in mpi}
    words = offload.in_words(able, hardware["infiniband"], hardware["offload_variables"])
    console.print(f"collectives by the network: {words}", highlight=False, soft_wrap=True)
    words = gpu.in_words(hardware["gpu"])
    console.print(f"GPUs: {words}", markup=False, highlight=False, soft_wrap=True)
    if facts["libraries"]:
        show_libraries(console, facts["libraries"])
    for name, command in facts["not_here"].items():
        line = f"{name}: not here; get it with: {command}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_libraries(console: Console, libraries: list[dict]) -> None:
    """Prints one row for each library in the order in which commands choose them, and below it the
    path of each."""
    table = Table(box=None, header_style="bold")
    for column in ("MPI", "stands before", "library", "thread level", "engines"):
        table.add_column(column, overflow="fold")
    for number, mpi in enumerate(libraries):
        table.add_row(*row(mpi), style="bold" if number == 0 else None)
    console.print(table)
    for mpi in libraries:
        for line in (f"{mpi['name']}: {mpi['mpiexec']} ({mpi['found_by']})", *cannot_run(mpi)):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def cannot_run(mpi: dict) -> list[str]:
    if "problem" in mpi:
        return [f"{mpi['name']}: {mpi['problem']}"]
    engines_of: dict[str, list[str]] = {}
    for engine, reason in mpi["engines"].items():
        if reason:
            engines_of.setdefault(reason, []).append(engine)
    return [f"{mpi['name']}: not {', '.join(e)}: {why}" for why, e in engines_of.items()]


def row(mpi: dict) -> list[str]:
    before = ", ".join([mpi["stands_before"], *mpi["abi"]])
    if "problem" in mpi:
        return [mpi["name"], before, "-", "-", "none"]
    runs = [engine for engine, reason in mpi["engines"].items() if not reason]
    level = mpi["thread_level"].removeprefix("MPI_THREAD_")
    all_run = len(runs) == len(mpi["engines"])
    words = "all" if all_run else " ".join(runs) or "none"
    return [mpi["name"], before, title(mpi["library"]), level, words]


def title(library: str) -> str:
    """Returns a name such as `MPICH 5.0.2` from the library's version text."""
    name, number = re.match(r"(.*?)(?:\s*Version:)?\s*v?(\d+(?:\.\d+)+|$)", library, re.S).groups()
    return f"{' '.join(name.split())} {number}".strip()
