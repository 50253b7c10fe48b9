"""`weft demo`: its options, its words at the terminal, and what to try next."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from weft import json_file

SECONDS = 90.0
PAGE = Path("out/demo.html")


def demo(
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="The MPI library: mpich, openmpi, intelmpi, or where one is installed.",
            show_default="the first that weft info lists",
        ),
    ] = None,
    time_budget: Annotated[
        str, typer.Option(help="Stop at the latest after this time.")
    ] = f"{SECONDS:.0f}s",
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write.")] = PAGE,
    json: Annotated[Optional[Path], json_file.option("Also write the figures as JSON.")] = None,
) -> None:
    """Run one unmodified MPI program without and with Weft, and show the difference."""
    # Loaded here: the other commands start without it.
    from weft.demo import show

    raise typer.Exit(show.run(mpi, time_budget, out, json))


def typed(path: Path, root: Optional[Path] = None) -> str:
    """A program as the user would type it: its name where PATH finds it, else its path."""
    found = shutil.which(path.name)
    if found and Path(found).resolve() == path.resolve():
        return path.name
    relative = os.path.relpath(path, root or Path.cwd())
    return str(path) if relative.startswith("..") else relative


def weft_typed() -> str:
    from weft import installation

    beside = Path(sys.prefix) / "bin" / "weft"
    return typed(beside if beside.exists() else installation.weft_command())
