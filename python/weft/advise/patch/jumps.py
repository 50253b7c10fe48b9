"""Finds statements that jump out of a region of the program, or into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.advise.patch.languages import Source, ancestors, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

UNREADABLE = ("ERROR", "preproc_include", "preproc_def", "preproc_function_def", "preproc_undef")
ENDS_PROGRAM = ("exit", "_exit", "quick_exit", "longjmp", "abort", "terminate", "MPI_Finalize")
NESTED = ("switch_statement",)  # constructs other than loops that a break may end
NO_JUMPS = ("do_statement", "format_identifier")  # nodes that name a label without a jump
# These arguments of READ and WRITE name labels to which the program jumps after an event.
ON_EVENTS = ("end", "err", "eor")


def within(node: Node, statement: Node) -> Iterator[Node]:
    for one in ancestors(node):
        yield one
        if one == statement:
            return


def leaves(source: Source, node: Node, statement: Node) -> bool:
    """Returns whether this node may leave the statements that follow the given one."""
    grammar = source.grammar
    if node.type in (*UNREADABLE, "labeled_statement"):
        return True
    if is_label(node):
        return is_jump_target(source, node, statement)
    if (label := jumps_to(source, node)) and label not in labels(source, statement):
        return True
    around = [] if node == statement else list(within(node, statement))
    if any(one.type in (*grammar.closures, "function_definition") for one in around):
        return False
    if source.language == "fortran" and node.type == "keyword_statement":
        words = source.text(node).split()
        is_jump = any(one.type == "statement_label_reference" for one in node.named_children)
        # The jump to the label decides, not the labelled CONTINUE.
        if words == ["continue"] or is_jump:
            return False
        in_loop = any(one.type in grammar.loops for one in around)
        return not (in_loop and words in (["exit"], ["cycle"]))
    if node.type in grammar.loop_jumps:
        kinds = grammar.loops
        if node.type == "break_statement":
            kinds = (*kinds, *NESTED)
        return not any(one.type in kinds for one in around)
    if node.type in grammar.calls and source.callee(node).lower() in map(str.lower, ENDS_PROGRAM):
        return True
    return node.type in grammar.jumps


# Labels of Fortran -------------------------------------------------------------------------------


def jumps_to(source: Source, node: Node) -> str:
    """Returns the label to which this node may jump; an empty string if it is no jump."""
    parent = node.parent
    if node.type == "statement_label_reference":
        is_jump = parent.type not in (*NO_JUMPS, node.type)
        return source.text(node) if is_jump else ""
    if node.type == "number_literal" and parent.type == "keyword_argument":
        is_jump = source.text(parent.named_children[0]) in ON_EVENTS
        return source.text(node) if is_jump else ""
    return ""


def labels(source: Source, statement: Node) -> set[str]:
    return {source.text(one) for one in descendants(statement) if is_label(one)}


def is_label(node: Node) -> bool:
    """Returns whether the node is a label, and no part of a reference to one."""
    return node.type == "statement_label" and node.parent.type != "statement_label_reference"


def is_jump_target(source: Source, label: Node, statement: Node) -> bool:
    """Returns whether a jump from outside the statement leads to this label in it."""
    around = [one for one in ancestors(label) if one.type in source.grammar.functions]
    name = source.text(label)
    return any(
        jumps_to(source, one) == name and statement not in (one, *ancestors(one))
        for one in descendants(around[0] if around else source.root)
    )
