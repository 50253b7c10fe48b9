"""Finds the statements behind a call that may run while it is in flight, and those before the call
that may do so if it starts earlier.

Each statement is checked for a reason against it, and the first reason ends the region. The wait is
thus never later than the source allows, nor later than the first use that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft.advise.patch.aliases import KNOWN, is_address, is_of_numbers
from weft.advise.patch.buffers import Buffers
from weft.advise.patch.calls import Found, is_at, is_directive, macros
from weft.advise.patch.functions import declared_name
from weft.advise.patch.jumps import leaves
from weft.advise.patch.languages import (
    Source,
    ancestors,
    descendants,
    first_line,
    last_line,
    read,
)
from weft.advise.patch.meetings import is_meeting
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.wish import Place, Wish

if TYPE_CHECKING:
    from tree_sitter import Node

# These functions access memory that was freed. Such a measured access is ignored.
ALLOCATOR = (
    *("free", "_int_free", "cfree", "realloc", "_int_realloc", "malloc", "_int_malloc", "calloc"),
    *(
        "malloc_consolidate",
        "unlink_chunk",
        "sysmalloc",
        "systrim",
        "munmap",
        "brk",
        "ucm_orig_brk",
    ),
)
PLAIN_WRITES = ("assignment_expression", "update_expression", "augmented_assignment")


def is_owner_alone(source: Source, name: Node) -> bool:
    """Returns whether an object is passed as a whole, rather than to access another member of
    it."""
    node = name
    for around in ancestors(name):
        if around.type in ("field_expression", "attribute"):
            called = around.parent
            is_method = called is not None and called.type in source.grammar.calls
            return is_method and called.named_children[0] == around
        if around.type not in ("subscript_expression", "parenthesized_expression", "subscript"):
            return True
        node = around
    return node is not name


def is_plain_read(source: Source, name: Node, is_object: bool) -> bool:
    """Returns whether an element of a send buffer is only read as a number."""
    if source.language == "python":
        return False
    if source.language == "fortran":
        return is_read_of_fortran(source, name)
    node, read = name, is_object
    for around in ancestors(name):
        if around.type == "subscript_expression":
            if node != around.child_by_field_name("argument"):
                return False
            read = True
        elif around.type == "field_expression" and source.text(node) != source.text(name):
            return False
        elif around.type == "pointer_expression":
            if is_address(source, around):
                return False
            read = True
        elif around.type not in ("parenthesized_expression", "field_expression"):
            break
        node = around
    else:
        return False
    if around.type in PLAIN_WRITES and node in (
        around.child_by_field_name("left"),
        around.child_by_field_name("argument"),
    ):
        return False
    if around.type == "init_declarator" and node == around.child_by_field_name("declarator"):
        return False
    arithmetic = ("binary_expression", "assignment_expression", "init_declarator")
    return read and around.type in arithmetic


def is_read_of_fortran(source: Source, name: Node) -> bool:
    """Returns whether the name is on an assignment's right side, outside arguments and indices."""
    node = name
    for around in ancestors(name):
        if around.type == "argument_list":
            return False
        if around.type == "assignment_statement":
            return node != around.named_children[0]
        if around.type not in ("call_expression", "math_expression", "parenthesized_expression"):
            return False
        node = around
    return False


def is_handle_changed(source: Source, name: Node) -> bool:
    for around in ancestors(name):
        if is_address(source, around):
            return True
        if around.type in source.grammar.calls:
            callee = source.callee(around).lower()
            return callee.endswith(("free", "disconnect"))
        if around.type == "expression_statement":
            return False
    return False


@dataclass
class Judge:
    """Finds the reason why a statement must not run while the call is in flight; an empty string if
    it may."""

    found: Found
    buffers: Buffers
    wish: Wish
    before: bool = False  # the statement stands before the call, which would start earlier
    scope: Node | None = None  # statement that must not be left; None: the statement itself

    def __post_init__(self) -> None:
        source = self.found.source
        self.source = source
        self.macros = macros(source)
        self.error = source.text(self.found.error) if self.found.error is not None else ""
        self.functions = self.found.functions

    def why(self, statement: Node) -> str:
        if statement.type in ("function_definition", "class_definition"):
            return ""
        for node in descendants(statement):
            if leaves(self.source, node, self.scope or statement):
                return f"line {first_line(node)} may leave this place, or be come to from elsewhere"
            if node.type in self.source.grammar.names and (why := self.why_name(node)):
                return why
            is_this = node.type == "this" and "this" in self.buffers.owners
            if is_this and is_owner_alone(self.source, node):
                return f"line {first_line(node)} may touch its buffer by this"
            if is_meeting(self.source, node, self.functions.takes_any):
                return meeting(first_line(node))
            if node.type in self.source.grammar.calls and (why := self.why_call(node)):
                return why
        return ""

    def why_name(self, node: Node) -> str:
        source, name, line = self.source, self.source.text(node), first_line(node)
        buffers = self.buffers
        if name in buffers.received:
            return f"line {line} names {name}, which leads to its result"
        is_read = name in buffers.sent and is_plain_read(source, node, name in buffers.objects)
        if name in buffers.sent and not is_read:
            return f"line {line} may write {name}, which is sent"
        if name in buffers.owners and is_owner_alone(source, node):
            return f"line {line} may touch its buffer by {name}"
        if name in buffers.handles and (self.before or is_handle_changed(source, node)):
            return f"line {line} may change or free {name}"
        if name == self.error and not self.is_error_of_mpi(node):
            return f"line {line} uses its error code"
        if name in self.macros:
            body = source.text(self.macros[name])
            words = {*self.split(body)}
            if words & (buffers.all | {"return", "break", "goto", "continue", "exit", "throw"}):
                return f"line {line} has the macro {name}, which may use its buffers or leave"
        return ""

    def split(self, text: str) -> list[str]:
        return "".join(one if one.isalnum() or one == "_" else " " for one in text).split()

    def is_error_of_mpi(self, node: Node) -> bool:
        """Returns whether the node only overwrites the error variable, by an assignment or, in
        Fortran, by another call of MPI."""
        parent = node.parent
        if parent.type == "assignment_expression":
            return node == parent.child_by_field_name("left")
        call = parent.parent
        is_call = parent.type == "argument_list" and call.type == "subroutine_call"
        return is_call and self.source.callee(call).startswith("mpi_")

    def why_call(self, call: Node) -> str:
        source, name, line = self.source, self.source.callee(call), first_line(call)
        plain = name.removesuffix("_c")
        if self.before and plain.lower().startswith("mpi_"):
            return f"line {line} calls {name}"
        if source.language in ("c", "c++") and is_macro(name) and name not in self.macros:
            return f"line {line} has {name}, which looks like a macro that may do anything"
        if self.functions.may_throw(name):
            return f"{name} in line {line} may leave this place by an exception"
        if self.functions.may_meet(name):
            return meeting(line)
        if not self.buffers.is_far or name in self.macros:
            return ""
        if is_of_numbers(source, call):
            return ""
        if self.functions.may_reach(name, self.buffers.all | self.buffers.owners):
            return f"{name} in line {line} may touch its buffers, which are not local"
        return ""


def meeting(line: int) -> str:
    return f"in line {line} ranks meet by a file, a message or memory, for which they may need it"


def is_macro(name: str) -> bool:
    return len(name) > 1 and name.isupper() and not name.startswith("MPI")


# Measured places
# ------------------------------------------------------------------------------------


def is_in(place: Place, found: Found, wish: Wish) -> bool:
    """Returns whether the place is a line of the function that contains the call."""
    same = Path(place.file) == Path(wish.file)
    return same and is_at(found.function, place.line)


def plain(function: str) -> str:
    """Returns a function's name in the binary as it is written in the source."""
    for end in ("(", "<", ".part", ".constprop", ".isra"):
        function = function.partition(end)[0]
    for mark in ("::", "_MOD_"):
        function = function.rpartition(mark)[2]
    return function.rstrip("_") or function


def function_at(place: Place, language: str) -> str:
    """Returns the source's function that has this line, which the compiler may have inlined
    elsewhere; "" if it is not known."""
    try:
        source = read(Path(place.file), language)
    except Refusal:
        return ""
    kinds = source.grammar.functions
    around = [
        one for one in descendants(source.root) if one.type in kinds and is_at(one, place.line)
    ]
    return declared_name(source, around[-1]) if around and around[-1].parent else ""


def functions_at(place: Place, wish: Wish) -> set[str]:
    """Returns the names of a place's function in small letters: the binary's and the source's."""
    return {plain(place.function).lower(), function_at(place, wish.language).lower()} - {""}


def calls_one(found: Found, statement: Node, names: set[str]) -> bool:
    source = found.source
    return any(source.callee(call).lower() in names for call in source.calls(statement))


def index_of_use(place: Place, found: Found, wish: Wish, judge: Judge) -> int:
    """Returns the index of the first statement after the call before which the wait must stand."""
    following, source = found.following, found.source
    if is_in(place, found, wish):
        there = (i for i, one in enumerate(following) if is_at(one, place.line))
        return next(there, len(following))
    names = functions_at(place, wish)
    called = [i for i, one in enumerate(following) if calls_one(found, one, names)]
    if called:
        return called[0]
    reach = [
        first_line(call) for one in following for call in source.calls(one) if unknown(source, call)
    ]
    end = next((i for i, one in enumerate(following) if judge.why(one)), len(following))
    within_ = [
        call for one in following[:end] for call in source.calls(one) if unknown(source, call)
    ]
    if within_ or (reach and end == len(following)):
        where = f"{Path(place.file).name}:{place.line}" if place.file else "a place without a line"
        raise Refusal(
            f"its result is first used in another function ({place.function or '?'}, {where}), and"
            " which call leads there is not known"
        )
    return end


def unknown(source: Source, call: Node) -> bool:
    name = source.callee(call)
    return not name.upper().startswith("MPI_") and name not in KNOWN


# Region -----------------------------------------------------------------------------------------


@dataclass
class Region:
    start: Node  # the call is started before this statement
    inside: list[Node]  # statements that run while the call is in flight
    until: Node | None  # the wait stands before this statement; None: at the end of the block
    why: str  # why the wait does not stand later; "" if the block ends there
    is_late: bool = True  # the wait stands where the record has the first use


def computes(source: Source, statements: list[Node]) -> bool:
    kinds = (*source.grammar.loops, *source.grammar.calls)
    if source.language == "fortran":
        kinds = (*kinds, "assignment_statement")
    if source.language == "python":
        kinds = (*kinds, "assignment", "augmented_assignment")
    return any(one.type in kinds for s in statements for one in descendants(s))


def region_of(found: Found, buffers: Buffers, wish: Wish) -> Region:
    source, judge = found.source, Judge(found, buffers, wish)
    if not wish.is_known:
        raise Refusal("where its result is first used was not measured")
    following = found.following
    used = [place for place in wish.uses if plain(place.function) not in ALLOCATOR]
    ends = {index_of_use(place, found, wish, judge): place for place in used}
    measured = min(ends, default=len(following))
    why, end = "", measured
    is_early = False
    if measured < len(following):
        place = ends[measured]
        where = f"at line {place.line}" if is_in(place, found, wish) else f"in {place.function}"
        why = f"its result is used {where}"
    for index, statement in enumerate(following[:measured]):
        if why_not := judge.why(statement):
            why, end = why_not, index
            # In Python the first use is not measured, so the wait cannot precede it.
            is_early = source.language != "python"
            break
    while end > 0 and is_directive(source, following[end - 1]):
        end -= 1  # a directive at the end belongs to the statement behind it
    inside = following[:end]
    start = earliest(found, buffers, wish) if wish.earlier else found.statement
    if start == found.statement and not computes(source, inside):
        raise Refusal(
            f"nothing could be computed until it is waited for: {why or 'its block ends'}"
        )
    until = following[end] if end < len(following) else None
    return Region(start, inside, until, why, not is_early)


def earliest(found: Found, buffers: Buffers, wish: Wish) -> Node:
    """Returns the first statement of the block that may run while the call is already in flight."""
    judge = Judge(found, buffers, wish, before=True)
    start, source = found.statement, found.source
    last = [one.line for one in wish.writes if is_in(one, found, wish)]
    if not last or len(last) < len(wish.writes):
        return start
    for statement in found.preceding:
        is_written = any(is_at(statement, line) for line in last)
        declares = statement.type in ("declaration", "variable_declaration", "implicit_statement")
        if is_written or declares or is_directive(source, statement) or judge.why(statement):
            break
        start = statement
    return start if any(line < first_line(start) for line in last) else found.statement


def end_of(region: Region, found: Found) -> int:
    """Returns the number of the line before which the wait is inserted."""
    if region.until is not None:
        return first_line(region.until)
    last = found.following[-1] if found.following else found.statement
    return last_line(last) + 1
