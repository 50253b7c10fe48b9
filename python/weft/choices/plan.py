"""Shows how a persistent collective would be carried out here, and why (`weft plan`).

It starts a few ranks under Weft that initialise the collective, and shows the plans in Weft's
summary. The answer is therefore that of the library itself, and the measurements are cached for the
next program."""

import os
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional, Union, get_args

import typer

from weft.data import json_file, stored

if TYPE_CHECKING:
    from rich.console import Console

    from weft.system import mpi_libraries

Collective = Literal[
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "allgatherv",
    "alltoall",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
]
Type = Literal["double", "float", "int", "long", "char"]
Operator = Literal["sum", "prod", "max", "min"]
Engine = Literal["auto", "native", "assist", "function", "thread", "tcc", "agent"]
SUMMARY_SCHEMA = ("weft-summary/2", "weft-summary/1")
JOB_SECONDS = 120
HOW = {"measured": "measured now", "cache": "from the cache", "rule": "by the rule"}


class PlanError(Exception):
    """Raised if no plan can be shown; the message says what to do."""


# ---- Output of the program, and Weft's summary -------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """The result of one initialisation, as bench/plan prints it."""

    init_us: float


@dataclass(frozen=True)
class Candidate:
    """An algorithm and its tuning that were measured."""

    algorithm: str
    part_bytes: int
    radix: int
    radix_across: int
    ns: float


@dataclass(frozen=True)
class Plan:
    """The algorithm and the tuning that were chosen, and why."""

    call: str
    bytes: int
    ranks: int
    operation: str
    algorithm: str
    part_bytes: int
    radix: int
    radix_across: int
    source: Literal["measured", "cache", "rule"]
    why: str
    trial_bytes: int
    doubts: int
    candidates: list[Candidate]


@dataclass(frozen=True)
class Call:
    """How often the calls of a function were handled by Weft, or passed to the MPI library."""

    call: str
    handled: int
    in_memory: int
    passed_on: dict[str, int]  # number of calls by reason


@dataclass(frozen=True)
class Summary:
    mpi: str
    calls: list[Call]
    plans: list[Plan]


def choice(way: Union[Plan, Candidate]) -> tuple[str, int, int, int]:
    return (way.algorithm, way.part_bytes, way.radix, way.radix_across)


# ---- Jobs -------------------------------------------------------------------------------------


def command_line(mpi: "mpi_libraries.Implementation", ranks: int, words: list[str]) -> list[str]:
    from weft.system import building, installation
    from weft.system.probe import how_to_build

    program = mpi.program("plan")
    if not building.is_there(program):
        raise PlanError(f"{program} is missing; {how_to_build(mpi)}")
    on_own_cores = [str(mpi.mpiexec), "-n", str(ranks)]
    is_bound = mpi.mpiexec.exists() and ranks <= (os.cpu_count() or 1)
    launcher = on_own_cores if is_bound else mpi.launcher(ranks)
    return [*launcher, str(installation.weft_command()), "run", *words]


def initialise(
    mpi: "mpi_libraries.Implementation", ranks: int, weft: list[str], program: list[str]
) -> tuple[Measured, Summary]:
    """Runs a job, and returns what the program printed and Weft's summary. Raises PlanError if it
    fails."""
    with tempfile.TemporaryDirectory() as directory:
        summary = Path(directory) / "summary.json"
        words = [*weft, f"--summary=json:{summary}", "--", str(mpi.program("plan")), *program]
        try:
            done = subprocess.run(
                command_line(mpi, ranks, words),
                env={**os.environ, **mpi.environment()},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=JOB_SECONDS,
            )
        except subprocess.TimeoutExpired:
            text = f"the ranks did not end within {JOB_SECONDS} s; try: weft doctor"
            raise PlanError(text) from None
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not summary.exists() or not lines:
            raise PlanError(f"the ranks failed:\n{done.stdout}{done.stderr}".rstrip())
        measured = stored.parse(Measured, lines[0], "the program's output")
        return measured, stored.read(Summary, summary, SUMMARY_SCHEMA)


# ---- Output -----------------------------------------------------------------------------------


def size_text(count: int) -> str:
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count} bytes"


def tree_text(way: Union[Plan, Candidate]) -> str:
    """Returns the radices of a tree as text; an empty string for other algorithms."""
    if not way.algorithm.endswith("-tree"):
        return ""
    radices = [way.radix]
    if way.algorithm.startswith("domain-"):
        radices.append(way.radix_across)
    return " × ".join(str(radix) if radix else "all" for radix in radices)


def show_plan(console: "Console", plan: Plan, measured: Measured) -> None:
    words = [plan.call, size_text(plan.bytes), f"{plan.ranks} ranks", plan.operation]
    console.print(", ".join(word for word in words if word), style="bold")
    parts = f", parts of {size_text(plan.part_bytes)}"
    if radices := tree_text(plan):
        parts += f", radix {radices}"
    again = ", but not for certain: the next run measures again" if plan.doubts else ""
    console.print(
        f"{plan.algorithm}{parts}: {HOW[plan.source]}, {plan.why}{again};"
        f" the initialisation took {measured.init_us / 1e3:.2f} ms",
        highlight=False,
    )
    if plan.candidates:
        show_candidates(console, plan)


def show_candidates(console: "Console", plan: Plan) -> None:
    from rich.table import Table

    title = "µs"
    if plan.trial_bytes not in (0, plan.bytes):
        title = f"µs, on {size_text(plan.trial_bytes)}"
    table = Table("", "algorithm", "parts of", "radix", title)
    table.columns[4].justify = "right"
    for candidate in sorted(plan.candidates, key=lambda one: one.ns):
        chosen = choice(candidate) == choice(plan)
        table.add_row(
            "→" if chosen else "",
            candidate.algorithm,
            size_text(candidate.part_bytes),
            tree_text(candidate),
            f"{candidate.ns / 1e3:.2f}",
            style="bold" if chosen else None,
        )
    console.print(table)


def show_why_none(console: "Console", summary: Summary, size: int) -> None:
    """Prints why a call has no plan. Only collectives in a node's memory have one."""
    for entry in summary.calls:
        if not entry.call.endswith("_init"):
            continue  # the test program itself makes this call
        name = f"{entry.call}, {size_text(size)}"
        for reason in entry.passed_on:
            console.print(f"{name}: left to {summary.mpi}: {reason}", highlight=False)
        if entry.handled > entry.in_memory:
            console.print(f"{name}: by messages, where nothing is tuned", highlight=False)


def to_json(found: list[tuple[Measured, Summary]]) -> dict:
    """Returns the plans as a document of the schema weft-plan/1. Times are in microseconds."""
    plans = [
        {"init_us": measured.init_us, **asdict(one)}
        for measured, summary in found
        for one in summary.plans
    ]
    about = [summary.mpi for _, summary in found[:1]]
    ranks = plans[0]["ranks"] if plans else None
    head = stored.head("weft-plan/1", {"plans": len(plans)}, *about, ranks=ranks)
    return {
        **head,
        "plans": plans,
        "passed_on": [
            {"call": call.call, "reason": reason, "calls": count}
            for _, summary in found
            for call in summary.calls
            if call.call.endswith("_init")
            for reason, count in call.passed_on.items()
        ],
    }


def plan(
    collective: Annotated[
        Collective, typer.Argument(metavar="COLLECTIVE", help=", ".join(get_args(Collective)) + ".")
    ] = "allreduce",
    size: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="SIZES",
            help="Sizes of the buffer, separated by commas, such as 8,4KiB,1MiB.",
        ),
    ] = "8",
    datatype: Annotated[Type, typer.Option("--type", help="The elements' type.")] = "double",
    operator: Annotated[
        Operator, typer.Option("--op", help="The operator of a reduction.")
    ] = "sum",
    ranks: Annotated[
        int, typer.Option("-n", "--ranks", metavar="NUMBER", min=1, help="Ranks, all on this node.")
    ] = 2,
    mpi: Annotated[
        Optional[str],
        typer.Option(
            metavar="NAME",
            help="The MPI library: mpich, openmpi, intelmpi, or where one is installed.",
            show_default="the first that weft info lists",
        ),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="The engine, as for weft run.")] = "auto",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again, whatever is in the cache of plans.")
    ] = False,
    json: Annotated[Optional[Path], json_file.option("Also write the plans as JSON.")] = None,
) -> None:
    """Say how a persistent collective is done in a node's memory, and why."""
    from rich.console import Console

    from weft.bench import settings
    from weft.system import mpi_libraries

    console = Console()
    found = []
    try:
        library = mpi_libraries.chosen(mpi)
        sizes = [settings.size_bytes("--bytes", word) for word in size.split(",")]
        weft = ["--engine", engine, *(["--plan-cache", "none"] if fresh else [])]
        program = ["--collective", collective, "--type", datatype, "--op", operator]
        for count in sizes:
            measured, summary = initialise(library, ranks, weft, [*program, "--bytes", str(count)])
            found.append((measured, summary))
            for decided in summary.plans:
                show_plan(console, decided, measured)
            if not summary.plans:
                show_why_none(console, summary, count)
        if json:
            json_file.write(json, to_json(found))
    except (PlanError, settings.SettingsError, mpi_libraries.MpiError, stored.ResultError) as error:
        from weft.terminal import messages

        messages.say("weft plan", error)
        raise typer.Exit(2) from None
