"""Weft's Python commands as a process of their own, with nothing in PATH."""

from __future__ import annotations

import subprocess
import sys

from weft.system import installation


def weft(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", *map(str, words)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(installation.PACKAGE.parent), "COLUMNS": "180", "PATH": ""},
    )
