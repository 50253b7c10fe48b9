"""Finds out whether a call of Fortran has the same arguments in each round of a loop. The rules are
stricter than in C, since a procedure may change each number that it is given, and move each
allocatable array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.advise.arguments import RECEIVED_INTO
from weft.advise.arguments import names as roles_of
from weft.advise.patch.aliases import NO_MEMORY
from weft.advise.patch.calls import Found
from weft.advise.patch.fortran import constant_of, declared, dummy_names, is_array
from weft.advise.patch.languages import Source, ancestors, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

INTRINSICS = {
    *("abs", "sqrt", "exp", "log", "sin", "cos", "tan", "atan", "atan2", "real", "dble", "int"),
    *("nint", "mod", "modulo", "max", "min", "sum", "product", "maxval", "minval", "size", "shape"),
    *("dot_product", "matmul", "transpose", "merge", "reshape", "floor", "ceiling", "huge", "tiny"),
    *("epsilon", "lbound", "ubound", "any", "all", "count", "sign", "cmplx", "aimag", "conjg"),
    *("mpi_wtime", "float", "dfloat", "norm2", "spread", "maxloc", "minloc", "allocated"),
}
EXPRESSIONS = (
    *("math_expression", "relational_expression", "logical_expression", "unary_expression"),
    *("parenthesized_expression", "extent_specifier", "concatenation_expression"),
)
# Statements, and parts of statements, that only read the names in their expressions.
READS = (
    *("if_statement", "elseif_clause", "while_statement", "print_statement", "output_item_list"),
    *("select_case_statement", "case_statement", "unit_identifier", "size"),
)
ALLOCATIONS = ("allocate_statement", "deallocate_statement")
# Calls of MPI that only read some of their arguments.
POINT_TO_POINT = ("send", "ssend", "isend", "issend", "recv", "irecv")
READ_OF_MPI = dict.fromkeys((f"mpi_{one}" for one in POINT_TO_POINT), range(1, 6))
READ_OF_MPI |= dict.fromkeys(("mpi_comm_rank", "mpi_comm_size"), range(1))
PLAIN = ("identifier", "number_literal", "call_expression", "argument_list", *EXPRESSIONS)


def is_element(source: Source, node: Node) -> bool:
    """Returns whether the node looks like a call but is an element of an array."""
    head = node.named_children[0]
    return node.type == "call_expression" and is_array(source, node, source.text(head))


def memory(found: Found) -> set[str]:
    """Returns the names of the buffers."""
    source = found.source
    roles = zip(roles_of(f"MPI_{source.callee(found.call).removeprefix('mpi_')}"), found.arguments)
    return {
        source.text(next(source.names(node)))
        for role, node in roles
        if role in ("send", *RECEIVED_INTO) and source.text(node) not in NO_MEMORY
    }


def numbers(found: Found) -> set[str]:
    """Returns the names of counts, handles and indices."""
    source = found.source
    names = {source.text(x) for one in found.arguments for x in source.names(one)}
    calls = (x for one in found.arguments for x in source.calls(one) if not is_element(source, x))
    names -= {source.callee(one) for one in calls} | memory(found)
    return {one for one in names if not one.startswith("mpi_")}


def why_never(found: Found) -> str:
    """Returns why the call's arguments may change in any loop; an empty string if that depends on
    the loop."""
    source, function = found.source, found.function
    for one in (x for argument in found.arguments for x in descendants(argument)):
        if one.is_named and one.type not in PLAIN:
            return "its arguments are more than names and numbers"
        is_call = one.type == "call_expression" and not is_element(source, one)
        if is_call and source.callee(one) not in INTRINSICS:
            return f"{source.callee(one)} in its arguments may return another value each time"
    for name in sorted(numbers(found)):
        if constant_of(source, function, name):
            continue
        declaration = declared(source, function, name)
        if declaration is None:
            return f"{name} is not declared in the same function, so others may change it"
        front = source.text(declaration).partition("::")[0]
        if any(word in front for word in ("target", "pointer", "volatile")):
            return f"{name} may be changed by another name"
        if is_seen_inside(found, name):
            return f"a procedure inside of its function may change {name}"
        if is_in_namelist(found, name):
            return f"{name} is in a NAMELIST, by which it may be read"
    for name in sorted(memory(found)):
        if is_allocatable(found, name) and is_seen_inside(found, name):
            return f"a procedure inside of its function may move {name}, which is allocatable"
    return ""


def is_allocatable(found: Found, name: str) -> bool:
    declaration = declared(found.source, found.function, name)
    return declaration is not None and "allocatable" in found.source.text(declaration)


def is_in_namelist(found: Found, name: str) -> bool:
    source = found.source
    lists = (one for one in found.function.named_children if one.type == "namelist_statement")
    return any(source.text(x) == name for one in lists for x in descendants(one))


def is_seen_inside(found: Found, name: str) -> bool:
    """Returns whether a procedure inside the function sees this variable of it."""
    source = found.source
    parts = (one for one in found.function.named_children if one.type == "internal_procedures")
    units = (unit for part in parts for unit in part.named_children if unit.type != "comment")
    return any(
        declared(source, unit, name) is None
        and name in {source.text(x) for x in source.names(unit)}
        for unit in units
    )


def why_not(found: Found, loop: Node) -> str:
    source = found.source
    counts, buffers = numbers(found), memory(found)
    buffers = {one for one in buffers if is_allocatable(found, one)}
    for one in source.names(loop):
        name = source.text(one)
        if name in counts and may_change(found, one):
            return f"{name} may change in line {one.start_point[0] + 1}"
        if name in buffers and may_move(found, one):
            return f"{name}, which is allocatable, may move in line {one.start_point[0] + 1}"
    return ""


def may_change(found: Found, mention: Node) -> bool:
    """Returns whether a number may have another value after this mention of it."""
    source, inner, is_value = found.source, mention, False
    for around in ancestors(mention):
        kind = around.type
        if kind in EXPRESSIONS:
            is_value = True
        elif kind in ("call_expression", "subroutine_call"):
            is_function = around.named_children[0] != inner and not is_element(source, around)
            if is_function and source.callee(around) not in INTRINSICS:
                return not is_value and not is_only_read(found, around, mention)
            is_value = True
        elif kind in ("assignment_statement", "loop_control_expression"):
            return around.named_children[0] == inner
        elif kind != "argument_list":
            return kind not in READS
        inner = around
    return True


def may_move(found: Found, mention: Node) -> bool:
    """Returns whether an allocatable array may lie elsewhere after this mention of it."""
    source, parent = found.source, mention.parent
    around = [one.type for one in ancestors(mention)]
    if any(one in ALLOCATIONS for one in around):
        return True
    # an array that is assigned as a whole may get another size
    if parent.type == "assignment_statement":
        return parent.named_children[0] == mention
    if parent.type != "argument_list" or is_element(source, parent.parent):
        return parent.type in ("keyword_argument", "pointer_association_statement")
    call, callee = parent.parent, source.callee(parent.parent)
    if callee.startswith("mpi_") or callee in INTRINSICS:
        return False
    fronts = list(dummies_of(found, call, mention))
    return not fronts or any("allocatable" in one for one in fronts)


def is_only_read(found: Found, call: Node, mention: Node) -> bool:
    source, callee = found.source, found.source.callee(call)
    place = source.arguments(call).index(mention) if mention in source.arguments(call) else -1
    if callee.startswith("mpi_"):
        if place in READ_OF_MPI.get(callee, ()):
            return True
        roles = roles_of(f"MPI_{callee.removeprefix('mpi_')}")
        return 0 <= place < len(roles) and roles[place] not in RECEIVED_INTO
    fronts = list(dummies_of(found, call, mention))
    return bool(fronts) and all("intent(in)" in one or "value" in one for one in fronts)


def dummies_of(found: Found, call: Node, argument: Node) -> Iterator[str]:
    """Yields the declarations of this argument in the procedures that may be called."""
    source = found.source
    given = source.arguments(call)
    for other, procedure in found.functions.definitions(source.callee(call)):
        names = dummy_names(other, procedure)
        place = given.index(argument) if argument in given else len(names)
        declaration = declared(other, procedure, names[place]) if place < len(names) else None
        if declaration is not None:
            yield "".join(other.text(declaration).partition("::")[0].split())
