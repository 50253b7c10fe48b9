"""The native part of `weft advise` in front of a program, or of its launcher.

Why the lab is not left to the native part, which knows the launchers: it is one of Weft's own
commands, and its `--` tells where the program begins.
"""

from __future__ import annotations

from pathlib import Path

from weft import installation


def is_lab(command: list[str]) -> bool:
    return Path(command[0]).name == "weft" and command[1:2] == ["lab"]


def has_no_place(command: list[str]) -> bool:
    """A lab whose program does not follow a `--`."""
    return is_lab(command) and "--" not in command[:-1]


def words(options: list[str], command: list[str]) -> list[str]:
    """What to start. The native part passes its options on, through launchers, to every rank."""
    native = [str(installation.weft_command()), "advise", *options, "--"]
    program = command.index("--") + 1 if is_lab(command) else 0
    return [*command[:program], *native, *command[program:]]
