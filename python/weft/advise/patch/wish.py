"""Holds the calls that a record advises to change, as plain data: where they are in the source, and
what was measured about them."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Optional

from weft.advise.analysis import Advice
from weft.advise.checked import Checks
from weft.advise.fragments import persistent
from weft.advise.sites import Site, Toucher
from weft.advise.store import Stored

INTERPRETER = re.compile(r"python[\d.]*")
PLANS_OF_MPI4PY = 4  # the first version with persistent collectives
ANSWER_S = 20  # time limit in seconds for an interpreter to say its version


@dataclass(frozen=True)
class Place:
    """A source line that accesses a buffer."""

    file: str
    line: int
    function: str = ""


@dataclass
class Wish:
    call: str  # name of the call, such as MPI_Allreduce
    file: str
    line: int
    language: str
    uses: list[Place] = field(default_factory=list)  # places that touched the result first
    writes: list[Place] = field(default_factory=list)  # places that last wrote the send buffer
    earlier: bool = False  # starting the call earlier gains time
    is_known: bool = True  # the first use was measured
    object_method: str = ""  # mpi4py's method that pickles objects; an empty string for other calls
    source: str = ""  # the line's text when the program ran; an empty string if it is not known
    # This is the file of the program or library. It is empty if the program is interpreted.
    module: str = ""
    function: str = ""  # function that contains the call
    # Place where other ranks make the same call; "" if they make it at this line, too.
    elsewhere: str = ""
    plan: str = ""  # MPI_Allreduce_init or its like, if each call has the same arguments

    @property
    def place(self) -> str:
        return f"{Path(self.file).name}:{self.line}"

    @property
    def where(self) -> str:
        return f"at {self.place}" if self.file else f"in {self.function}"


def places(touchers: Iterable[Toucher]) -> list[Place]:
    return [Place(one.frame.file, one.frame.line, one.frame.name) for one in touchers]


def modules_of(stored: Stored) -> dict[tuple[int, int], str]:
    return {
        (row["rank"], row["site"]): "" if row["place"] else row["module"] for row in stored["site"]
    }


def meetings(advice: Advice, stored: Stored) -> dict[str, str]:
    """Returns for each source line of a call another line at which other ranks made the same
    collective call."""
    places = {member: line_of(site) for site in advice.sites for member in site.members}
    met: dict[tuple, set[str]] = defaultdict(set)
    for one in stored["arrival"]:
        if place := places.get((one["rank"], one["site"])):
            met[one["comm"], one["sequence"]].add(place)
    return {
        place: min(found - {place}) for found in met.values() if len(found) > 1 for place in found
    }


def line_of(site: Site) -> str:
    frame = site.frames[0]
    return f"{Path(frame.file).name}:{frame.line}" if frame.file else frame.name


@lru_cache
def version_of_mpi4py(interpreter: str) -> int:
    """Returns the first number of the version of the interpreter's mpi4py; 0 if there is none."""
    words = [interpreter, "-c", "import mpi4py; print(mpi4py.__version__)"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=ANSWER_S)
        return int(done.stdout.partition(".")[0])
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return 0


def plans_in_python(command: Iterable[str]) -> bool:
    """Returns whether the interpreter in the command has an mpi4py with persistent collectives."""
    names = (one for one in command if INTERPRETER.fullmatch(Path(one).name))
    return any(version_of_mpi4py(one) >= PLANS_OF_MPI4PY for one in names)


def planned(alike: list[Site], stored: Stored, command: Iterable[str]) -> str:
    """Returns the persistent form of the call, if the job's MPI library has it; otherwise an empty
    string."""
    names = {persistent(site) for site in alike}
    libraries = {row["library"] for row in stored["rank"]}
    if len(alike) != 1 or len(libraries) != 1:
        return ""
    [name], [site] = names, alike
    has_it = name in Checks(libraries.pop()).calls
    return name if has_it and (site.language != "python" or plans_in_python(command)) else ""


def wish_of(site: Site, alike: list[Site], module: str) -> Wish:
    """Returns what is known about the call of a site. `alike`: all sites of this source line, which
    differ in message sizes or calling functions."""
    frame = site.frames[0]
    measured = [one for one in alike if one.after.least]
    is_known = all(one.users or one.language == "python" for one in measured) and bool(measured)
    return Wish(
        call=site.call,
        file=frame.file,
        line=frame.line,
        language=site.language,
        uses=list(dict.fromkeys(place for one in alike for place in places(one.users))),
        writes=list(dict.fromkeys(place for one in alike for place in places(one.writers))),
        earlier=all(one.earlier_us for one in alike),
        is_known=is_known,
        object_method=site.object_method,
        source=site.source,
        module=module,
        function=frame.name,
    )


def wishes_of(
    advice: Advice, stored: Stored, chosen: Optional[Iterable[Site]] = None
) -> list[Wish]:
    """Returns the calls that are worth a change, or those of the given sites, with each source line
    once."""
    modules, met = modules_of(stored), meetings(advice, stored)
    found: dict[tuple, Wish] = {}
    for site in advice.best if chosen is None else chosen:
        frame = site.frames[0]
        key = frame.file, frame.line, site.call
        alike = [
            one for one in advice.sites if (one.frames[0].file, one.frames[0].line, one.call) == key
        ]
        module = next((modules.get(member, "") for member in sorted(site.members)), "")
        if key not in found:
            found[key] = wish_of(site, alike, module)
            found[key].elsewhere = met.get(line_of(site), "")
            found[key].plan = planned(alike, stored, advice.command)
    return list(found.values())
