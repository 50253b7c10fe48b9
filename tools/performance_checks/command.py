"""Measures the limits that Weft's performance is held to. Run it on a quiet machine."""

from __future__ import annotations

import argparse
import fnmatch
import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from weft.data import stored
from weft.system import mpi_libraries

from .check import MISSED, UNKNOWN, Check, Figure
from .jobs import Session
from .table import CHECKS


def parser() -> argparse.ArgumentParser:
    names = ", ".join(dict.fromkeys(check.name for check in CHECKS))
    found = argparse.ArgumentParser(prog="tools/performance-checks", description=__doc__)
    found.add_argument("--list", action="store_true", help="show the checks, and run none")
    found.add_argument("--only", metavar="PATTERN", default="*", help=f"of {names}")
    found.add_argument("--repetitions", type=int, default=9, help="within a job (9)")
    found.add_argument("--mpi", help="under these MPI libraries, by commas (all)")
    found.add_argument("--short", action="store_true", help="a quick look, mostly without verdicts")
    found.add_argument("--json", type=Path, default=Path("out/performance-checks.json"))
    return found


def entry(check: Check) -> str:
    where = " and ".join(map(str, check.where))
    limits = "".join(f"\n    {limit} {quantity}" for quantity, limit in check.limits.items())
    return f"{check.name}: {check.measures}\n  {', '.join(check.libraries)}; {where}{limits}"


def save(session: Session, figures: Sequence[Figure], path: Path) -> None:
    verdicts = Counter(one.verdict for one in figures)
    content = {
        **stored.head("weft-performance-checks/1", verdicts, ", ".join(session.libraries)),
        "command": shlex.join(sys.argv),
        "checks": [{"what": f.what, "verdict": f.verdict, **asdict(f)} for f in figures],
        "measurements": session.measurements,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, default=str))
    print(f"{', '.join(f'{verdict}: {n}' for verdict, n in verdicts.items())}; {path}")


def main() -> int:
    """Runs the checks. Returns 0 if all measured figures meet their limits, or may meet them within
    their spread."""
    arguments = parser().parse_args()
    checks = [check for check in CHECKS if fnmatch.fnmatch(check.name, arguments.only)]
    if not checks:
        parser().error(f"no check matches '{arguments.only}'; --list shows all")
    if arguments.list:
        print("\n".join(map(entry, checks)))
        return 0
    names = mpi_libraries.IMPLEMENTATIONS
    there = [mpi for mpi in names if mpi_libraries.implementation(mpi).mpiexec.exists()]
    libraries = arguments.mpi.split(",") if arguments.mpi else there
    if missing := [mpi for mpi in libraries if mpi not in there]:
        parser().error(f"not installed: {', '.join(missing)}; there are {', '.join(there)}")
    session = Session(libraries, arguments.repetitions, arguments.short)
    figures: list[Figure] = []
    try:
        for figure in (one for check in checks for one in check.figures(session)):
            figures.append(figure)
            print(figure, flush=True)
    finally:  # stores the figures so far, also after an error
        save(session, figures, arguments.json)
    return int(not figures or any(one.verdict in (MISSED, UNKNOWN) for one in figures))
