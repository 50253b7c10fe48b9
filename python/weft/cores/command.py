"""Defines the options of `weft place` and `weft model`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from weft.data import json_file

Collective = Literal["bcast", "reduce", "gather", "scatter", "allreduce"]


def place(
    ranks: Annotated[
        Optional[int],
        typer.Option(
            help="Ranks on the node.", show_default="one per core", metavar="NUMBER", min=1
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(help="bind, numa, odd-even, pack:K, or list:C,C,...", metavar="POLICY"),
    ] = "bind",
    cores: Annotated[
        Optional[int],
        typer.Option(
            help="A node of one NUMA domain with this number of cores.", min=1, metavar="NUMBER"
        ),
    ] = None,
    machine: Annotated[
        Optional[str],
        typer.Option(
            help="Another machine: a file that lstopo wrote (lstopo machine.xml), or hwloc's words,"
            " such as 'package:2 core:12 pu:2'.",
            show_default="this machine",
            metavar="MACHINE",
        ),
    ] = None,
    json: Annotated[Optional[Path], json_file.option("Write it as JSON.")] = None,
    out: Annotated[
        Optional[Path],
        typer.Option("-o", "--out", help="Also draw the node as an SVG.", metavar="FILE"),
    ] = None,
) -> None:
    """Show on which cores ranks and Weft's threads would run: weft place --ranks 14."""
    from weft.cores import placement

    words = ["place", "--policy", policy, *(["--ranks", str(ranks)] if ranks else [])]
    words += ["--cores", str(cores)] if cores else []
    words += ["--machine", machine] if machine else []
    if cores and machine:
        refuse("place", "--cores and --machine both say what the node is; leave one out")
    carry_out("place", lambda text: placement.show(text, out), words, json)


def model(
    cores: Annotated[
        Optional[int],
        typer.Option(
            help="Cores of the node.", show_default="as this machine", metavar="NUMBER", min=2
        ),
    ] = None,
    ranks: Annotated[
        Optional[int],
        typer.Option(
            help="Ranks, one on a core; the other cores are for communication.",
            show_default="the best number",
            metavar="NUMBER",
            min=2,
        ),
    ] = None,
    collective: Annotated[Collective, typer.Option(help="The collective on a tree.")] = "bcast",
    arity: Annotated[
        int, typer.Option(help="Arity of the tree; 2: binomial.", metavar="NUMBER", min=2, max=64)
    ] = 2,
    computation: Annotated[
        Optional[float],
        typer.Option(
            help="The computation of a step on all cores, in transfers of the collective's buffer"
            " from core to core.",
            show_default="as long as the blocking collective",
            metavar="NUMBER",
            min=1e-6,
        ),
    ] = None,
    level_cost: Annotated[
        Optional[str],
        typer.Option(
            help="What a transfer costs at each level of the tree, separated by commas, such as"
            " 1,1,1,5 where the fourth crosses to other nodes; the last is that of all further"
            " levels.",
            show_default="1",
            metavar="NUMBERS",
        ),
    ] = None,
    dataflow: Annotated[
        bool,
        typer.Option(
            "--dataflow", help="Each message goes as soon as it can, not level after level."
        ),
    ] = False,
    json: Annotated[Optional[Path], json_file.option("Write it as JSON.")] = None,
    out: Annotated[
        Optional[Path],
        typer.Option("-o", "--out", help="Also write a page with pictures.", metavar="FILE"),
    ] = None,
) -> None:
    """Say how many cores to leave without ranks, and how many levels of a tree to split off."""
    from weft.cores import model as answers

    cores = cores or max(2, len(os.sched_getaffinity(0)))
    words = ["model", "--cores", str(cores), "--collective", collective, "--arity", str(arity)]
    words += ["--ranks", str(ranks)] if ranks else []
    words += ["--computation", str(computation)] if computation else []
    words += ["--level-cost", level_cost] if level_cost else []
    words += ["--dataflow"] if dataflow else []
    carry_out("model", lambda text: answers.show(text, out), words, json)


def refuse(command: str, message: str) -> None:
    from weft.terminal import messages

    messages.say(f"weft {command}", message)
    raise typer.Exit(2)


def carry_out(
    command: str, show: Callable[[Any], None], words: list[str], json: Optional[Path]
) -> None:
    from json import loads

    from weft.cores import native
    from weft.data.stored import ResultError, head

    kind = {"place": native.Placement, "model": native.Model}[command]
    try:
        answer, text = native.ask(kind, words)
        if json:
            json_file.write(json, {**head(f"weft-{command}/1", {}), **loads(text)})
        if not json_file.is_alone(json):
            show(answer)
    except (native.CoresError, ResultError, OSError) as error:
        refuse(command, str(error))
