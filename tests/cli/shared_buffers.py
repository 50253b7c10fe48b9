"""The program shared_buffers under Weft: tests of buffers that others see, and of one copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from under_weft import library_at_hand, printed_under_weft

from weft.system import mpi_libraries

LIMIT_S = 660  # more than the program gives itself


def run_shared_buffers(mpi: str, ranks: int, directory: Path, *options, memory: str = "") -> dict:
    """The summary of one run, all of whose results were equal. options: of weft run."""
    library = library_at_hand(mpi)
    program = library.program("shared_buffers")
    if not program.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    summary = directory / "summary.json"
    command = [program, *(["--memory", memory] if memory else [])]
    options = (*options, f"--summary=json:{summary}")
    assert "cases equal" in printed_under_weft(library, ranks, options, command, LIMIT_S)
    return json.loads(summary.read_text())
