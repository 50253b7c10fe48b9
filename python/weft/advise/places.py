"""Finds the function, file and line of addresses, with inlined frames, by addr2line of elfutils or
of binutils. Without these tools it finds only functions, from the symbol tables of the file.

The ranks only record a module and an offset, which costs little; the lookup is made after the
run."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from weft.advise.arguments import statement
from weft.advise.names import language_of


@dataclass(frozen=True)
class Frame:
    function: str
    file: str  # path of the source; an empty string if it is not known
    line: int  # number of the line; 0 if it is not known

    def __str__(self) -> str:
        place = f" at {self.file}:{self.line}" if self.file else ""
        return f"{self.function}{place}"

    @property
    def name(self) -> str:
        return bare(self.function)


def bare(function: str) -> str:
    """Returns the name of a C++ function without parameters, template arguments and unnamed
    namespaces."""
    if "(" not in function or "operator" in function:
        return function
    kept, depth = "", 0
    for letter in function.replace("(anonymous namespace)::", ""):
        depth += letter in "(<["
        kept += "" if depth else letter
        depth -= letter in ")>]"
    return kept.removesuffix(" const").strip() or function


NO_TOOL = (
    "There are functions, but no lines: the machine has neither addr2line (package binutils) nor"
    " eu-addr2line (package elfutils). Install one of them."
)


def tool() -> str | None:
    return shutil.which("eu-addr2line") or shutil.which("addr2line")


def unresolved(module: str, offset: int) -> list[Frame]:
    return [Frame(f"{Path(module).name}+{offset:#x}", "", 0)]


def of_interpreter(where: str) -> list[Frame]:
    """Converts "file:line:function", as ranks record it, to a frame."""
    file, line, function = ["", "", *where.rsplit(":", 2)][-3:]
    return [Frame(function, file, int(line) if line.isdigit() else 0)]


LONGEST_LINE = 200  # most characters that are kept of a source line


def source_lines(wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Returns the text of the source by file and line. Lines that continue the text are included.
    Sources that cannot be read are left out."""
    by_file: dict[str, list[int]] = defaultdict(list)
    for file, line in sorted(wanted):
        by_file[file].append(line)
    found = {}
    for file, numbers in by_file.items():
        try:
            # Only regular files are read, since opening a pipe would block.
            lines = (
                Path(file).read_text(errors="replace").split("\n") if Path(file).is_file() else []
            )
        except OSError:
            continue
        language = language_of(file, "")
        for number in numbers:
            if 0 < number <= len(lines):
                for i, line in enumerate(statement(lines[number - 1 :], language)):
                    found[file, number + i] = line.strip()[:LONGEST_LINE]
    return found


def parse_frames(lines: list[str], module: str, offset: int) -> list[Frame]:
    """Returns the frames in addr2line's output, which alternates function and place. The innermost
    inlined function is first."""
    found = []
    for function, place in zip(lines[::2], lines[1::2]):
        file, _, number = place.partition(" (")[0].rpartition(":")
        # elfutils prints the column behind the line, as FILE:LINE:COLUMN.
        if number.isdigit() and file.rpartition(":")[2].isdigit():
            file, _, number = file.rpartition(":")
        known = file not in ("", "??") and number.isdigit() and number != "0"
        if function != "??" or known:
            found.append(Frame(function, file if known else "", int(number) if known else 0))
    return found or unresolved(module, offset)


class Symbol(NamedTuple):
    begin: int
    end: int
    name: str


# These are the parts of 64-bit ELF files that are read. The file's header gives the place of the
# sections, the size of an entry and their number. A section has a type, a place, a length, and the
# section that contains its names. The last is a symbol.
SECTIONS, SECTION = struct.Struct("<40xQ10xHH2x"), struct.Struct("<4xI16xQQI20x")
SYMBOL = struct.Struct("<IBxHQQ")
TABLES_OF_SYMBOLS = (2, 11)
FUNCTIONS = (0, 2, 10)  # types of symbols: none, a function, one that is chosen at run time (IFUNC)


def symbols(data: mmap.mmap) -> Iterator[Symbol]:
    place, size, count = SECTIONS.unpack_from(data)
    sections = [SECTION.unpack_from(data, place + i * size) for i in range(count)]
    for kind, begin, length, link in sections:
        if kind not in TABLES_OF_SYMBOLS:
            continue
        _, first_name, names_length, _ = sections[link]
        names = data[first_name : first_name + names_length]
        for name, info, section, value, bytes_ in SYMBOL.iter_unpack(data[begin : begin + length]):
            if info & 15 in FUNCTIONS and section and bytes_:
                word = names[name : names.index(b"\0", name)].decode(errors="replace")
                yield Symbol(value, value + bytes_, word)


def functions(module: str) -> list[Symbol]:
    """Returns the functions with a size in the file's symbol tables, sorted by address; an empty
    list if they cannot be read."""
    try:
        with Path(module).open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return sorted(set(symbols(data))) if data[:6] == b"\x7fELF\2\1" else []
    except (OSError, struct.error, IndexError, ValueError):
        return []


def function_at(known: list[Symbol], offset: int) -> Symbol | None:
    """Returns the function that contains the call which returns to this offset; None if there is
    none."""
    before = known[: bisect_left(known, (offset,))]
    return next((one for one in reversed(before) if offset - 1 < one.end), None)


def named(module: str, offsets: list[int]) -> dict[int, list[Frame]]:
    """Returns frames with the function's name but without file and line, by offset."""
    known = functions(module)
    found = {offset: function_at(known, offset) for offset in offsets}
    return {offset: [Frame(one.name, "", 0)] for offset, one in found.items() if one}


def without_neighbours(found: dict[int, list[Frame]], module: str) -> dict[int, list[Frame]]:
    """Removes wrong names. In a stripped file binutils name the nearest preceding function, however
    far it is."""
    guessed = [offset for offset, frames in found.items() if not any(f.file for f in frames)]
    known = functions(module) if guessed else []
    for offset in guessed:
        if not function_at(known, offset):
            found[offset] = unresolved(module, offset)
    return found


def ask(command: str, module: str, offsets: list[int]) -> dict[int, list[Frame]]:
    # The address before the return address is looked up, so that the call's own line is found. The
    # looked-up address is printed in front of its frames.
    words = [command, "-a", "-f", "-C", "-i", "-e", module, *(hex(o - 1) for o in offsets)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    groups: list[list[str]] = []
    for line in done.stdout.splitlines():
        if line.startswith("0x") and " " not in line and ":" not in line:
            groups.append([])
        elif groups:
            groups[-1].append(line)
    if len(groups) != len(offsets):
        return {}
    found = {offset: parse_frames(lines, module, offset) for offset, lines in zip(offsets, groups)}
    return without_neighbours(found, module)


def resolve(wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], list[Frame]]:
    """Returns the frames of each pair of module and offset."""
    by_module: dict[str, list[int]] = defaultdict(list)
    for module, offset in sorted(set(wanted)):
        by_module[module].append(offset)
    command = tool()
    found = {}
    for module, offsets in by_module.items():
        known = {}
        if Path(module).is_file():
            known = ask(command, module, offsets) if command else named(module, offsets)
        for offset in offsets:
            found[module, offset] = known.get(offset) or unresolved(module, offset)
    return found
