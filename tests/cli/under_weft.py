"""Runs a program on several ranks under `weft run`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

import pytest

from weft.system import installation, mpi_libraries


def library_at_hand(mpi: str) -> mpi_libraries.Implementation:
    """Returns the library. Skips the test if it is not installed."""
    library = mpi_libraries.implementation(mpi)
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    return library


def printed_under_weft(
    library: mpi_libraries.Implementation,
    ranks: int,
    options: Sequence,
    command: Sequence,
    limit_s: int,
) -> str:
    """Returns the output of the program, which must succeed. `options` are those of weft run."""
    weft = [installation.weft_command(), "run", *options, "--"]
    done = subprocess.run(
        [str(word) for word in [*library.launcher(ranks), *weft, *command]],
        env={**os.environ, **library.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
        capture_output=True,
        text=True,
        timeout=limit_s,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
