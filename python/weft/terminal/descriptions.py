"""Describes the commands of `weft` and their options, from the signatures of their functions.

`--help`, the reference, the man pages and the completion are all generated from these
descriptions."""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, CommandInfo, OptionInfo

GENERAL = "General"
COMMANDS = "Commands"


@dataclass
class Option:
    names: list[str]  # names of the option, such as "-o" and "--out"
    text: str
    argument: str = ""  # name of its value; empty if it has none
    optional: bool = False  # the value follows after '=' or is absent
    # These are the possible values, in which capital letters are placeholders.
    choices: list[str] = field(default_factory=list)
    default: str = ""
    variable: str = ""
    group: str = "Options"
    limits: str = ""  # text such as "at least 1, at most 64"

    @property
    def synopsis(self) -> str:
        words = [name + self.value_after(name) for name in self.names]
        return ", ".join(words)

    def value_after(self, name: str) -> str:
        if not self.argument:
            return ""
        return f"[={self.argument}]" if self.optional else f" {self.argument}"

    @property
    def takes_file(self) -> bool:
        return bool(re.search(r"FILE|PATH|DIRECTORY", self.argument)) or any(
            "/" in choice for choice in self.choices
        )

    @property
    def words(self) -> list[str]:
        """Returns the choices as they can be typed, up to the part that users replace by their own
        value."""
        return [re.split(r"[A-Z/…]", choice)[0] for choice in self.choices if choice[0] != "/"]


@dataclass
class Argument:
    name: str
    text: str
    required: bool = True
    several: bool = False
    choices: list[str] = field(default_factory=list)
    takes_file: bool = False

    @property
    def synopsis(self) -> str:
        word = self.name + ("..." if self.several else "")
        return word if self.required else f"[{word}]"


@dataclass
class Command:
    words: list[str]  # words of the command, such as "weft", "lab", "run"
    text: str
    options: list[Option] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    runs_a_program: bool = False  # a program's command line follows behind `--`
    group: str = COMMANDS  # group of commands to which it belongs in the help
    notes: dict[str, str] = field(default_factory=dict)  # titles and texts at the end of the help

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def usage(self) -> str:
        options = "[OPTIONS]"
        if self.commands:
            return f"{self.name} {options} COMMAND [ARGUMENTS]..."
        words = [self.name, options, *(argument.synopsis for argument in self.arguments)]
        return " ".join(words) + (" -- COMMAND [ARGUMENTS]" if self.runs_a_program else "")

    def groups(self) -> dict[str, list[Option]]:
        found: dict[str, list[Option]] = {}
        for option in self.options:
            found.setdefault(option.group, []).append(option)
        return found

    def with_subcommands(self) -> list[Command]:
        return [self, *(deeper for one in self.commands for deeper in one.with_subcommands())]

    @property
    def summary(self) -> str:
        return first_sentence(self.text)


def first_sentence(text: str) -> str:
    return re.split(r"[.:;](?:\s|$)", text, maxsplit=1)[0]


def plain(text: str | None) -> str:
    """Returns a docstring or help text in one line, without the markup of Rich."""
    return " ".join(re.sub(r"\[/?[a-z ]+\]", "", text or "").split())


def kind_and_choices(annotation) -> tuple[type, list[str]]:
    """Returns a parameter's type, and its possible values."""
    unions = (Union, getattr(types, "UnionType", Union))
    while get_origin(annotation) in (*unions, list, tuple):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    if get_origin(annotation) is Literal:
        return str, [str(choice) for choice in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return str, [str(choice.value) for choice in annotation]
    return annotation, []


def limits_of(info: OptionInfo) -> str:
    limits = (("at least", info.min), ("at most", info.max))
    return ", ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


def shown_default(value: object) -> str:
    if value is None or isinstance(value, bool) or value in (inspect.Parameter.empty, ...):
        return ""
    return str(getattr(value, "value", value))


def option_of(name: str, annotation, info: OptionInfo, default: object) -> Option:
    kind, choices = kind_and_choices(annotation)
    word = name.replace("_", "-")
    # Inside Annotated, Typer takes the first name for the default value.
    names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    names = names or [f"--{word}/--no-{word}" if kind is bool else f"--{word}"]
    argument = {Path: "FILE", int: "N", float: "N"}.get(kind, "WORD")
    return Option(
        names=sorted(re.split(r"[/ ]+", " ".join(names)), key=lambda one: one.startswith("--")),
        text=plain(info.help),
        argument="" if kind is bool else info.metavar or argument,
        choices=choices,
        default=info.show_default if isinstance(info.show_default, str) else shown_default(default),
        variable=str(info.envvar or ""),
        group=info.rich_help_panel or "Options",
        limits=limits_of(info),
    )


def argument_of(name: str, annotation, info: ArgumentInfo, default: object) -> Argument:
    kind, choices = kind_and_choices(annotation)
    return Argument(
        name=(info.metavar or name.upper()).removesuffix("..."),
        text=plain(info.help),
        required=default in (inspect.Parameter.empty, ...),
        several=get_origin(annotation) is list,
        choices=choices,
        takes_file=kind is Path,
    )


def parameters_of(function) -> Iterator[tuple[str, object, object, object]]:
    """Yields the name, type, Typer's description and default of each parameter."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if get_origin(hints[name]) is Annotated:
            annotation, info = get_args(hints[name])[:2]
            yield name, annotation, info, parameter.default


def python_command(info: CommandInfo, words: list[str]) -> Command:
    command = Command(words, plain(info.help or info.callback.__doc__))
    for name, annotation, described, default in parameters_of(info.callback):
        if isinstance(described, ArgumentInfo):
            command.arguments.append(argument_of(name, annotation, described, default))
        elif not described.hidden:
            command.options.append(option_of(name, annotation, described, default))
    settings = info.context_settings or {}
    # A command without interspersed arguments ends with the command line of a program to run.
    if settings.get("allow_interspersed_args") is False:
        if text := " ".join(one.text for one in command.arguments if one.text):
            command.notes = {"Command": text}
        command.arguments.clear()
        command.runs_a_program = True
    command.options.append(help_option(settings))
    return command


def help_option(settings: dict) -> Option:
    return Option(settings.get("help_option_names", ["--help"]), "Shows this help.", group=GENERAL)


def python_commands(app: typer.Typer, words: list[str]) -> Command:
    """Returns a group of commands, and those below it in the order of their registration."""
    group = Command(words, plain(app.info.help))
    if app.registered_callback:
        for name, annotation, info, default in parameters_of(app.registered_callback.callback):
            group.options.append(option_of(name, annotation, info, default))
    group.options.append(help_option({}))
    for info in app.registered_commands:
        if not info.hidden:
            name = info.name or info.callback.__name__.replace("_", "-")
            group.commands.append(python_command(info, [*words, name]))
            group.commands[-1].group = info.rich_help_panel or COMMANDS
    for info in app.registered_groups:
        group.commands.append(python_commands(info.typer_instance, [*words, info.name]))
        group.commands[-1].group = info.rich_help_panel or COMMANDS
    return group
