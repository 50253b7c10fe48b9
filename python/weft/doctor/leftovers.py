"""Finds and removes files and segments that killed MPI jobs have left on this machine.

Only items of this user that no running process uses are listed."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SHM = Path("/dev/shm")
SEGMENTS = Path("/proc/sysvipc/shm")
# Files of MPI libraries, UCX and Weft in /dev/shm have these names.
LEFTOVER = re.compile(r"^(mpich_sh|Intel_MPI|vader_segment|sm_segment|psm|impi_shm|weft|ucx_)")
IPC_RMID = 0
# A starting job may not have mapped its files yet, so that younger files are left alone.
SECONDS_OF_A_START = 60


@dataclass
class Leftovers:
    """Files and folders, or System V segments, of one kind."""

    where: str
    paths: list[Path] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)  # identifiers of System V segments
    bytes: int = 0

    @property
    def count(self) -> int:
        return len(self.paths) + len(self.segments)

    def in_words(self) -> str:
        """Returns text such as "2 of jobs that were killed, 4 MiB"."""
        size = f", {self.bytes / (1 << 20):.3g} MiB" if self.bytes else ""
        return f"{self.count} of jobs that were killed{size}"

    def remove(self) -> None:
        for path in self.paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for segment in self.segments:
            ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)


def in_shared_memory() -> Leftovers:
    mapped = mapped_files()
    found = Leftovers(str(SHM))
    for path in own_files(SHM):
        if not LEFTOVER.match(path.name) or str(path) in mapped:
            continue
        with suppress(OSError):
            facts = path.lstat()
            if time.time() - facts.st_mtime > SECONDS_OF_A_START:
                found.paths.append(path)
                found.bytes += facts.st_blocks * 512
    found.paths.sort()
    return found


def of_launchers() -> Leftovers:
    """Returns session folders of ended launchers. Open MPI's mpiexec does not start if a killed one
    had the same process id."""
    directory = Path(tempfile.gettempdir())
    named = ((path, re.fullmatch(r"ompi\.(\d+)", path.name)) for path in own_files(directory))
    dead = (path for path, pid in named if pid and not Path("/proc", pid[1]).exists())
    return Leftovers(str(directory), sorted(dead))


def of_system_v() -> Leftovers:
    """Returns the System V segments to which no process is attached and whose creator has ended.
    UCX leaves such segments."""
    found = Leftovers("System V memory")
    try:
        head, *rows = SEGMENTS.read_text().splitlines()
    except (OSError, ValueError):
        return found
    for row in rows:
        facts = dict(zip(head.split(), row.split(), strict=False))
        maker = Path("/proc", facts["cpid"])
        if facts["nattch"] == "0" and int(facts["uid"]) == os.getuid() and not maker.exists():
            found.segments.append(int(facts["shmid"]))
            found.bytes += int(facts["size"])
    return found


def own_files(directory: Path) -> Iterator[Path]:
    """Yields the user's own files in a folder. Files of other users cannot be removed."""
    if not directory.is_dir():
        return
    for path in directory.iterdir():
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid():
                yield path


def mapped_files() -> set[str]:
    """Returns the files below /dev/shm that a running process has mapped."""
    mapped: set[str] = set()
    for path in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        mapped |= {line.split(maxsplit=5)[-1] for line in text.splitlines() if "/dev/shm/" in line}
    return mapped
