"""Writes comments into the patch at calls that are left as they are, with the reason."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Optional

from weft.advise.patch.calls import MACROS, is_at
from weft.advise.patch.edits import Edit, indent_of
from weft.advise.patch.languages import Source, descendants, first_line
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

WIDTH = 100
LEAST = 40  # least width of a comment in characters, however far it is indented
FRONTS = {"c": " * ", "c++": " * ", "fortran": "! ", "python": "# "}


def statement_at(source: Source, line: int) -> Optional[Node]:
    """Returns the innermost statement of a block at this line before which a line can be inserted;
    None if there is none."""
    found = None
    for one in descendants(source.root):
        if not is_at(one, line):
            continue
        if one.type in MACROS:
            return None
        is_statement = one.parent is not None and one.parent.type in source.grammar.blocks
        if is_statement and one in source.statements(one.parent) and stands_first(source, one):
            found = one
    return found


def stands_first(source: Source, node: Node) -> bool:
    row, column = node.start_point
    return not source.data.split(b"\n")[row][:column].strip()


def comment(language: str, indent: str, text: str) -> list[str]:
    front = FRONTS[language]
    width = max(LEAST, WIDTH - len(indent) - len(front) - len(" */"))
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    if language in ("c", "c++"):
        lines = [("/* " if not i else " * ") + line for i, line in enumerate(lines)]
        return [*(indent + line for line in lines[:-1]), f"{indent}{lines[-1]} */"]
    return [indent + front + line for line in lines]


def before(source: Source, wish: Wish, why: str) -> list[Edit]:
    """Returns the edit that inserts the comment; an empty list if no comment can stand before the
    call's statement."""
    statement = statement_at(source, wish.line)
    if statement is None:
        return []
    line = first_line(statement)
    lines = " (Lines are those before this patch.)" if "line " in why else ""
    text = f"weft advise: {wish.call} is left as it is: {why}.{lines}".replace("*/", "* /").replace(
        "/*", "/ *"
    )
    return [Edit(line, line - 1, tuple(comment(source.language, indent_of(source, line), text)))]
