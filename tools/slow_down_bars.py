"""What the advisor costs by default: the kernels in their blocking form on two ranks of this
machine, alone and with `weft advise`, in turns.

A job's time is that of its steps, on the slowest rank: what starting and ending it takes is not in
it. tools/real-programs does the same with programs of Debian's packages.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from bar_jobs import run_command

from weft.system import installation, mpi_libraries

WEFT = installation.ROOT / ".venv/bin/weft"
REAL_PROGRAMS = "tools/real-programs lammps pw.x petsc --rounds 9 --way advise"
LIMIT = 1.05  # of the time alone
ROUNDS = 7
STEPS_US = 2.2e6  # of a job, about
LEAST_US = 1e5  # in which steps are counted
JOB_SECONDS = 120
CASES = {
    "iallreduce_kernel": "--elements 10000",
    "gemv_alltoall": "--order 2000 --bytes 1000000",
    "pipecg": "--grid 40x40x40",
    "cpals": "--dimensions 3000x2000x1500 --entries 300000",
    "fft3d": "--grid 64x64x64",
    "stencil": "--grid 96x96x96",
    "atmosphere": "--truncation 85 --steps 2",
}


@dataclass
class Found:
    """Microseconds of all steps of a job, round by round."""

    mpi: str
    program: str
    steps: int
    alone_us: list[float] = field(default_factory=list)
    advised_us: list[float] = field(default_factory=list)

    @property
    def shares(self) -> list[float]:
        return [mine / alone for mine, alone in zip(self.advised_us, self.alone_us)]

    def to_json(self) -> dict:
        return asdict(self)


def steps_us(mpi: str, program: str, advised: bool, directory: Path, steps: int) -> float:
    library = mpi_libraries.implementation(mpi)
    path = directory / "times.json"
    kernel = [library.program(program), *CASES[program].split(), "--form", "blocking"]
    words = [*library.launcher(2), *kernel, "--repetitions", steps, "--json", path]
    if advised:
        files = ["--record", directory / "record", "--out", directory / "page.html"]
        words = [WEFT, "advise", "--mpi", mpi, *files, "--", *words]
    run_command(words, mpi, JOB_SECONDS)
    (variant,) = json.loads(path.read_text())["variants"]
    return sum(variant["samples_us"])


def enough_steps(time_of: Callable[[int], float]) -> int:
    """So many that a job is long enough; time_of: a number of steps."""
    steps = 3
    while (us := time_of(steps)) < LEAST_US:
        steps *= 20
    return max(steps, math.ceil(steps * STEPS_US / us))


def measure(mpi: str, rounds: int) -> Iterator[Found]:
    """Of each kernel that is there. Who goes first changes from round to round."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for program in CASES:
            if not mpi_libraries.implementation(mpi).program(program).exists():
                continue
            steps = enough_steps(partial(steps_us, mpi, program, False, directory))
            found = Found(mpi, program, steps)
            for number in range(rounds):
                for advised in (False, True) if number % 2 == 0 else (True, False):
                    times = found.advised_us if advised else found.alone_us
                    times.append(steps_us(mpi, program, advised, directory, steps))
            yield found
