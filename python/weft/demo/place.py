"""Places where the demo's jobs run: the lab, or shared memory if this machine permits no lab. The
lab is preferred, since overlap needs a network that works while the cores compute."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from weft.lab import Lab, LabUnavailable
from weft.system import mpi_libraries

RANKS = 2
RATE = "200mbit"


class DemoError(Exception):
    """Raised if the demo cannot run; the message says what to do."""


class Place(Protocol):
    """A place for jobs of RANKS ranks."""

    words: str
    network: str
    size: str
    is_lab: bool

    def run(self, command: list[str], limit_s: float) -> tuple[int, str]:
        """Runs the command, and returns its exit status and its output. Raises
        subprocess.TimeoutExpired after the limit."""


@dataclass
class LabPlace:
    lab: Lab
    words: str = "on two nodes of the lab at 200 Mbit/s"
    network: str = (
        f"the lab: {RANKS} network namespaces on this machine, one rank on a core each, joined by a"
        " link of 200 Mbit/s"
    )
    size: str = "2MiB"
    is_lab: bool = True

    def run(self, command: list[str], limit_s: float) -> tuple[int, str]:
        result = self.lab.run(command, capture=True, timeout=limit_s)
        return result.returncode, f"{result.stderr}{result.stdout}"


@dataclass
class SharedMemory:
    mpi: mpi_libraries.Implementation
    words: str = "in shared memory of this machine"
    network: str = (
        "shared memory of this machine: the cores themselves move the data, so there is little that"
        " could be hidden"
    )
    size: str = "16MiB"  # an allreduce of 2 MiB would take less than a millisecond
    is_lab: bool = False

    def run(self, command: list[str], limit_s: float) -> tuple[int, str]:
        done = subprocess.run(
            [*self.mpi.launcher(RANKS), *command],
            env={**os.environ, **self.mpi.environment()},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
        return done.returncode, done.stderr + done.stdout


@contextlib.contextmanager
def open_place(mpi: mpi_libraries.Implementation, warn: Callable[[str], None]) -> Iterator[Place]:
    """Yields the lab, or shared memory, with a warning, if this machine does not permit a lab."""
    with contextlib.ExitStack() as stack:
        try:
            lab = Lab(nodes=RANKS, rate=RATE, mpi=mpi)
            found: Place = LabPlace(stack.enter_context(lab))
        except LabUnavailable as error:
            warn(
                f"{error}.\nThe ranks share this machine's memory instead: the demo runs, but"
                " moving data then takes the cores' own time, and little can be hidden."
            )
            found = SharedMemory(mpi)
        yield found
