"""Handles the option `--json FILE` of the commands, where `-` means standard output.

With `-`, standard output is redirected to standard error first. Other output of the command, and of
the programs that it runs, then does not mix with the JSON."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

STANDARD_OUTPUT = Path("-")
# These commands write their JSON to standard output if no file is named.
MAY_STAND_ALONE = ("info", "place", "model", "sim", "reproduce")
# This is a duplicate of the original standard output, or None if that is not redirected.
kept: Optional[int] = None


def option(
    text: str = "Also write the result as JSON.",
    panel: Optional[str] = None,
    names: Sequence[str] = ("--json",),
) -> Any:
    import typer

    return typer.Option(
        *names,
        help=f"{text} A file, or - for standard output.",
        metavar="FILE",
        rich_help_panel=panel,
        callback=taken,
    )


def taken(path: Optional[Path]) -> Optional[Path]:
    """Redirects standard output if the option's value is `-`. Called as soon as the option is
    parsed. Returns the path."""
    global kept
    if path == STANDARD_OUTPUT and kept is None:
        kept = os.dup(1)
        os.dup2(2, 1)
    return path


def is_alone(path: Optional[Path]) -> bool:
    """Returns whether the JSON goes to standard output, and nothing else should."""
    return path == STANDARD_OUTPUT


def write(path: Path, document: Any) -> None:
    """Writes the document to the path. Raises OSError if that fails."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if path != STANDARD_OUTPUT:
        from weft.data import files

        files.write_text(path, text, encoding="utf-8")
        return
    with os.fdopen(os.dup(1 if kept is None else kept), "w", encoding="utf-8") as output:
        output.write(text)


def with_values(words: list[str]) -> list[str]:
    """Returns the command line with `-` added behind each `--json` that has no value."""
    if not words or words[0] not in MAY_STAND_ALONE:
        return words
    found = []
    for number, word in enumerate(words):
        found.append(word)
        following = words[number + 1 : number + 2]
        if word == "--json" and (not following or following[0].startswith("--")):
            found.append("-")
    return found
