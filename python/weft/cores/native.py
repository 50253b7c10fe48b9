"""Asks `weft-cores`, the library's own decisions about cores, and reads its answers."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TypeVar

from weft.data import stored
from weft.system import building, installation

T = TypeVar("T")


class CoresError(Exception):
    """The message says what to do."""


@dataclass(frozen=True)
class Placement:
    """Cores by the CPU that stands for each; `ranks` and `threads` by local rank."""

    policy: str
    cores: list[int]
    numa_nodes: list[int]  # NUMA node of each core
    ranks: list[int]
    threads: list[int]
    note: str = ""  # why threads stay beside their ranks


@dataclass(frozen=True)
class Split:
    """Times in transfers of the collective's buffer, with S levels on the application's cores."""

    S: int
    total: float
    application: float
    communication: float
    computation: float


@dataclass(frozen=True)
class Ranks:
    """A number of ranks; `total` and what it is made of at the best split S."""

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
    """The number of ranks asked for or the best one, and all others."""

    cores: int
    collective: str
    by_ranks: list[Ranks]


def ask(kind: type[T], words: list[str]) -> tuple[T, str]:
    """The answer, and its JSON as it came."""
    program = installation.native_part("weft-cores")
    if not building.is_there(program):
        raise CoresError(f"{program} is missing; {installation.REMEDY}")
    done = subprocess.run([str(program), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise CoresError(done.stderr.strip() or f"{program.name} ended with {done.returncode}")
    return stored.parse(kind, done.stdout, program.name), done.stdout.strip()
