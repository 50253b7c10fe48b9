"""Tests the table of folders in docs/ARCHITECTURE.md, which says whose headers each folder of src/
may include."""

from pathlib import Path

import pytest
import rooms

from weft.system import installation

SOURCES = installation.ROOT / "src"
ROOMS = rooms.rooms_below("src")


def room_of(path: str) -> str:
    """Returns the folder in the table to which a path belongs. A folder inside another may have its
    own row, as those of src/runtime do."""
    parts = path.split("/")
    inner = "/".join(parts[:2])
    return inner if len(parts) > 2 and inner in ROOMS else parts[0]


def against_the_order(sources: Path, room: str) -> list[str]:
    allowed = {room, *rooms.may_use(room, ROOMS)}
    return [
        f"{inside} includes {included}"
        for path in rooms.files(sources)
        if room_of(inside := str(path.relative_to(sources))) == room
        for included in rooms.includes(path, sources)
        if room_of(included) not in allowed
    ]


def test_every_folder_is_in_the_table():
    folders = {entry.name for entry in SOURCES.iterdir() if entry.is_dir()}
    assert folders == {room.split("/")[0] for room in ROOMS}


def test_every_folder_of_the_runtime_is_a_room():
    folders = {
        f"runtime/{entry.name}" for entry in (SOURCES / "runtime").iterdir() if entry.is_dir()
    }
    assert folders == {room for room in ROOMS if room.startswith("runtime/")}


def test_no_room_uses_itself_through_others():
    assert [room for room in ROOMS if room in rooms.may_use(room, ROOMS)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_includes_what_the_table_says(room):
    assert against_the_order(SOURCES, room) == []


def test_few_units_include_each_other_and_none_across_folders():
    assert rooms.wrong_circles(SOURCES) == []


def test_definitions_lie_in_the_file_of_their_header():
    assert rooms.misplaced_definitions(SOURCES) == []


def write(sources: Path, text_of: dict[str, str]) -> None:
    for name, text in text_of.items():
        path = sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_an_arrow_against_the_order_is_found(tmp_path):
    request, start = "runtime/request/requests.h", "runtime/start/start.h"
    write(tmp_path, {request: "", start: f'#include "{request}"\n'})
    assert against_the_order(tmp_path, "runtime/start") == []
    write(tmp_path, {request: f'#include "{start}"\n'})
    assert against_the_order(tmp_path, "runtime/request") == [f"{request} includes {start}"]
    assert against_the_order(tmp_path, "runtime/start") == []


def test_circles_are_found(tmp_path):
    def includes(*names):
        return "".join(f'#include "{name}.h"\n' for name in names)

    write(tmp_path, {"a/one.h": "", "a/one.cc": includes("a/one", "a/two"), "a/two.h": ""})
    assert rooms.wrong_circles(tmp_path) == []
    write(tmp_path, {"a/two.cc": includes("a/one")})
    assert rooms.wrong_circles(tmp_path) == []
    write(tmp_path, {"a/two.cc": includes("a/three"), "a/three.h": includes("a/one")})
    assert rooms.wrong_circles(tmp_path) == [["a/one", "a/three", "a/two"]]
    write(tmp_path, {"a/two.cc": includes("b/other"), "b/other.h": includes("a/two")})
    assert rooms.wrong_circles(tmp_path) == [["a/two", "b/other"]]


def test_a_definition_in_another_file_is_found(tmp_path):
    header = "class Tool {\n public:\n  void use();\n};\n\nint made(int of);\n"
    source = "namespace {\n\nint other() {\n  return 1;\n}\n\n}  // namespace\n\n"
    method, function = "void Tool::use() {\n}\n", "int made(int of) {\n  return of;\n}\n"
    write(tmp_path, {"tool.h": header, "tool.cc": source + method, "tool_made.cc": function})
    assert rooms.misplaced_definitions(tmp_path) == []
    write(tmp_path, {"tool.cc": source, "other.cc": method + function, "other.h": "int other();\n"})
    assert rooms.misplaced_definitions(tmp_path) == [
        "Tool::use in other.cc, declared in tool.h",
        "made in other.cc, declared in tool.h",
    ]
