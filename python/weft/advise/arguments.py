"""Reads the arguments of a call from the program's source, as far as that is possible.

It does not parse the language: finding the end of the call's parenthesis is enough. Calls that look
unusual are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from weft.advise.names import base_name, is_nonblocking, is_persistent

MOST_LINES = 12  # most source lines that one call may have

# These are the arguments of each blocking call in C. Fortran's ierror comes after them.
ROWS = "send sendcount sendtype receive receivecount receivetype"
SIGNATURES = dict.fromkeys(
    ("allreduce", "reduce_scatter_block", "scan", "exscan"), "send receive count type op comm"
)
SIGNATURES |= dict.fromkeys(
    ("allgather", "alltoall", "neighbor_allgather", "neighbor_alltoall"), f"{ROWS} comm"
)
SIGNATURES |= dict.fromkeys(("gather", "scatter"), f"{ROWS} root comm")
SIGNATURES |= dict.fromkeys(
    ("allgatherv", "neighbor_allgatherv"),
    "send sendcount sendtype receive receivecounts receiveplaces receivetype comm",
)
SIGNATURES |= dict.fromkeys(
    ("alltoallv", "neighbor_alltoallv"),
    "send sendcounts sendplaces sendtype receive receivecounts receiveplaces receivetype comm",
)
SIGNATURES |= dict.fromkeys(
    ("alltoallw", "neighbor_alltoallw"),
    "send sendcounts sendplaces sendtypes receive receivecounts receiveplaces receivetypes comm",
)
SIGNATURES |= {
    "barrier": "comm",
    "bcast": "buffer count type root comm",
    "reduce": "send receive count type op root comm",
    "reduce_scatter": "send receive counts type op comm",
    "gatherv": "send sendcount sendtype receive receivecounts receiveplaces receivetype root comm",
    "scatterv": "send sendcounts sendplaces sendtype receive receivecount receivetype root comm",
}
RECEIVED_INTO = ("receive", "buffer")


def names(call: str) -> list[str]:
    """Returns the names of the blocking call's arguments; empty if the collective is unknown."""
    return SIGNATURES.get(base_name(call), "").split()


# These patterns match text that is not code: comments, and strings, which may contain parentheses.
STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
FORTRAN_STRING = r"\"[^\"\n]*\"|'[^'\n]*'"
TOKENS = {
    "c": re.compile(rf"(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>{STRING})|.", re.S),
    "fortran": re.compile(rf"(?P<comment>![^\n]*|&)|(?P<string>{FORTRAN_STRING})|.", re.S),
    "python": re.compile(rf"(?P<comment>#[^\n]*|\\\n)|(?P<string>{STRING})|.", re.S),
}
TOKENS["c++"] = TOKENS["c"]
OPEN, CLOSED = "([{", ")]}"


@dataclass(frozen=True)
class Arguments:
    words: list[str]  # arguments of the blocking call, without Fortran's ierror
    comm: str = "comm"  # the object of Python whose method is called
    error: str | None = None  # Fortran's error argument; None if the call has none
    received_into: str = ""  # the argument that receives the data; "" if it is not known


def parts(text: str, language: str) -> list[str] | None:
    """Splits the text after an open parenthesis at commas; None if the parenthesis is not closed in
    it."""
    found, depth = [""], 0
    for token in TOKENS[language].finditer(text):
        word = token.group()
        if token.lastgroup == "comment":
            word = " "
        elif token.lastgroup is None and word in OPEN:
            depth += 1
        elif token.lastgroup is None and word in CLOSED:
            if depth == 0:
                found = [" ".join(one.split()) for one in found]
                return found if found != [""] else []
            depth -= 1
        elif word == "," and depth == 0:
            found.append("")
            continue
        found[-1] += word
    return None


def places_of(call: str, language: str) -> re.Pattern:
    name = call.removeprefix("MPI_").removesuffix("_c")
    if language == "python":
        return re.compile(rf"(?<![\w.\])])(?P<comm>[A-Za-z_][\w.]*)\.{name}\s*\(")
    front = r"\bcall\s+" if language == "fortran" else r"\b"
    flags = re.IGNORECASE if language == "fortran" else 0
    return re.compile(rf"{front}P?MPI_{name}(?:_c)?\s*\(", flags)


def statement(lines: Iterable[str], language: str) -> list[str]:
    """Returns the first line and those that follow it until all its parentheses are closed, at most
    MOST_LINES of them."""
    found: list[str] = []
    for line in islice(lines, MOST_LINES):
        found.append(line)
        tokens = TOKENS[language].finditer("\n".join(found))
        code = [token.group() for token in tokens if token.lastgroup is None]
        if sum((one in OPEN) - (one in CLOSED) for one in code) <= 0:
            break
    return found


def arguments(source: str, call: str, language: str) -> Arguments | None:
    """Returns the arguments of the only call of this name in these lines; None if they are
    uncertain."""
    found = list(places_of(call, language).finditer(source))
    if len(found) != 1 or ("\n#" in source and language != "python"):
        return None
    words = parts(source[found[0].end() :], language)
    if words is None or (language != "python" and any(not word for word in words)):
        return None
    if language == "python":
        given = [word for word in words if word]
        return Arguments(given, found[0]["comm"], received_into="".join(given[:2][-1:]))
    count = len(names(call)) or -1
    # A non-blocking call has a request as its last argument. A persistent one has an info argument
    # before the request.
    more = 2 if is_persistent(call) else 1 if is_nonblocking(call) else 0
    has_error = language == "fortran" and len(words) == count + more + 1
    if len(words) != count + more + has_error or any(is_odd(one, language) for one in words):
        return None
    into = (word for name, word in zip(names(call), words) if name in RECEIVED_INTO)
    return Arguments(words[:count], "comm", words[-1] if has_error else None, next(into, ""))


def is_odd(word: str, language: str) -> bool:
    """Returns whether an argument in Fortran cannot be copied into a fragment: it is passed by
    name, or contains a continuation mark."""
    odd = r"^\w+\s*=[^=]|\w \w|^[^\w\s(\"'\[.+-]|^[+.-] "
    return language == "fortran" and re.search(odd, word) is not None
