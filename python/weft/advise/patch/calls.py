"""Finds a recorded call in the source, and decides whether it stands where it can be changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Optional

from weft.advise.arguments import names as roles_of
from weft.advise.names import is_nonblocking
from weft.advise.patch.functions import Functions
from weft.advise.patch.languages import (
    Source,
    ancestors,
    descendants,
    first_line,
    last_line,
)
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.wish import Wish

if TYPE_CHECKING:
    from tree_sitter import Node

# A call inside one of these is not changed: the wait might not be reached, or other threads run.
ODD = {
    "try_statement": "an exception may pass by the wait",
    "lambda_expression": "it stands in a lambda",
    "critical_statement": "it stands in a critical block",
    "where_statement": "it stands in a WHERE construct",
    "async": "it stands in an asynchronous function",
}
MACROS = ("preproc_def", "preproc_function_def")


@dataclass
class Found:
    """A call that is a statement by itself in a block of statements."""

    source: Source
    call: Node
    statement: Node
    block: Node
    function: Node
    arguments: list[Node]  # arguments in the order of the blocking call in C
    error: Optional[Node] = None  # variable that receives the error code

    @cached_property
    def functions(self) -> Functions:
        return Functions(self.source)

    @property
    def following(self) -> list[Node]:
        own = self.source.statements(self.block)
        return own[own.index(self.statement) + 1 :]

    @property
    def preceding(self) -> list[Node]:
        """Returns the statements before the call in its block, the nearest first."""
        own = self.source.statements(self.block)
        return own[: own.index(self.statement)][::-1]


def written_name(call: str, language: str) -> str:
    if language == "python":
        return call.removeprefix("MPI_").removesuffix("_c")
    return call.lower() if language == "fortran" else call


def macros(source: Source) -> dict[str, Node]:
    found = (one for one in descendants(source.root) if one.type in MACROS)
    return {source.text(one.named_children[0]): one for one in found}


def find_call(source: Source, wish: Wish) -> Node:
    name = written_name(wish.call, source.language)
    # In Fortran the record may have the library's name of a large-count call, while the program
    # writes the generic name.
    names = {name, name.removesuffix("_c")} if source.language == "fortran" else {name}
    there = [one for one in source.calls(source.root) if is_at(one, wish.line)]
    found = [one for one in there if source.callee(one) in names]
    if len(found) == 1:
        return found[0]
    if found:
        raise Refusal(f"{wish.call} is called there {len(found)} times")
    words = {source.text(one) for one in source.names(source.root) if is_at(one, wish.line)}
    if known := sorted(words & macros(source).keys()):
        raise Refusal(f"the call comes from the macro {known[0]}")
    raise Refusal(
        f"{wish.call} is not called there: it comes from a macro, or the source is not that of"
        " the program that ran"
    )


def is_at(node: Node, line: int) -> bool:
    return first_line(node) <= line <= last_line(node)


def function_around(source: Source, node: Node) -> Node:
    grammar = source.grammar
    around = [one for one in ancestors(node) if one.type in (*grammar.functions, *grammar.closures)]
    if not around:
        raise Refusal("it stands outside of a function")
    if around[0].type in grammar.closures:
        raise Refusal("it stands in a function without a name, or in the body of a class")
    return around[0]


def statement_of(source: Source, call: Node) -> tuple[Node, Optional[Node]]:
    """Returns the statement that consists of the call, and the variable that receives its error
    code. Raises Refusal if the call is part of an expression."""
    if source.language == "fortran":
        if call.type != "subroutine_call":
            raise Refusal("it is no CALL statement")
        return call, None
    parent = call.parent
    error = None
    if parent.type == "assignment_expression":
        left, operator = parent.child_by_field_name("left"), parent.child_by_field_name("operator")
        if left.type == "identifier" and source.text(operator) == "=":
            error, parent = left, parent.parent
    if parent.type != "expression_statement":
        raise Refusal("it is part of a larger expression or of a macro's arguments")
    return parent, error


def check_around(source: Source, statement: Node, function: Node) -> None:
    for one in [statement, *ancestors(statement)]:
        if one == function:
            break
        if why := ODD.get(one.type):
            raise Refusal(why)
        before = one.prev_named_sibling
        if before is not None and is_directive(source, before):
            raise Refusal("a directive (#pragma, !$omp) stands in front of it or of its block")
    if source.language == "fortran":
        check_parallel(source, statement, function)


def is_directive(source: Source, node: Node) -> bool:
    text = source.text(node).lstrip()
    return text.startswith(("#pragma", "!$", "!dir$", "!gcc$"))


def check_parallel(source: Source, statement: Node, function: Node) -> None:
    """Raises Refusal if the statement is inside an OpenMP region. In Fortran's grammar these are
    comments without an end, so that begins and ends are counted."""
    depth = 0
    for one in descendants(function):
        if one.start_byte >= statement.start_byte:
            break
        if one.type in source.grammar.comments and source.text(one).startswith("!$omp"):
            words = source.text(one).removeprefix("!$omp").split()
            depth += is_region(words) - is_region(words[1:]) * (words[:1] == ["end"])
    if depth > 0:
        raise Refusal("it stands in a region of OpenMP")


def is_region(words: list[str]) -> bool:
    names = ("parallel", "master", "single", "critical", "sections", "masked", "task")
    return words[:1] and words[0] in names and "do" not in words[:2]


def find(source: Source, wish: Wish) -> Found:
    if is_nonblocking(wish.call):
        raise Refusal("it is non-blocking already")
    if wish.elsewhere:
        raise Refusal(
            f"other ranks make the same call at {wish.elsewhere}, and all have to change it alike"
        )
    if wish.object_method:
        raise Refusal(
            f"{wish.object_method} pickles objects, and has no non-blocking form: give arrays to"
            f" {wish.object_method.capitalize()}"
        )
    call = find_call(source, wish)
    function = function_around(source, call)
    statement, error = statement_of(source, call)
    block = statement.parent
    if block.type not in source.grammar.blocks:
        raise Refusal("it stands alone behind a condition, a label or a directive, not in a block")
    if function.has_error:
        raise Refusal("the parser does not understand the function around it")
    if block.type == "if_statement" and source.statements(block) == list(block.named_children[1:]):
        raise Refusal("it stands alone behind a condition, not in a block")
    check_around(source, statement, function)
    roles, arguments = roles_of(wish.call), source.arguments(call)
    if source.language == "fortran":
        if any(one.type == "keyword_argument" for one in arguments):
            raise Refusal("it has arguments by keyword")
        if len(arguments) == len(roles) + 1:
            error = arguments.pop()
    if source.language != "python" and len(arguments) != len(roles):
        raise Refusal(f"it has {len(arguments)} arguments, and {wish.call} has {len(roles)}")
    found = Found(source, call, statement, block, function, arguments, error)
    if found.functions.shares_memory:
        raise Refusal("ranks share memory (MPI_Win_shared_query), for which they may need it")
    return found
