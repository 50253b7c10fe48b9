"""Words of the user's in messages: what is not to be printed is shown as Python writes it.

Why: a value may have ends of lines and codes for the terminal in it. The native parts do the same
(src/base/quoted.h).
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

KEPT = "\n\t"  # a message's own


def printable(text: str) -> str:
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def typed(command: Iterable[str]) -> str:
    """A command line for a shell, as it can be printed."""
    return printable(shlex.join(command))


def shown(message: object) -> str:
    """A message, with the words of the command line in it as they can be printed."""
    text = str(message)
    if isinstance(message, OSError) and message.filename is not None:
        text = f"{message.filename}: {message.strerror}"
    for word in sys.argv[1:]:
        for part in (word, word.partition("=")[2]):
            text = text.replace(part, printable(part)) if part else text
    return "".join(one if one in KEPT else printable(one) for one in text)


def say(who: str, message: object) -> None:
    """To standard error, in front the command that says it."""
    print(f"{who}: {shown(message)}", file=sys.stderr)
