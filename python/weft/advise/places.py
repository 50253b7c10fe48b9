"""Functions, files and lines of addresses, with inlined frames: elfutils' or binutils' addr2line.

Why after the run: the ranks keep a module and an offset, which costs nothing.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Frame:
    function: str
    file: str  # "": not known
    line: int  # 0: not known

    def __str__(self) -> str:
        place = f" at {self.file}:{self.line}" if self.file else ""
        return f"{self.function}{place}"


def tool() -> str | None:
    return shutil.which("eu-addr2line") or shutil.which("addr2line")


def unresolved(module: str, offset: int) -> list[Frame]:
    return [Frame(f"{Path(module).name}+{offset:#x}", "", 0)]


def of_interpreter(where: str) -> list[Frame]:
    """ "file:line:function", as the ranks write it down."""
    file, line, function = where.rsplit(":", 2)
    return [Frame(function, file, int(line) if line.isdigit() else 0)]


def parse_frames(lines: list[str], module: str, offset: int) -> list[Frame]:
    """Function and place in turn, the innermost inlined function first."""
    found = []
    for function, place in zip(lines[::2], lines[1::2]):
        file, _, number = place.partition(" (")[0].rpartition(":")
        # elfutils adds the column.
        if number.isdigit() and file.rpartition(":")[2].isdigit():
            file, _, number = file.rpartition(":")
        known = file not in ("", "??") and number.isdigit() and number != "0"
        if function != "??" or known:
            found.append(Frame(function, file if known else "", int(number) if known else 0))
    return found or unresolved(module, offset)


def function_ranges(module: str) -> list[tuple[int, int]]:
    """Begin and end of those that the file's tables of symbols name with their size, in order."""
    tool = shutil.which("nm") or shutil.which("eu-nm")
    found = set()
    for tables in ([], ["-D"]) if tool else ():
        words = [tool, "-P", *tables, module]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            return []
        for line in done.stdout.splitlines():
            with suppress(ValueError):  # of undefined symbols there are fewer words
                _, kind, begin, size = line.split()
                if kind in "tTwWi":
                    found.add((int(begin, 16), int(begin, 16) + int(size, 16)))
    return sorted(found)


def without_neighbours(found: dict[int, list[Frame]], module: str) -> dict[int, list[Frame]]:
    """In a stripped file binutils name the last function before, whichever and however far."""
    guessed = [offset for offset, frames in found.items() if not any(f.file for f in frames)]
    ranges = function_ranges(module) if guessed else []
    for offset in guessed:
        if not any(begin <= offset - 1 < end for begin, end in ranges):
            found[offset] = unresolved(module, offset)
    return found


def ask(command: str, module: str, offsets: list[int]) -> dict[int, list[Frame]]:
    # One before the return address, so that the call's own line is found. The address itself is
    # printed in front of its frames.
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
    """(module, offset) -> frames."""
    by_module: dict[str, list[int]] = defaultdict(list)
    for module, offset in sorted(set(wanted)):
        by_module[module].append(offset)
    command = tool()
    found = {}
    for module, offsets in by_module.items():
        known = ask(command, module, offsets) if command and Path(module).is_file() else {}
        for offset in offsets:
            found[module, offset] = known.get(offset) or unresolved(module, offset)
    return found
