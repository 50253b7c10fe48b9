"""`weft doctor`: tests each part of the set-up by using it, and names the fix for what is wrong."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from weft import gpu, info, installation, mpi_libraries, offload, xpmem
from weft.lab import LabError, lab_problem
from weft.mpi_libraries import Implementation
from weft.probe import NotBuilt, ProbeError, run_probe

SHM = Path("/dev/shm")
SHM_NEEDED_BYTES = 64 << 20
SYSCTL = Path("/proc/sys")
# Settings of the kernel's that refuse namespaces to users: name, the value that does, a better one.
USER_NAMESPACES = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)
BRINGS_LIBRARY = {"mpich": "make build", "openmpi": "make mpis", "abi": "make build"}
# What killed MPI jobs leave in /dev/shm.
LEFTOVER = re.compile(r"^(mpich_sh|Intel_MPI|vader_segment|sm_segment|psm|impi_shm|weft|ucx_)")


@dataclass
class Finding:
    what: str
    good: bool | None  # None: not here, or not permitted, which takes nothing from what is
    note: str = ""
    fix: str = ""  # a command, or what to do; only when not good


def examine() -> list[Finding]:
    return list(findings())


def findings() -> Iterator[Finding]:
    yield check_command()
    found = mpi_libraries.found()
    wanted = {mpi.family for mpi in found}
    for family in mpi_libraries.FAMILY_LIBRARY:
        yield check_library(family, family in wanted)
    for mpi in found:
        yield from check_mpi(mpi)
    for name, command in info.not_here().items():
        yield Finding(name, None, "not here", command)
    yield check_lab()
    yield check_shm_space()
    yield check_locked_memory()
    yield check_addresses()
    yield check_xpmem()
    yield check_gpu()
    yield check_leftovers()
    yield check_dead_launchers()


def check_command() -> Finding:
    path = installation.weft_command()
    good = os.access(path, os.X_OK)
    return Finding("weft command", good, str(path), "" if good else "make build")


def check_library(family: str, wanted: bool) -> Finding:
    what = f"library for {mpi_libraries.FAMILY_LIBRARY[family]}"
    path = installation.preload_library(family)
    fix = installation.REMEDY if not installation.SOURCE else BRINGS_LIBRARY[family]
    if not path:
        return Finding(what, False if wanted else None, f"there is no libweft-{family}.so", fix)
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
    """Whether Weft is in them when `weft run` stands before the program."""
    what = f"weft run gets into the ranks of {mpi.name} ({mpi.where})"
    fix = "weft run --verbose -- PROGRAM says what it finds"
    try:
        there = run_probe(mpi, ranks=2, under_weft=True)["weft"]
    except ProbeError as error:
        return Finding(what, False, str(error), fix)
    return Finding(what, bool(there), "yes" if there else "no", "" if there else fix)


def check_lab() -> Finding:
    """Without one, jobs run where the machine lets them."""
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
    """Memory that a network's device reads itself has to be locked."""
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
    """The shared heap reserves addresses for all memory of the machine."""
    what = "addresses (ulimit -v)"
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return Finding(what, True, "unlimited")
    note = f"limited to {limit >> 20} MiB: buffers of ranks of a node are copied"
    return Finding(what, False, note, "ulimit -v unlimited")


def check_xpmem() -> Finding:
    """A machine without the module lacks nothing; one where it cannot be used does."""
    what = "XPMEM"
    if not xpmem.DEVICE.exists():
        return Finding(what, True, f"there is no {xpmem.DEVICE}: private buffers are copied")
    problem = xpmem.problem()
    return Finding(what, not problem, problem or str(xpmem.DEVICE), xpmem.FIX if problem else "")


def check_gpu() -> Finding:
    """A machine without a GPU lacks nothing; one whose GPU cannot be used does."""
    found = gpu.facts()
    words = gpu.in_words(found)
    if found["problem"] == "no GPU here":
        return Finding("GPU", True, words)
    if found["problem"]:
        fix = "nvidia-smi says whether the driver works; a container must be given the devices"
        return Finding("GPU", False, words, fix)
    if found["kernels"] and found["needs"]:
        return Finding("GPU", False, words, "install a newer driver (nvidia-smi shows this one)")
    fix = "tools/setup-cuda && make build" if installation.SOURCE else installation.REMEDY
    return Finding("GPU", found["kernels"], words, "" if found["kernels"] else fix)


def check_leftovers() -> Finding:
    what = "leftovers in /dev/shm"
    mapped = mapped_files()
    names = [path.name for path in own_files(SHM)]
    left = sorted(name for name in names if LEFTOVER.match(name) and str(SHM / name) not in mapped)
    if not left:
        return Finding(what, True, "none")
    fix = "rm -r " + " ".join(str(SHM / name) for name in left)
    return Finding(what, False, f"{len(left)} of jobs that were killed", fix)


def check_dead_launchers() -> Finding:
    """Open MPI's mpiexec does not start where one that was killed had the same process id."""
    what = "leftovers of Open MPI's launcher"
    directory = Path(tempfile.gettempdir())
    named = ((path, re.fullmatch(r"ompi\.(\d+)", path.name)) for path in own_files(directory))
    left = sorted(str(path) for path, pid in named if pid and not Path("/proc", pid[1]).exists())
    if not left:
        return Finding(what, True, "none")
    note = f"{len(left)} of jobs that were killed, in {directory}"
    return Finding(what, False, note, "rm -r " + " ".join(left))


def own_files(directory: Path) -> Iterator[Path]:
    """Nobody can remove those of other users."""
    if not directory.is_dir():
        return
    for path in directory.iterdir():
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid():
                yield path


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


MARKS = {True: "[green]good[/]", False: "[red]bad [/]", None: "[dim]none[/]"}


def report(results: list[Finding]) -> int:
    """Prints the findings; 1 if something is wrong."""
    console = Console()
    for finding in results:
        console.print(f"{MARKS[finding.good]} {finding.what}: ", end="")
        console.print(finding.note, markup=False, highlight=False, soft_wrap=True)
        if finding.fix:
            word = "to get it" if finding.good is None else "fix"
            line = f"       {word}: {finding.fix}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    wrong = sum(finding.good is False for finding in results)
    good = sum(finding.good is True for finding in results)
    console.print(f"{good} good, {wrong} to be put right" if wrong else "nothing is wrong")
    return 1 if wrong else 0
