"""`--json FILE` of the commands: where the JSON goes, and `-`, which is standard output.

Why `-` is set aside first: what a command says to people, and what the programs print that it runs,
goes to standard error then, so that whoever reads the JSON reads nothing else.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

STANDARD_OUTPUT = Path("-")
# These commands write their JSON to standard output if no file is named.
MAY_STAND_ALONE = ("info", "place", "model", "sim", "reproduce")
kept: Optional[int] = None  # the descriptor that standard output had


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
    """Called as soon as the option is read."""
    global kept
    if path == STANDARD_OUTPUT and kept is None:
        kept = os.dup(1)
        os.dup2(2, 1)
    return path


def is_alone(path: Optional[Path]) -> bool:
    """Nothing but the JSON is asked for."""
    return path == STANDARD_OUTPUT


def write(path: Path, document: Any) -> None:
    """OSError says what cannot be written."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if path != STANDARD_OUTPUT:
        from weft.data import files

        files.write_text(path, text, encoding="utf-8")
        return
    with os.fdopen(os.dup(1 if kept is None else kept), "w", encoding="utf-8") as output:
        output.write(text)


def with_values(words: list[str]) -> list[str]:
    """The command line with `-` behind an option that stands alone: words of options come next."""
    if not words or words[0] not in MAY_STAND_ALONE:
        return words
    found = []
    for number, word in enumerate(words):
        found.append(word)
        following = words[number + 1 : number + 2]
        if word == "--json" and (not following or following[0].startswith("--")):
            found.append("-")
    return found
