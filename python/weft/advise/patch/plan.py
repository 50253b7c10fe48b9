"""Makes a call in a loop persistent if its arguments are the same each time. The initialisation
stands inside the loop, so that a program which never makes the call initialises nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional

from weft.advise.patch import kept_c, kept_fortran, kept_python
from weft.advise.patch.calls import Found
from weft.advise.patch.jumps import leaves
from weft.advise.patch.languages import Source, ancestors, descendants
from weft.advise.patch.region import is_macro
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

KEPT = {"c": kept_c, "c++": kept_c, "fortran": kept_fortran, "python": kept_python}


class Planned(NamedTuple):
    loop: Optional[Node]  # the outermost loop in which the call keeps its arguments
    # why the call is not planned; "" if it is, or if there is no loop or no persistent form
    why_not: str = ""


def may_be_left(found: Found, loop: Node) -> bool:
    """Returns whether the loop may be left without reaching the statement behind it, which frees
    the request."""
    source = found.source
    called = {source.callee(call) for call in source.calls(loop)}
    is_c = source.language in ("c", "c++")
    hidden = any((is_c and is_macro(one)) or found.functions.may_throw(one) for one in called)
    return hidden or any(leaves(source, node, loop) for node in descendants(loop))


def stands_alone(source: Source, loop: Node) -> bool:
    """Returns whether the loop is a statement of a block and shares no line with another
    statement."""
    row, column = loop.start_point
    lines = source.data.split(b"\n")
    end = lines[loop.end_point[0]][loop.end_point[1] :]
    is_alone = not lines[row][:column].strip() and not end.strip()
    return loop.parent.type in source.grammar.blocks and is_alone


def loops_around(found: Found) -> list[Node]:
    """Returns the loops around the call in its function, the innermost first."""
    around = list(ancestors(found.statement))
    inside = around[: around.index(found.function)]
    return [one for one in inside if one.type in found.source.grammar.loops]


def loop_of(found: Found, wish: Wish) -> Planned:
    loops = loops_around(found) if wish.plan else []
    if not loops:
        return Planned(None)
    kept = KEPT[found.source.language]
    if why := kept.why_never(found):
        return Planned(None, why)
    best, why = None, ""
    for loop in loops:
        if may_be_left(found, loop):
            why = "its loop may be left before its end"
            break
        if why := kept.why_not(found, loop):
            break
        if stands_alone(found.source, loop):
            best = loop
    return Planned(best) if best else Planned(None, why or "its loop has no lines of its own")
