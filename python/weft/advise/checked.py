"""Whether a fragment may be shown: as a small function of its own it is compiled for the job's MPI
library, where its compiler wrapper is at hand. Else the library must have the call.

Why the arguments are other ones then: the program's own stand in its source, where they compile.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from weft.advise import fragments
from weft.advise.arguments import names
from weft.advise.names import base_name
from weft.advise.places import functions
from weft.advise.sites import Site

COMPILE_S = 30
WRAPPERS = {"c": "mpicc", "c++": "mpicxx"}
DEBIANS = {"libmpich.so.12": ".mpich", "libmpi.so.40": ".openmpi"}  # behind a wrapper's name
HEADERS = {"c": "#include <mpi.h>\n", "c++": "#include <mpi.h>\n#include <vector>\n"}
# By the end of an argument's name. Those of a large count are {count} and {place}.
DECLARATIONS = {
    "send": "const void* {name}",
    "receive": "void* {name}",
    "buffer": "void* {name}",
    "count": "{count} {name}",
    "counts": "const {count} {name}[]",
    "places": "const {place} {name}[]",
    "type": "MPI_Datatype {name}",
    "types": "const MPI_Datatype {name}[]",
    "op": "MPI_Op {name}",
    "root": "int {name}",
    "comm": "MPI_Comm {name}",
}


def is_large(call: str) -> bool:
    return call.endswith("_c")


def declarations(call: str, mark: str) -> list[str]:
    count, place = ("MPI_Count", "MPI_Aint") if is_large(call) else ("int", "int")
    if base_name(call) == "neighbor_alltoallw":
        place = "MPI_Aint"
    kinds = sorted(DECLARATIONS, key=len, reverse=True)
    return [
        DECLARATIONS[next(kind for kind in kinds if name.endswith(kind))].format(
            name=name + mark, count=count, place=place
        )
        for name in names(call)
    ]


def with_names(site: Site, mark: str) -> Site:
    """The site as a blocking call of such names."""
    call = f"MPI_{base_name(site.call).capitalize()}{'_c' if is_large(site.call) else ''}"
    words = ", ".join(name + mark for name in names(call))
    plain = {"outer": [], "users": [], "writers": []}
    return replace(site, call=call, source="", statement=f"{call}({words});", **plain)


def function_of(text: str, parameters: list[str]) -> str:
    lines = [
        line.replace("…", ";", 1) if line.startswith("…") else line for line in text.splitlines()
    ]
    return "\n".join([f"void changed({', '.join(parameters)}) {{", *lines, "}", ""])


def parses(text: str) -> bool:
    """Returns whether Python can parse the text."""
    try:
        ast.parse(text.replace("…", "..."))
    except SyntaxError:
        return False
    return True


@lru_cache
def compiles(wrapper: Path, language: str, unit: str) -> bool:
    words = [str(wrapper), "-fsyntax-only", "-Werror=implicit-function-declaration"]
    try:
        done = subprocess.run(
            [*words, "-x", language, "-"],
            input=HEADERS[language] + unit,
            capture_output=True,
            text=True,
            timeout=COMPILE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


Fragment = Callable[..., str]  # called with sites


class Checks:
    """Compiles fragments with the job's MPI library, found by the path from which the ranks loaded
    it."""

    def __init__(self, library: str):
        self.library = Path(library)

    @cached_property
    def calls(self) -> set[str]:
        """That the library has; none: it is not on this machine."""
        return {one.name for one in functions(str(self.library))}

    def wrapper(self, language: str) -> Path | None:
        """Returns the library's compiler wrapper if it works here. In /usr/bin the plain name may
        belong to another library."""
        name = WRAPPERS[language]
        debians = name + DEBIANS.get(self.library.name, "")
        for prefix in self.library.parents[1:3]:
            path = prefix / "bin" / (debians if prefix.name == "usr" else name)
            if path.is_file() and compiles(path, language, ""):
                return path
        return None

    def permit(self, fragment: Fragment, *sites: Site) -> bool:
        """Whether nothing is known against it."""
        language = sites[0].language
        if language == "python" and not parses(fragment(*sites)):
            return False
        if language in WRAPPERS and (wrapper := self.wrapper(language)):
            marks = [str(number) for number in range(len(sites))]
            text = fragment(*map(with_names, sites, marks))
            parameters = [
                d for site, mark in zip(sites, marks) for d in declarations(site.call, mark)
            ]
            return compiles(wrapper, language, function_of(text, [*parameters, "int n"]))
        planned = fragment is fragments.planned
        needed = {
            fragments.persistent(site) if planned else fragments.nonblocking(site.call)
            for site in sites
            if not site.object_method
        }
        return not self.calls or needed <= self.calls
