"""Finds out whether a call of C or C++ has the same arguments in each round of a loop."""

from __future__ import annotations

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
from weft.advise.patch.functions import parameters
from weft.advise.patch.languages import Source, ancestors, descendants, read

if TYPE_CHECKING:
    from tree_sitter import Node

PLAIN = (
    *("identifier", "number_literal", "null", "(", ")", ",", "+", "-", "*", "/", "sizeof"),
    *("binary_expression", "parenthesized_expression"),
)


def headers(source: Source) -> list[Source]:
    """Returns the file and those of its folder that it includes."""
    found, waiting = {source.path: source}, [source]
    while waiting:
        one = waiting.pop()
        for include in descendants(one.root):
            if include.type != "preproc_include" or one.path is None:
                continue
            path = one.path.parent / one.text(include.named_children[0]).strip('"')
            if path not in found and path.is_file():
                found[path] = read(path, source.language)
                waiting.append(found[path])
    return list(found.values())


def constants(source: Source) -> set[str]:
    """Returns names of the file and its headers that never change: enumerators, numbers that are
    const, and macros of such names and numbers."""
    found: set[str] = set()
    waiting: dict[str, set[str]] = {}
    for file in headers(source):
        kinds = (one for one in descendants(file.root) if one.type == "enumerator")
        found |= {first_name(file, one) for one in kinds} | constant_numbers(file)
        for name, one in macros(file).items():
            waiting[name] = waiting.get(name, set()) | words(file.text(one)) - {name}
    while ready := {name for name, used in waiting.items() if used <= found}:
        found |= ready
        waiting = {name: used for name, used in waiting.items() if name not in ready}
    return found


def constant_numbers(source: Source) -> set[str]:
    """Returns numbers outside of functions that are declared const or constexpr."""
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
    """Returns the names that get a value in the loop, or whose address is taken there."""
    found = {name for one in assignments(source, loop) if not one.is_element for name in one.to}
    for one in descendants(loop):
        if one.type == "update_expression" or is_address(source, one):
            found.add(first_name(source, one))
    return found | {first_name(source, declarator) for _, declarator in declarators(loop)}


def addresses_kept(source: Source, function: Node) -> set[str]:
    """Returns the names whose address a called function may know. MPI keeps none of them."""
    found = set()
    for one in descendants(function):
        call = one.parent.parent if one.parent is not None else None
        is_of_mpi = call is not None and call.type in source.grammar.calls
        if is_address(source, one) and not (is_of_mpi and source.callee(call).startswith("MPI_")):
            found.add(first_name(source, one))
    return found


def may_change_names(found: Found, loop: Node) -> set[str]:
    """Returns names of C++ that a function gets by reference, or that a reference is bound to."""
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


def variables(found: Found) -> set[str]:
    source = found.source
    names = {source.text(x) for one in found.arguments for x in source.names(one)}
    names = {one for one in names if not one.startswith("MPI_")} - {*NO_MEMORY}
    return names - (constants(source) - local_names(source, found.function))


def why_never(found: Found) -> str:
    """Returns why the call's arguments may change in any loop; an empty string if that depends on
    the loop."""
    source, function, own = found.source, found.function, variables(found)
    if not all(one.type in PLAIN for node in found.arguments for one in descendants(node)):
        return "its arguments are more than names and numbers"
    if any(one.type == "lambda_expression" for one in descendants(function)):
        return "its function has a lambda, which may change them"
    if others := own - local_names(source, function):
        return f"{min(others)} is no local variable, so others may change it"
    if kept := own & addresses_kept(source, function):
        return f"a function may know the address of {min(kept)}, and change it"
    return ""


def why_not(found: Found, loop: Node) -> str:
    changed = changed_in(found.source, loop)
    if found.source.language == "c++":
        changed |= may_change_names(found, loop)
    both = variables(found) & changed
    return f"{min(both)} may change in its loop" if both else ""
