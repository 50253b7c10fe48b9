"""The subcommands of `weft` that are not native, and the help that lists them all.

Modules whose functions typer reads have no `from __future__ import annotations`: with Python 3.9 it
would not see their options. What a command needs is loaded when it runs, so that --help is quick.
"""

import os
import sys
from typing import Annotated

import typer

from weft import __version__
from weft import learned as learned_command
from weft import plan as plan_command
from weft.advise import command as advise_command
from weft.bench import command as bench_command
from weft.cores import command as cores_command
from weft.demo import command as demo_command
from weft.lab import command as lab_command
from weft.report import command as report_command
from weft.reproduce import command as reproduce_command
from weft.sim import command as sim_command
from weft.trying import command as try_command

PROGRAMS = "Run programs"
MEASURING = "Measure and understand"
SET_UP = "The set-up"

app = typer.Typer(
    name="weft",
    help="Lets MPI collectives run behind computation, on any MPI library, without recompiling.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
lab_app = typer.Typer(
    help="MPI jobs on nodes joined by slow links, on this machine.", no_args_is_help=True
)
app.add_typer(lab_app, name="lab", rich_help_panel=PROGRAMS)
lab_app.command("run", context_settings={"allow_interspersed_args": False})(lab_command.run)
app.command("demo", rich_help_panel=MEASURING)(demo_command.demo)
app.command(
    "advise",
    rich_help_panel=MEASURING,
    context_settings={"allow_interspersed_args": False},
)(advise_command.advise)
app.command(
    "try",
    rich_help_panel=MEASURING,
    context_settings={"allow_interspersed_args": False},
)(try_command.try_program)
app.command("bench", rich_help_panel=MEASURING)(bench_command.bench)
app.command("plan", rich_help_panel=MEASURING)(plan_command.plan)
app.command("learned", rich_help_panel=MEASURING)(learned_command.learned)
app.command("place", rich_help_panel=MEASURING)(cores_command.place)
app.command("model", rich_help_panel=MEASURING)(cores_command.model)
app.command("sim", rich_help_panel=MEASURING)(sim_command.sim)
app.command("reproduce", rich_help_panel=MEASURING)(reproduce_command.reproduce)
app.command("report", rich_help_panel=MEASURING)(report_command.report)
app.command("compare", rich_help_panel=MEASURING)(report_command.compare)

NATIVE = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
    "allow_interspersed_args": False,
}


INTERRUPTED = 130


def become_native(verb: str, arguments: list[str]) -> None:
    from weft import installation

    native = installation.weft_command()
    if not native.exists():
        print(f"weft: {native} is missing; {installation.REMEDY}", file=sys.stderr)
        raise typer.Exit(2)
    os.execv(native, [str(native), verb, *arguments])


@app.command(context_settings=NATIVE, rich_help_panel=PROGRAMS)
def run(context: typer.Context) -> None:
    """Run an MPI program, or its launcher, under Weft: weft run -- ./app."""
    become_native("run", context.args)


@app.command(context_settings=NATIVE, rich_help_panel=MEASURING)
def schedule(context: typer.Context) -> None:
    """Print the schedule of an algorithm: weft schedule allreduce --algorithm ring --ranks 5."""
    from weft import building, installation

    printer = installation.weft_command().with_name("weft-schedule")
    if not installation.SOURCE:
        printer = installation.native_part("weft-schedule")
    if not building.is_there(printer):
        print(f"weft: {printer} is missing; {installation.REMEDY}", file=sys.stderr)
        raise typer.Exit(2)
    os.execv(printer, [str(printer), *context.args])


@app.command("info", rich_help_panel=SET_UP)
def info_command(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Say which MPI libraries, engines, cores and NUMA nodes are there."""
    import json

    from weft import info

    facts = info.collect()
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        info.show(facts)


@app.command("doctor", rich_help_panel=SET_UP)
def doctor_command(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Mend what can be mended without other rights, then test again."
        ),
    ] = False,
) -> None:
    """Test the set-up, and name the fix for what is wrong."""
    from weft import doctor

    raise typer.Exit(doctor.fix() if fix else doctor.report(doctor.examine()))


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Errors of the command line are one sentence, as all others are."""
    try:
        status = app(prog_name="weft", standalone_mode=False)
    except typer.Abort:
        sys.exit(INTERRUPTED)
    except OSError as error:
        if error.filename is None:
            raise
        print(f"weft: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if not hasattr(error, "format_message"):  # of the command line's parser
            raise
        if text := error.format_message().replace("Value error, ", ""):
            context = getattr(error, "ctx", None)
            print(f"{context.command_path if context else 'weft'}: {text}", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.exit(status if isinstance(status, int) else 0)
