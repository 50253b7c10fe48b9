"""Defines the options of `weft check`, and prints its report."""

import shutil
import sys
import tempfile
from math import inf
from pathlib import Path
from typing import Annotated, Optional

import typer

from weft.advise.command import per_cent
from weft.data import json_file as json_of
from weft.system import installation
from weft.terminal import messages


def refuse(message: str) -> typer.Exit:
    messages.say("weft check", message)
    return typer.Exit(2)


def check(
    command: Annotated[
        list[str],
        typer.Argument(
            help="The program, or its launcher (-- mpiexec -n 4 ./app).", metavar="COMMAND"
        ),
    ],
    json_file: Annotated[
        Optional[Path], json_of.option("Also write what was found as JSON.")
    ] = None,
    overhead: Annotated[
        str,
        typer.Option(
            help="The part of the run time that guarding buffers may take.", metavar="PERCENT"
        ),
    ] = "20%",
    error_exitcode: Annotated[
        int,
        typer.Option(
            help="The exit status if something was found and the program itself ended with 0.",
            metavar="N",
        ),
    ] = 0,
    hang: Annotated[
        float,
        typer.Option(
            help="Print the call of each rank once none has made progress for this time; 0: never.",
            metavar="SECONDS",
            min=0,
        ),
    ] = 60,
    mpi: Annotated[
        str,
        typer.Option(
            help="mpich, intelmpi, openmpi or abi.", show_default="found out", metavar="MPI"
        ),
    ] = "",
) -> None:
    """Find accesses to buffers of non-blocking calls in flight, and other mistakes with them."""
    from weft.advise import session
    from weft.advise.record import read_directory
    from weft.check.waits import Watchdog
    from weft.check.watch import Watch
    from weft.data import stored

    if installation.is_rank():
        raise refuse("put weft check before the launcher: weft check -- mpiexec -n 4 ./app")
    budget = per_cent(overhead)
    directory = Path(tempfile.mkdtemp(prefix="weft-check-"))
    (directory / session.HERE).touch()
    try:
        with Watch(directory, Watchdog(hang or inf), show) as watch:
            status = session.run(command, budget, mpi, directory, ["--check"])
            sys.stdout.flush()
        found, ranks = watch.found, len(read_directory(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if not ranks:
        raise refuse("nothing was checked: the program did not get through MPI_Init")
    mistakes = sum(one["mistake"] for one in found)
    sum_up(mistakes, ranks, status)
    if json_file:
        head = stored.head("weft-check/1", {"mistakes": mistakes, "status": status}, mpi, ranks)
        json_of.write(json_file, {**head, "findings": found})
    raise typer.Exit(status or (error_exitcode if mistakes else 0))


def show(found: list[dict]) -> None:
    from weft.check.rules import RULES

    for one in found:
        rule = RULES[one["rule"]]
        where = f"\n  there: {one['place']}" if one["place"] else ""
        other = f" ({one['other_call']})" if one["other_call"] else ""
        detail = f"\n  differs: {one['detail']}" if one["detail"] else ""
        numbers = ", ".join(map(str, one["ranks"]))
        messages.say("weft check", f"{one['call']} in {one['started']}: {rule.what}")
        print(f"  rank: {numbers}{where}{other}{detail}\n  mend: {rule.mend}", file=sys.stderr)
    sys.stderr.flush()


def sum_up(number: int, ranks: int, status: int) -> None:
    said = "no mistake was found" if not number else f"{number} mistake{'s' * (number > 1)} found"
    until = f", until the program ended with status {status}" if status else ""
    messages.say("weft check", f"{said} in {ranks} ranks{until}")
