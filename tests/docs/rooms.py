"""Reads the sources as units and folders: which unit includes which, and where functions are
defined.

A unit is a header with the source of its name. Generated files count as part of the folder above
theirs."""

import re
from pathlib import Path

from weft.system import installation

TABLES = (installation.ROOT / "docs" / "ARCHITECTURE.md").read_text()
SUFFIXES = (".cc", ".h", ".cu")
MOST_IN_A_CIRCLE = 2


def rooms_below(folder: str) -> dict[str, set[str]]:
    """Returns the folders that each folder may use according to the tables. The empty name is the
    parent folder."""
    rows = re.findall(rf"^\| `{folder}/([\w/]*)` \|.*\| ([^|]+) \|$", TABLES, re.MULTILINE)
    return {room.rstrip("/"): named(text) for room, text in rows}


def named(text: str) -> set[str]:
    return set() if text == "nothing" else {word.strip() for word in text.split(",")}


def may_use(room: str, rooms: dict[str, set[str]]) -> set[str]:
    """Returns the folders that the table names for a folder, and those that these may use."""
    found, more = set(), set(rooms[room])
    while more:
        one = more.pop()
        assert one in rooms, f"{room} uses {one}, which is no room"
        found.add(one)
        more |= rooms[one] - found
    return found


def files(sources: Path) -> list[Path]:
    return sorted(path for path in sources.rglob("*") if path.suffix in SUFFIXES)


def includes(path: Path, sources: Path) -> list[str]:
    named = re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)
    return [name for name in named if (sources / name).exists()]


def units(sources: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in files(sources):
        unit = str(path.relative_to(sources).with_suffix(""))
        own = found.setdefault(unit, set())
        own |= {str(Path(name).with_suffix("")) for name in includes(path, sources)} - {unit}
    return found


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Returns the sets of several units that all reach each other (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(unit: str) -> None:
        index[unit] = lowest[unit] = len(index)
        stack.append(unit)
        for other in graph.get(unit, ()):
            if other not in index:
                visit(other)
            if other in stack:
                lowest[unit] = min(lowest[unit], lowest[other])
        if lowest[unit] == index[unit]:
            circle = set()
            while unit not in circle:
                circle.add(stack.pop())
            if len(circle) > 1:
                found.append(circle)

    for unit in graph:
        if unit not in index:
            visit(unit)
    return found


def folder_of(unit: str) -> str:
    return str(Path(unit).parent).removesuffix("/generated")


def wrong_circles(sources: Path) -> list[list[str]]:
    """Returns the circles that span several folders, and those with too many units."""
    return [
        sorted(circle)
        for circle in circles(units(sources))
        if len(circle) > MOST_IN_A_CIRCLE or len({folder_of(unit) for unit in circle}) > 1
    ]


# Places of function definitions ---------------------------------------------------------------

NO_FUNCTION = r"namespace|using|template|alignas|static_assert|#|//|\s"
FUNCTION = re.compile(rf"^(?!{NO_FUNCTION})[\w:<>,&*~\[\] ]*?((?:\w+::)*~?\w+)\(", re.MULTILINE)
CLASS = re.compile(r"^(?:class|struct) (?:\[\[\w+\]\] )?(\w+)[^;]*\{", re.MULTILINE)


def outside_unnamed_namespaces(text: str) -> str:
    return re.sub(
        r"^namespace \{\n.*?^\}  // namespace\n", "", text, flags=re.DOTALL | re.MULTILINE
    )


def at_namespace_scope(text: str) -> str:
    """Returns the text without the bodies of classes and functions, which clang-format ends in the
    first column."""
    return re.sub(r"\{\n(?: .*\n|\n|#.*\n|public:.*\n)*\};?\n", ";\n", text)


def functions_declared_in(header: str) -> set[str]:
    return {name for name in FUNCTION.findall(at_namespace_scope(header)) if "::" not in name}


def functions_defined_in(source: str) -> set[str]:
    """Returns the names of functions, with their classes: Class::function."""
    names = set()
    text = outside_unnamed_namespaces(source)
    for match in FUNCTION.finditer(text):
        begin, end = text.find("{", match.end()), text.find(";", match.end())
        if begin != -1 and (end == -1 or begin < end):
            names.add(match[1])
    return names


def belongs(source: Path, header: Path) -> bool:
    """Returns whether a source belongs to a header. A long unit may have several sources, such as
    learner.cc and learner_trials.cc."""
    same_folder = source.parent == header.parent
    return same_folder and (source.stem == header.stem or source.stem.startswith(f"{header.stem}_"))


def written_by_hand(sources: Path, suffix: str) -> list[Path]:
    return [
        path for path in files(sources) if path.suffix == suffix and path.parent.name != "generated"
    ]


def misplaced_definitions(sources: Path) -> list[str]:
    """Returns the functions that a header declares and another unit defines."""
    headers: dict[str, set[Path]] = {}
    for path in written_by_hand(sources, ".h"):
        text = path.read_text()
        names = functions_declared_in(text) | {f"{name}::" for name in CLASS.findall(text)}
        for name in names:
            headers.setdefault(name, set()).add(path)
    wrong = []
    for path in written_by_hand(sources, ".cc"):
        for name in sorted(functions_defined_in(path.read_text())):
            owners = headers.get(f"{name.split('::')[0]}::" if "::" in name else name, set())
            if owners and not any(belongs(path, header) for header in owners):
                declared = ", ".join(sorted(str(one.relative_to(sources)) for one in owners))
                wrong.append(f"{name} in {path.relative_to(sources)}, declared in {declared}")
    return wrong
