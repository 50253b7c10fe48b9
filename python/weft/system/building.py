"""Builds parts of Weft in the source tree when a command needs them, since `make demo` leaves them
out.

An installation has all parts, and nothing is built there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from weft.system import installation


def is_there(part: Path) -> bool:
    """Returns whether a part exists, after building it if possible.

    `part` is the path of a program or library in the source tree's build folder or in `.venv`."""
    if part.exists():
        return True
    target = target_of(part)
    # In a rank nothing is built, since all ranks of the job would do so.
    if not target or installation.is_rank():
        return False
    print(f"weft: building {target}, which is needed now for the first time", file=sys.stderr)
    done = subprocess.run(make_command(target), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return done.returncode == 0 and part.exists()


def target_of(part: Path) -> str:
    """Returns the build's name of a part, such as bin/weft-sim, bin/mpich/plan or
    lib/libweft-mpich.so; an empty string if it cannot be built."""
    own_build = installation.ROOT / "build"
    if not installation.SOURCE or own_build != installation.BUILD:
        return ""
    if part.is_relative_to(installation.BUILD):
        target = str(part.relative_to(installation.BUILD))
    else:
        target = f"{'lib' if part.suffix == '.so' else 'bin'}/{part.name}"
    rules = installation.BUILD / "build.ninja"
    is_known = rules.exists() and re.search(rf"^build (\S+ )*{target}\b", rules.read_text(), re.M)
    return target if is_known else ""


def make_command(target: str) -> list[str]:
    """Returns the command that builds a target. `MPI=` keeps its earlier value, since make starts
    anew if it changes."""
    before = installation.BUILD / ".wrappers"
    wrappers = before.read_text().strip() if before.exists() else ""
    return ["make", "-C", str(installation.ROOT), "part", f"PART={target}", f"MPI={wrappers}"]
