"""Files that Weft writes for the user: each is there with all that belongs in it, or not at all.

Why: a disk may be full, and a reader must not take the first part of a file for all of it. The
native parts do the same (src/base/whole_file.h). Missing folders are not made: their names may be
misspelt.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO


@contextlib.contextmanager
def whole(path: Path, **how: Any) -> Iterator[TextIO]:
    """A file to write, under another name until its end; OSError names the place. how: of open().

    What is no regular file, such as /dev/stdout, is written where it is.
    """
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
    """That of a page that lies where Weft puts it unless the user says otherwise."""
    if path == usual:
        path.parent.mkdir(exist_ok=True)


def try_to_write(path: Path) -> None:
    """OSError if a file could not be written there, before anything is measured for it."""
    was_there = path.exists()
    path.open("a").close()
    if not was_there:
        path.unlink()
