"""Finds the names by which a function may access the memory of an MPI call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.advise.arguments import RECEIVED_INTO
from weft.advise.arguments import names as roles_of
from weft.advise.patch.aliases import FIELDS, NO_MEMORY, WRAPPINGS, is_address
from weft.advise.patch.calls import Found, macros
from weft.advise.patch.fortran import is_scalar_index
from weft.advise.patch.functions import declared_name
from weft.advise.patch.languages import Source, descendants
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

OF_OBJECTS = ("data", "get")  # methods of C++ that return a pointer to an object's own memory


@dataclass
class Buffers:
    received: set[str] = field(default_factory=set)  # buffers that must not be accessed
    sent: set[str] = field(default_factory=set)  # buffers that must not be written
    # These are the variables among the buffers that are passed by address.
    objects: set[str] = field(default_factory=set)
    # These are structures and objects that contain these buffers.
    owners: set[str] = field(default_factory=set)
    handles: set[str] = field(default_factory=set)  # communicators, types, operators, counts
    is_far: bool = False  # called functions can reach the buffers without an argument

    @property
    def all(self) -> set[str]:
        return self.received | self.sent


def strip(source: Source, node: Node) -> Node:
    while True:
        if node.type in WRAPPINGS:
            name = WRAPPINGS[node.type]
            inner = node.child_by_field_name(name) if name else node.named_children[0]
        elif node.type == "binary_expression":
            inner = node.child_by_field_name("left")
        elif node.type == "list" and source.language == "python" and node.named_children:
            inner = node.named_children[0]
        elif node.type == "call_expression" and is_own_memory(source, node):
            inner = node.child_by_field_name("function").child_by_field_name("argument")
        else:
            return node
        if inner is None:
            return node
        node = inner


def is_own_memory(source: Source, node: Node) -> bool:
    head = node.child_by_field_name("function")
    named = head is not None and head.type == "field_expression"
    return named and source.callee(node) in OF_OBJECTS


def add_base(
    source: Source, node: Node, names: set[str], buffers: Buffers, is_single: bool = False
) -> None:
    """Adds the name of an argument's memory to the names. `is_single`: the memory is a single
    number."""
    if source.text(node) in NO_MEMORY:
        return
    if source.language == "fortran":
        add_of_fortran(source, node, names)
        return
    base = strip(source, node)
    if base.type == "identifier":
        name = source.text(base)
        if name.startswith("MPI_"):
            raise Refusal(f"its buffer is {name}")
        names.add(name)
        if is_address(source, node) and base == node.child_by_field_name("argument"):
            buffers.objects.add(name)
    elif base.type in FIELDS:
        whole, part = (base.child_by_field_name(one) for one in FIELDS[base.type])
        if is_single or base == node or not is_address(source, base.parent):
            names.add(source.text(part))
        else:  # the count of the argument may reach from one member to the next
            names |= {source.text(one) for one in source.names(whole)}
        buffers.owners |= {source.text(one) for one in source.names(whole)}
        buffers.owners |= {"self", "this"} & {source.text(one) for one in descendants(whole)}
        buffers.is_far = True
    else:
        raise Refusal(f"the memory of its argument {source.text(node)} cannot be told by a name")


def add_of_fortran(source: Source, node: Node, names: set[str]) -> None:
    base = node
    if node.type == "call_expression":
        base = node.named_children[0]
        if ":" in source.text(node):
            raise Refusal(
                f"its argument {source.text(node)} is a section, of which the compiler may give MPI"
                " a copy"
            )
        if not is_scalar_index(source, node):
            raise Refusal(
                f"the index of its argument {source.text(node)} may be an array, with which the"
                " compiler gives MPI a copy"
            )
    if base.type != "identifier":
        raise Refusal(f"its argument {source.text(node)} is no variable or element of an array")
    names.add(source.text(base))


def roles(found: Found, wish: Wish) -> Iterator[tuple[str, Node]]:
    """Yields each argument with its role: "receive", "send", "buffer" or "handle"."""
    if found.source.language == "python":
        positional = [one for one in found.arguments if one.type != "keyword_argument"]
        named = [one for one in found.arguments if one.type == "keyword_argument"]
        buffer = [name for name in roles_of(wish.call) if name in ("send", "receive", "buffer")]
        yield from zip(buffer, positional)
        for one in named:
            name = found.source.text(one.child_by_field_name("name"))
            role = {"sendbuf": "send", "recvbuf": "receive", "buf": "buffer"}.get(name, "handle")
            yield role, one.child_by_field_name("value")
        return
    yield from zip(roles_of(wish.call), found.arguments)


def is_array(role: str) -> bool:
    return role.endswith(("counts", "places", "types"))


def of_call(found: Found, wish: Wish) -> Buffers:
    source, buffers = found.source, Buffers()
    given = list(roles(found, wish))
    texts = {role: source.text(node) for role, node in given}
    is_single = texts.get("count") == "1" and texts.get("type", "").startswith("MPI_")
    for role, node in given:
        if role in RECEIVED_INTO:
            add_base(source, node, buffers.received, buffers, is_single)
        elif role == "send" or (is_array(role) and source.text(node) not in NO_MEMORY):
            add_base(source, node, buffers.sent, buffers, is_single)
        else:
            buffers.handles |= {source.text(one) for one in source.names(node)}
    if source.language == "python":
        buffers.handles |= {source.text(one) for one in source.names(found.call.named_children[0])}
    check_macros(source, buffers)
    join(found, buffers)
    return buffers


def check_macros(source: Source, buffers: Buffers) -> None:
    if known := sorted(buffers.all & macros(source).keys()):
        raise Refusal(f"its buffer {known[0]} is a macro")


def functions_of(found: Found, buffers: Buffers) -> list[tuple[str, Node]]:
    """Returns functions of the file that see the buffers' names without an argument."""
    source = found.source
    within = source.root if buffers.is_far or found.function.type == "module" else found.function
    kinds = (*source.grammar.functions, *source.grammar.closures)
    others = (one for one in descendants(within) if one.type in kinds)
    named = (
        (declared_name(source, one), one)
        for one in others
        if one not in (found.function, source.root)
    )
    return [(name, one) for name, one in named if name]


def join(found: Found, buffers: Buffers) -> None:
    """Adds the names that may lead to the same memory as the buffers."""
    source, functions = found.source, found.functions
    scope = functions.scope(source, found.function)
    groups = [group for group in (buffers.received, buffers.sent) if group]
    for group in groups:
        scope.roots(group)
        group -= scope.numbers - buffers.objects | scope.known
        if source.language in ("c", "c++"):
            buffers.is_far |= bool(group - scope.own)
    given = [set(group) for group in (buffers.received, buffers.sent)]
    for group in groups:
        scope.spread(group, functions_of(found, buffers), buffers.objects)
        if source.language != "fortran":
            known = functions.elsewhere(scope, group)
            group |= known.names - set(functions.own.functions)
            buffers.is_far |= known.is_far
    for group in groups:
        scope.spread(group, functions_of(found, buffers), buffers.objects)
    if given[0] & buffers.sent or given[1] & buffers.received:
        buffers.received |= buffers.sent
