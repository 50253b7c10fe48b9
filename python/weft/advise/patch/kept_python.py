"""Finds out whether a call of Python has the same arguments in each round of a loop: its names must
stand for the same objects, and these for the same memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.advise.patch.aliases import (
    DISPLAYS,
    FRESH,
    Assignment,
    assignments,
    imported,
    names_of_python,
)
from weft.advise.patch.calls import Found
from weft.advise.patch.languages import Source, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

NUMPY = ("np", "numpy")
# These statements give their names another value, as assignments do.
BINDERS = (
    *("as_pattern_target", "delete_statement", "import_statement", "import_from_statement"),
    "case_pattern",
)
OTHER_SCOPES = ("global_statement", "nonlocal_statement")
INDICES = ("integer", "slice", "identifier", "unary_operator", "binary_operator")
RESIZE = "resize"  # method of NumPy that moves an array


def base_of(source: Source, node: Node) -> Node:
    while node.type == "attribute":
        node = node.child_by_field_name("object")
    return node


def is_constant(source: Source, node: Node) -> bool:
    """Returns whether the value belongs to a module, such as MPI.DOUBLE."""
    base = base_of(source, node)
    return node.type == "attribute" and source.text(base) in imported(source)


def parts(found: Found) -> Iterator[Node]:
    """Yields the parts of the call: its object, and the values of its arguments."""
    yield found.call.child_by_field_name("function").child_by_field_name("object")
    for one in found.arguments:
        yield one.child_by_field_name("value") if one.type == "keyword_argument" else one


def why_odd(found: Found, node: Node) -> str:
    """Returns why this value may be another object in each round; an empty string if only its names
    decide that."""
    source = found.source
    if node.type in ("identifier", "integer", "none") or is_constant(source, node):
        return ""
    if node.type in ("list", "tuple", "binary_operator"):
        return next(filter(None, (why_odd(found, one) for one in node.named_children)), "")
    if node.type == "subscript":
        base, *indices = node.named_children
        plain = all(x.type in INDICES for one in indices for x in descendants(one) if x.is_named)
        if plain and is_numpy(found, source.text(base)):
            return why_array(found, indices)
    return f"{source.text(node)} may be another object in a later round"


def why_array(found: Found, indices: list[Node]) -> str:
    """Returns why these indices make a copy of the array; an empty string if they do not. NumPy
    copies what an array of indices selects."""
    alone = [found.source.text(one) for one in indices if one.type == "identifier"]
    return f"its index {alone[0]} may be an array" if alone else ""


def names(found: Found) -> set[str]:
    source = found.source
    all_ = {
        source.text(x)
        for one in parts(found)
        if not is_constant(source, one)
        for x in source.names(one)
    }
    return all_ - imported(source) - attributes(found)


def attributes(found: Found) -> set[str]:
    """Returns the names of attributes, as in [part, MPI.DOUBLE]."""
    source = found.source
    inside = (x for one in parts(found) for x in descendants(one) if x.type == "attribute")
    return {source.text(one.child_by_field_name("attribute")) for one in inside}


def values(found: Found, name: str) -> list[Assignment]:
    """Returns the assignments to a name, in the function or in its module."""
    source, function = found.source, found.function
    scope = function if name in names_of_python(source, function) else source.root
    return [one for one in assignments(source, scope) if name in one.to and not one.is_element]


def is_numpy(found: Found, name: str) -> bool:
    """Returns whether the name stands only for arrays of NumPy."""
    source = found.source

    def is_array(value: Node) -> bool:
        heads = [call.named_children[0] for call in source.calls(value)]
        is_made = any(
            one.type == "attribute"
            and source.text(base_of(source, one)) in NUMPY
            and source.text(one.child_by_field_name("attribute")) in FRESH
            for one in heads
        )
        return is_made and value.type in ("call", "binary_operator")

    given = values(found, name)
    return bool(given) and all(is_array(one.value) for one in given)


def why_never(found: Found) -> str:
    """Returns why the call's arguments may change in any loop; an empty string if that depends on
    the loop."""
    source = found.source
    if why := next(filter(None, (why_odd(found, one) for one in parts(found))), ""):
        return why
    shared = {
        source.text(name)
        for one in descendants(source.root)
        if one.type in OTHER_SCOPES
        for name in source.names(one)
    }
    for name in sorted(names(found)):
        if name in shared:
            return f"another function may give {name} another value"
        if any(one.value.type in DISPLAYS for one in values(found, name)):
            return f"{name} is a list or the like, whose elements may change"
    stem = source.path.stem if source.path else ""
    if found.function.type == "module" and found.functions.has(f"import {stem}".lower()):
        return "another module imports this one, and may give its names other values"
    return ""


def why_not(found: Found, loop: Node) -> str:
    source, own = found.source, names(found)
    if bound := own & set(bound_in(found, loop)):
        return f"{min(bound)} may stand for another object in the next round"
    for call in source.calls(loop):
        base = source.text(base_of(source, call.named_children[0]))
        if source.callee(call) == RESIZE and base in own:
            return f"{base} is resized in its loop"
    return ""


def bound_in(found: Found, loop: Node) -> Iterator[str]:
    """Yields the names that may get another value in the loop."""
    source = found.source
    for made in assignments(source, loop):
        if not made.is_element:
            yield from made.to
    for one in descendants(loop):
        if one.type == "augmented_assignment":
            left = one.child_by_field_name("left")
            if left.type != "subscript" and not is_numpy(found, source.text(left)):
                yield from map(source.text, source.names(left))
        elif one.type in ("named_expression", "function_definition", "class_definition"):
            yield source.text(one.child_by_field_name("name"))
        elif one.type in BINDERS:
            yield from map(source.text, source.names(one))
