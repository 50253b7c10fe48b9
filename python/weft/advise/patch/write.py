"""Writes the changed lines: the request, the start and the wait, in the language of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.advise.arguments import names as roles_of
from weft.advise.fragments import nonblocking
from weft.advise.patch import carry, plan
from weft.advise.patch.aliases import NO_MEMORY
from weft.advise.patch.buffers import of_call
from weft.advise.patch.calls import Found, find, written_name
from weft.advise.patch.edits import Edit, indent_of
from weft.advise.patch.fixed_form import in_fixed_form
from weft.advise.patch.fortran import Interface, declarations, interface_of, touch
from weft.advise.patch.languages import Source, first_line, last_line
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.region import Region, end_of, region_of
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

LINE_OF_FORTRAN = 120  # most characters of a changed line; the standard permits 132


def check_lines(source: Source, *nodes: Node) -> None:
    """Raises Refusal if a node shares a line with another statement, since edits replace whole
    lines."""
    for node in nodes:
        row, column = node.start_point
        before = source.data.split(b"\n")[row][:column]
        if before.strip():
            raise Refusal(f"line {row + 1} has several statements")


def started(found: Found, wish: Wish, request: str) -> list[str]:
    """Returns the lines of the call's statement with the non-blocking call."""
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


def started_again(found: Found, wish: Wish, request: str) -> list[str]:
    """Returns the lines that start a persistent call, and initialise it before the first start."""
    indent = indent_of(found.source, first_line(found.statement))
    error = "" if found.error is None else f"{found.source.text(found.error)} = "
    return [
        f"{indent}if ({request} == MPI_REQUEST_NULL) {{",
        f"{indent}  {error}{plan.planned(found, wish, request)}",
        f"{indent}}}",
        f"{indent}{error}MPI_Start(&{request});",
    ]


def waits(found: Found, request: str, face: Interface | None, names: list[str]) -> list[str]:
    source = found.source
    error = "" if found.error is None else source.text(found.error)
    if source.language == "python":
        return [f"{request}.Wait()"]
    if face is not None:
        more = f", {error}" if error else ""
        wait = f"call MPI_Wait({request}, MPI_STATUS_IGNORE{more})"
        return [wait, *(touch(face, request, name) for name in names)]
    front = f"{error} = " if error else ""
    return [f"{front}MPI_Wait(&{request}, MPI_STATUS_IGNORE);"]


# Changes ----------------------------------------------------------------------------------------


@dataclass
class Change:
    wish: Wish
    edits: list[Edit]
    note: str
    lines: tuple[int, int]  # the first and last line between which the request is in flight
    function: tuple[int, int]


def arguments_of_memory(found: Found, wish: Wish) -> list[str]:
    """Returns the names of the variables whose memory MPI gets."""
    source, found_names = found.source, []
    for role, node in zip(roles_of(wish.call), found.arguments):
        is_memory = role in ("send", "receive", "buffer")
        if is_memory and source.text(node) not in NO_MEMORY:
            found_names += [source.text(one) for one in source.names(node)][:1]
    return list(dict.fromkeys(found_names))


def change(source: Source, wish: Wish, number: int) -> Change:
    """Returns the edits that change one call. Raises Refusal if the call must be left as it is."""
    found = find(source, wish)
    buffers = of_call(found, wish)
    request = f"weft_request_{number}"
    if request.encode() in source.data:
        raise Refusal(f"the source has the name {request} already")
    if one := carry.carried(found, buffers, wish):
        return carried_change(found, wish, one, request)
    region: Region = region_of(found, buffers, wish)
    check_lines(source, found.statement, region.start, *([region.until] if region.until else []))
    edits, memory, face = [], [], None
    if source.language == "fortran":
        memory = arguments_of_memory(found, wish)
        face = interface_of(source, found.function)
        edits += declarations(found, face, request, memory)
    loop = plan.loop_of(found, wish)
    lines = own_lines(found, (started_again if loop else started)(found, wish, request))
    indent = indent_of(source, first_line(found.statement))
    if loop:
        edits += plan.edits_around(found, loop, request)
    elif source.language in ("c", "c++"):
        lines.insert(0, f"{indent}MPI_Request {request};")
    first, last = first_line(found.statement), last_line(found.statement)
    if region.start == found.statement:
        edits.append(Edit(first, last, tuple(lines)))
    else:
        edits.append(Edit(first, last, ()))
        edits.append(Edit(first_line(region.start), first_line(region.start) - 1, tuple(lines)))
    end = end_of(region, found)
    edits.append(
        Edit(end, end - 1, tuple(indent + line for line in waits(found, request, face, memory)))
    )
    if source.is_fixed:
        edits = [Edit(one.first, one.last, in_fixed_form(one.lines)) for one in edits]
    how = "planned once, and " if loop else ""
    note = noted(wish, f"{how}waited for before line {end}", region.why)
    span = (min(first_line(region.start), first), end)
    return Change(wish, edits, note, span, (first_line(found.function), last_line(found.function)))


def carried_change(found: Found, wish: Wish, one: carry.Carried, request: str) -> Change:
    source = found.source
    check_lines(source, found.statement, one.until)
    lines = own_lines(found, started(found, wish, request))
    edits = carry.edits_around(found, one, request, waits(found, request, None, []))
    edits.append(Edit(first_line(found.statement), last_line(found.statement), tuple(lines)))
    where = f"waited for in the next round of its loop, before line {first_line(one.until)}"
    span = first_line(one.loop), last_line(one.loop)
    return Change(wish, edits, noted(wish, where, one.why), span, span)


def noted(wish: Wish, how: str, why: str) -> str:
    return f"{wish.call} {wish.where} is {how}" + (f", since {why}" if why else "")


def own_lines(found: Found, lines: list[str]) -> list[str]:
    """Returns the lines with the text behind the call, such as a comment, at their end."""
    source, last = found.source, last_line(found.statement)
    if len({first_line(one) for one in found.following} & {last}) or closes(source, found, last):
        raise Refusal(f"line {last} has several statements")
    rest = source.line(last)[end_column(found.statement, source) :]
    return [*lines[:-1], lines[-1] + rest]


def end_column(statement: Node, source: Source) -> int:
    row, column = statement.end_point
    if column == 0:
        return len(source.line(row))
    line = source.data.split(b"\n")[row]
    return len(line[:column].decode(errors="surrogateescape"))


def closes(source: Source, found: Found, last: int) -> bool:
    """Returns whether the block ends in the line of its last statement."""
    if source.language not in ("c", "c++"):
        return ";" in source.line(last)
    own = found.following[-1] if found.following else found.statement
    return last_line(found.block) in (last, last_line(own))


def edited(source: Source, edits: list[Edit]) -> str:
    """Returns the file's whole text after the edits. Insertions come before replacements of the
    same line."""
    lines = list(source.lines)
    for edit in sorted(edits, key=lambda e: (e.first, e.last >= e.first), reverse=True):
        lines[edit.first - 1 : edit.last] = edit.lines
    return "\n".join(lines)
