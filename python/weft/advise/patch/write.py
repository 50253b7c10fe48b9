"""Writes the changed lines: the request, the start and the wait, in the language of the source."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.advise.arguments import names as roles_of
from weft.advise.fragments import nonblocking
from weft.advise.patch import carry, plan
from weft.advise.patch.aliases import NO_MEMORY
from weft.advise.patch.buffers import of_call
from weft.advise.patch.calls import Found, find, written_name
from weft.advise.patch.edits import Edit, indent_of
from weft.advise.patch.fixed_form import in_fixed_form
from weft.advise.patch.fortran import declarations, interface_of
from weft.advise.patch.languages import Source, first_line, last_line
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.region import Region, end_of, region_of
from weft.advise.patch.requests import Request
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

LINE_OF_FORTRAN = 120  # most characters of a changed line; the standard permits 132

# The name of a data type that is committed, in C or Fortran.
COMMITTED = r"MPI_Type_commit\s*\(\s*&?\s*(\w+)"


def check_lines(source: Source, *nodes: Node) -> None:
    """Raises Refusal if a node shares a line with another statement, since edits replace whole
    lines."""
    for node in nodes:
        row, column = node.start_point
        before = source.data.split(b"\n")[row][:column]
        if before.strip():
            raise Refusal(f"line {row + 1} has several statements")


def call_lines(found: Found, name: str, own: Request, *more: str) -> list[str]:
    """Returns the lines of the call's statement, without its indent, if it calls this function.
    more: arguments of C and Fortran after its own, before the error code."""
    source, call, statement = found.source, found.call, found.statement
    head = call.named_children[0]
    named = list(source.names(head))[-1]
    if source.language == "python":
        name = written_name(name, "python")
    elif source.language == "fortran":
        name = name.removesuffix("_c")
    data = source.data
    lists = next(one for one in call.named_children if one.type == "argument_list")
    begin, end = statement.start_byte, statement.end_byte
    front = data[begin : named.start_byte] + name.encode() + data[named.end_byte : lists.start_byte]
    if source.language == "python":
        text = f"{own.name} = ".encode() + front + data[lists.start_byte : end]
    else:
        word = ", ".join([*more, own.argument()])
        last = found.arguments[-1].end_byte
        width = len(source.line(last_line(found.arguments[-1]))) + len(word)
        if source.language == "fortran" and width > LINE_OF_FORTRAN:
            word = f"&\n{indent_of(source, first_line(statement))}  {word}"
        text = front + data[lists.start_byte : last] + f", {word}".encode() + data[last:end]
    lines = text.decode(errors="surrogateescape").rstrip("\n").split("\n")
    indent = indent_of(source, first_line(statement))
    return [line.removeprefix(indent) for line in lines]


def started(found: Found, wish: Wish, own: Request) -> list[str]:
    return call_lines(found, nonblocking(wish.call), own)


def started_again(found: Found, wish: Wish, own: Request) -> list[str]:
    """Returns the start of a persistent call, which is initialised when it is first made."""
    lines = call_lines(found, wish.plan, own, "MPI_INFO_NULL")
    return [*own.if_null(lines), *own.started()]


# Changes ----------------------------------------------------------------------------------------


@dataclass
class Change:
    wish: Wish
    edits: list[Edit]
    note: str
    lines: tuple[int, int]  # the first and last line between which the request is in flight
    function: tuple[int, int]
    is_planned: bool = False
    is_earlier: bool = False  # the call starts before statements that stood in front of it
    is_late: bool = True  # the wait stands where the record has the first use
    own_types: list[str] = field(default_factory=list)  # its data types that the source commits


def arguments_of_memory(found: Found, wish: Wish) -> list[str]:
    """Returns the names of the variables whose memory MPI gets."""
    source, found_names = found.source, []
    for role, node in zip(roles_of(wish.call), found.arguments):
        is_memory = role in ("send", "receive", "buffer")
        if is_memory and source.text(node) not in NO_MEMORY:
            found_names += [source.text(one) for one in source.names(node)][:1]
    return list(dict.fromkeys(found_names))


def own_types(found: Found, wish: Wish) -> list[str]:
    """Returns the names of the call's data types that the same source commits."""
    text = found.source.data.decode(errors="replace")
    committed = {one.lower() for one in re.findall(COMMITTED, text, re.I)}
    arguments = zip(roles_of(wish.call), map(found.source.text, found.arguments))
    return [name for role, name in arguments if "type" in role and name.lower() in committed]


def change(source: Source, wish: Wish, number: int) -> Change:
    """Returns the edits that change one call. Raises Refusal if the call must be left as it is."""
    found = find(source, wish)
    buffers = of_call(found, wish)
    own = Request(found, f"weft_request_{number}")
    if own.name.encode() in source.data:
        raise Refusal(f"the source has the name {own.name} already")
    one = carry.carried(found, buffers, wish)
    if isinstance(one, carry.Carried):
        made = carried_change(found, wish, one, own)
    else:
        made = change_in_round(found, wish, region_of(found, buffers, wish), own, one)
    made.own_types = own_types(found, wish)
    if source.is_fixed:
        made.edits = [Edit(one.first, one.last, in_fixed_form(one.lines)) for one in made.edits]
    return made


def declared(found: Found, wish: Wish, own: Request) -> list[Edit]:
    """Returns the edits by which a unit of Fortran declares the request, and says which memory MPI
    has."""
    if found.source.language != "fortran":
        return []
    own.memory = arguments_of_memory(found, wish)
    own.face = interface_of(found.source, found.function)
    return declarations(found, own.face, own.name, own.memory)


def indented(indent: str, lines: list[str]) -> tuple[str, ...]:
    return tuple(indent + line for line in lines)


def function_lines(found: Found) -> tuple[int, int]:
    return first_line(found.function), last_line(found.function)


def change_in_round(
    found: Found, wish: Wish, region: Region, own: Request, not_carried: str
) -> Change:
    source, statement = found.source, found.statement
    check_lines(source, statement, region.start, *([region.until] if region.until else []))
    edits = declared(found, wish, own)
    loop, not_planned = plan.loop_of(found, wish)
    lines = own_lines(found, (started_again if loop else started)(found, wish, own))
    if loop:
        edits += around(source, loop, [own.made_null()], own.freed())
    elif source.language in ("c", "c++"):
        lines.insert(0, f"{indent_of(source, first_line(statement))}MPI_Request {own.name};")
    first, last = first_line(statement), last_line(statement)
    start = first_line(region.start)
    if region.start == statement:
        edits.append(Edit(first, last, tuple(lines)))
    else:
        edits += [Edit(first, last, ()), Edit(start, start - 1, tuple(lines))]
    end, indent = end_of(region, found), indent_of(source, first)
    edits.append(Edit(end, end - 1, indented(indent, own.waited_for())))
    how = f"{'planned once, and ' if loop else ''}waited for before line {end}"
    note = noted(wish, how, region.why, not_planned, not_carried)
    made = Change(wish, edits, note, (min(start, first), end), function_lines(found))
    made.is_planned, made.is_earlier = loop is not None, start < first
    made.is_late = region.is_late
    return made


def carried_change(found: Found, wish: Wish, one: carry.Carried, own: Request) -> Change:
    source, until = found.source, first_line(one.until)
    check_lines(source, found.statement, one.until)
    edits = declared(found, wish, own)
    lines = own_lines(found, started(found, wish, own))
    wait = own.waited_for(may_be_null=True)
    edits += around(source, one.loop, [own.made_null()], wait)
    edits.append(Edit(until, until - 1, indented(indent_of(source, until), wait)))
    edits.append(Edit(first_line(found.statement), last_line(found.statement), tuple(lines)))
    note = noted(wish, f"waited for in the next round of its loop, before line {until}", one.why)
    span = first_line(one.loop), last_line(one.loop)
    return Change(wish, edits, note, span, function_lines(found), is_late=one.is_late)


def around(source: Source, loop: Node, before: list[str], behind: list[str]) -> list[Edit]:
    """Returns the edits that insert lines in front of a loop and behind it."""
    first, last = first_line(loop), last_line(loop)
    indent = indent_of(source, first)
    return [
        Edit(first, first - 1, indented(indent, before)),
        Edit(last + 1, last, indented(indent, behind)),
    ]


def noted(wish: Wish, how: str, why: str, not_planned: str = "", not_carried: str = "") -> str:
    said = f"{wish.call} {wish.where} is {how}" + (f", since {why}" if why else "")
    if not_carried:
        said += f"; the wait does not go to the next round, since {not_carried}"
    return said + (f"; it is not planned, since {not_planned}" if not_planned else "")


def own_lines(found: Found, lines: list[str]) -> list[str]:
    """Returns the lines, indented, followed by what stands behind the call, such as a comment."""
    source, last = found.source, last_line(found.statement)
    indent = indent_of(source, first_line(found.statement))
    if len({first_line(one) for one in found.following} & {last}) or closes(source, found, last):
        raise Refusal(f"line {last} has several statements")
    rest = source.line(last)[end_column(found.statement, source) :]
    lines = [*lines[:-1], lines[-1] + rest]
    return [indent + line for line in lines]


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
