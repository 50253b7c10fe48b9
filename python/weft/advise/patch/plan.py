"""Makes a call in a loop persistent if its arguments are the same each time.

The request is initialised in the loop, at the first call, so that a program which never makes the
call pays nothing. This is done for C and C++ only: in Fortran a called function may change each
variable that it gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from weft.advise.patch.aliases import (
    KNOWN,
    NO_MEMORY,
    assignments,
    declarators,
    first_name,
    is_address,
    local_names,
)
from weft.advise.patch.calls import Found, macros
from weft.advise.patch.edits import Edit, indent_of
from weft.advise.patch.functions import parameters
from weft.advise.patch.jumps import leaves
from weft.advise.patch.languages import Source, ancestors, descendants, first_line, last_line
from weft.advise.patch.region import is_macro
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

PLANNED = ("c", "c++")
PLAIN = (
    *("identifier", "number_literal", "null", "(", ")", ",", "+", "-", "*", "/", "sizeof"),
    *("binary_expression", "parenthesized_expression"),
)


def constants(source: Source) -> set[str]:
    """Returns the names in the file that never change: enumerators, constant numbers, and macros
    that consist of such names and numbers."""
    kinds = (one for one in descendants(source.root) if one.type == "enumerator")
    found = {first_name(source, one) for one in kinds} | constant_numbers(source)
    waiting = {name: words(source.text(one)) - {name} for name, one in macros(source).items()}
    while ready := {name for name, used in waiting.items() if used <= found}:
        found |= ready
        waiting = {name: used for name, used in waiting.items() if name not in ready}
    return found


def constant_numbers(source: Source) -> set[str]:
    """Returns the numbers outside of functions that are declared const or constexpr."""
    return {
        first_name(source, declarator)
        for declaration, declarator in declarators(source.root)
        if declarator.type == "init_declarator"
        and declarator.child_by_field_name("declarator").type == "identifier"
        and any(source.text(one) in ("const", "constexpr") for one in declaration.children)
        and not any(one.type in source.grammar.functions for one in ancestors(declaration))
    }


def words(definition: str) -> set[str]:
    """Returns the names in a macro's definition."""
    letters = (
        one if one.isalnum() or one == "_" else " " for one in definition.partition("define")[2]
    )
    return {word for word in "".join(letters).split() if not word[0].isdigit()}


def changed_in(source: Source, loop: Node) -> set[str]:
    """Returns the names that are assigned in the loop, declared in it, or whose address is taken in
    it."""
    found = {name for one in assignments(source, loop) if not one.is_element for name in one.to}
    for one in descendants(loop):
        if one.type == "update_expression" or is_address(source, one):
            found.add(first_name(source, one))
    return found | {first_name(source, declarator) for _, declarator in declarators(loop)}


def addresses_kept(source: Source, function: Node) -> set[str]:
    """Returns the names whose address a called function may know. MPI functions keep no address."""
    found = set()
    for one in descendants(function):
        call = one.parent.parent if one.parent is not None else None
        is_of_mpi = call is not None and call.type in source.grammar.calls
        if is_address(source, one) and not (is_of_mpi and source.callee(call).startswith("MPI_")):
            found.add(first_name(source, one))
    return found


def may_change_names(found: Found, loop: Node) -> set[str]:
    """Returns the names in C++ that a function gets by reference, or to which a reference is
    bound."""
    source, names = found.source, set()
    for call in source.calls(loop):
        callee = source.callee(call)
        if callee in KNOWN or callee.startswith("MPI_"):
            continue
        known = [
            [other.text(one) for one in parameters(other, function)]
            for other, function in found.functions.definitions(callee)
        ]
        for number, one in enumerate(source.arguments(call)):
            texts = [texts[number] for texts in known if number < len(texts)]
            if one.type == "identifier" and (not texts or any("&" in text for text in texts)):
                names.add(source.text(one))
    for one in descendants(found.function):
        if one.type == "init_declarator":
            declared = one.child_by_field_name("declarator")
            if declared.type == "reference_declarator":
                names |= {source.text(name) for name in source.names(one)}
    return names


def are_plain(arguments: Iterable[Node]) -> bool:
    """Returns whether the arguments consist of names and numbers only, and call nothing."""
    return all(one.type in PLAIN for node in arguments for one in descendants(node))


def may_be_left(found: Found, loop: Node) -> bool:
    """Returns whether the loop may be left without reaching the statement behind it, which frees
    the request."""
    source = found.source
    called = {source.callee(call) for call in source.calls(loop)}
    hidden = any(is_macro(one) or found.functions.may_throw(one) for one in called)
    return hidden or any(leaves(source, node, loop) for node in descendants(loop))


def stands_alone(source: Source, loop: Node) -> bool:
    """Returns whether the loop is a statement of a block and shares no line with another
    statement."""
    row, column = loop.start_point
    lines = source.data.split(b"\n")
    end = lines[loop.end_point[0]][loop.end_point[1] :]
    is_alone = not lines[row][:column].strip() and not end.strip()
    return loop.parent.type in source.grammar.blocks and is_alone


def loop_of(found: Found, wish: Wish) -> Node | None:
    """Returns the outermost loop in which the arguments of the call do not change; None if the call
    is not made persistent."""
    source, function = found.source, found.function
    names = {source.text(x) for one in found.arguments for x in source.names(one)}
    names = {one for one in names if not one.startswith("MPI_")} - {*NO_MEMORY}
    own = local_names(source, function)
    variables = names - (constants(source) - own)
    if not wish.plan or source.language not in PLANNED or not are_plain(found.arguments):
        return None
    if any(one.type == "lambda_expression" for one in descendants(function)):
        return None
    if not variables <= own - addresses_kept(source, function):
        return None
    best = None
    for one in ancestors(found.statement):
        if one == function:
            break
        if one.type not in source.grammar.loops:
            continue
        changed = changed_in(source, one)
        if source.language == "c++":
            changed |= may_change_names(found, one)
        if variables & changed or may_be_left(found, one):
            break
        if stands_alone(source, one):
            best = one
    return best


def planned(found: Found, wish: Wish, request: str) -> str:
    arguments = ", ".join(found.source.text(one) for one in found.arguments)
    return f"{wish.plan}({arguments}, MPI_INFO_NULL, &{request});"


def edits_around(found: Found, loop: Node, request: str) -> list[Edit]:
    """Returns the edits that declare the request before the loop and free it behind the loop."""
    source, (first, last) = found.source, (first_line(loop), last_line(loop))
    indent = indent_of(source, first)
    freed = f"if ({request} != MPI_REQUEST_NULL) MPI_Request_free(&{request});"
    return [
        Edit(first, first - 1, (f"{indent}MPI_Request {request} = MPI_REQUEST_NULL;",)),
        Edit(last + 1, last, (indent + freed,)),
    ]
