"""Puts the native part of `weft advise` in front of a program or of its launcher.

The native part knows all launchers but not `weft lab`, which is one of Weft's own commands: there
the `--` tells where the program begins."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from weft.system import installation


def is_lab(command: list[str]) -> bool:
    return Path(command[0]).name == "weft" and command[1:2] == ["lab"]


def has_no_place(command: list[str]) -> bool:
    """Returns whether the command is a `weft lab` without a `--` that shows where its program
    begins."""
    return is_lab(command) and "--" not in command[:-1]


def words(options: list[str], command: list[str]) -> list[str]:
    """Returns the command to start, with its words. The native part passes its options through
    launchers to every rank."""
    native = [str(installation.weft_command()), "advise", *options, "--"]
    program = command.index("--") + 1 if is_lab(command) else 0
    return [*command[:program], *native, *command[program:]]


has_started = False  # set once the program, or its launcher, runs


def end_with_all(arguments: list[str]) -> None:
    """Makes all ranks end in MPI_Init if this process is a rank that has refused before it started
    anything; otherwise returns.

    The other ranks cannot know what the first one refuses, such as a file that it cannot write."""
    if has_started or not installation.is_rank():
        return
    native = installation.weft_command()
    with contextlib.suppress(OSError):
        os.execv(native, [str(native), "advise", "--refused", *arguments])
