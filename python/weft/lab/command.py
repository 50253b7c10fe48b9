"""Runs one job in a lab of its own (`weft lab run`)."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from weft.data import json_file, stored
from weft.lab.lab import Lab, LabResult, search_path
from weft.lab.plan import LabError, Plan
from weft.system import linked
from weft.system.mpi_libraries import MpiError
from weft.terminal import messages

NODES, LINKS = "Nodes and ranks", "Links between the nodes"


def run(
    command: Annotated[
        list[str],
        typer.Argument(help="The MPI program and its arguments.", metavar="COMMAND"),
    ],
    nodes: Annotated[
        int,
        typer.Option(help="Number of nodes.", metavar="NUMBER", rich_help_panel=NODES),
    ] = 2,
    per_node: Annotated[
        int,
        typer.Option(
            "--per-node", help="Ranks on each node.", metavar="NUMBER", rich_help_panel=NODES
        ),
    ] = 1,
    rate: Annotated[
        str,
        typer.Option(
            help="Rate of each node's link, each way.", metavar="RATE", rich_help_panel=LINKS
        ),
    ] = "200mbit",
    burst: Annotated[
        Optional[str],
        typer.Option(
            help="Bytes that pass at full speed; keep messages above them.",
            show_default="what passes in 2 ms, at least 256kb",
            metavar="SIZE",
            rich_help_panel=LINKS,
        ),
    ] = None,
    delay: Annotated[
        str,
        typer.Option(
            help="Delay of everything on the links, such as 1ms or 50us.",
            metavar="TIME",
            rich_help_panel=LINKS,
        ),
    ] = "0",
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="The MPI library: mpich, openmpi, intelmpi, or the path of an mpiexec or prefix.",
            show_default="the program's own, else the first that weft info lists",
            metavar="NAME",
            rich_help_panel=NODES,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check", help="Prove that traffic uses the links.", rich_help_panel=LINKS
        ),
    ] = True,
    counts: Annotated[
        Optional[Path],
        json_file.option("Write the bytes on the links as JSON.", LINKS, ("--json", "--counts")),
    ] = None,
    cores: Annotated[
        Optional[str],
        typer.Option(
            help="Cores of the nodes in turn: 0,1 or 0-1,2-3.",
            metavar="CORES",
            rich_help_panel=NODES,
        ),
    ] = None,
) -> None:
    """Run an MPI program with each node in a network namespace of its own."""
    if command[0] != "weft" and not shutil.which(command[0], path=search_path()):
        messages.say("weft", f"{command[0]}: not found, or not executable")
        raise typer.Exit(127)
    try:
        library = linked.chosen(mpi, linked.linked(command, search_path()))
        with Lab(nodes, per_node, rate, burst, library, cores, check, delay) as lab:
            result = lab.run(command, env=as_typed(command))
            plan, used = lab.plan, lab.mpi.name
    except (LabError, MpiError) as error:
        messages.say("weft lab run", error)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    tell(plan, result)
    if counts:
        write_counts(counts, plan, used, result)
    raise typer.Exit(result.returncode)


def as_typed(command: list[str]) -> dict[str, str]:
    """Returns the environment variable by which Weft's summary shows the user's command without
    Weft (src/base/started.h)."""
    words = command
    if Path(command[0]).name == "weft" and command[1:2] == ["run"]:
        if "--" not in command:
            return {}
        words = command[command.index("--") + 1 :]
    options = sys.argv[: len(sys.argv) - len(command)]
    started = ["weft", *options[1:], *([] if options[-1] == "--" else ["--"]), *words]
    return {"WEFT_STARTED_COMMAND": shlex.join(started)}


def tell(plan: Plan, result: LabResult) -> None:
    sent = ", ".join(f"{host} {sent:,}" for host, sent in by_host(plan, result).items())
    print(f"weft lab: bytes sent: {sent}", file=sys.stderr)


def by_host(plan: Plan, result: LabResult) -> dict[str, int]:
    return {host: result.sent_bytes[number] for number, host in enumerate(plan.hosts)}


def write_counts(path: Path, plan: Plan, mpi: str, result: LabResult) -> None:
    sent = {"sent_bytes": sum(result.sent_bytes)}
    facts = {
        **stored.head("weft-lab-counts/1", sent, mpi, plan.nodes * plan.per_node),
        "rate": plan.rate,
        "burst": plan.burst,
        "delay_us": plan.delay_ns / 1000,
        "per_node": plan.per_node,
        "sent_bytes": by_host(plan, result),
        "status": result.returncode,
    }
    json_file.write(path, facts)
