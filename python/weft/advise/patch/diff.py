"""Makes a unified diff of all changes, and says why other calls are left as they are."""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from weft.advise.patch import languages, remark, write
from weft.advise.patch.edits import Edit
from weft.advise.patch.refusal import Refusal
from weft.advise.patch.wish import Wish


@dataclass
class Patch:
    text: str = ""  # patch for `git apply` and `patch -p1`
    root: Path = field(default_factory=Path)  # folder in which it applies
    made: list[str] = field(default_factory=list)  # sentences about the changes that were made
    left: list[str] = field(default_factory=list)
    # text of each file before and after the change
    files: dict[Path, tuple[str, str]] = field(default_factory=dict)
    # programs and libraries that the changed files belong to
    modules: set[Path] = field(default_factory=set)
    changes: list[write.Change] = field(default_factory=list)  # the changes, in the order of `made`


def check_current(wish: Wish, source: languages.Source, path: Path) -> None:
    """Raises Refusal unless the source is that of the program that ran."""
    there = source.line(wish.line).strip() if wish.line <= len(source.lines) else None
    if wish.source and (there is None or there[: len(wish.source)] != wish.source):
        raise Refusal("the line has changed since the program ran: run weft advise again")
    module = Path(wish.module) if wish.module else None
    is_there = module is not None and module.is_file()
    if is_there and path.stat().st_mtime > module.stat().st_mtime:
        raise Refusal(f"the file is newer than {module.name}: compile, and run weft advise again")


def is_generated(source: languages.Source) -> bool:
    """Returns whether the source was written by a program: it has #line directives that name
    another file."""
    marks = (line.split() for line in source.lines if line.startswith("#"))
    return any(
        (words[:1] == ["#line"] or (words[:1] == ["#"] and len(words) > 1 and words[1].isdigit()))
        for words in marks
    )


def source_of(wish: Wish) -> tuple[Path, languages.Source]:
    if not wish.file:
        raise Refusal("it has no line: compile with -g")
    path = Path(wish.file)
    if wish.language not in languages.GRAMMARS:
        raise Refusal(f"the language of {path.name} is not supported")
    source = languages.read(path, wish.language)
    if is_generated(source):
        raise Refusal(f"{path.name} is generated from another file")
    check_current(wish, source, path)
    return path, source


def overlap(one: write.Change, other: write.Change) -> bool:
    """Returns whether two changes may conflict: their calls are in flight at once, or both declare
    variables in one function of Fortran."""
    if one.wish.language == "fortran" and one.function == other.function:
        return True
    return one.lines[0] <= other.lines[1] and other.lines[0] <= one.lines[1]


def root_of(paths: Iterable[Path]) -> Path:
    """Returns the git checkout that contains all files, or else the innermost folder that contains
    them all."""
    folder = Path(os.path.commonpath([str(path.parent.resolve()) for path in paths]))
    checkouts = (one for one in (folder, *folder.parents) if (one / ".git").exists())
    return next(checkouts, folder)


def unified(path: Path, root: Path, before: str, after: str) -> str:
    name = path.resolve().relative_to(root)
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    whole = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return "".join(whole)


def left_as_they_are(wishes: list[Wish], why: str) -> str:
    calls = " and ".join(f"{wish.call} {wish.where}" for wish in wishes)
    return f"{calls} {'are left as they are' if wishes[1:] else 'is left as it is'}: {why}."


def make(wishes: list[Wish]) -> Patch:
    patch = Patch()
    left: dict[str, list[Wish]] = defaultdict(list)  # calls by the reason why they are left
    sources: dict[Path, languages.Source] = {}
    changes: dict[Path, list[write.Change]] = defaultdict(list)
    remarks: dict[Path, list[Edit]] = defaultdict(list)
    for number, wish in enumerate(wishes, 1):
        try:
            path, source = source_of(wish)
        except Refusal as why:
            left[str(why)].append(wish)
            continue
        sources[path] = source
        try:
            made = write.change(source, wish, number)
            if any(overlap(made, other) for other in changes[path]):
                raise Refusal("another change of this patch is too near: apply that one first")
            changes[path].append(made)
            patch.made.append(f"{made.note}.")
            patch.modules |= {Path(wish.module)} if wish.module else set()
            patch.changes.append(made)
        except Refusal as why:
            left[str(why)].append(wish)
            remarks[path] += remark.before(source, wish, str(why))
    patch.left = [left_as_they_are(own, why) for why, own in left.items()]
    if patch.made:
        write_down(patch, sources, changes, remarks)
    return patch


def write_down(
    patch: Patch,
    sources: dict[Path, languages.Source],
    changes: dict[Path, list[write.Change]],
    remarks: dict[Path, list[Edit]],
) -> None:
    kept = sorted(path for path in sources if changes[path] or remarks[path])
    patch.root = root_of(kept)
    diffs = []
    for path in kept:
        own = [edit for change in changes[path] for edit in change.edits]
        free = [one for one in remarks[path] if not any(is_inside(one, edit) for edit in own)]
        before = "\n".join(sources[path].lines)
        after = write.edited(sources[path], [*own, *free])
        if before != after:
            patch.files[path] = before, after
            diffs.append(unified(path, patch.root, before, after))
    comments = [f"# {line}\n" for line in (*patch.made, *patch.left)]
    patch.text = "".join([*comments, *diffs])


def is_inside(remark: Edit, edit: Edit) -> bool:
    """Returns whether a remark would stand between lines that the edit replaces."""
    return edit.first < remark.first <= edit.last
