"""Changes of lines, from which a patch is made."""

from __future__ import annotations

from dataclasses import dataclass

from weft.advise.patch.languages import Source


@dataclass(frozen=True)
class Edit:
    """Lines [first, last] become these; where last is before first, they are inserted."""

    first: int
    last: int
    lines: tuple[str, ...]


def indent_of(source: Source, line: int) -> str:
    text = source.line(line)
    return text[: len(text) - len(text.lstrip())]
