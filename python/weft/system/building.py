"""Parts of Weft that `make demo` leaves out are built in the source tree when a command needs them.

An installation has all parts; there nothing is built.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from weft.system import installation


def is_there(part: Path) -> bool:
    """Whether a part is there, after it has been built if that is possible here.

    part: a program or library, where the source tree's build or `.venv` has it.
    """
    if part.exists():
        return True
    target = target_of(part)
    # All ranks of a job would build.
    if not target or installation.is_rank():
        return False
    print(f"weft: building {target}, which is needed now for the first time", file=sys.stderr)
    done = subprocess.run(make_command(target), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return done.returncode == 0 and part.exists()


def target_of(part: Path) -> str:
    """The build's name of a part: bin/weft-sim, bin/mpich/plan, lib/libweft-mpich.so; or empty."""
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
    """`MPI=` stays as it was, since make begins anew where it has changed."""
    before = installation.BUILD / ".wrappers"
    wrappers = before.read_text().strip() if before.exists() else ""
    return ["make", "-C", str(installation.ROOT), "part", f"PART={target}", f"MPI={wrappers}"]
