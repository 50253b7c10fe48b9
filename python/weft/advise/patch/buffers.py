"""The memory of a call: by which names a function may touch it.

Why so wide: a name too many makes the wait come earlier, or the call stay as it is; one too few
makes the program wrong. So names that may lead to a buffer are joined to it wherever they stand in
the function, whatever its control flow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.advise.arguments import RECEIVED_INTO
from weft.advise.arguments import names as roles_of
from weft.advise.patch.calls import Found, macros
from weft.advise.patch.languages import Source, ancestors, descendants
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

NO_MEMORY = ("MPI_IN_PLACE", "NULL", "nullptr", "0", "None", "MPI.IN_PLACE", "mpi_in_place")
# A buffer's expression may be wrapped in these; the field leads to the buffer.
WRAPPINGS = {
    "parenthesized_expression": "",
    "cast_expression": "value",
    "pointer_expression": "argument",
    "subscript_expression": "argument",
    "subscript": "value",
}
OF_OBJECTS = ("data", "get")  # methods of C++ that return an object's own memory
FIELDS = {"field_expression": ("argument", "field"), "attribute": ("object", "attribute")}
SCALARS = ("primitive_type", "sized_type_specifier", "enum_specifier")
INDIRECT = (
    *("pointer_declarator", "array_declarator", "reference_declarator", "function_declarator"),
    *("abstract_function_declarator",),
)
DECLARATIONS = ("declaration", "parameter_declaration", "optional_parameter_declaration")
# These functions of NumPy return new memory.
FRESH = (
    *("array", "empty", "zeros", "ones", "full", "arange", "linspace", "empty_like", "zeros_like"),
    *("ones_like", "full_like", "copy", "random", "rand", "default_rng", "eye"),
)
NEW_VALUES = ("binary_operator", "comparison_operator", "unary_operator", "not_operator")


@dataclass
class Buffers:
    received: set[str] = field(default_factory=set)  # buffers that must not be accessed
    sent: set[str] = field(default_factory=set)  # buffers that must not be written
    objects: set[str] = field(default_factory=set)  # variables among these whose address is passed
    owners: set[str] = field(default_factory=set)  # structures and objects that they lie in
    handles: set[str] = field(default_factory=set)  # communicators, types, operators, counts
    is_far: bool = False  # functions that are called can reach them without an argument

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


def is_address(source: Source, node: Node) -> bool:
    return node.type == "pointer_expression" and source.text(node).startswith("&")


def add_base(source: Source, node: Node, names: set[str], buffers: Buffers) -> None:
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
        names.add(source.text(part))
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
    if base.type != "identifier":
        raise Refusal(f"its argument {source.text(node)} is no variable or element of an array")
    names.add(source.text(base))


def roles(found: Found, wish: Wish) -> Iterator[tuple[str, Node]]:
    """The arguments by what they are: "receive", "send", "handle"."""
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
    for role, node in roles(found, wish):
        if role in RECEIVED_INTO:
            add_base(source, node, buffers.received, buffers)
        elif role == "send" or (is_array(role) and source.text(node) not in NO_MEMORY):
            add_base(source, node, buffers.sent, buffers)
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


# Names that lead to the same memory -------------------------------------------------------------


@dataclass
class Assignment:
    """An assignment to a variable or to an element of it."""

    to: set[str]
    is_element: bool
    value: Node


def first_name(source: Source, node: Node) -> str:
    return next((source.text(one) for one in source.names(node)), "")


def declarators(function: Node) -> Iterator[tuple[Node, Node]]:
    """Declarations of C and C++ with each of their declarators."""
    for one in descendants(function):
        if one.type in DECLARATIONS:
            for declarator in one.children_by_field_name("declarator"):
                yield one, declarator


def scalars(source: Source, function: Node) -> set[str]:
    """Variables of the function that hold numbers, and so lead to no memory."""
    found, others = set(), set()
    for declaration, declarator in declarators(function):
        kind = declaration.child_by_field_name("type")
        inner = declarator.child_by_field_name("declarator")
        head = inner if declarator.type == "init_declarator" and inner is not None else declarator
        plain = not any(one.type in INDIRECT for one in descendants(head))
        is_number = kind is not None and (
            kind.type in SCALARS or source.text(kind).startswith(("size_t", "int", "uint"))
        )
        (found if plain and is_number else others).add(first_name(source, head))
    return found - others


def local_names(source: Source, function: Node) -> set[str]:
    return {
        first_name(source, declarator)
        for declaration, declarator in declarators(function)
        if not source.text(declaration).startswith("extern")
    }


def assignments(source: Source, function: Node) -> Iterator[Assignment]:
    for one in descendants(function):
        left, value = one.child_by_field_name("left"), one.child_by_field_name("right")
        if one.type == "init_declarator":
            left, value = one.child_by_field_name("declarator"), one.child_by_field_name("value")
        elif one.type == "pointer_association_statement":
            left, value = one.named_children[0], one.named_children[-1]
        elif one.type not in ("assignment_expression", "assignment", "for_range_loop"):
            continue
        if left is None or value is None:
            continue
        element = left.type in ("subscript_expression", "pointer_expression", "subscript")
        targets = {first_name(source, left)}
        if left.type in (*FIELDS, "pattern_list", "tuple_pattern"):
            targets = {source.text(name) for name in source.names(left)}
        yield Assignment(targets - {"self", "this"}, element, value)


def is_value(source: Source, name: Node) -> bool:
    """The name stands for a number there, not for memory."""
    node, read = name, False
    for around in ancestors(name):
        kind = around.type
        if kind == "sizeof_expression":
            return True
        if kind in ("subscript_expression", "subscript"):
            if node != around.child_by_field_name(WRAPPINGS[kind]):
                return True  # an index
            read = True
        elif kind == "pointer_expression":
            if is_address(source, around):
                return False
            read = True
        elif kind in ("parenthesized_expression", *FIELDS):
            pass
        elif kind == "binary_expression":
            operator = source.text(around.child_by_field_name("operator"))
            return read or operator not in ("+", "-", ",")
        else:
            return read
        node = around
    return read


def in_arguments(name: Node, value: Node) -> bool:
    for around in ancestors(name):
        if around.type in ("argument_list", "subscript_argument_list"):
            return True
        if around == value:
            return False
    return False


def leads(source: Source, to: Assignment, group: set[str], pointers: bool) -> bool:
    """Whether what is assigned may be memory of the group."""
    if source.language == "python":
        if to.value.type in NEW_VALUES:
            return False
        fresh = to.value.type == "call" and source.callee(to.value) in FRESH
        return not fresh and any(source.text(one) in group for one in source.names(to.value))
    for one in source.names(to.value):
        if source.text(one) not in group:
            continue
        if in_arguments(one, to.value):
            if not to.is_element and not in_sizeof(one):
                return True
        elif not is_value(source, one) or (pointers and not to.is_element):
            return True
    return False


def in_sizeof(name: Node) -> bool:
    return any(one.type == "sizeof_expression" for one in ancestors(name))


def origins(source: Source, to: Assignment, numbers: set[str]) -> set[str]:
    """Names whose memory the target of an assignment may get."""
    value = to.value
    if to.is_element:
        return set()
    if source.language == "python":
        if value.type in NEW_VALUES or (
            value.type == "call" and source.callee(value) in (*FRESH, "len", "range")
        ):
            return set()
        return {source.text(one) for one in source.names(value)} - imported(source)
    found = (one for one in source.names(value) if not in_arguments(one, value))
    callees = {source.callee(one) for one in source.calls(value)}
    return {source.text(one) for one in found if not is_value(source, one)} - numbers - callees


def imported(source: Source) -> set[str]:
    found = set()
    for one in descendants(source.root):
        if one.type in ("import_statement", "import_from_statement"):
            found |= {source.text(name) for name in source.names(one)}
    return found


def functions_of(found: Found, buffers: Buffers) -> list[tuple[str, Node]]:
    """Those of the file that see the buffers' names without an argument."""
    source = found.source
    within = source.root if buffers.is_far or found.function.type == "module" else found.function
    kinds = (*source.grammar.functions, *source.grammar.closures)
    named = []
    for one in descendants(within):
        if one.type in kinds and one not in (found.function, source.root):
            head = one.child_by_field_name("name") or one.child_by_field_name("declarator")
            head = head or (one.named_children[0] if one.named_children else None)
            name = head and (first_name(source, head) or source.text(head))
            if source.language == "fortran" and head is not None:
                name = next((source.text(x) for x in descendants(head) if x.type == "name"), name)
            if source.language == "c++" and head is not None:
                declared = next(
                    (x for x in descendants(head) if x.type == "function_declarator"), None
                )
                inner = declared.child_by_field_name("declarator") if declared else None
                if inner is not None:
                    name = [source.text(x) for x in source.names(inner)][-1:]
                    name = name[0] if name else ""
            if name:
                named.append((name, one))
    return named


def join(found: Found, buffers: Buffers) -> None:
    """Adds the names that may lead to the same memory."""
    source, function = found.source, found.function
    numbers, locals_ = set(), set()
    if source.language in ("c", "c++"):
        numbers, locals_ = scalars(source, function), local_names(source, function)
        buffers.is_far |= bool(buffers.all - locals_)
    made = list(assignments(source, function))
    functions = functions_of(found, buffers)
    known = imported(source) if source.language == "python" else set()
    for group in (buffers.received, buffers.sent):
        before = -1
        while group and before != len(group):
            before = len(group)
            for one in made:
                pointers = bool(one.to & (locals_ - numbers))
                if one.to - numbers and leads(source, one, group, pointers):
                    group |= one.to - numbers - {""}
                if one.to & group:
                    group |= origins(source, one, numbers) - {"", "self", "this", *NO_MEMORY}
            for name, body in functions:
                if any(source.text(mention) in group for mention in source.names(body)):
                    group.add(name)
            for name in keepers(source, function, group):
                group.add(name)
            group -= numbers - buffers.objects
            group -= known
    if buffers.received & buffers.sent:
        buffers.received |= buffers.sent


def keepers(source: Source, function: Node, group: set[str]) -> Iterator[str]:
    """Objects that were given a buffer, by a method of theirs or by their address."""
    for call in source.calls(function):
        arguments = source.arguments(call)
        name = source.callee(call)
        if source.language == "fortran" or name.startswith("MPI_") or name in KNOWN:
            continue
        if not any(source.text(one) in group for a in arguments for one in source.names(a)):
            continue
        head = call.named_children[0]
        if head.type in FIELDS:
            owner = head.child_by_field_name(FIELDS[head.type][0])
            text = first_name(source, owner)
            if not is_of_mpi(source, owner):
                yield text
        for one in arguments:
            if is_address(source, one):
                yield first_name(source, one)


def is_of_mpi(source: Source, owner: Node) -> bool:
    """Returns whether the owner of a Python method is a communicator or a module of numbers."""
    text = source.text(owner)
    return source.language == "python" and (
        text in ("np", "numpy", "math") or "comm" in text.lower() or text.startswith("MPI")
    )


# Functions of C's library that touch nothing but what they are given, and keep nothing of it.
KNOWN = {
    *("printf", "fprintf", "snprintf", "puts", "fflush", "putchar", "sin", "cos", "tan", "exp"),
    *("sqrt", "fabs", "pow", "log", "floor", "ceil", "fmin", "fmax", "abs", "malloc", "calloc"),
    *("free", "memcpy", "memset", "clock_gettime", "clock", "usleep", "nanosleep", "rand", "srand"),
    *(
        "assert",
        "max",
        "min",
        "hypot",
        "atan",
        "atan2",
        "log2",
        "log10",
        "cbrt",
        "fmod",
        "aligned_alloc",
    ),
    *("range", "len", "print", "sum", "int", "float", "enumerate", "zip", "perf_counter", "time"),
    *("sizeof", "real", "dble", "mod", "huge", "epsilon", "sleep", "time", "monotonic"),
}
