"""Tests each part of the set-up by using it, and names the fix for what is wrong (`weft
doctor`)."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from weft.data import stored
from weft.doctor import leftovers
from weft.lab import LabError, lab_problem
from weft.system import gpu, info, installation, linked, mpi_libraries, offload, xpmem
from weft.system.mpi_libraries import Implementation
from weft.system.probe import NotBuilt, ProbeError, run_probe

SHM = Path("/dev/shm")
SHM_NEEDED_BYTES = 64 << 20
SYSCTL = Path("/proc/sys")
# These kernel settings deny namespaces to unprivileged users. Each has its name, the value that
# denies, and a better one.
USER_NAMESPACES = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)
BRINGS_LIBRARY = {"mpich": "make build", "openmpi": "make mpis", "abi": "make build"}
FIX_COMMAND = "weft doctor --fix"
LEFTOVERS = {
    "leftovers in /dev/shm": leftovers.in_shared_memory,
    "leftovers in System V memory": leftovers.of_system_v,
    "leftovers of Open MPI's launcher": leftovers.of_launchers,
}


@dataclass
class Finding:
    what: str
    # This is None if the part is absent or not permitted, and nothing else is impaired by that.
    good: bool | None
    note: str = ""
    fix: str = ""  # a command, or what to do; empty if the finding is good
    # This is the function that carries out the fix; None if only the user can.
    mend: Callable[[], None] | None = None


def examine() -> list[Finding]:
    return list(findings())


def findings() -> Iterator[Finding]:
    yield check_command()
    if installation.site_file().exists():
        yield check_site_file()
    found = mpi_libraries.found()
    wanted = {mpi.family for mpi in found}
    for family in mpi_libraries.FAMILY_LIBRARY:
        yield check_library(family, family in wanted)
    for mpi in found:
        yield from check_mpi(mpi)
        if mpi.where == "embedded":
            yield check_found_by_loader(mpi)
    yield from check_fortran(found)
    for name, command in info.not_here().items():
        yield Finding(name, None, "not here", command)
    yield of_sanitizers()
    yield check_lab()
    yield check_shm_space()
    yield check_locked_memory()
    yield check_addresses()
    yield check_xpmem()
    yield check_gpu()
    for what, find in LEFTOVERS.items():
        yield check_leftovers(what, find)


def check_command() -> Finding:
    path = installation.weft_command()
    good = os.access(path, os.X_OK)
    return Finding("weft command", good, str(path), *([] if good else by_make("make build")))


def check_site_file() -> Finding:
    """Checks the site file, which `weft run` reads before each program, by its message about it."""
    file = installation.site_file()
    command = [installation.weft_command(), "run", "--", "true"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    except OSError as error:
        note = f"{file} is not checked: {command[0]} does not run ({error.strerror})"
        return Finding("site file", False, note, "mend the weft command")
    (fault,) = re.findall(rf"the site file {re.escape(str(file))} is left out (.*)", said) or [""]
    if not fault:
        return Finding("site file", True, str(file))
    return Finding("site file", False, f"left out {fault.split('), and ')[0]})", f"mend {file}")


def by_make(command: str) -> tuple[str, Callable[[], None] | None]:
    """Returns a fix by a target of the source tree's Makefile, and the function that runs it. The
    function is None in an installation."""
    words = command.split()
    if not installation.SOURCE or words[0] != "make":
        return command, None
    return command, lambda: print_nothing(["make", "-C", str(installation.ROOT), *words[1:]])


def print_nothing(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False)


def check_library(family: str, wanted: bool) -> Finding:
    what = f"library for {mpi_libraries.FAMILY_LIBRARY[family]}"
    path = installation.preload_library(family)
    fix = installation.REMEDY if not installation.SOURCE else BRINGS_LIBRARY[family]
    if not path:
        note = f"there is no libweft-{family}.so"
        return Finding(what, False if wanted else None, note, *by_make(fix))
    pid = os.fork()
    if pid == 0:  # loading a library may change the process, so that a child process does it
        try:
            ctypes.CDLL(str(path))
            os._exit(0)
        except OSError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(1)
    good = os.waitpid(pid, 0)[1] == 0
    if good:
        return Finding(what, True, str(path))
    return Finding(what, False, f"{path} cannot be loaded", *by_make(fix))


def check_mpi(mpi: Implementation) -> Iterator[Finding]:
    what = f"{mpi.name} ({mpi.where}) runs two ranks"
    if not mpi.mpiexec.exists() and not shutil.which("srun"):
        yield Finding(what, None, f"{mpi.prefix} has no mpiexec, and there is no srun")
        return
    try:
        facts = run_probe(mpi, ranks=2)
    except NotBuilt as error:
        fact, _, remedy = str(error).partition("; ")
        yield Finding(what, None, fact, remedy.removeprefix("build it with: "))
        return
    except ProbeError as error:
        yield Finding(what, False, str(error), fix_of_mpi(mpi))
        return
    level = facts["thread_level"]
    if level == "MPI_THREAD_MULTIPLE":
        yield Finding(what, True, level)
    else:
        fix = "use an MPI library built with thread support, or --engine function"
        yield Finding(what, False, f"grants only {level}", fix)
    yield check_ranks(mpi)


def fix_of_mpi(mpi: Implementation) -> str:
    if mpi.where == "embedded":
        return f"rm -r {mpi.prefix} && {mpi_libraries.make_target(mpi.name)}"
    return (
        f"start it by hand, without Weft: {' '.join(mpi.launcher(2))} {mpi.program('weft-probe')}"
    )


def check_ranks(mpi: Implementation) -> Finding:
    """Checks whether Weft is loaded into the ranks if `weft run` stands before the program."""
    what = f"weft run gets into the ranks of {mpi.name} ({mpi.where})"
    fix = "weft run --verbose -- PROGRAM says what it finds"
    try:
        there = run_probe(mpi, ranks=2, under_weft=True)["weft"]
    except ProbeError as error:
        return Finding(what, False, str(error), fix)
    return Finding(what, bool(there), "yes" if there else "no", "" if there else fix)


def check_found_by_loader(mpi: Implementation) -> Finding:
    what = f"programs that {mpi.name} did not link, such as mpi4py, find it"
    name = mpi_libraries.FAMILY_LIBRARY[mpi.family]
    if fix := linked.path_for_loader(mpi):
        return Finding(what, None, f"the loader finds no {name}", fix)
    return Finding(what, True, f"the loader finds a {name}")


def check_fortran(found: list[Implementation]) -> Iterator[Finding]:
    """Reports that the embedded MPI libraries have no compiler wrapper for Fortran."""
    bare = [mpi for mpi in found if mpi.where == "embedded"]
    if not bare or any((mpi.prefix / "bin" / "mpifort").exists() for mpi in found):
        return
    note = f"{', '.join(mpi.name for mpi in bare)} (embedded) have neither it nor its libraries"
    fix = (
        "sudo apt-get install libopenmpi-dev, or libmpich-dev; weft run serves their programs, too"
    )
    yield Finding("mpifort, for programs in Fortran", None, note, fix)


def of_sanitizers() -> Finding:
    """Reports that the runtime libraries of sanitizers, which must be loaded first, are handled."""
    note = "weft run loads the runtime that they need (libasan, liblsan, libtsan) before Weft"
    return Finding("programs built with a sanitizer", True, note)


def check_lab() -> Finding:
    """Checks the lab. Without one, jobs run as plain processes of this machine."""
    what = "lab (namespaces and links)"
    try:
        why = lab_problem()
    except LabError as error:
        return Finding(what, None, str(error))
    if why:
        note = f"{why}; weft bench --launcher mpiexec does without"
        return Finding(what, None, note, lab_fix(why))
    return Finding(what, True, "nodes of their own, joined by shaped links")


def lab_fix(reason: str) -> str:
    if "apt-get" in reason or "make " in reason:
        return reason.rsplit(": ", 1)[-1]
    if "tbf" in reason or "qdisc" in reason:
        return "sudo modprobe sch_tbf"
    if "bridge" in reason or "veth" in reason:
        return "sudo modprobe -a bridge veth"
    if os.geteuid() == 0:
        return "give the container CAP_SYS_ADMIN and CAP_NET_ADMIN, or run outside of it"
    changes = [
        f"{name}={value}" for name, refuses, value in USER_NAMESPACES if refused(name, refuses)
    ]
    if changes:
        return f"sudo sysctl -w {' '.join(changes)}"
    return "ask the administrator for unprivileged user namespaces"


def refused(name: str, value: str) -> bool:
    try:
        return (SYSCTL / name.replace(".", "/")).read_text().strip() == value
    except OSError:
        return False


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


def check_locked_memory() -> Finding:
    """Checks the limit of locked memory, since memory that a network device accesses directly must
    be locked."""
    what = "memory that may be locked (ulimit -l)"
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    devices = offload.network_devices()
    if limit == resource.RLIM_INFINITY:
        return Finding(what, True, "unlimited")
    if not devices:
        return Finding(what, True, f"{limit >> 10} KiB, which matters to InfiniBand only")
    note = f"{limit >> 10} KiB, with {', '.join(devices)}"
    fix = "ulimit -l unlimited, or PropagateResourceLimitsExcept=MEMLOCK in Slurm's slurm.conf"
    return Finding(what, False, note, fix)


def check_addresses() -> Finding:
    """Checks the limit of addresses, since the shared heap reserves addresses for all memory of the
    machine."""
    what = "addresses (ulimit -v)"
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return Finding(what, True, "unlimited")
    note = f"limited to {limit >> 20} MiB: buffers of ranks of a node are copied"
    return Finding(what, False, note, "ulimit -v unlimited")


def check_xpmem() -> Finding:
    """Checks XPMEM. A machine without the kernel module is all right, but one where it cannot be
    used is not."""
    what = "XPMEM"
    if not xpmem.DEVICE.exists():
        return Finding(what, None, f"there is no {xpmem.DEVICE}: private buffers are copied")
    problem = xpmem.problem()
    return Finding(what, not problem, problem or str(xpmem.DEVICE), xpmem.FIX if problem else "")


def check_gpu() -> Finding:
    """Checks the GPU. A machine without one is all right, but one whose GPU cannot be used is
    not."""
    found = gpu.facts()
    words = gpu.in_words(found)
    if found["problem"] == "no GPU here":
        return Finding("GPU", None, words)
    if found["problem"]:
        fix = "nvidia-smi says whether the driver works; a container must be given the devices"
        return Finding("GPU", False, words, fix)
    if found["kernels"] and found["needs"]:
        return Finding("GPU", False, words, "install a newer driver (nvidia-smi shows this one)")
    fix = "tools/setup-cuda && make build" if installation.SOURCE else installation.REMEDY
    return Finding("GPU", found["kernels"], words, "" if found["kernels"] else fix)


def check_leftovers(what: str, find: Callable[[], leftovers.Leftovers]) -> Finding:
    found = find()
    if not found.count:
        return Finding(what, True, "none")
    return Finding(what, False, found.in_words(), FIX_COMMAND, found.remove)


STATES = {True: "good", False: "bad", None: "missing"}
COLOURS = {True: "green", False: "red", None: "dim"}


def mended(finding: Finding) -> bool:
    """Carries out the fix of a bad finding, and returns whether there was one to carry out."""
    if finding.good is not False or not finding.mend:
        return False
    finding.mend()
    return True


def report(results: list[Finding]) -> int:
    """Prints the findings, and returns the exit status: 1 if something is wrong."""
    console = Console()
    for finding in results:
        mark = f"[{COLOURS[finding.good]}]{STATES[finding.good]:7}[/]"
        console.print(f"{mark} {finding.what}: ", end="")
        console.print(finding.note, markup=False, highlight=False, soft_wrap=True)
        if finding.fix:
            word = "to get it" if finding.good is None else "fix"
            line = f"          {word}: {finding.fix}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    wrong = sum(finding.good is False for finding in results)
    good = sum(finding.good is True for finding in results)
    console.print(f"{good} good, {wrong} to be fixed" if wrong else "nothing is wrong")
    return 1 if wrong else 0


def to_json(results: list[Finding]) -> dict[str, Any]:
    """Returns the findings as a document of the schema weft-doctor/2. In weft-doctor/1 an absent
    part had the state "none"."""
    found = [
        {"what": one.what, "state": STATES[one.good], "note": one.note, "fix": one.fix}
        for one in results
    ]
    counts = Counter(one["state"] for one in found)
    mpis = ", ".join(mpi.name for mpi in mpi_libraries.found())
    headline = {state: counts[state] for state in STATES.values()}
    return {**stored.head("weft-doctor/2", headline, mpis), "findings": found}


def fix() -> list[Finding]:
    """Carries out all fixes that it can, prints them, and returns the findings of a new
    examination."""
    for finding in examine():
        if mended(finding):
            print(f"mended {finding.what}: {finding.note}")
    return examine()
