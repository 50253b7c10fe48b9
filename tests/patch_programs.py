"""Whole programs whose calls `weft advise --patch` changes or leaves (cli/programs/patch/whole).
Comments in them say what is expected:

EXPECT NAME: changed             what becomes of a call, as the MPI standard has it
EXPECT NAME: changed: WORDS      with words of the sentence about it
EXPECT NAME: left: WORDS         with words of the reason
FILE NAME                        a file that belongs to the program
CALL NAME [MEETS OTHER]          the line of a call, which other ranks make at another place
USE NAME [FUNCTION]              the line, of another function perhaps, that uses its result first
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from weft.advise.patch.diff import Patch
from weft.advise.patch.wish import Place, Wish

FOLDER = Path(__file__).parent / "cli" / "programs" / "patch" / "whole"
LANGUAGES = {".c": "c", ".h": "c", ".cpp": "c++", ".py": "python"}
LANGUAGES |= dict.fromkeys((".f", ".f90", ".F90"), "fortran")
EXPECTED = re.compile(r"EXPECT (\w+): (?:changed(?:: (.+))?|left: (.+))")
MARK = re.compile(r"(?:/\*|//|[!#]) (CALL|USE) (\w+)(?: MEETS (\w+)| (\w+))?")
CALLED = re.compile(r"(?:MPI_|\.)(all[a-z]+|bcast|reduce) ?\(", re.IGNORECASE)
OBJECTS = re.compile(r"\.(all[a-z]+|bcast)\(")
LINES_OF_CALL = 3  # most lines of a call; the last one has the mark


@dataclass
class Program:
    """A copy of a program in a temporary folder."""

    main: Path
    expected: dict[str, str] = field(default_factory=dict)  # "": the call is changed
    said: dict[str, str] = field(default_factory=dict)  # words about calls that are changed
    files: list[Path] = field(default_factory=list)

    @property
    def language(self) -> str:
        return LANGUAGES[self.main.suffix]

    @property
    def sources(self) -> list[Path]:
        """Returns the files that the compiler gets."""
        return [one for one in self.files if one.suffix not in (".h", ".inc")]

    @cached_property
    def wishes(self) -> dict[str, Wish]:
        """Returns the calls by the names of their marks."""
        found: dict[str, Wish] = {}
        uses: list[tuple[str, Place]] = []
        for path in self.files:
            lines = path.read_text().splitlines()
            for number, line in enumerate(lines, 1):
                for kind, name, other, function in MARK.findall(line):
                    if kind == "USE":
                        uses.append((name, Place(str(path), number, function)))
                    else:
                        found[name] = self.wish(path, lines, number)
                        found[name].elsewhere = f"the place of {other}" if other else ""
        for name, place in uses:
            found[name].uses.append(place)
        return found

    def wish(self, path: Path, lines: list[str], number: int) -> Wish:
        line = lines[number - 1]
        text = "\n".join(lines[number - LINES_OF_CALL : number])
        call = f"MPI_{(CALLED.findall(text) or ['allreduce'])[-1].capitalize()}"
        language = LANGUAGES.get(path.suffix, self.language)
        made = Wish(call, str(path), number, language, source=line.strip())
        made.plan = f"{call}_init"
        made.object_method = "".join(OBJECTS.findall(line) if language == "python" else ())
        return made


def copied(name: str, target: Path) -> Program:
    main = FOLDER / name
    text = main.read_text()
    found = EXPECTED.findall(text)
    expected = {one: words.strip() for one, _, words in found}
    said = {one: words.strip() for one, words, _ in found if words}
    more = re.findall(r"FILE (\S+)", text)
    more += [one.name for one in FOLDER.glob(f"{main.stem}.*.h")]
    files = [Path(shutil.copy(FOLDER / one, target)) for one in dict.fromkeys([name, *more])]
    return Program(files[0], expected, said, files)


def interface(name: str) -> str:
    """Returns the interface by which a Fortran program calls MPI."""
    text = (FOLDER / name).read_text().lower()
    return next((one for one in ("mpi_f08", "mpif.h") if one in text), "mpi")


def names(*languages: str) -> list[str]:
    """Returns the main files, whose names have one dot and do not begin with an underscore."""
    found = (one for one in FOLDER.glob("[!_]*") if len(one.suffixes) == 1)
    return sorted(one.name for one in found if LANGUAGES[one.suffix] in languages)


def at(wish: Wish, sentences: list[str]) -> list[str]:
    """Returns the sentences about a call, whose mark is in one of its lines."""
    for lines in sorted(range(1 - LINES_OF_CALL, LINES_OF_CALL), key=abs):
        place = f" {Path(wish.file).name}:{wish.line + lines} "
        if found := [one for one in sentences if place in one]:
            return found
    return []


def check(program: Program, patch: Patch, not_measured: tuple[str, ...] = ()) -> None:
    """Checks that each call was changed or left as the program expects, unless the measurement
    lacks something."""
    for name, words in program.expected.items():
        found = at(program.wishes[name], [*patch.made, *patch.left])
        said = "\n".join([name, *patch.made, *patch.left])
        assert len(found) == 1, said
        if words or found[0] in patch.left:
            assert found[0] in patch.left, said
            assert any(why in found[0] for why in (words, *not_measured) if why), said


def applied(patch: Patch) -> None:
    words = ["patch", "-p1", "-d", str(patch.root)]
    subprocess.run(words, input=patch.text, text=True, check=True, timeout=60)
