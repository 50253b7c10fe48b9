"""Defines the options of `weft demo`."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from weft.data import json_file
from weft.demo.typed import PAGE

SECONDS = 90.0


def demo(
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="The MPI library: mpich, openmpi, intelmpi, or where one is installed.",
            metavar="NAME",
            show_default="the first that weft info lists",
        ),
    ] = None,
    time_budget: Annotated[
        str, typer.Option(help="Stop at the latest after this time.", metavar="TIME")
    ] = f"{SECONDS:.0f}s",
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write.")] = PAGE,
    json: Annotated[Optional[Path], json_file.option("Also write the figures as JSON.")] = None,
) -> None:
    """Run one unmodified MPI program without and with Weft, and show the difference."""
    # The module is imported here, so that other commands start without it.
    from weft.demo import show

    raise typer.Exit(show.run(mpi, time_budget, out, json))
