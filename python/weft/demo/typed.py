"""Returns words of commands as the user would type them, for the demo's programs and for its
page."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from weft.system import installation

PAGE = Path("out/demo.html")


def program(path: Path) -> str:
    """Returns the program's name if it is found in PATH, or else its path."""
    found = shutil.which(path.name)
    if found and Path(found).resolve() == path.resolve():
        return path.name
    relative = os.path.relpath(path, Path.cwd())
    return str(path) if relative.startswith("..") else relative


def weft() -> str:
    beside = Path(sys.prefix) / "bin" / "weft"
    return program(beside if beside.exists() else installation.weft_command())
