"""Runs `weft-cores`, which uses the library's own code to choose cores, and reads its answers."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TypeVar

from weft.data import stored
from weft.system import building, installation

T = TypeVar("T")


class CoresError(Exception):
    """Raised if `weft-cores` gives no answer; the message says what to do."""


@dataclass(frozen=True)
class Placement:
    """The cores of a node, each by the number of its first CPU. `ranks` and `threads` give the core
    of each local rank and of its thread."""

    policy: str
    cores: list[int]
    numa_nodes: list[int]  # number of each core's NUMA node
    ranks: list[int]
    threads: list[int]
    note: str = ""  # reason why threads share the cores of their ranks


@dataclass(frozen=True)
class Split:
    """Times if S levels of the tree run on the application's cores. The unit is a transfer of the
    collective's buffer."""

    S: int
    total: float
    application: float
    communication: float
    computation: float


@dataclass(frozen=True)
class Ranks:
    """A number of ranks. `total` and its parts are times at the best split S."""

    ranks: int
    S: int
    total: float
    application: float
    communication: float
    computation: float
    blocking: float
    blocking_total: float
    splits: list[Split]


@dataclass(frozen=True)
class Model(Ranks):
    """The answer for the requested or the best number of ranks, and those for all other numbers."""

    cores: int
    collective: str
    by_ranks: list[Ranks]


def ask(kind: type[T], words: list[str]) -> tuple[T, str]:
    """Returns the answer, and its JSON text. Raises CoresError if `weft-cores` is missing or
    fails."""
    program = installation.native_part("weft-cores")
    if not building.is_there(program):
        raise CoresError(f"{program} is missing; {installation.REMEDY}")
    done = subprocess.run([str(program), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise CoresError(done.stderr.strip() or f"{program.name} ended with {done.returncode}")
    return stored.parse(kind, done.stdout, program.name), done.stdout.strip()
