"""Runs random programs, and reduces one that fails to the few calls that make it fail.

    python tests/random/shrink.py --mpi openmpi --ranks 3 --engine thread --seed 42

A failure is a wrong result, a crash or a hang (by the program's time limit). Steps are removed as
long as the remaining ones still fail. The remaining MPI calls are printed."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.system import installation, mpi_libraries

# These cases are left out, since the library itself fails in them. They were found without Weft.
FAULTS: dict[str, str] = {
    # A communicator that is freed with collectives pending is lost. Reductions of types with a
    # negative lower bound write before their buffer. A blocking alltoallw on one rank is wrong.
    # Persistent operations do not keep types and operators. Ialltoallv in place is wrong on four
    # ranks, and Ialltoallw in place does not progress while a member is in MPI_Recv. A blocking
    # allgatherv takes different algorithms on ranks with different types, and hangs.
    "openmpi": "comm-free,reduced-negative,freed-persistent,MPI_Alltoallw,alltoallv-in-place,"
    "alltoallw-in-place,blocking-mixed",
    # Persistent gathers and scatters are wrong from the second start on. So are alltoallw in place,
    # and user-defined operators on derived types. A gather of a type with a negative lower bound
    # writes beyond its buffer.
    "intelmpi": "testall-persistent,mixed,groups,scattered-derived,user-derived,alltoallw-in-place,"
    "gathered-negative,MPI_Gather_init,MPI_Scatter_init,MPI_Allgather_init",
    # Scattered reductions of derived types are wrong if the operator does not commute, or in place.
    # So are gathers of large derived types between two groups, and long gathers of a type with a
    # negative lower bound on four ranks.
    "mpich": "testall-persistent,groups,scattered-derived,gathered-negative",
}


# These cases are left out if engine tcc carries non-blocking collectives out by blocking ones that
# are wrong.
BLOCKING_FAULTS: dict[str, str] = {"openmpi": ",mixed"}


@dataclass(frozen=True)
class Setting:
    """The MPI library, the engine and the options with which the programs run."""

    mpi: str
    ranks: int = 3
    # This is the engine with further options of `weft run`, such as "auto --blocking".
    engine: str | None = None
    limit_s: int = 20
    options: tuple[str, ...] = ()
    summary: Path | None = None
    variables: dict[str, str] = field(default_factory=dict, hash=False)
    loader: tuple[str, ...] = ()  # words in front of `weft run` on each rank
    weft: Path = field(default_factory=installation.weft_command)
    nodes: str = ""  # hosts for Hydra ("a:2,b:1"), which are all this machine
    program: Path | None = None  # program that replaces the random programs, and gets no options

    def run(self, *words: object) -> subprocess.CompletedProcess:
        library = mpi_libraries.implementation(self.mpi)
        launcher = library.launcher(self.ranks)
        if self.nodes:
            launcher += ["-launcher", "fork", "-hosts", self.nodes]
        front = []
        if self.engine:
            summary = [f"--summary=json:{self.summary}"] if self.summary else []
            options = ["--engine", *shlex.split(self.engine), *summary]
            front = [*self.loader, self.weft, "run", *options, "--"]
        random = [library.program("random"), *self.left_out(), *self.options]
        random += ["--limit-s", self.limit_s, *words]
        command = [*launcher, *front, *([self.program] if self.program else random)]
        environment = {**os.environ, **library.environment(), **self.variables}
        # The wheel's vectorised operators add 8-bit integers wrongly. Waiting ranks yield, since
        # there are more of them than cores.
        environment |= {"OMPI_MCA_op": "^avx", "OMPI_MCA_mpi_yield_when_idle": "1"}
        return subprocess.run(
            [str(word) for word in command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )

    def left_out(self) -> list[str]:
        by_blocking = self.engine and shlex.split(self.engine)[0] == "tcc"
        blocking = BLOCKING_FAULTS.get(self.mpi, "") if by_blocking else ""
        return ["--without", FAULTS[self.mpi] + blocking]

    def list_steps(self, *words: object) -> dict[int, str]:
        program = mpi_libraries.implementation(self.mpi).program("random")
        faults = self.left_out()
        command = [program, "--list", 1, *faults, *self.options, *words]
        variables = {**os.environ, **mpi_libraries.implementation(self.mpi).environment()}
        text = subprocess.run(
            [str(word) for word in command],
            env=variables,
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        found = re.findall(r"^step (\d+)(.*)$", text, re.M)
        return {int(number): f"step {number}{rest}" for number, rest in found}


def smallest(items: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Returns the items without ever smaller parts of the list, as long as the rest still fails."""
    kept = list(items)
    part = max(len(kept) // 2, 1)
    while True:
        at = 0
        while at < len(kept) and len(kept) > 1:
            rest = kept[:at] + kept[at + part :]
            if rest and fails(rest):
                kept = rest
            else:
                at += part
        if part == 1:
            return kept
        part = max(part // 2, 1)


def shrink(
    setting: Setting, seed: int, repeat: int, say=print
) -> tuple[dict[int, str], str] | None:
    """Returns the text of the remaining steps, and how they fail; None if the program passes."""
    words: list[object] = ["--seed", seed, "--repeat", repeat]
    report = ""

    def fails(*more: object) -> bool:
        nonlocal report
        done = setting.run(*words, *more)
        if done.returncode != 0:
            report = done.stdout
        return done.returncode != 0

    if not fails():
        return None
    for simpler in (["--threads", 0], ["--largest-count", 1], ["--largest-count", 20]):
        if fails(*simpler):
            words += simpler
            if simpler[0] == "--largest-count":
                break
    steps = {n: line for n, line in setting.list_steps(*words).items() if "nothing" not in line}

    def only(kept: Sequence[int]) -> list[object]:
        return ["--only", ",".join(map(str, kept))]

    def still(kept: Sequence[int]) -> bool:
        failed = fails(*only(kept))
        if failed:
            say(f"  {len(kept)} steps still fail")
        return failed

    kept = smallest(list(steps), still)
    fails(*only(kept))
    arguments = " ".join(map(str, [*words, *only(kept)]))
    say(f"build/bin/{setting.mpi}/random {arguments}")
    return {number: steps[number] for number in kept}, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", choices=mpi_libraries.IMPLEMENTATIONS, default="mpich")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument(
        "--engine", help="of Weft, with more options of weft run; else it is left out"
    )
    parser.add_argument("--nodes", default="", help="of MPICH: ranks on hosts, such as a:2,b:1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=1, help="seeds from --seed on")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, for rare failures")
    parser.add_argument("--limit-s", type=int, default=20, help="a program that lasts longer hangs")
    parser.add_argument("--preload", help="a library that is loaded into the ranks")
    words = parser.parse_args()
    variables = {"LD_PRELOAD": words.preload} if words.preload else {}
    setting = Setting(
        words.mpi,
        words.ranks,
        words.engine,
        words.limit_s,
        variables=variables,
        nodes=words.nodes,
    )
    seed = words.seed
    if words.programs > 1:
        done = setting.run("--seed", seed, "--programs", words.programs)
        found = re.search(r"random: seed (\d+)", done.stdout)
        if done.returncode == 0:
            raise SystemExit(f"{words.programs} programs right")
        if not found:
            raise SystemExit(f"a failure that names no seed:\n{done.stdout}")
        seed = int(found[1])
        print(f"seed {seed} fails")
    result = shrink(setting, seed, words.repeat)
    if not result:
        raise SystemExit(f"seed {seed} passes {words.repeat} times")
    steps, report = result
    print(f"\nseed {seed} fails with {len(steps)} of its steps:")
    print("\n".join(f"  {line}" for line in steps.values()))
    print("\n" + "\n".join(report.strip().splitlines()[:12]))


if __name__ == "__main__":
    main()
