"""Runs tools that need Weft's Python package, whichever Python has started them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parent.parent / ".venv"


def main_of(module: str) -> Callable[[], int]:
    """Returns the module's function `main`. Where this Python lacks Weft, the tool starts again by
    the Python of Weft's environment."""
    if not find_spec("weft"):
        python = ENVIRONMENT / "bin" / "python"
        if not python.exists() or Path(sys.prefix) == ENVIRONMENT:
            sys.exit(f"{Path(sys.argv[0]).name}: needs Weft's Python environment: make build")
        os.execv(python, [str(python), *sys.argv])
    return importlib.import_module(module).main
