"""One job of a measuring program for the bars: on the ranks of this node, or in a lab."""

from __future__ import annotations

import os
import subprocess

from weft import installation, mpi_libraries
from weft.lab import Lab


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
    else:
        bound = ranks <= len(os.sched_getaffinity(0))
        option = "--bind-to" if mpi == "openmpi" else "-bind-to"
        launch = [library.mpiexec, *([option, "core"] if bound else library.unbound())]
        done = subprocess.run(
            [str(word) for word in [*launch, "-n", ranks, *command]],
            env={**os.environ, **library.environment()},
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
    if done.returncode != 0:
        where = f"{ranks} nodes" if lab else f"{ranks} ranks"
        said = done.stdout + done.stderr
        raise SystemExit(
            f"bars: {program} ended with status {done.returncode} ({mpi}, {where}):\n{said}"
        )
    return done.stdout
