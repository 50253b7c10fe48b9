"""The program shared_buffers under Weft: tests of buffers that others see, and of one copy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from weft import installation, mpi_libraries

LIMIT_S = 180


def run_shared_buffers(mpi: str, ranks: int, directory: Path, *options, memory: str = "") -> dict:
    """The summary of one run, all of whose results were equal. options: of weft run."""
    library = mpi_libraries.implementation(mpi)
    program = library.program("shared_buffers")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    summary = directory / "summary.json"
    weft = [installation.weft_command(), "run", *options, f"--summary=json:{summary}"]
    command = [*library.launcher(ranks), *weft, "--", program]
    command += ["--memory", memory] if memory else []
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **library.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout
    return json.loads(summary.read_text())
