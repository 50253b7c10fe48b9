"""The table of rooms in docs/ARCHITECTURE.md: whose headers each folder of src/ may include."""

import re

import pytest

from weft import installation

SOURCES = installation.ROOT / "src"
TABLE = (installation.ROOT / "docs" / "ARCHITECTURE.md").read_text()
ROOMS = dict(re.findall(r"^\| `src/([\w/]+)/` \|.*\| ([^|]+) \|$", TABLE, re.MULTILINE))


def named(text: str) -> set[str]:
    return set() if text == "nothing" else {word.strip() for word in text.split(",")}


def may_use(room: str) -> set[str]:
    """What the table names for it, and what these may use."""
    found, more = set(), named(ROOMS[room])
    while more:
        one = more.pop()
        assert one in ROOMS, f"{room} uses {one}, which is no room"
        found.add(one)
        more |= named(ROOMS[one]) - found
    return found


def room_of(path: str) -> str:
    """src/transport holds two rooms of their own."""
    first, second = path.split("/")[:2]
    return f"{first}/{second}" if f"{first}/{second}" in ROOMS else first


def test_every_folder_is_in_the_table():
    folders = {entry.name for entry in SOURCES.iterdir() if entry.is_dir()}
    assert folders == {room.split("/")[0] for room in ROOMS}


def test_no_room_uses_itself_through_others():
    assert [room for room in ROOMS if room in may_use(room)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_includes_what_the_table_says(room):
    wrong = []
    for path in sorted(SOURCES.joinpath(room).rglob("*")):
        inside = str(path.relative_to(SOURCES))
        if path.suffix not in (".cc", ".h", ".cu") or room_of(inside) != room:
            continue
        for included in re.findall(r'#include "([^"]+)"', path.read_text()):
            if (SOURCES / included).exists() and room_of(included) not in {room, *may_use(room)}:
                wrong.append(f"{inside} includes {included}")
    assert wrong == []
