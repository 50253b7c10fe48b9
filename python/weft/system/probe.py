"""Finds out an MPI library's version and features by running tools/probe with its launcher."""

from __future__ import annotations

import json
import os
import subprocess

from weft.system import building, installation, mpi_libraries
from weft.system.mpi_libraries import Implementation

PROBE_SECONDS = 30


class ProbeError(Exception):
    """Raised if the probe did not run; the message says why, and what to do."""


class NotBuilt(ProbeError):
    """Raised if there are no measuring programs for the MPI library."""


def run_probe(mpi: Implementation, ranks: int = 1, under_weft: bool = False) -> dict:
    """Returns the probe's JSON as a dictionary. Raises ProbeError if it does not run."""
    program = mpi.program("weft-probe")
    if not building.is_there(program):
        raise NotBuilt(f"{program} is missing; {how_to_build(mpi)}")
    command = mpi.launcher(ranks)
    if under_weft:
        command += [str(installation.weft_command()), "run", "--"]
    environment = {**os.environ, **mpi.environment()}
    try:
        done = subprocess.run(
            [*command, str(program)],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ProbeError(f"{ranks} ranks did not end within {PROBE_SECONDS} s") from None
    except OSError as error:
        raise ProbeError(f"{mpi.mpiexec}: {error.strerror}") from None
    for line in done.stdout.splitlines():
        if line.startswith("{") and done.returncode == 0:
            return json.loads(line)
    output = (done.stderr + done.stdout).strip().splitlines()
    raise ProbeError(output[0] if output else f"exit status {done.returncode}")


def how_to_build(mpi: Implementation) -> str:
    if not installation.SOURCE:
        return "install Weft again"
    compiler = mpi.mpiexec.with_name("mpicc")
    if mpi.where != "embedded" and compiler.exists():
        return f"build it with: make build MPI={compiler}"
    return f"build it with: {mpi_libraries.make_target(mpi.name)}"
