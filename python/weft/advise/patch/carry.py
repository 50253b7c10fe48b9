"""Moves a wait into the next iteration of a loop, if the record says that the result is first used
there.

The request is null before the first call. A wait for a null request does nothing, so that all paths
through the loop can wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.advise.patch.aliases import declarators, first_name
from weft.advise.patch.buffers import Buffers
from weft.advise.patch.calls import Found, is_at, is_directive
from weft.advise.patch.edits import Edit, indent_of
from weft.advise.patch.languages import first_line, last_line
from weft.advise.patch.plan import PLANNED, may_be_left, stands_alone
from weft.advise.patch.region import Judge, computes, is_in
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

LOOPS = ("for_statement", "while_statement")
HEADS = ("condition", "update")  # parts of a loop that are evaluated between two iterations


@dataclass
class Carried:
    loop: Node
    until: Node  # the wait stands before this statement of the loop
    why: str


def first_use(found: Found, wish: Wish, loop: Node, before: list[Node]) -> int | None:
    """Returns the index of the first of the statements before the call that uses the result.

    Their number means that the result is used only behind the loop. None means that it is used
    elsewhere."""
    if not wish.uses or not all(is_in(one, found, wish) for one in wish.uses):
        return None
    inside = [one.line for one in wish.uses if one.line <= last_line(loop)]
    indices = [
        next((i for i, one in enumerate(before) if is_at(one, line)), None) for line in inside
    ]
    if None in indices or any(line < first_line(loop) for line in inside):
        return None
    return min(indices, default=len(before))


def is_safe(found: Found, buffers: Buffers, judge: Judge, loop: Node) -> bool:
    """Returns whether nothing between the call and the end of the iteration accesses the buffers,
    and the buffers outlive the loop."""
    source = found.source
    own = {first_name(source, declarator) for _, declarator in declarators(loop)}
    heads = [loop.child_by_field_name(name) for name in HEADS]
    running = [*found.following, *(one for one in heads if one is not None)]
    is_quiet = not any(judge.why(one) for one in running)
    return is_quiet and not own & buffers.all and not may_be_left(found, loop)


def carried(found: Found, buffers: Buffers, wish: Wish) -> Carried | None:
    """Returns the loop and the statement before which the next iteration waits; None if the wait
    stays in its own iteration."""
    source, loop = found.source, found.block.parent
    judge = Judge(found, buffers, wish, scope=loop)
    may = wish.is_known and source.language in PLANNED and found.error is None
    if not may or loop.type not in LOOPS or loop.child_by_field_name("body") != found.block:
        return None
    before = found.preceding[::-1]
    use = first_use(found, wish, loop, before)
    if use is None or not stands_alone(source, loop) or not is_safe(found, buffers, judge, loop):
        return None
    whys = [judge.why(one) for one in before]
    end = min(use, next((i for i, why in enumerate(whys) if why), use))
    while end > 0 and is_directive(source, before[end - 1]):
        end -= 1
    if not computes(source, [*found.following, *before[:end]]):
        return None
    if end == len(before):
        return Carried(loop, found.statement, "it is called again there")
    return Carried(loop, before[end], whys[end] or "its result is used there")


def edits_around(found: Found, one: Carried, request: str, wait: list[str]) -> list[Edit]:
    """Returns the edits that declare a null request before the loop, wait in the next iteration,
    and wait for the last call behind the loop."""
    source, (first, last) = found.source, (first_line(one.loop), last_line(one.loop))
    outer, inner = indent_of(source, first), indent_of(source, first_line(one.until))
    line = first_line(one.until)
    return [
        Edit(first, first - 1, (f"{outer}MPI_Request {request} = MPI_REQUEST_NULL;",)),
        Edit(line, line - 1, tuple(inner + text for text in wait)),
        Edit(last + 1, last, tuple(outer + text for text in wait)),
    ]
