"""Moves a wait into the next iteration of a loop, if the record says that the result is first used
there. A wait for a null request does nothing, so all paths through the loop may have the same wait.
In Python first uses are not measured, so the source says whether they are in the next round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Union

from weft.advise.patch.aliases import declarators, first_name
from weft.advise.patch.buffers import Buffers
from weft.advise.patch.calls import Found, is_at, is_directive
from weft.advise.patch.languages import last_line
from weft.advise.patch.plan import may_be_left, stands_alone
from weft.advise.patch.region import Judge, calls_one, computes, functions_at, is_in
from weft.advise.patch.wish import Place, Wish

if TYPE_CHECKING:
    from tree_sitter import Node

LOOPS = ("for_statement", "while_statement", "do_loop")
# Parts of a loop that run between two iterations. The bounds of Fortran's DO do not, but no buffer
# is named there.
HEADS = ("condition", "update")
HEAD_OF_FORTRAN = "do_statement"
# Objects of Python over which a loop runs without calling code of the program.
QUIET = ("list", "tuple", "string")


@dataclass
class Carried:
    loop: Node
    until: Node  # the wait stands before this statement of the loop
    why: str
    is_late: bool  # the record has the first use there


def loop_around(found: Found) -> Optional[Node]:
    """Returns the loop whose body contains the call; None if it stands in another block."""
    if found.source.language == "fortran":
        return found.block if found.block.type in LOOPS else None
    loop = found.block.parent
    is_body = loop is not None and loop.type in LOOPS
    return loop if is_body and loop.child_by_field_name("body") == found.block else None


def heads(found: Found, loop: Node) -> list[Node]:
    if found.source.language == "fortran":
        return [one for one in loop.named_children if one.type == HEAD_OF_FORTRAN]
    parts = (loop.child_by_field_name(name) for name in HEADS)
    return [one for one in parts if one is not None]


def first_use(found: Found, wish: Wish, loop: Node, before: list[Node]) -> int | None:
    """Returns the index of the first statement in `before` (those of the loop that stand before
    the call) that uses the call's result in the next round. Returns len(before) if the result is
    used only behind the loop or the program is in Python, and None if it is used elsewhere or no
    use is known."""
    if found.source.language == "python":
        return len(before)
    if not wish.uses:
        return None
    indices = [index_of(one, found, wish, loop, before) for one in wish.uses]
    return None if None in indices else min(indices)


def index_of(place: Place, found: Found, wish: Wish, loop: Node, before: list[Node]) -> int | None:
    """Returns the index in `before` of the first statement that contains the place, or that calls
    the function in which the place lies. Returns len(before) if the place is behind the loop, and
    None if there is no such statement or one after the call calls that function."""
    if is_in(place, found, wish):
        if place.line > last_line(loop):
            return len(before)
        return next((i for i, one in enumerate(before) if is_at(one, place.line)), None)
    names = functions_at(place, wish)
    if any(calls_one(found, one, names) for one in found.following):
        return None
    return next((i for i, one in enumerate(before) if calls_one(found, one, names)), None)


def why_not_safe(found: Found, buffers: Buffers, judge: Judge, loop: Node) -> str:
    """Returns what may touch the buffers behind the call or between two rounds, or why the buffers
    may not outlive the loop; an empty string if nothing does."""
    source = found.source
    if may_be_left(found, loop):
        return "its loop may be left before its end"
    running = [*found.following, *heads(found, loop)]
    if why := next(filter(None, map(judge.why, running)), ""):
        return why
    own = {first_name(source, declarator) for _, declarator in declarators(loop)}
    if own & buffers.all:
        return f"{min(own & buffers.all)} ends with each round"
    if not stands_alone(source, loop):
        return "its loop has no lines of its own"
    return why_error(found, judge) or (why_odd_loop(found, loop) if is_python(found) else "")


def is_python(found: Found) -> bool:
    return found.source.language == "python"


def why_error(found: Found, judge: Judge) -> str:
    """Returns why the call's error code prevents the wait in the next round; an empty string if it
    does not. Fortran's calls must have a variable for it, which may be read nowhere."""
    source, error = found.source, found.error
    if error is None:
        return ""
    if source.language != "fortran":
        return "its error code is kept"
    declared = ("variable_declaration", "save_statement")
    is_read = any(
        source.text(one) == source.text(error)
        and one != error
        and one.parent.type not in declared
        and not judge.is_error_of_mpi(one)
        for one in source.names(found.function)
    )
    return "its error code is read" if is_read else ""


def why_odd_loop(found: Found, loop: Node) -> str:
    """Returns what a loop of Python may run between two rounds or after the last; an empty string
    if nothing."""
    source, over = found.source, loop.child_by_field_name("right")
    if loop.child_by_field_name("alternative") is not None:
        return "its loop has an else"
    if over is None or over.type in QUIET:
        return ""
    is_range = over.type == "call" and source.callee(over) == "range"
    return "" if is_range else "its loop runs over what may be a generator"


def carried(found: Found, buffers: Buffers, wish: Wish) -> Union[Carried, str]:
    """Returns where the wait may stand in the next round, or why it stays in its round; an empty
    string if nothing speaks for the next one."""
    source, loop = found.source, loop_around(found)
    if loop is None or not wish.is_known:
        return ""
    judge = Judge(found, buffers, wish, scope=loop)
    before = found.preceding[::-1]
    use = first_use(found, wish, loop, before)
    if use is None or (is_python(found) and any(map(judge.why, found.following))):
        return ""
    if why := why_not_safe(found, buffers, judge, loop):
        return why
    whys = [judge.why(one) for one in before]
    end = min(use, next((i for i, why in enumerate(whys) if why), use))
    while end > 0 and is_directive(source, before[end - 1]):
        end -= 1
    if not computes(source, [*found.following, *before[:end]]):
        return ""
    is_late = end == use or is_python(found)
    if end == len(before):
        return Carried(loop, found.statement, "it is called again there", is_late)
    return Carried(loop, before[end], whys[end] or "its result is used there", is_late)
