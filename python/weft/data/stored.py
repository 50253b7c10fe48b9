"""Reads files that Weft's programs and commands have written. pydantic checks them against a
dataclass.

The error for a damaged file is one sentence that names the file, the field, and what it should be.
Fields that a newer version of Weft may have added are ignored."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

from weft import __version__

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
Schemas = Union[str, Sequence[str]]  # names of schemas, the newest first
MOST_CHARACTERS = 40  # most characters that are quoted of a wrong value


class ResultError(Exception):
    """Raised for a file that cannot be used; the message says where it is wrong."""


def head(
    schema: str,
    headline: Mapping[str, Any],
    mpi: str = "",
    ranks: int | list[int] | None = None,
) -> dict[str, Any]:
    """Returns the fields with which every JSON result begins, and which say how it was made.

    `mpi` names the MPI libraries. `headline` has the figures of the command's first sentence. The
    summary of `weft run` begins in the same way (src/runtime/job/summary.cc)."""
    return {
        "schema": schema,
        "weft": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "mpi": mpi,
        "ranks": ranks,
        "command": shlex.join(["weft", *sys.argv[1:]]),
        "headline": dict(headline),
    }


@cache
def adapter(kind: Any) -> TypeAdapter:
    # pydantic is imported here, so that commands which read no file start without it.
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def parse(kind: type[T], text: str | bytes, where: str, schema: Schemas = "") -> T:
    """Returns a dataclass from JSON text of the given schema, or of one of several.

    Raises ResultError if the text does not fit. `where` begins the error's message."""
    from pydantic import ValidationError

    try:
        if schema:
            check_schema(text, where, schema)
        return adapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise ResultError(f"{where}: {sentence(error)}") from None


def check_schema(text: str | bytes, where: str, schema: Schemas) -> None:
    known = [schema] if isinstance(schema, str) else schema
    found = adapter(dict[str, Any]).validate_json(text).get("schema")
    if found not in known:
        has = f"has schema {quoted(found)}" if found else "has none"
        if is_newer(found, known[0]):
            has += ": a newer Weft wrote it"
        raise ResultError(f"{where}: schema {known[0]} is needed, this file {has}")


def is_newer(found: object, schema: str) -> bool:
    """Returns whether the found schema is a newer version of this one."""
    name, _, number = str(found).rpartition("/")
    wanted, _, known = schema.rpartition("/")
    return name == wanted and number.isdigit() and int(number) > int(known)


def read(kind: type[T], path: Path, schema: Schemas = "") -> T:
    return parse(kind, contents(path), str(path), schema)


def schema_of(path: Path) -> str | None:
    """Returns the schema that a file names; None if it names none or is no JSON."""
    from pydantic import ValidationError

    try:
        return adapter(dict[str, Any]).validate_json(contents(path)).get("schema")
    except (ResultError, ValidationError):
        return None


def contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from None


def sentence(error: ValidationError) -> str:
    """Returns a sentence about the first mistake, with the number of further mistakes."""
    first, *others = error.errors(include_url=False)
    field = place(first["loc"])
    if first["type"] == "missing":
        text = f"{field} is missing"
    elif first["type"] == "json_invalid":
        text = f"no JSON: {first['ctx']['error']}"
    else:
        wanted = first["msg"].replace("Input should be", "should be")
        text = f"{field or 'the whole'} {wanted}, not {quoted(first['input'])}"
    more = f" (and {len(others)} more)" if others else ""
    return text + more


def place(parts: tuple[str | int, ...]) -> str:
    """Returns the path of a field as text, such as `points[0].ranks`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
