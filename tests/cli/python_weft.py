"""Runs Weft's Python commands in a separate process, with an empty PATH."""

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
