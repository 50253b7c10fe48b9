"""Finds other functions that may access a function's buffers: those that call it and pass them, and
those that it calls and that keep a pointer to them. The functions are searched in the same file and
in the others of its folder."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from weft.advise.patch import meetings
from weft.advise.patch.aliases import (
    DECLARATIONS,
    KNOWN,
    Scope,
    first_name,
    is_of_numbers,
)
from weft.advise.patch.languages import Source, ancestors, descendants, read
from weft.advise.patch.refusal import Refusal

if TYPE_CHECKING:
    from tree_sitter import Node

SUFFIXES = {"c": (".c", ".h"), "python": (".py",)}
SUFFIXES["fortran"] = (".f90", ".F90", ".f95", ".f03", ".f08", ".f", ".F", ".for")
SUFFIXES["c++"] = (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx", ".h", ".c")
MOST_FILES, MOST_BYTES = 300, 1 << 20
THROWS = ("throw_statement", "raise_statement")
FAR_JUMPS = ("longjmp", "siglongjmp")
TRIES = ("try_statement", "lambda_expression", "lambda")


def declared_name(source: Source, function: Node) -> str:
    """Returns a function's name without its class or namespace."""
    head = function.child_by_field_name("name") or function.child_by_field_name("declarator")
    head = head or (function.named_children[0] if function.named_children else None)
    if head is None:
        return ""
    if source.language == "fortran":
        words = (source.text(one) for one in descendants(head) if one.type == "name")
        return next(words, first_name(source, head) or source.text(head))
    if source.language == "c++":
        declared = declarator_of(head)
        inner = declared.child_by_field_name("declarator") if declared is not None else None
        if inner is not None:
            return next(iter([source.text(one) for one in source.names(inner)][-1:]), "")
    return first_name(source, head) or source.text(head)


def declarator_of(head: Node) -> Node | None:
    return next((one for one in descendants(head) if one.type == "function_declarator"), None)


def parameters(source: Source, function: Node) -> list[Node]:
    """Returns the parameters; those of a Python method without its object."""
    if source.language == "python":
        found = function.child_by_field_name("parameters")
        is_method = any(one.type == "class_definition" for one in ancestors(function))
        return list(found.named_children[is_method:]) if found is not None else []
    head = function.child_by_field_name("declarator")
    declared = declarator_of(head) if head is not None else None
    if declared is None:
        return []
    listed = declared.child_by_field_name("parameters").named_children
    return [one for one in listed if one.type in DECLARATIONS]


def name_of(source: Source, parameter: Node) -> str:
    declared = parameter.child_by_field_name("declarator")
    return first_name(source, parameter if declared is None else declared)


def bound(source: Source, call: Node, names: list[str]) -> Iterator[tuple[str, Node]]:
    """Yields the arguments of a call with the names of the function's parameters."""
    positional = [one for one in source.arguments(call) if one.type != "keyword_argument"]
    yield from zip(names, positional)
    for one in source.arguments(call):
        if one.type == "keyword_argument":
            yield source.text(one.child_by_field_name("name")), one.child_by_field_name("value")


class Index:
    """The functions and calls of one file, by name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions: dict[str, list[Node]] = defaultdict(list)
        self.calls: dict[str, list[tuple[Node, Node]]] = defaultdict(
            list
        )  # calls, each with the function that makes it
        kinds = source.grammar.functions
        for one in descendants(source.root):
            if one.type in kinds and one.parent is not None:
                self.functions[declared_name(source, one)].append(one)
            elif one.type in source.grammar.calls:
                around = next((x for x in ancestors(one) if x.type in kinds), None)
                if around is not None:
                    self.calls[source.callee(one)].append((around, one))


@lru_cache(maxsize=MOST_FILES)
def text_of(path: Path, changed: int) -> str:
    """Returns the file's text in lower case; an empty string if it cannot be read. `changed` makes
    the cache forget an older version."""
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").lower()
    return ""


@lru_cache(maxsize=MOST_FILES)
def index_of(path: Path, language: str, changed: int) -> Index:
    return Index(read(path, language))


@dataclass
class Elsewhere:
    """Says how other functions may access the buffers of a function."""

    names: set[str] = field(default_factory=set)
    is_far: bool = False  # functions can reach the buffers without an argument


class Functions:
    def __init__(self, source: Source) -> None:
        self.source, self.own = source, Index(source)
        self.defined: dict[str, list[tuple[Source, Node]]] = {}
        self.scopes: dict[tuple, Scope] = {}
        self.returns: dict[tuple, set[str]] = {}
        self.keeps: dict[tuple, set[str]] = {}
        self.throws: dict[str, bool] = {}
        self.meets: dict[str, bool] = {}

    # Files and calls of functions ----------------------------------------------------------------

    @cached_property
    def beside(self) -> list[tuple[Path, int]]:
        """Returns the other source files of the folder with their modification times in ns."""
        folder = self.source.path.parent if self.source.path else None
        if folder is None or not folder.is_dir():
            return []
        ends = SUFFIXES.get(self.source.language, ())
        others = [one for one in sorted(folder.iterdir()) if one.suffix in ends and one.is_file()]
        sizes = [(one, one.stat()) for one in others[:MOST_FILES] if one != self.source.path]
        return [(one, size.st_mtime_ns) for one, size in sizes if size.st_size < MOST_BYTES]

    def files(self, name: str) -> Iterator[Index]:
        """Yields the files that contain the name."""
        yield self.own
        for path, changed in self.beside:
            if name.lower() in text_of(path, changed):
                with contextlib.suppress(Refusal):
                    yield index_of(path, self.source.language, changed)

    def definitions(self, name: str) -> list[tuple[Source, Node]]:
        if name not in self.defined:
            self.defined[name] = [
                (file.source, one)
                for file in self.files(name)
                for one in file.functions.get(name, ())
            ]
        return self.defined[name]

    def callers(self, name: str) -> list[tuple[Source, Node, Node]]:
        return [
            (file.source, *one) for file in self.files(name) for one in file.calls.get(name, ())
        ]

    # Memory that functions return or keep --------------------------------------------------------

    def scope(self, source: Source, function: Node) -> Scope:
        key = key_of(source, function)
        if key not in self.scopes:
            self.scopes[key] = Scope(source, function, lambda to: self.returned(source, to.value))
        return self.scopes[key]

    def returned(self, source: Source, value: Node) -> set[str]:
        """Returns names whose memory the calls of an expression may return."""
        found: set[str] = set()
        for call in source.calls(value):
            for other, function in self.definitions(source.callee(call)):
                memory = self.returned_by(other, function)
                outside = memory - self.scope(other, function).own
                found |= outside - set(self.own.functions)
                for name, argument in bound(source, call, names_of(other, function)):
                    if name in memory:
                        found |= {source.text(one) for one in source.names(argument)}
        return found

    def returned_by(self, source: Source, function: Node) -> set[str]:
        """Returns names of a function whose memory it may return."""
        key = key_of(source, function)
        if key not in self.returns:
            self.returns[key] = set()  # assumed while a recursive function is examined
            scope = self.scope(source, function)
            ends = (one for one in descendants(function) if one.type == "return_statement")
            memory = {source.text(name) for one in ends for name in source.names(one)}
            memory -= scope.numbers
            scope.roots(memory)
            self.returns[key] = memory
        return self.returns[key]

    def kept(self, scope: Scope, group: set[str]) -> set[str]:
        """Returns further names by which functions keep the group's memory."""
        source, found = scope.source, set()
        for call in scope.calls:
            name = source.callee(call)
            if name in KNOWN or name.startswith("MPI_"):
                continue
            for other, function in self.definitions(name):
                given = list(bound(source, call, names_of(other, function)))
                inner = {one for one, argument in given if is_of(source, argument, group)}
                inner = self.kept_by(other, function, inner)
                found |= inner - self.scope(other, function).own
                found |= {first_name(source, argument) for one, argument in given if one in inner}
        return found - group - scope.numbers - {"", "self", "this"}

    def kept_by(self, source: Source, function: Node, names: set[str]) -> set[str]:
        """Returns names of a function that lead to the memory of these parameters at its end."""
        scope = self.scope(source, function)
        names = names - scope.numbers
        key = (*key_of(source, function), frozenset(names))
        if names and key not in self.keeps:
            self.keeps[key] = names  # assumed while a recursive function is examined
            group = set(names)
            scope.spread(group)
            self.keeps[key] = group | self.kept(scope, group)
        return self.keeps.get(key, names)

    def elsewhere(self, scope: Scope, group: set[str], seen: set | None = None) -> Elsewhere:
        """Returns the other names, such as globals or further parameters, through which the memory
        of a function's names `group` may be accessed, since calling functions pass it or called
        functions keep it."""
        source, function = scope.source, scope.function
        seen = set() if seen is None else seen
        kept = self.kept(scope, group)
        found = Elsewhere(set(kept), bool(kept - scope.own))
        if function.type == "module":
            return found
        names = names_of(source, function)
        mine = set(names) & group - scope.numbers
        key = (*key_of(source, function), frozenset(mine))
        if not mine or key in seen:
            return found
        seen.add(key)
        callers = self.callers(declared_name(source, function))
        if not callers:
            listed = zip(names, parameters(source, function))
            found.names |= {name for name, one in listed if is_pointer(source, one)} - mine
            found.is_far = True
        for other, caller, call in callers:
            given = list(bound(other, call, names))
            outer = self.scope(other, caller)
            theirs = {
                other.text(one)
                for name, argument in given
                if name in mine
                for one in other.names(argument)
            }
            theirs -= outer.known | outer.numbers
            outer.roots(theirs)
            outer.spread(theirs)
            more = self.elsewhere(outer, theirs, seen)
            theirs |= more.names
            found.names |= theirs - outer.own
            found.is_far |= more.is_far or bool(theirs - outer.own)
            found.names |= {name for name, one in given if is_of(other, one, theirs)} - mine
        found.names -= scope.numbers
        return found

    def may_reach(self, name: str, group: set[str], seen: set[str] | None = None) -> bool:
        """Returns whether a function may touch memory that it does not get as an argument."""
        seen = set() if seen is None else seen
        if name in KNOWN or name.startswith("MPI_") or name in seen:
            return False
        seen.add(name)
        found = self.definitions(name)
        return not found or any(
            self.mentions(source, function, group)
            or any(self.may_reach(one, group, seen) for one in callees(source, function))
            for source, function in found
        )

    def mentions(self, source: Source, function: Node, group: set[str]) -> bool:
        others = group - self.scope(source, function).own
        return any(source.text(one) in others for one in source.names(function))

    def may_throw(self, name: str) -> bool:
        if name not in self.throws:
            self.throws[name] = False  # assumed while a recursive function is examined
            self.throws[name] = any(self.throws_in(*one) for one in self.definitions(name))
        return self.throws[name]

    def throws_in(self, source: Source, function: Node) -> bool:
        for one in descendants(function):
            is_call = one.type in source.grammar.calls
            if not is_call and one.type not in THROWS:
                continue
            around = (x.type for x in ancestors(one) if x.start_byte > function.start_byte)
            if any(kind in TRIES for kind in around):
                continue
            callee = source.callee(one) if is_call else ""
            if not is_call or callee in FAR_JUMPS or self.may_throw(callee):
                return True
        return False

    # Synchronisation of ranks --------------------------------------------------------------------

    @cached_property
    def takes_any(self) -> bool:
        """Returns whether the program receives messages from any rank."""
        words = meetings.RECEIVES if self.source.language == "python" else meetings.ANYWHERE
        return any(self.has(word) for word in words)

    @cached_property
    def shares_memory(self) -> bool:
        return self.has(meetings.SHARED)

    def has(self, word: str) -> bool:
        own = self.source.data.decode(errors="replace").lower()
        return word in own or any(word in text_of(*one) for one in self.beside)

    def may_meet(self, name: str) -> bool:
        """Returns whether ranks may synchronise in a function by other means than collectives."""
        if name not in self.meets:
            self.meets[name] = False  # assumed while a recursive function is examined
            self.meets[name] = any(
                meetings.meets(source, function, self.takes_any)
                or any(self.may_meet(one) for one in callees(source, function))
                for source, function in self.definitions(name)
            )
        return self.meets[name]


def key_of(source: Source, function: Node) -> tuple[str, int]:
    return str(source.path), function.start_byte


def names_of(source: Source, function: Node) -> list[str]:
    return [name_of(source, one) for one in parameters(source, function)]


def is_of(source: Source, argument: Node, group: set[str]) -> bool:
    return any(source.text(one) in group for one in source.names(argument))


def callees(source: Source, function: Node) -> set[str]:
    calls = (one for one in source.calls(function) if not is_of_numbers(source, one))
    return {source.callee(call) for call in calls}


def is_pointer(source: Source, parameter: Node) -> bool:
    """Returns whether a parameter of C or C++ may point to the memory of another parameter."""
    text = source.text(parameter)
    is_one = any(mark in text for mark in "*&[") and "restrict" not in text
    return is_one and source.language != "python"
