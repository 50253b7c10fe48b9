"""`weft doctor`: tests each part of the set-up by using it, and names the fix for what is wrong."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from weft import installation, mpi_libraries, xpmem
from weft.lab import Lab, LabError
from weft.mpi_libraries import Implementation
from weft.probe import ProbeError, run_probe

SHM = Path("/dev/shm")
SHM_NEEDED_BYTES = 64 << 20
# What killed MPI jobs leave in /dev/shm.
LEFTOVER = re.compile(r"^(mpich_sh|Intel_MPI|vader_segment|sm_segment|psm|impi_shm|weft|ucx_)")


@dataclass
class Finding:
    what: str
    good: bool
    note: str = ""
    fix: str = ""  # a command, or what to do; only when not good


def examine() -> list[Finding]:
    return list(findings())


def findings() -> Iterator[Finding]:
    yield check_command()
    for family in mpi_libraries.FAMILY_LIBRARY:
        yield check_library(family)
    for name in mpi_libraries.IMPLEMENTATIONS:
        yield check_mpi(mpi_libraries.implementation(name))
    yield check_lab()
    yield check_shm_space()
    yield check_xpmem()
    yield check_leftovers()
    yield check_dead_launchers()


def check_command() -> Finding:
    path = installation.weft_command()
    good = os.access(path, os.X_OK)
    return Finding("weft command", good, str(path), "" if good else "make build")


def check_library(family: str) -> Finding:
    what = f"library for {mpi_libraries.FAMILY_LIBRARY[family]}"
    path = installation.preload_library(family)
    fix = "make mpis" if family == "openmpi" else "make build"
    if not path:
        return Finding(what, False, f"libweft-{family}.so is not built", fix)
    pid = os.fork()
    if pid == 0:  # in a process of its own: loading may change the process
        try:
            ctypes.CDLL(str(path))
            os._exit(0)
        except OSError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(1)
    good = os.waitpid(pid, 0)[1] == 0
    return Finding(
        what, good, str(path) if good else f"{path} cannot be loaded", "" if good else fix
    )


def check_mpi(mpi: Implementation) -> Finding:
    what = f"{mpi.name} runs two ranks"
    if not mpi.mpiexec.exists():
        return Finding(what, False, f"not in {mpi.prefix}", mpi_libraries.make_target(mpi.name))
    try:
        facts = run_probe(mpi, ranks=2)
    except ProbeError as error:
        fix = f"rm -r {mpi.prefix} && {mpi_libraries.make_target(mpi.name)}"
        return Finding(what, False, str(error), fix)
    level = facts["thread_level"]
    if level != "MPI_THREAD_MULTIPLE":
        fix = "use an MPI library built with thread support, or --engine function"
        return Finding(what, False, f"grants only {level}", fix)
    return Finding(what, True, level)


def check_lab() -> Finding:
    what = "lab (namespaces and links)"
    try:
        with Lab(nodes=2, mpi="mpich", check=False):
            return Finding(what, True, "two nodes joined by a shaped link")
    except LabError as error:
        return Finding(what, False, str(error), lab_fix(str(error)))


def lab_fix(reason: str) -> str:
    if "apt-get" in reason or "make " in reason:
        return reason.rsplit(": ", 1)[-1]
    if "tbf" in reason or "qdisc" in reason:
        return "sudo modprobe sch_tbf"
    if "bridge" in reason or "veth" in reason:
        return "sudo modprobe -a bridge veth"
    if os.geteuid() == 0:
        return "give the container CAP_SYS_ADMIN and CAP_NET_ADMIN, or run outside of it"
    return "sudo sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000"


def check_shm_space() -> Finding:
    what = "space in /dev/shm"
    if not SHM.is_dir():
        return Finding(what, False, "there is no /dev/shm", "sudo mount -t tmpfs tmpfs /dev/shm")
    free = shutil.disk_usage(SHM).free
    good = free >= SHM_NEEDED_BYTES
    return Finding(
        what,
        good,
        f"{free >> 20} MiB free",
        "" if good else "sudo mount -o remount,size=1G /dev/shm",
    )


def check_xpmem() -> Finding:
    """A machine without the module lacks nothing; one where it cannot be used does."""
    what = "XPMEM"
    if not xpmem.DEVICE.exists():
        return Finding(what, True, f"there is no {xpmem.DEVICE}: private buffers are copied")
    problem = xpmem.problem()
    return Finding(what, not problem, problem or str(xpmem.DEVICE), xpmem.FIX if problem else "")


def check_leftovers() -> Finding:
    what = "leftovers in /dev/shm"
    mapped = mapped_files()
    names = [path.name for path in SHM.iterdir()] if SHM.is_dir() else []
    left = sorted(name for name in names if LEFTOVER.match(name) and str(SHM / name) not in mapped)
    if not left:
        return Finding(what, True, "none")
    fix = "rm -r " + " ".join(str(SHM / name) for name in left)
    return Finding(what, False, f"{len(left)} of jobs that were killed", fix)


def check_dead_launchers() -> Finding:
    """Open MPI's mpiexec does not start where one that was killed had the same process id."""
    what = "leftovers of Open MPI's launcher"
    directory = Path(tempfile.gettempdir())
    named = ((path, re.fullmatch(r"ompi\.(\d+)", path.name)) for path in directory.iterdir())
    left = sorted(str(path) for path, pid in named if pid and not Path("/proc", pid[1]).exists())
    if not left:
        return Finding(what, True, "none")
    note = f"{len(left)} of jobs that were killed, in {directory}"
    return Finding(what, False, note, "rm -r " + " ".join(left))


def mapped_files() -> set[str]:
    """Files below /dev/shm that a running process has mapped."""
    mapped: set[str] = set()
    for path in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        mapped |= {line.split(maxsplit=5)[-1] for line in text.splitlines() if "/dev/shm/" in line}
    return mapped


def report(results: list[Finding]) -> int:
    """Prints the findings; 1 if something is wrong."""
    console = Console()
    for finding in results:
        mark = "[green]good[/]" if finding.good else "[red]bad [/]"
        console.print(f"{mark} {finding.what}: ", end="")
        console.print(finding.note, markup=False, highlight=False, soft_wrap=True)
        if finding.fix:
            console.print(
                f"       fix: {finding.fix}", markup=False, highlight=False, soft_wrap=True
            )
    wrong = sum(not finding.good for finding in results)
    console.print(f"{len(results) - wrong} good, {wrong} to be put right" if wrong else "all good")
    return 1 if wrong else 0
