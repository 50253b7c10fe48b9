"""The subcommands of `weft` that are written in Python, and the help that lists all subcommands.

Modules with functions that typer reads must not have `from __future__ import annotations`: with
Python 3.9 typer would not see their options. The modules of a command are imported when it runs, so
that --help is fast."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer
from typer.core import TyperCommand, TyperGroup

from weft import __version__
from weft.advise import command as advise_command
from weft.bench import command as bench_command
from weft.check import command as check_command
from weft.choices import learned as learned_command
from weft.choices import plan as plan_command
from weft.cores import command as cores_command
from weft.data import json_file
from weft.demo import command as demo_command
from weft.lab import command as lab_command
from weft.report import command as report_command
from weft.reproduce import command as reproduce_command
from weft.sim import command as sim_command
from weft.terminal import messages
from weft.terminal.descriptions import Command, python_commands
from weft.terminal.plain_help import help_of
from weft.trace import command as trace_command
from weft.trying import command as try_command

FIRST = "Start with these"
MEASURING = "Measure and understand"
EXPERTS = "Experts"


def described(context: Any) -> Command:
    """Returns the command to which a context of the command line's parser belongs."""
    found = python_commands(app, ["weft"])
    for word in context.command_path.split()[1:]:
        found = next(one for one in found.commands if one.words[-1] == word)
    return found


class PlainCommand(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_of(described(ctx)))


class PlainGroup(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_of(described(ctx)))


app = typer.Typer(
    name="weft",
    cls=PlainGroup,
    help="Lets MPI collectives run behind computation, on any MPI library, without recompiling."
    " 'weft help COMMAND' explains one command.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
lab_app = typer.Typer(
    cls=PlainGroup,
    help="MPI jobs on nodes joined by slow links, on this machine.",
    no_args_is_help=True,
)
NATIVE = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
    "allow_interspersed_args": False,
}
# The options of Weft end at the first word of the program's command.
RUNS_A_PROGRAM = {"allow_interspersed_args": False}


def command(name: str, group: str, settings: Optional[dict] = None) -> Callable:
    return app.command(name, cls=PlainCommand, rich_help_panel=group, context_settings=settings)


INTERRUPTED = 130


def become_native(verb: str, arguments: list[str]) -> None:
    from weft.system import installation

    native = installation.weft_command()
    if not native.exists():
        print(f"weft: {native} is missing; {installation.REMEDY}", file=sys.stderr)
        raise typer.Exit(2)
    os.execv(native, [str(native), verb, *arguments])


def run(context: typer.Context) -> None:
    """Run an MPI program, or its launcher, under Weft: weft run -- ./app."""
    become_native("run", context.args)


def schedule(context: typer.Context) -> None:
    """Print the schedule of an algorithm: weft schedule allreduce --algorithm ring --ranks 5."""
    from weft.system import building, installation

    printer = installation.weft_command().with_name("weft-schedule")
    if not installation.SOURCE:
        printer = installation.native_part("weft-schedule")
    if not building.is_there(printer):
        print(f"weft: {printer} is missing; {installation.REMEDY}", file=sys.stderr)
        raise typer.Exit(2)
    os.execv(printer, [str(printer), *context.args])


def info(
    file: Annotated[Optional[Path], json_file.option("Write it as JSON.")] = None,
) -> None:
    """Say which MPI libraries, engines, cores and NUMA nodes are there."""
    from weft.system import info

    facts = info.collect()
    if file:
        json_file.write(file, facts)
    if not json_file.is_alone(file):
        info.show(facts)


def doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Carry out the fixes that need no further rights, then test again."
        ),
    ] = False,
    file: Annotated[Optional[Path], json_file.option("Also write the findings as JSON.")] = None,
) -> None:
    """Test the set-up, and name the fix for what is wrong."""
    from weft.doctor import checks

    found = checks.fix() if fix else checks.examine()
    status = checks.report(found)
    if file:
        json_file.write(file, checks.to_json(found))
    raise typer.Exit(status)


def help_command(
    words: Annotated[
        Optional[list[str]], typer.Argument(help="The command.", metavar="COMMAND")
    ] = None,
) -> None:
    """Explain a command: weft help try."""
    from weft.system import installation

    native = installation.weft_command()
    os.execv(native, [str(native), *(words or []), "--help"])


# The commands are registered in the order in which the help lists them.
command("try", FIRST, RUNS_A_PROGRAM)(try_command.try_program)
command("run", FIRST, NATIVE)(run)
command("advise", FIRST, RUNS_A_PROGRAM)(advise_command.advise)
command("check", FIRST, RUNS_A_PROGRAM)(check_command.check)
command("doctor", FIRST)(doctor)
command("demo", FIRST)(demo_command.demo)
command("bench", MEASURING)(bench_command.bench)
command("compare", MEASURING)(report_command.compare)
command("report", MEASURING)(report_command.report)
command("trace", MEASURING)(trace_command.trace)
command("learned", MEASURING)(learned_command.learned)
app.add_typer(lab_app, name="lab", rich_help_panel=MEASURING)
lab_app.command("run", cls=PlainCommand, context_settings=RUNS_A_PROGRAM)(lab_command.run)
command("info", MEASURING)(info)
command("help", MEASURING)(help_command)
command("plan", EXPERTS)(plan_command.plan)
command("place", EXPERTS)(cores_command.place)
command("model", EXPERTS)(cores_command.model)
command("sim", EXPERTS)(sim_command.sim)
command("schedule", EXPERTS, NATIVE)(schedule)
command("reproduce", EXPERTS)(reproduce_command.reproduce)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


REFUSED = 2


def main() -> None:
    """Runs the command line. Errors of the parser are printed as one sentence, like all other
    errors."""
    try:
        words = json_file.with_values(sys.argv[1:])
        status = app(words, prog_name="weft", standalone_mode=False)
    except typer.Abort:
        sys.exit(INTERRUPTED)
    except OSError as error:
        if error.filename is None:
            raise
        messages.say("weft", error)
        end(REFUSED)
    except Exception as error:
        # Importing sqlite3 here would slow down every start.
        if type(error).__module__ == "sqlite3":
            messages.say("weft", f"the measurements cannot be stored: {error}")
            end(REFUSED)
        # The parser's errors have this method; other exceptions are not handled here.
        if not hasattr(error, "format_message"):
            raise
        refuse(error)
        end(error.exit_code)
    end(status if isinstance(status, int) else 0)


def refuse(error: Any) -> None:
    """Prints an error of the command line's parser as one sentence, and exits."""
    context = getattr(error, "ctx", None)
    text = number_needed(error) or error.format_message().replace("Value error, ", "")
    # The error's text is the whole help, without a message.
    if type(error).__name__ == "NoArgsIsHelpError":
        print(text, file=sys.stderr)
    elif text:
        messages.say(context.command_path if context else "weft", text)


# These map errors about option values to the kind of number that is needed. Newer versions of typer
# give pydantic's names of the errors, older ones click's sentences.
NUMBERS = {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "a number",
    "less_than_equal": "a number",
}
CLICKS = {
    re.compile(r"'(.*)' is not a valid integer"): "a whole number",
    re.compile(r"'(.*)' is not a valid float"): "a number",
    re.compile(r"(\S+) is not in the range"): "a number",
}


def number_needed(error: Any) -> str:
    """Returns a sentence if an option's value is no number, or is beyond its limits; an empty
    string for other errors."""
    parameter = getattr(error, "param", None)
    wrong = [
        (kind, found[1])
        for pattern, kind in CLICKS.items()
        if (found := pattern.match(str(getattr(error, "message", ""))))
    ]
    if hasattr(error.__cause__, "errors"):
        first = error.__cause__.errors()[0]
        wrong = [(NUMBERS.get(first["type"]), first["input"])]
    if parameter is None or not wrong or not wrong[0][0]:
        return ""
    kind, word = wrong[0]
    name = parameter.opts[-1]
    options = [one for one in described(error.ctx).options if name in one.names]
    limits = f" ({options[0].limits})" if options and options[0].limits else ""
    return f"{name} needs {kind}{limits}, not '{word}'"


def end(status: int) -> NoReturn:
    """Ends the command. If a rank's `weft advise` refuses something, the other ranks must be
    told."""
    if status == REFUSED and sys.argv[1:2] == ["advise"]:
        from weft.advise import launched

        launched.end_with_all(sys.argv[2:])
    sys.exit(status)
