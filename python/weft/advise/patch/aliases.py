"""Finds the names in a function that may lead to the same memory.

It joins names wherever they are assigned in the function, whatever the control flow. One name too
many makes the wait come earlier, or leaves the call as it is. One name too few makes the program
wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.advise.patch.languages import Source, ancestors, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

NO_MEMORY = ("MPI_IN_PLACE", "NULL", "nullptr", "0", "None", "MPI.IN_PLACE", "mpi_in_place")
# The expression of a buffer may be nested in these kinds of syntax nodes. The value is the field
# that leads to the buffer.
WRAPPINGS = {
    "parenthesized_expression": "",
    "cast_expression": "value",
    "pointer_expression": "argument",
    "subscript_expression": "argument",
    "subscript": "value",
}
FIELDS = {"field_expression": ("argument", "field"), "attribute": ("object", "attribute")}
SCALARS = ("primitive_type", "sized_type_specifier", "enum_specifier")
INDIRECT = (
    *("pointer_declarator", "array_declarator", "reference_declarator", "function_declarator"),
    *("abstract_function_declarator",),
)
DECLARATIONS = ("declaration", "parameter_declaration", "optional_parameter_declaration")
ASSIGNED = ("assignment_expression", "assignment", "for_range_loop")
# These functions of NumPy return newly allocated memory.
FRESH = (
    *("array", "empty", "zeros", "ones", "full", "arange", "linspace", "empty_like", "zeros_like"),
    *("ones_like", "full_like", "copy", "random", "rand", "default_rng", "eye"),
)
NEW_VALUES = ("binary_operator", "comparison_operator", "unary_operator", "not_operator")
LITERALS = ("integer", "float", "string", "true", "false")
DISPLAYS = ("list", "tuple", "dictionary", "set")  # expressions that hold their operands


@dataclass
class Assignment:
    """An assignment to variables, or to elements of them."""

    to: set[str]
    is_element: bool
    value: Node


def first_name(source: Source, node: Node) -> str:
    return next((source.text(one) for one in source.names(node)), "")


def is_address(source: Source, node: Node) -> bool:
    return node.type == "pointer_expression" and source.text(node).startswith("&")


def declarators(function: Node) -> Iterator[tuple[Node, Node]]:
    for one in descendants(function):
        if one.type in DECLARATIONS:
            for declarator in one.children_by_field_name("declarator"):
                yield one, declarator


def scalars(source: Source, function: Node) -> set[str]:
    """Returns the variables of the function that hold numbers, and so cannot point to memory."""
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


def names_of_python(source: Source, function: Node) -> set[str]:
    """Returns the local names of a Python function. A module has none, since all functions see its
    names."""
    if function.type == "module":
        return set()
    own = {source.text(one) for one in source.names(function.child_by_field_name("parameters"))}
    own |= {name for one in assignments(source, function) if not one.is_element for name in one.to}
    shared = [one for one in descendants(function) if one.type == "global_statement"]
    return own - {source.text(name) for one in shared for name in source.names(one)}


def numbers_of_python(made: list[Assignment]) -> set[str]:
    """Returns the names to which only literal numbers are assigned."""
    others = {name for one in made if one.value.type not in LITERALS for name in one.to}
    return {name for one in made if not one.is_element for name in one.to} - others


def own_nodes(source: Source, function: Node) -> Iterator[Node]:
    """Yields all nodes of a function; for a module, those outside its functions."""
    waiting = [function]
    while waiting:
        one = waiting.pop()
        yield one
        if function.type != "module" or one.type not in source.grammar.functions[:1]:
            waiting.extend(reversed(one.children))


def assignments(source: Source, function: Node) -> Iterator[Assignment]:
    is_python = source.language == "python"
    for one in own_nodes(source, function):
        left, value = one.child_by_field_name("left"), one.child_by_field_name("right")
        if one.type == "init_declarator":
            left, value = one.child_by_field_name("declarator"), one.child_by_field_name("value")
        elif one.type == "pointer_association_statement":
            left, value = one.named_children[0], one.named_children[-1]
        elif one.type not in ASSIGNED and not (is_python and one.type == "for_statement"):
            continue
        if left is None or value is None:
            continue
        pairs = [(left, value)]
        if left.type == "pattern_list" and value.type == "expression_list":
            pairs = list(zip(left.named_children, value.named_children))
        yield from (assignment(source, *pair) for pair in pairs)


def assignment(source: Source, left: Node, value: Node) -> Assignment:
    element = left.type in ("subscript_expression", "pointer_expression", "subscript")
    targets = {first_name(source, left)}
    if left.type in (*FIELDS, "pattern_list", "tuple_pattern"):
        targets = {source.text(name) for name in source.names(left)}
    return Assignment(targets - {"self", "this"}, element, value)


def is_value(source: Source, name: Node) -> bool:
    """Returns whether the name is used as a number there, and not as an address."""
    node, read = name, False
    for around in ancestors(name):
        kind = around.type
        if kind == "sizeof_expression":
            return True
        if kind in ("subscript_expression", "subscript"):
            if node != around.child_by_field_name(WRAPPINGS[kind]):
                return True  # the name is an index
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


def in_sizeof(name: Node) -> bool:
    return any(one.type == "sizeof_expression" for one in ancestors(name))


def is_new(source: Source, value: Node) -> bool:
    """Returns whether a value of Python shares no memory with its operands."""
    if value.type in NEW_VALUES:
        return not any(one.type in DISPLAYS for one in descendants(value))
    keeps = any(
        one.type == "keyword_argument" and source.text(one).startswith("copy=")
        for one in source.arguments(value)
    )
    return value.type == "call" and source.callee(value) in FRESH and not keeps


def leads(source: Source, to: Assignment, group: set[str], pointers: bool) -> bool:
    """Returns whether the assigned value may be memory of the group."""
    if source.language == "python":
        mentioned = any(source.text(one) in group for one in source.names(to.value))
        return mentioned and not is_new(source, to.value)
    for one in source.names(to.value):
        if source.text(one) not in group:
            continue
        if in_arguments(one, to.value):
            if not to.is_element and not in_sizeof(one):
                return True
        elif not is_value(source, one) or (pointers and not to.is_element):
            return True
    return False


def origins(source: Source, to: Assignment, numbers: set[str]) -> set[str]:
    """Returns the names whose memory the target of an assignment may refer to."""
    value = to.value
    if source.language == "python":
        is_count = value.type == "call" and source.callee(value) in ("len", "range")
        if is_count or is_new(source, value):
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


def keepers(scope: Scope, group: set[str]) -> Iterator[str]:
    """Yields the objects that were given a buffer, by a method of theirs or with their address."""
    source = scope.source
    for call in scope.calls:
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


def is_of_numbers(source: Source, call: Node) -> bool:
    """Returns whether a Python function accesses only its arguments."""
    owner = call.named_children[0].child_by_field_name("object")
    return owner is not None and is_of_mpi(source, owner)


@dataclass
class Scope:
    """A function and its names. `more` returns the names whose memory the calls in an assignment
    may return."""

    source: Source
    function: Node
    more: Callable[[Assignment], set[str]] = lambda assignment: set()
    numbers: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)  # variables of the function

    def __post_init__(self) -> None:
        source, function = self.source, self.function
        self.made = list(assignments(source, function))
        nodes = own_nodes(source, function)
        self.calls = [one for one in nodes if one.type in source.grammar.calls]
        self.known: set[str] = set()
        if source.language in ("c", "c++"):
            self.numbers, self.own = scalars(source, function), local_names(source, function)
        elif source.language == "python":
            self.own, self.known = names_of_python(source, function), imported(source)
            self.numbers = numbers_of_python(self.made)

    def roots(self, group: set[str]) -> None:
        """Adds the names whose memory a buffer of the group may be."""
        before = -1
        while before != len(group):
            before = len(group)
            for one in self.made:
                if one.to & group:
                    found = origins(self.source, one, self.numbers) | self.more(one)
                    if one.is_element:  # most arrays contain numbers, and a few contain pointers
                        found &= self.own - self.numbers
                    group |= found - {"", "self", "this", *NO_MEMORY}

    def spread(
        self,
        group: set[str],
        functions: Iterable[tuple[str, Node]] = (),
        objects: Iterable[str] = (),
    ) -> None:
        """Adds the names that may lead to the group's memory.

        `functions` may use these names without an argument. `objects` are numbers whose address is
        passed."""
        source = self.source
        before = -1
        while group and before != len(group):
            before = len(group)
            for one in self.made:
                pointers = bool(one.to & (self.own - self.numbers))
                if one.to - self.numbers and leads(source, one, group, pointers):
                    group |= one.to - self.numbers - {""}
            for name, body in functions:
                if any(source.text(mention) in group for mention in source.names(body)):
                    group.add(name)
            group.update(keepers(self, group))
            group -= (self.numbers - set(objects)) | self.known


# These functions of the C library access only their arguments, and keep no pointer to them.
KNOWN = {
    *("printf", "fprintf", "snprintf", "puts", "fflush", "putchar", "sin", "cos", "tan", "exp"),
    *("sqrt", "fabs", "pow", "log", "floor", "ceil", "fmin", "fmax", "abs", "malloc", "calloc"),
    *("free", "memcpy", "memset", "clock_gettime", "clock", "usleep", "nanosleep", "rand", "srand"),
    *("assert", "max", "min", "hypot", "atan", "atan2", "log2", "log10", "cbrt", "fmod"),
    *("aligned_alloc", "sizeof", "real", "dble", "mod", "huge", "epsilon", "sleep", "time"),
    *("range", "len", "print", "sum", "int", "float", "enumerate", "zip", "perf_counter"),
    *("monotonic", "exit", "abort"),
}
