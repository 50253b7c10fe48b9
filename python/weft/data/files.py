"""Writes files for the user so that a file is either complete or absent.

A disk may be full, and a reader must not take the first part of a file for all of it. The native
parts do the same (src/base/whole_file.h). Missing folders are not created, since their names may be
misspelt."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO


@contextlib.contextmanager
def whole(path: Path, **how: Any) -> Iterator[TextIO]:
    """Yields a file for writing, which gets its name when it is complete. `how` is passed to
    open().

    A path that is no regular file, such as /dev/stdout, is written directly. Raises OSError with
    the path."""
    place = path.resolve()
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        there = mode_of(place)
        if there is not None and not stat.S_ISREG(there):
            part = place
        with part.open("w", **how) as file:
            yield file
        if part != place:
            if there is not None:
                part.chmod(stat.S_IMODE(there))
            part.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        if part != place:
            with contextlib.suppress(OSError):
                part.unlink()


def mode_of(place: Path) -> int | None:
    try:
        return place.stat().st_mode
    except FileNotFoundError:
        return None


def write_text(path: Path, text: str, **how: Any) -> None:
    with whole(path, **how) as file:
        file.write(text)


def make_own_folder(path: Path, usual: Path) -> None:
    """Creates the folder of an output file if the file has its default path."""
    if path == usual:
        path.parent.mkdir(exist_ok=True)


def try_to_write(path: Path) -> None:
    """Raises OSError if no file could be written to the path. Called before a measurement, so that
    its result is not lost."""
    was_there = path.exists()
    path.open("a").close()
    if not was_there:
        path.unlink()
