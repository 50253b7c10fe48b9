"""The changed lines: the request, the start and the wait, in the language of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.advise.arguments import names as roles_of
from weft.advise.fragments import nonblocking
from weft.advise.patch.buffers import NO_MEMORY, of_call
from weft.advise.patch.calls import Found, find, written_name
from weft.advise.patch.languages import (
    FORTRAN_UNITS,
    Source,
    ancestors,
    descendants,
    first_line,
    last_line,
)
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.region import Region, end_of, region_of
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

SPECIFICATIONS = (
    "use_statement",
    "implicit_statement",
    "variable_declaration",
    "include_statement",
)
MODULES = ("mpi", "mpi_f08")
LINE_OF_FORTRAN = 120  # characters, with what the change adds; the standard permits 132


@dataclass(frozen=True)
class Edit:
    """Lines [first, last] become these; where last is before first, they are inserted."""

    first: int
    last: int
    lines: tuple[str, ...]


def indent_of(source: Source, line: int) -> str:
    text = source.line(line)
    return text[: len(text) - len(text.lstrip())]


def check_lines(source: Source, *nodes: Node) -> None:
    """Edits are of whole lines, so a statement must have its own."""
    for node in nodes:
        row, column = node.start_point
        before = source.data.split(b"\n")[row][:column]
        if before.strip():
            raise Refusal(f"line {row + 1} has several statements")


def started(found: Found, wish: Wish, request: str) -> list[str]:
    """The lines of the call's statement, with the call changed."""
    source, call, statement = found.source, found.call, found.statement
    head = call.named_children[0]
    named = list(source.names(head))[-1]
    name = nonblocking(wish.call)
    if source.language == "python":
        name = written_name(name, "python")
    data = source.data
    lists = next(one for one in call.named_children if one.type == "argument_list")
    begin, end = statement.start_byte, statement.end_byte
    front = data[begin : named.start_byte] + name.encode() + data[named.end_byte : lists.start_byte]
    if source.language == "python":
        text = f"{request} = ".encode() + front + data[lists.start_byte : end]
    else:
        word = request if source.language == "fortran" else f"&{request}"
        last = found.arguments[-1].end_byte
        width = len(source.line(last_line(found.arguments[-1]))) + len(word)
        if source.language == "fortran" and width > LINE_OF_FORTRAN:
            word = f"&\n{indent_of(source, first_line(statement))}  {word}"
        text = front + data[lists.start_byte : last] + f", {word}".encode() + data[last:end]
    lines = text.decode(errors="surrogateescape").rstrip("\n").split("\n")
    return [indent_of(source, first_line(statement)) + lines[0], *lines[1:]]


def waits(found: Found, request: str, names: list[str]) -> list[str]:
    source = found.source
    error = "" if found.error is None else source.text(found.error)
    if source.language == "python":
        return [f"{request}.Wait()"]
    if source.language == "fortran":
        more = f", {error}" if error else ""
        wait = f"call MPI_Wait({request}, MPI_STATUS_IGNORE{more})"
        return [wait, *(touch(found, request, name) for name in names)]
    front = f"{error} = " if error else ""
    return [f"{front}MPI_Wait(&{request}, MPI_STATUS_IGNORE);"]


def touch(found: Found, request: str, name: str) -> str:
    """A call that the compiler must take for one that may change the variable. Not every library
    has MPI_F_sync_reg outside of its modules."""
    if uses_of(found.source, found.function) & set(MODULES):
        return f"call MPI_F_sync_reg({name})"
    return f"call MPI_Get_address({name}, {request}_place, {request}_error)"


# Fortran's declarations --------------------------------------------------------------------------


def declared(source: Source, function: Node, name: str) -> Node | None:
    """The declaration of a variable in this unit itself."""
    for one in function.named_children:
        if one.type == "variable_declaration":
            for declarator in one.named_children:
                heads = [x for x in descendants(declarator) if x.type == "identifier"]
                is_name = declarator.type in ("identifier", "sized_declarator", "init_declarator")
                if is_name and heads and source.text(heads[0]) == name:
                    return one
    return None


def dummies(source: Source, function: Node) -> set[str]:
    head = function.named_children[0]
    lists = [one for one in head.named_children if one.type == "parameters"]
    return {source.text(one) for parameters in lists for one in source.names(parameters)}


def check_variable(source: Source, function: Node, name: str) -> None:
    """Whether MPI gets the memory itself, and it may be asynchronous."""
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
    if name in dummies(source, function) and not inside:
        raise Refusal(
            f"{name} is an argument of a procedure outside of modules, which cannot be asynchronous"
            " without an interface"
        )
    for one in descendants(function):
        if one.type in ("common_statement", "equivalence_statement"):
            raise Refusal("the function has COMMON or EQUIVALENCE, by which other names touch it")


def uses_of(source: Source, function: Node) -> set[str]:
    around = [function, *ancestors(function)]
    uses = (x for one in around for x in one.named_children if x.type == "use_statement")
    return {source.text(x.named_children[0]) for x in uses if x.named_children}


def declarations(found: Found, request: str, names: list[str]) -> Edit:
    source, function = found.source, found.function
    if function.type not in FORTRAN_UNITS:
        raise Refusal("it stands in a procedure of an unusual kind")
    for name in names:
        check_variable(source, function, name)
    heads = [one for one in function.named_children if one.type in SPECIFICATIONS]
    if not heads:
        raise Refusal("its function has no declarations")
    line = last_line(heads[-1])
    indent = indent_of(source, first_line(heads[-1]))
    kind = "type(MPI_Request)" if "mpi_f08" in uses_of(source, function) else "integer"
    lines = [f"{indent}{kind} :: {request}", f"{indent}asynchronous :: {', '.join(names)}"]
    if not uses_of(source, function) & set(MODULES):
        lines += [
            f"{indent}integer(kind=MPI_ADDRESS_KIND) :: {request}_place",
            f"{indent}integer :: {request}_error",
        ]
    if any("asynchronous" in source.text(one) for one in heads):
        raise Refusal("its function declares asynchronous variables already")
    return Edit(line + 1, line, tuple(lines))


# The change --------------------------------------------------------------------------------------


@dataclass
class Change:
    wish: Wish
    edits: list[Edit]
    note: str
    lines: tuple[int, int]  # from the start to the wait
    function: tuple[int, int]


def arguments_of_memory(found: Found, wish: Wish) -> list[str]:
    """The variables that MPI gets, by their names in the call."""
    source, found_names = found.source, []
    for role, node in zip(roles_of(wish.call), found.arguments):
        is_memory = role in ("send", "receive", "buffer")
        if is_memory and source.text(node) not in NO_MEMORY:
            found_names += [source.text(one) for one in source.names(node)][:1]
    return list(dict.fromkeys(found_names))


def change(source: Source, wish: Wish, number: int) -> Change:
    """The edits of one call; or a Refusal."""
    found = find(source, wish)
    buffers = of_call(found, wish)
    region: Region = region_of(found, buffers, wish)
    request = f"weft_request_{number}"
    if request.encode() in source.data:
        raise Refusal(f"the source has the name {request} already")
    check_lines(source, found.statement, region.start, *([region.until] if region.until else []))
    edits = []
    memory = arguments_of_memory(found, wish) if source.language == "fortran" else []
    if source.language == "fortran":
        edits.append(declarations(found, request, memory))
    first, last = first_line(found.statement), last_line(found.statement)
    if len({first_line(one) for one in found.following} & {last}) or closes(source, found, last):
        raise Refusal(f"line {last} has several statements")
    lines = started(found, wish, request)
    rest = source.line(last)[end_column(found.statement, source) :]
    lines[-1] += rest
    indent = indent_of(source, first_line(found.statement))
    if source.language in ("c", "c++"):
        lines.insert(0, f"{indent}MPI_Request {request};")
    if region.start == found.statement:
        edits.append(Edit(first, last, tuple(lines)))
    else:
        edits.append(Edit(first, last, ()))
        edits.append(Edit(first_line(region.start), first_line(region.start) - 1, tuple(lines)))
    end = end_of(region, found)
    edits.append(Edit(end, end - 1, tuple(indent + line for line in waits(found, request, memory))))
    note = f"{wish.call} at {wish.place} is waited for before line {end}"
    if region.why:
        note += f", since {region.why}"
    span = (min(first_line(region.start), first), end)
    return Change(wish, edits, note, span, (first_line(found.function), last_line(found.function)))


def end_column(statement: Node, source: Source) -> int:
    row, column = statement.end_point
    if column == 0:
        return len(source.line(row))
    line = source.data.split(b"\n")[row]
    return len(line[:column].decode(errors="surrogateescape"))


def closes(source: Source, found: Found, last: int) -> bool:
    """The end of the block stands in the line of its last statement."""
    if source.language not in ("c", "c++"):
        return ";" in source.line(last)
    own = found.following[-1] if found.following else found.statement
    return last_line(found.block) in (last, last_line(own))


def edited(source: Source, edits: list[Edit]) -> str:
    """The whole text; of edits at one line, those that insert come first."""
    lines = list(source.lines)
    for edit in sorted(edits, key=lambda e: (e.first, e.last >= e.first), reverse=True):
        lines[edit.first - 1 : edit.last] = edit.lines
    return "\n".join(lines)
