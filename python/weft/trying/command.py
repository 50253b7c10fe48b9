"""Defines the options of `weft try`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from weft.data import json_file as json_of
from weft.trying import MOST_ROUNDS

INTERRUPTED = 130
NATIVE = "--engine native"


def refuse(message: object) -> typer.Exit:
    from weft.terminal import messages

    messages.say("weft try", message)
    return typer.Exit(2)


def try_program(
    command: Annotated[
        list[str],
        typer.Argument(
            help="The program with its launcher, as it is run without Weft. A word {} stands where"
            " weft run belongs, if that is not in front of all: -- srun -n 4 {} ./app.",
            metavar="COMMAND",
            show_default=False,
        ),
    ],
    variants: Annotated[
        Optional[list[str]],
        typer.Option(
            "--with",
            help="Options of weft run to try, quoted as one word. Given several times, each is a"
            " way of its own. All are compared with the program without Weft.",
            metavar="OPTIONS",
            show_default="none: Weft chooses",
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(
            help="Greatest number of rounds. Each way runs once in a round.",
            metavar="NUMBER",
            min=1,
            max=MOST_ROUNDS,
        ),
    ] = 12,
    time_budget: Annotated[
        str, typer.Option(help="Begin no round that would end after this time.", metavar="TIME")
    ] = "5min",
    json_file: Annotated[
        Optional[Path],
        json_of.option("Also write all times and ratios as JSON."),
    ] = None,
) -> None:
    """Run a program without Weft and with it in turn, and say whether it is faster."""
    from rich.console import Console

    from weft.bench.settings import SettingsError, refusal
    from weft.bench.settings import seconds as seconds_of
    from weft.data.stored import ResultError
    from weft.terminal.messages import typed
    from weft.trying import rounds, show

    console = Console()
    ways = [rounds.Way(shlex.split(NATIVE))]
    try:
        for words in variants or [""]:
            ways.append(rounds.Way(shlex.split(words)))
            if reason := refusal(ways[-1].options):
                raise SettingsError(reason)
        budget_s = seconds_of("--time-budget", time_budget)
        rounds.with_weft(command, [])
    except ValueError as error:
        raise refuse(f"--with {words}: {error}") from None
    except (SettingsError, rounds.TryError) as error:
        raise refuse(error) from None
    trial = rounds.Trial(ways, runs, budget_s)

    def tell(so_far: rounds.Trial) -> None:
        print(show.progress(so_far), file=sys.stderr, flush=True)

    measuring = rounds.Rounds(trial, lambda way: rounds.run(command, way.options))
    status = 0
    try:
        print("first run, which is not counted:", file=sys.stderr, flush=True)
        first = rounds.run(command, ways[0].options, shown=True)
        if not first.summary:
            print(f"weft try: {show.NO_SUMMARY}", file=sys.stderr, flush=True)
        elif first.summary.ranks == 1 and not rounds.is_launched(command):
            raise refuse(show.one_rank(command))
        measuring.measure(tell)
    except rounds.CommandFailed as error:
        sys.stderr.write(error.said)
        base = ways[0]
        well = "" if error.options == base.options else f"; under {base.title} it ended well"
        print(f"weft try: {typed(command)} {error}{well}", file=sys.stderr)
        for line in show.libraries_not_found(command, error.said):
            print(f"weft try: {line}", file=sys.stderr)
        status = error.status
    except (OSError, ResultError) as error:
        raise refuse(error) from None
    except KeyboardInterrupt:
        status = INTERRUPTED
    if trial.rounds:
        show.result(trial, command, console, json_file)
        write(json_file, trial.to_json(command))
    raise typer.Exit(status)


def write(file: Optional[Path], answer: dict) -> None:
    if not file:
        return
    try:
        json_of.write(file, answer)
    except OSError as error:
        raise refuse(error) from None
