"""Defines the options of `weft sim`."""

from itertools import product
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from weft.data import json_file

CALL = "What is simulated"
PLACE = "On which machine"
HOW = "Who carries it out, and where"
FILES = "Results"
REAL = "This machine"
EXAMPLE_NODES = 2
THREADLESS = ("blocking", "function")  # engines that have no thread to place


def sim(
    context: typer.Context,
    collective: Annotated[
        Optional[str],
        typer.Option(
            help="The collective, such as iallreduce or bcast.",
            show_default="an example: iallreduce on two nodes, blocking and behind computation",
            metavar="NAME",
            rich_help_panel=CALL,
        ),
    ] = None,
    machine: Annotated[
        str,
        typer.Option(
            help="knl64, skylake48, sapphire120, sandybridge16, or a file such as --calibrate"
            " writes.",
            metavar="MACHINE",
            rich_help_panel=PLACE,
        ),
    ] = "knl64",
    ranks: Annotated[
        Optional[int],
        typer.Option(
            help="Ranks on all nodes.",
            show_default="one per core; in the example a quarter of the cores is free",
            metavar="NUMBER",
            min=1,
            rich_help_panel=PLACE,
        ),
    ] = None,
    nodes: Annotated[
        Optional[int],
        typer.Option(
            help="Nodes.", show_default="1", metavar="NUMBER", min=1, rich_help_panel=PLACE
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            "--bytes",
            help="Size of the data, such as 64KiB; of a block where there are several.",
            metavar="SIZE",
            rich_help_panel=CALL,
        ),
    ] = "1MiB",
    algorithm: Annotated[
        Optional[str],
        typer.Option(
            help="The algorithm, by the name that weft schedule knows.",
            show_default="the one Weft takes",
            metavar="NAME",
            rich_help_panel=CALL,
        ),
    ] = None,
    root: Annotated[
        int,
        typer.Option(
            help="Root of bcast, reduce, gather and scatter.",
            metavar="RANK",
            min=0,
            rich_help_panel=CALL,
        ),
    ] = 0,
    engine: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Who carries the collective out: function, thread, agent, tcc, auto, or"
            " blocking: the caller, before it computes. Several engines, placements and splits are"
            " set side by side.",
            show_default="thread",
            metavar="ENGINE",
            rich_help_panel=HOW,
        ),
    ] = None,
    placement: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Where threads run: bind, numa, odd-even, pack:K, or list:C,C,...",
            show_default="numa, or bind where no core is free",
            metavar="POLICY",
            rich_help_panel=HOW,
        ),
    ] = None,
    split: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Levels of a tree that the application's cores carry out, or 'model'.",
            show_default="0",
            metavar="NUMBER",
            rich_help_panel=HOW,
        ),
    ] = None,
    backoff: Annotated[
        str,
        typer.Option(
            help="What a thread does after a poll that found nothing: yield, spin, sleep:US,"
            " or quiet.",
            metavar="POLICY",
            rich_help_panel=HOW,
        ),
    ] = "yield",
    callers: Annotated[
        Literal["help", "leave"],
        typer.Option(
            help="Whether callers that wait take part, as in Weft, or leave it to the thread.",
            rich_help_panel=HOW,
        ),
    ] = "help",
    transport: Annotated[
        Literal["auto", "mpi"],
        typer.Option(
            help="How ranks of a node talk: in shared memory (auto), or by messages (mpi).",
            rich_help_panel=PLACE,
        ),
    ] = "auto",
    order: Annotated[
        Literal["dataflow", "levels"],
        typer.Option(
            help="When a message of a tree goes: as soon as it can (dataflow), or after all"
            " messages of the level before (levels).",
            rich_help_panel=HOW,
        ),
    ] = "dataflow",
    compute: Annotated[
        Optional[float],
        typer.Option(
            help="Computation on each rank, in microseconds.",
            show_default="0; in the example as long as the collective",
            metavar="US",
            min=0,
            rich_help_panel=CALL,
        ),
    ] = None,
    calls: Annotated[
        int,
        typer.Option(
            help="How often the caller polls while it computes, with engine function.",
            metavar="NUMBER",
            min=0,
            rich_help_panel=HOW,
        ),
    ] = 0,
    noise: Annotated[
        float,
        typer.Option(
            help="Noise: times are multiplied by 1 + NOISE * X, X exponential with mean 1.",
            metavar="NOISE",
            min=0,
            rich_help_panel=PLACE,
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(help="Seed of the noise.", metavar="NUMBER", min=0, rich_help_panel=PLACE)
    ] = 1,
    copies: Annotated[
        Optional[int],
        typer.Option(
            help="Copies that a long message inside a node takes.",
            show_default="as the machine says",
            metavar="NUMBER",
            min=1,
            max=2,
            rich_help_panel=PLACE,
        ),
    ] = None,
    trace: Annotated[
        Optional[Path],
        typer.Option(
            help="Write a timeline for ui.perfetto.dev (one run).",
            metavar="FILE",
            rich_help_panel=FILES,
        ),
    ] = None,
    json: Annotated[Optional[Path], json_file.option("Write the runs as JSON.", FILES)] = None,
    out: Annotated[
        Optional[Path],
        typer.Option(
            "-o",
            "--out",
            help="Write a page with the runs' timelines.",
            metavar="FILE",
            rich_help_panel=FILES,
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Measure this machine, and write its description (-o FILE).",
            rich_help_panel=REAL,
        ),
    ] = False,
    against_measured: Annotated[
        bool,
        typer.Option(
            "--against-measured",
            help="Measure and simulate the same collectives here, and set the times side by side.",
            rich_help_panel=REAL,
        ),
    ] = False,
    lab: Annotated[
        Optional[str],
        typer.Option(
            help="The lab whose messages are measured, such as nodes=2,rate=200mbit; with"
            " --calibrate and --against-measured.",
            metavar="WORDS",
            rich_help_panel=REAL,
        ),
    ] = None,
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="mpich, openmpi or intelmpi: with --engine auto, for which library the rule is;"
            " with --calibrate and --against-measured, whose messages are measured.",
            show_default="the first that weft info lists; the rule for any other library",
            metavar="MPI",
            rich_help_panel=HOW,
        ),
    ] = None,
) -> None:
    """Simulate a collective over computation on a machine that is not at hand."""
    from weft.bench.command import said_by_the_user
    from weft.data.stored import ResultError
    from weft.sim import native, runs

    is_example = collective is None and not (calibrate or against_measured)
    nodes = nodes or (EXAMPLE_NODES if is_example else 1)
    words = ["--nodes", nodes, "--bytes", size, "--root", root, "--backoff", backoff]
    words += ["--callers", callers, "--transport", transport, "--order", order]
    words += ["--noise", noise, "--seed", seed]
    for name, value in (("ranks", ranks), ("algorithm", algorithm), ("copies", copies)):
        words += [f"--{name}", value] if value is not None else []
    try:
        if calls and "function" not in (engine or []):
            raise native.SimError("--calls is for engine function: add --engine function")
        if calibrate and against_measured:
            raise native.SimError("--against-measured measures the machine itself: leave out one")
        if calibrate:
            runs.calibrate(out, lab, mpi)
            return
        if against_measured:
            from weft.sim import against

            named = "machine" in said_by_the_user(context)
            against.against_measured(machine if named else None, lab, mpi, json, out)
            return
        if lab:
            raise native.SimError("--lab needs --calibrate or --against-measured")
        words += ["--library", library_of(mpi, engine or [])] if mpi else []
        room = runs.Room.on(machine, nodes, ranks, is_example)
        words += [] if ranks else ["--ranks", room.ranks]
        engines = engine or (["blocking", "thread"] if is_example else ["thread"])
        placements = placement or [room.placement]
        variants = [
            ["--engine", e, "--placement", p, "--split", s, *poll_option(e, calls)]
            for e, p, s in product(engines, placements, split or ["0"])
            if e not in THREADLESS or p == placements[0]
        ]
        if trace and len(variants) > 1:
            raise native.SimError("--trace takes one run; --out shows several side by side")
        words = [str(word) for word in ["--collective", collective or "iallreduce", *words]]
        if compute is None:
            compute = runs.time_alone(machine, words) if is_example else 0
        words += ["--compute", str(compute)]
        answers = runs.carry_out(machine, words, variants, trace, bool(out))
        runs.show(answers, json, out)
    except (native.SimError, ResultError, OSError) as error:
        from weft.terminal import messages

        messages.say("weft sim", error)
        raise typer.Exit(2) from None


def poll_option(engine: str, calls: int) -> list[str]:
    """Returns the option for polling. Only engine function polls in the application while it
    computes."""
    return ["--calls", str(calls)] if engine == "function" else []


def library_of(mpi: str, engines: list[str]) -> str:
    """Returns the MPI library whose rule engine auto uses. Raises SimError if the word is unknown
    or has no effect."""
    from weft.sim.native import SimError
    from weft.system.mpi_libraries import FAMILY

    if "auto" not in engines:
        raise SimError("--mpi chooses the rule of engine auto: add --engine auto")
    if mpi not in FAMILY:
        raise SimError(f"--mpi takes one of {', '.join(FAMILY)}, not '{mpi}'")
    return mpi
