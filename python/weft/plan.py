"""`weft plan`: how a persistent collective would be done here, and why.

Starts a few ranks under Weft that initialise the collective, and shows what Weft's summary says of
its plans. So the answer is that of the library itself, and what was measured is in the cache for
the next program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Table

from weft import installation, mpi_libraries
from weft.bench import settings

COLLECTIVES = (
    *("barrier", "bcast", "gather", "scatter", "allgather", "allgatherv", "alltoall", "reduce"),
    *("allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"),
)
TYPES = ("double", "float", "int", "long", "char")
OPERATORS = ("sum", "prod", "max", "min")
JOB_SECONDS = 120
CHOICE = ("algorithm", "part_bytes", "radix", "radix_across")  # what is chosen
HOW = {"measured": "measured now", "cache": "from the cache", "rule": "by the rule"}


class PlanError(Exception):
    """The message says what to do."""


def choice(option: str, word: str, choices: tuple[str, ...]) -> None:
    if word not in choices:
        raise PlanError(f"{option}: unknown '{word}'; choose one of {', '.join(choices)}")


def command_line(mpi: mpi_libraries.Implementation, ranks: int, words: list[str]) -> list[str]:
    program = mpi.program("plan")
    if not program.exists() or not mpi.mpiexec.exists():
        raise PlanError(
            f"{program} is missing; build it with: {mpi_libraries.make_target(mpi.name)}"
        )
    on_own_cores = [str(mpi.mpiexec), "-n", str(ranks)]
    launcher = mpi.launcher(ranks) if ranks > (os.cpu_count() or 1) else on_own_cores
    return [*launcher, str(installation.weft_command()), "run", *words]


def initialise(
    mpi: mpi_libraries.Implementation, ranks: int, weft: list[str], program: list[str]
) -> tuple[dict, dict]:
    """One job: what the program printed, and Weft's summary."""
    with tempfile.TemporaryDirectory() as directory:
        summary = Path(directory) / "summary.json"
        words = [*weft, f"--summary=json:{summary}", "--", str(mpi.program("plan")), *program]
        command = command_line(mpi, ranks, words)
        done = subprocess.run(
            command,
            env={**os.environ, **mpi.environment()},
            capture_output=True,
            text=True,
            timeout=JOB_SECONDS,
        )
        if done.returncode != 0 or not summary.exists():
            raise PlanError(f"the ranks failed:\n{done.stdout}{done.stderr}".rstrip())
        line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
        return json.loads(line), json.loads(summary.read_text())


def size_text(count: int) -> str:
    for unit in ("MiB", "KiB"):
        if count >= settings.SIZES[unit] and count % settings.SIZES[unit] == 0:
            return f"{count // settings.SIZES[unit]} {unit}"
    return f"{count} bytes"


def tree_text(plan: dict) -> str:
    """What a tree's radices are; nothing of other algorithms."""
    if not plan["algorithm"].endswith("-tree"):
        return ""
    radices = [plan["radix"]]
    if plan["algorithm"].startswith("domain-"):
        radices.append(plan["radix_across"])
    return " × ".join(str(radix) if radix else "all" for radix in radices)


def show_plan(console: Console, plan: dict, line: dict) -> None:
    words = [plan["call"], size_text(plan["bytes"]), f"{plan['ranks']} ranks", plan["operation"]]
    console.print(", ".join(word for word in words if word), style="bold")
    parts = f", parts of {size_text(plan['part_bytes'])}"
    if radices := tree_text(plan):
        parts += f", radix {radices}"
    again = ", but not for certain: the next run measures again" if plan["doubts"] else ""
    console.print(
        f"{plan['algorithm']}{parts}: {HOW[plan['source']]}, {plan['why']}{again};"
        f" the initialisation took {line['init_us'] / 1e3:.2f} ms",
        highlight=False,
    )
    if not plan["candidates"]:
        return
    on_trial = plan["trial_bytes"]
    title = "µs" if on_trial in (0, plan["bytes"]) else f"µs, on {size_text(on_trial)}"
    table = Table("", "algorithm", "parts of", "radix", title)
    table.columns[4].justify = "right"
    for candidate in sorted(plan["candidates"], key=lambda one: one["ns"]):
        chosen = all(candidate[key] == plan[key] for key in CHOICE)
        table.add_row(
            "→" if chosen else "",
            candidate["algorithm"],
            size_text(candidate["part_bytes"]),
            tree_text(candidate),
            f"{candidate['ns'] / 1e3:.2f}",
            style="bold" if chosen else None,
        )
    console.print(table)


def show_why_none(console: Console, summary: dict, size: int) -> None:
    """Only what is done in a node's memory has a plan."""
    for entry in summary["calls"]:
        name = f"{entry['call']}, {size_text(size)}"
        for reason in entry["passed_on"]:
            console.print(f"{name}: left to {summary['mpi']}: {reason}", highlight=False)
        if entry["handled"] > entry["in_memory"]:
            console.print(f"{name}: by messages, where nothing is tuned", highlight=False)


def plan(
    collective: Annotated[str, typer.Argument(help="allreduce, bcast, …")] = "allreduce",
    size: Annotated[str, typer.Option("--bytes", help="Sizes: 8,4KiB,1MiB.")] = "8",
    datatype: Annotated[str, typer.Option("--type", help="|".join(TYPES))] = "double",
    operator: Annotated[str, typer.Option("--op", help="|".join(OPERATORS))] = "sum",
    ranks: Annotated[int, typer.Option("-n", "--ranks", help="All on this node.")] = 2,
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="The MPI library: mpich, openmpi, intelmpi, or where one is installed.",
            show_default="the first that weft info lists",
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="As of weft run.")] = "auto",
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure without the cache.")] = False,
) -> None:
    """Say how a persistent collective is done in a node's memory, and why."""
    console = Console()
    try:
        choice("COLLECTIVE", collective, COLLECTIVES)
        choice("--type", datatype, TYPES)
        choice("--op", operator, OPERATORS)
        library = mpi_libraries.chosen(mpi)
        sizes = [settings.size_bytes("--bytes", word) for word in size.split(",")]
        weft = ["--engine", engine, *(["--plan-cache", "none"] if fresh else [])]
        program = ["--collective", collective, "--type", datatype, "--op", operator]
        for count in sizes:
            line, summary = initialise(library, ranks, weft, [*program, "--bytes", str(count)])
            for decided in summary["plans"]:
                show_plan(console, decided, line)
            if not summary["plans"]:
                show_why_none(console, summary, count)
    except (PlanError, settings.SettingsError, mpi_libraries.MpiError) as error:
        print(f"weft: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
