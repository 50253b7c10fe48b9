"""Defines edits of source lines, from which a patch is made."""

from __future__ import annotations

from dataclasses import dataclass

from weft.advise.patch.languages import Source


@dataclass(frozen=True)
class Edit:
    """Replaces lines first to last, both included. If last is before first, it inserts lines."""

    first: int
    last: int
    lines: tuple[str, ...]


def indent_of(source: Source, line: int) -> str:
    text = source.line(line)
    return text[: len(text) - len(text.lstrip())]
