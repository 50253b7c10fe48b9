"""Prints the help of Python subcommands in the layout of `weft run --help`: plain text, 80
columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from weft.terminal.descriptions import GENERAL, Argument, Command, Option

COLUMNS = 80
TEXT_COLUMN = 24


def wrapped(text: str, indent: int = 0) -> str:
    margin = " " * indent
    return textwrap.fill(
        text,
        COLUMNS,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def entry(name: str, *texts: str) -> str:
    """Returns a name in the first columns, with its text behind or below it."""
    below = "\n".join(wrapped(text, TEXT_COLUMN) for text in texts if text)
    head = f"  {name}"
    if len(head) + 2 > TEXT_COLUMN:
        return f"{head}\n{below}"
    return head.ljust(TEXT_COLUMN) + below[TEXT_COLUMN:]


def facts(one: Option | Argument) -> str:
    """Returns facts about an option as text, such as "NUMBER: at least 1; default: 12"."""
    name = one.name if isinstance(one, Argument) else one.argument
    known = [", ".join(one.choices)] if one.choices else []
    if isinstance(one, Option) and one.limits:
        known.append(one.limits)
    found = [f"{name}: {', '.join(known)}"] if known else []
    if isinstance(one, Option) and one.default:
        found.append(f"default: {one.default}")
    return "; ".join(found)


def sections(command: Command) -> Iterator[tuple[str, list[str]]]:
    """Yields the titles of sections with their entries: commands, arguments, then options, with
    general options last."""
    groups: dict[str, list[str]] = {}
    for one in command.commands:
        groups.setdefault(one.group, []).append(entry(one.words[-1], one.text))
    for argument in command.arguments:
        groups.setdefault("Arguments", []).append(
            entry(argument.synopsis, argument.text, facts(argument))
        )
    for option in command.options:
        groups.setdefault(option.group, []).append(
            entry(option.synopsis, option.text, facts(option))
        )
    yield from sorted(groups.items(), key=lambda one: one[0] == GENERAL)


def help_of(command: Command) -> str:
    parts = [f"Usage: {command.usage}", wrapped(command.text)]
    parts += [f"{title}:\n" + "\n".join(entries) for title, entries in sections(command)]
    parts += [f"{title}:\n{wrapped(text, 2)}" for title, text in command.notes.items()]
    return "\n\n".join(parts)
