"""Holds the grammars of tree-sitter, and the names of their nodes in each language."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from weft.advise.patch.fixed_form import in_free_form
from weft.advise.patch.refusal import Refusal

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

INSTALL = "pip install 'weft-mpi[patch]' (Python 3.10 or later)"
FIXED_FORM = (".f", ".for", ".ftn", ".f77")


class NoParser(Exception):
    """Raised if tree-sitter or one of its grammars is not installed."""


@dataclass(frozen=True)
class Grammar:
    module: str
    functions: tuple[str, ...]
    closures: tuple[str, ...]  # functions inside functions, whose body is executed at another time
    blocks: tuple[str, ...]  # nodes whose children are statements
    loops: tuple[str, ...]
    calls: tuple[str, ...]
    names: tuple[str, ...]
    jumps: tuple[str, ...]
    loop_jumps: tuple[str, ...]  # jumps that end inside a surrounding loop
    heads: tuple[str, ...]  # children of blocks that are no statements
    ends: tuple[str, ...]  # children of blocks before which their statements end
    comments: tuple[str, ...] = ("comment",)


C = Grammar(
    module="tree_sitter_c",
    functions=("function_definition",),
    closures=("lambda_expression",),
    blocks=("compound_statement",),
    loops=("for_statement", "while_statement", "do_statement", "for_range_loop"),
    calls=("call_expression",),
    names=("identifier", "field_identifier"),
    jumps=("return_statement", "goto_statement", "throw_statement", "co_return_statement"),
    loop_jumps=("break_statement", "continue_statement"),
    heads=(),
    ends=(),
)
FORTRAN_UNITS = ("program", "subroutine", "function", "module_procedure")
FORTRAN = Grammar(
    module="tree_sitter_fortran",
    functions=FORTRAN_UNITS,
    closures=(),
    blocks=(*FORTRAN_UNITS, "do_loop", "if_statement", "else_clause", "elseif_clause"),
    loops=("do_loop",),
    calls=("subroutine_call", "call_expression"),
    names=("identifier",),
    jumps=("stop_statement", "return_statement", "keyword_statement"),
    loop_jumps=(),
    heads=("do_statement", "parenthesized_expression", "block_label_start_expression"),
    ends=(
        *("else_clause", "elseif_clause", "internal_procedures", "end_program_statement"),
        *("end_subroutine_statement", "end_function_statement", "end_module_procedure_statement"),
        *("end_do_loop_statement", "end_do_label_loop_statement", "end_if_statement"),
    ),
)
PYTHON = Grammar(
    module="tree_sitter_python",
    functions=("function_definition", "module"),
    closures=("lambda", "class_definition"),
    blocks=("block", "module"),
    loops=("for_statement", "while_statement"),
    calls=("call",),
    names=("identifier",),
    jumps=("return_statement", "raise_statement", "assert_statement", "yield", "await"),
    loop_jumps=("break_statement", "continue_statement"),
    heads=(),
    ends=(),
)
GRAMMARS = {"c": C, "fortran": FORTRAN, "python": PYTHON}
GRAMMARS["c++"] = Grammar(**{**C.__dict__, "module": "tree_sitter_cpp"})


@lru_cache
def parser(module: str) -> Parser:
    try:
        tree_sitter = importlib.import_module("tree_sitter")
        language = importlib.import_module(module).language()
    except ImportError:
        raise NoParser(f"a patch needs tree-sitter: {INSTALL}") from None
    return tree_sitter.Parser(tree_sitter.Language(language))


def descendants(node: Node) -> Iterator[Node]:
    """Yields the node and all its descendants, in the order of the source."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children))


def ancestors(node: Node) -> Iterator[Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def first_line(node: Node) -> int:
    return node.start_point[0] + 1


def last_line(node: Node) -> int:
    """Returns the number of the node's last line. Some grammars count the line's end to the
    statement, so that it ends in column 0 of the next line."""
    row, column = node.end_point
    return row + 1 if column else row


class Source:
    """A parsed source file."""

    def __init__(self, data: bytes, language: str, path: Optional[Path] = None):
        self.lines = data.decode(errors="surrogateescape").split("\n")
        self.language, self.path = language, path
        self.is_fixed = path is not None and path.suffix.lower() in FIXED_FORM
        # Conversion to free form keeps rows and columns, so that positions are those of the file.
        self.data = in_free_form(data) if self.is_fixed else data
        self.grammar = GRAMMARS[language]
        self.root = parser(self.grammar.module).parse(self.data).root_node

    def line(self, number: int) -> str:
        return self.lines[number - 1]

    def text(self, node: Node) -> str:
        text = self.data[node.start_byte : node.end_byte].decode(errors="surrogateescape")
        return text.lower() if self.language == "fortran" else text

    def names(self, node: Node) -> Iterator[Node]:
        return (one for one in descendants(node) if one.type in self.grammar.names)

    def callee(self, call: Node) -> str:
        """Returns the name of the called function, without the object or namespace before it."""
        head = next((one for one in call.named_children if one.type != "argument_list"), None)
        found = [] if head is None else [self.text(one) for one in self.names(head)]
        return found[-1] if found else ""

    def arguments(self, call: Node) -> list[Node]:
        lists = [one for one in call.named_children if one.type == "argument_list"]
        kept = (one for one in lists[0].named_children) if lists else ()
        return [one for one in kept if one.type not in self.grammar.comments]

    def calls(self, node: Node) -> Iterator[Node]:
        return (one for one in descendants(node) if one.type in self.grammar.calls)

    def statements(self, block: Node) -> list[Node]:
        found = []
        for one in block.named_children:
            if one.type in self.grammar.ends:
                break
            if one.type not in (*self.grammar.heads, *self.grammar.comments):
                found.append(one)
        return found


def read(path: Path, language: str) -> Source:
    try:
        return Source(path.read_bytes(), language, path)
    except OSError as error:
        raise Refusal(f"{path} cannot be read ({error.strerror})") from None
