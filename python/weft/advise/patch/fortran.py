"""Writes Fortran's part of a change: by which interface a function calls MPI, and what must be
declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.advise.patch.calls import Found
from weft.advise.patch.edits import Edit, indent_of
from weft.advise.patch.languages import (
    FORTRAN_UNITS,
    Source,
    ancestors,
    descendants,
    first_line,
    last_line,
    read,
)
from weft.advise.patch.refusal import Refusal

if TYPE_CHECKING:
    from tree_sitter import Node

SPECIFICATIONS = (
    "use_statement",
    "implicit_statement",
    "variable_declaration",
    "include_statement",
)
MODULES = ("mpi", "mpi_f08")
HEADER = "mpif.h"
SUFFIXES = (".f90", ".f95", ".f03", ".f08", ".f", ".for")


@dataclass(frozen=True)
class Interface:
    """The interface by which a function calls MPI: a name in MODULES, or HEADER."""

    name: str
    is_whole: bool  # all names of the interface are visible in the function

    @property
    def request(self) -> str:
        return "type(MPI_Request)" if self.name == "mpi_f08" else "integer"


def touch(interface: Interface, request: str, name: str) -> str:
    """Returns a call after which the compiler must assume that the variable has changed.

    Outside of mpi_f08 some libraries have no MPI_F_sync_reg, and MPICH's writes an error code to an
    argument that the call does not have. Therefore MPI_Get_address is used there."""
    if interface.name == "mpi_f08":
        return f"call MPI_F_sync_reg({name})"
    return f"call MPI_Get_address({name}, {request}_place, {request}_error)"


# The interface -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    name: str
    is_whole: bool  # the USE statement has no ONLY and no renaming


def uses(source: Source, unit: Node) -> Iterator[Use]:
    """Yields the modules that a program unit uses, and mpif.h."""
    for one in unit.named_children:
        if one.type == "use_statement":
            names = (x for x in one.named_children if x.type == "module_name")
            name = next(map(source.text, names), "")
            parts = {x.type for x in descendants(one)}
            yield Use(name, not parts & {"included_items", "use_alias"})
        elif one.type == "include_statement" and HEADER in source.text(one):
            yield Use(HEADER, True)


def module_of(source: Source, name: str) -> Node | None:
    for one in source.root.named_children:
        if one.type == "module":
            names = (x for x in descendants(one.named_children[0]) if x.type == "name")
            if next(map(source.text, names), "") == name:
                return one
    return None


def module_named(source: Source, name: str) -> tuple[Source, Node] | None:
    """Returns the module of this name in the same file, or in one of the files in its folder; None
    if there is none."""
    beside = sorted(source.path.parent.iterdir()) if source.path else []
    for path in (None, *beside):
        if path and (path.suffix.lower() not in SUFFIXES or path == source.path):
            continue
        try:
            if path and name not in path.read_text(errors="replace").lower():
                continue
            other = read(path, "fortran") if path else source
        except (OSError, Refusal):
            continue
        if module := module_of(other, name):
            return other, module
    return None


def reached(source: Source, used: Use, seen: set[str]) -> Iterator[Interface]:
    """Yields the MPI interfaces that a module passes on to those that use it."""
    if used.name in seen or not (found := module_named(source, used.name)):
        return
    seen.add(used.name)
    other, module = found
    is_open = used.is_whole and all(one.type != "private_statement" for one in module.children)
    for one in uses(other, module):
        if one.name in (*MODULES, HEADER):
            yield Interface(one.name, is_open and one.is_whole)
        else:
            yield from reached(other, one, seen)


def interface_of(source: Source, function: Node) -> Interface:
    around = [function, *(one for one in ancestors(function) if one.parent is not None)]
    own = [one for unit in around for one in uses(source, unit)]
    found = {Interface(one.name, one.is_whole) for one in own if one.name in (*MODULES, HEADER)}
    if not found:
        seen: set[str] = set()
        found = {face for one in own for face in reached(source, one, seen)}
    names = {one.name for one in found}
    if len(names) != 1:
        raise Refusal(
            "whether its function has mpif.h, mpi or mpi_f08 cannot be told: write USE in it"
        )
    whole = any(one.is_whole for one in found)
    [name] = names
    if name == HEADER and not whole:
        raise Refusal("not all names of mpif.h are seen in its function")
    return Interface(name, whole)


# Declarations ------------------------------------------------------------------------------------


def declared(source: Source, function: Node, name: str) -> Node | None:
    """Returns the declaration of a variable in the program unit itself; None if it has none."""
    for one in function.named_children:
        if one.type == "variable_declaration":
            for declarator in one.named_children:
                heads = [x for x in descendants(declarator) if x.type == "identifier"]
                is_name = declarator.type in ("identifier", "sized_declarator", "init_declarator")
                if is_name and heads and source.text(heads[0]) == name:
                    return one
    return None


def is_scalar_index(source: Source, element: Node) -> bool:
    """Returns whether the indices of an element are numbers, as far as the file declares them."""
    _, *indices = element.named_children
    names = [one for index in indices for one in source.names(index)]
    alone = [one for one in names if one.parent.type != "call_expression"]
    return not any(is_array(source, element, source.text(one)) for one in alone)


def is_array(source: Source, place: Node, name: str) -> bool:
    """Returns whether the unit, one around it or a module of the file declares an array."""
    units = [one for one in ancestors(place) if one.type in (*FORTRAN_UNITS, "module")]
    others = [one for one in source.root.named_children if one.type == "module"]
    for unit in (*units, *others):
        declaration = declared(source, unit, name)
        if declaration is not None:
            text = "".join(source.text(declaration).split())
            return "dimension(" in text.partition("::")[0] or f"{name}(" in text
    return False


def dummy_names(source: Source, procedure: Node) -> list[str]:
    """Returns the names of the procedure's arguments, in their order."""
    head = procedure.named_children[0]
    lists = [one for one in head.named_children if one.type == "parameters"]
    return [source.text(one) for parameters in lists for one in source.names(parameters)]


def constant_of(source: Source, function: Node, name: str) -> bool:
    """Returns whether the name is a constant of this unit, or of another one that the unit sees."""
    for other, unit in units_seen(source, function):
        constants = (one for one in unit.named_children if one.type == "parameter_statement")
        if name in {other.text(x) for one in constants for x in other.names(one)}:
            return True
        declaration = declared(other, unit, name)
        if declaration is not None:
            return "parameter" in other.text(declaration).partition("::")[0]
    return False


def units_seen(source: Source, function: Node) -> Iterator[tuple[Source, Node]]:
    """Yields the unit, those around it, and the modules that they use."""
    around = [one for one in ancestors(function) if one.type in (*FORTRAN_UNITS, "module")]
    waiting, seen = [(source, one) for one in (function, *around)], {*MODULES, HEADER}
    while waiting:
        other, unit = waiting.pop(0)
        yield other, unit
        for used in uses(other, unit):
            if used.name not in seen and (found := module_named(other, used.name)):
                waiting.append(found)
            seen.add(used.name)


def check_variable(source: Source, function: Node, name: str) -> None:
    """Raises Refusal unless MPI gets the address of the variable's own memory and the variable may
    be asynchronous."""
    declaration = declared(source, function, name)
    if declaration is None:
        raise Refusal(f"{name} is not declared in the same function")
    text = "".join(source.text(declaration).split())
    front = text.partition("::")[0]
    if "pointer" in front or "class(" in front:
        raise Refusal(f"{name} is a pointer or polymorphic: MPI may get a copy of it")
    shape = text.partition(f"{name}(")[2] or front.partition("dimension(")[2]
    is_whole = any(word in front for word in ("allocatable", "contiguous"))
    if not is_whole and any(one.endswith(":") for one in shape.partition(")")[0].split(",")):
        raise Refusal(f"{name} has an assumed shape: MPI may get a copy of it")
    inside = any(one.type in ("internal_procedures", "module") for one in ancestors(function))
    if name in dummy_names(source, function) and not inside:
        raise Refusal(
            f"{name} is an argument of a procedure outside of modules, which cannot be asynchronous"
            " without an interface"
        )
    for one in descendants(function):
        if one.type in ("common_statement", "equivalence_statement"):
            raise Refusal("the function has COMMON or EQUIVALENCE, by which other names touch it")


def declarations(found: Found, interface: Interface, request: str, names: list[str]) -> list[Edit]:
    source, function = found.source, found.function
    if function.type not in FORTRAN_UNITS:
        raise Refusal("it stands in a procedure of an unusual kind")
    for name in names:
        check_variable(source, function, name)
    heads = [one for one in function.named_children if one.type in SPECIFICATIONS]
    if not heads:
        raise Refusal("its function has no declarations")
    if any("asynchronous" in source.text(one) for one in heads):
        raise Refusal("its function declares asynchronous variables already")
    line = last_line(heads[-1])
    indent = indent_of(source, first_line(heads[-1]))
    lines = [f"{indent}{interface.request} :: {request}"]
    if names:
        lines.append(f"{indent}asynchronous :: {', '.join(names)}")
    if interface.name != "mpi_f08":
        lines += [
            f"{indent}integer(kind=MPI_ADDRESS_KIND) :: {request}_place",
            f"{indent}integer :: {request}_error",
        ]
    edits = [Edit(line + 1, line, tuple(lines))]
    if not interface.is_whole:
        head = last_line(function.named_children[0])
        edits.append(Edit(head + 1, head, (f"{indent}use {interface.name}",)))
    return edits
