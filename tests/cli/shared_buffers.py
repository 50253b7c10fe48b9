"""Runs the program shared_buffers under Weft, for tests of buffers that other ranks access and of
one copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from under_weft import library_at_hand, printed_under_weft

from weft.system import mpi_libraries

LIMIT_S = 660  # longer than the program's own time limit


def run_shared_buffers(mpi: str, ranks: int, directory: Path, *options, memory: str = "") -> dict:
    """Returns the summary of one run, in which all results must be equal. `options` are those of
    weft run."""
    library = library_at_hand(mpi)
    program = library.program("shared_buffers")
    if not program.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    summary = directory / "summary.json"
    command = [program, *(["--memory", memory] if memory else [])]
    options = (*options, f"--summary=json:{summary}")
    assert "cases equal" in printed_under_weft(library, ranks, options, command, LIMIT_S)
    return json.loads(summary.read_text())
