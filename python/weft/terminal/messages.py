"""Prints messages. Unprintable characters in the user's words are shown as Python's escapes.

The user's words may contain ends of lines and control codes of the terminal. The native parts do
the same (src/base/quoted.h)."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

KEPT = "\n\t"  # characters that a message itself may contain


def printable(text: str) -> str:
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def typed(command: Iterable[str]) -> str:
    """Returns a command line for a shell, in printable characters."""
    return printable(shlex.join(command))


def shown(message: object) -> str:
    """Returns the text of a message. Words of the command line in it are made printable."""
    text = str(message)
    if isinstance(message, OSError) and message.filename is not None:
        text = f"{message.filename}: {message.strerror}"
    for word in sys.argv[1:]:
        for part in (word, word.partition("=")[2]):
            text = text.replace(part, printable(part)) if part else text
    return "".join(one if one in KEPT else printable(one) for one in text)


def say(who: str, message: object) -> None:
    """Prints a message to standard error, with the name of the command in front."""
    print(f"{who}: {shown(message)}", file=sys.stderr)
