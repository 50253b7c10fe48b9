"""Checks whether a proposed fragment may be shown.

The fragment is compiled as a small function for the job's MPI library, if that library's compiler
wrapper is installed. Otherwise the library must at least define the calls. The arguments are
replaced by declared names, since those of the program compile only inside its source."""

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
# These are the suffixes of Debian's wrappers, by library.
DEBIANS = {"libmpich.so.12": ".mpich", "libmpi.so.40": ".openmpi"}
HEADERS = {"c": "#include <mpi.h>\n", "c++": "#include <mpi.h>\n#include <vector>\n"}
# Each declaration is found by the end of an argument's name. {count} and {place} are the types of
# counts and displacements, which are larger in large-count calls.
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
    """Returns the site as a blocking call whose arguments have their names in the MPI standard,
    each followed by the mark."""
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


Fragment = Callable[..., str]  # gets one or more sites and returns code


class Checks:
    """Checks proposed code (fragments) against the job's MPI library: compiles it with the
    library's compiler wrapper, or else looks whether the library defines its calls. The library is
    found by the path from which the ranks loaded it."""

    def __init__(self, library: str):
        self.library = Path(library)

    @cached_property
    def calls(self) -> set[str]:
        """Returns the names of the calls that the library defines; an empty set if the library is
        not on this machine."""
        return {one.name for one in functions(str(self.library))}

    def wrapper(self, language: str) -> Path | None:
        """Returns the library's compiler wrapper if it works here; otherwise None. In /usr/bin
        the wrapper of another library may have the plain name, so that Debian's names are used
        there."""
        name = WRAPPERS[language]
        debians = name + DEBIANS.get(self.library.name, "")
        for prefix in self.library.parents[1:3]:
            path = prefix / "bin" / (debians if prefix.name == "usr" else name)
            if path.is_file() and compiles(path, language, ""):
                return path
        return None

    def permit(self, fragment: Fragment, *sites: Site) -> bool:
        """Returns whether the fragment may be shown: no check has found a fault in it."""
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
