"""Runs `weft-sim`, which carries out the library's own schedules in virtual time."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from weft.data import stored
from weft.system import building, installation

MACHINES = Path(__file__).parent / "machines"


class SimError(Exception):
    """Raised if the simulation fails; the message says what to do."""


@dataclass(frozen=True)
class Run:
    """The result of a simulation. Times are virtual microseconds. Cores are numbered over all
    nodes."""

    total_us: float  # time until the last rank has finished
    communication_us: float  # time until the collective ends on the last rank
    ranks: int
    nodes: int
    events: int
    switches: int
    messages: int
    message_bytes: float
    machine: str
    cores: int  # number of cores of a node
    collective: str
    algorithm: str
    bytes: int
    engine: str
    placement: str
    split: int
    compute_us: float
    rank_cores: list[int] = field(default_factory=list)
    thread_cores: list[int] = field(default_factory=list)
    note: str = ""  # reason why threads share the cores of their ranks


def names_of_machines() -> list[str]:
    return sorted(path.stem for path in MACHINES.glob("*.json"))


def machine_file(machine: str) -> Path:
    """Returns the file of a machine that is part of Weft, or the given file itself. Raises SimError
    if there is neither."""
    known = MACHINES / f"{machine}.json"
    if known.exists() or Path(machine).exists():
        return known if known.exists() else Path(machine)
    raise SimError(
        f"no machine '{machine}'; there are {', '.join(names_of_machines())}, or name a file, such"
        " as weft sim --calibrate writes"
    )


def program(*words: str) -> str:
    native = installation.native_part("weft-sim")
    if not building.is_there(native):
        raise SimError(f"{native} is missing; {installation.REMEDY}")
    done = subprocess.run([str(native), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SimError(done.stderr.strip() or f"{native.name} ended with {done.returncode}")
    return done.stdout.strip()


def simulate_text(machine: str, words: list[str]) -> str:
    return program("run", "--machine", str(machine_file(machine)), *words)


def simulate(machine: str, **options: object) -> Run:
    """Runs a simulation with options of `weft-sim run`, and returns its result. Options that are
    None are left out."""
    words: list[str] = []
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return stored.parse(Run, simulate_text(machine, words), "weft-sim")


def calibrate() -> str:
    return program("calibrate")
