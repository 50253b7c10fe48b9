"""One job of a measuring program for the bars: on the ranks of this node, or in a lab."""

from __future__ import annotations

import os
import subprocess

from weft.lab import Lab
from weft.system import installation, mpi_libraries


def installed_libraries() -> list[str]:
    return [
        mpi
        for mpi in mpi_libraries.IMPLEMENTATIONS
        if mpi_libraries.implementation(mpi).mpiexec.exists()
    ]


def run_job(
    mpi: str,
    ranks: int,
    lab: Lab | None,
    program: str,
    options: list,
    weft: list | None,
    limit_s: int,
) -> str:
    """What it prints. lab: of so many nodes; None: on this node, each rank bound to a core where
    there are as many. weft: options of `weft run`; None: without Weft."""
    library = mpi_libraries.implementation(mpi)
    front = [installation.weft_command(), "run", *weft, "--"] if weft is not None else []
    command = [str(word) for word in [*front, library.program(program), *options]]
    if lab:
        done = lab.run(command, capture=True, timeout=limit_s)
        return said_by(done, f"{program} ({mpi}, {ranks} nodes)")
    bound = ranks <= len(os.sched_getaffinity(0))
    option = "--bind-to" if mpi == "openmpi" else "-bind-to"
    launch = [library.mpiexec, *([option, "core"] if bound else library.unbound())]
    return run_command([*launch, "-n", ranks, *command], mpi, limit_s)


def run_command(words: list, mpi: str, limit_s: int) -> str:
    """What it prints, in the environment of an MPI library."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command,
        env={**os.environ, **mpi_libraries.implementation(mpi).environment()},
        capture_output=True,
        text=True,
        timeout=limit_s,
    )
    return said_by(done, " ".join(command))


def said_by(done: subprocess.CompletedProcess, what: str) -> str:
    if done.returncode != 0:
        said = done.stdout + done.stderr
        raise SystemExit(f"bars: {what} ended with status {done.returncode}:\n{said}")
    return done.stdout
