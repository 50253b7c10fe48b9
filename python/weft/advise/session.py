"""Runs the program with the advisor's library in its ranks, and keeps the record that they
write."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from weft.advise import launched, store, threads
from weft.advise.record import RankRecord, read_directory, text
from weft.data.stored import ResultError
from weft.system import building, installation, mpi_libraries

# This is the name of a file that shows that the directory is on this node (src/advise/variables.h).
HERE = "here"
INSIDE = "WEFT_ADVISE_INSIDE"  # the variable of this name in src/advise/variables.h


@contextmanager
def signals_for(process: subprocess.Popen) -> Iterator[None]:
    """Ignores interrupts in its block, since the terminal sends them to the program as well.
    SIGTERM is passed on to the program."""

    def hand_on(number: int, frame: object) -> None:
        process.send_signal(number)

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, hand_on),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def bring_libraries() -> None:
    """Builds the advisor's libraries for each MPI family for which Weft has its own library
    (building.py)."""
    for family in mpi_libraries.FAMILY_LIBRARY:
        if own := installation.preload_library(family):
            building.is_there(own.with_name(f"libweft-advise-{family}.so"))


def run(
    command: list[str], overhead: float, mpi: str, directory: Path, more: Sequence[str] = ()
) -> int:
    """Runs the command and returns the exit status of the program or its launcher."""
    options = ["--directory", str(directory), "--overhead", f"{overhead:g}", *more]
    words = launched.words([*options, *(["--mpi", mpi] if mpi else [])], command)
    bring_libraries()
    environment = {**os.environ, "WEFT_ADVISE_PARENT": str(os.getpid())}
    launched.has_started = True
    # Launchers talk to their ranks through inherited file descriptors, which must stay open.
    process = subprocess.Popen(words, close_fds=False, env=environment)
    with signals_for(process):
        status = process.wait()
    return 128 - status if status < 0 else status


def record(command: list[str], overhead: float, mpi: str, target: Path) -> tuple[int, bool]:
    """Runs the command and returns its exit status, and whether a record has been written."""
    directory = Path(tempfile.mkdtemp(prefix="weft-advise-"))
    (directory / HERE).touch()
    kept = False
    try:
        status = run(command, overhead, mpi, directory)
        sys.stdout.flush()
        ranks = read_directory(directory)
        if ranks:
            when = datetime.now(timezone.utc).isoformat(timespec="seconds")
            about = {"command": command, "when": when, "overhead": overhead, "status": status}
            about["inside"] = bool(os.environ.get(INSIDE))
            kept = True  # the directory is kept if the record cannot be written
            store.write(target, ranks, about, threads.read(directory))
            if kept := lacks_other_nodes(ranks, directory):
                print(f"weft advise: {elsewhere(ranks, directory)}", file=sys.stderr)
        return status, bool(ranks)
    except ResultError as error:
        print(f"weft advise: {error}", file=sys.stderr)
        if kept:
            print(
                f"weft advise: what the ranks have recorded is in {directory}:"
                f" weft advise --from {directory} --record FILE",
                file=sys.stderr,
            )
            raise SystemExit(status or 1) from None
        return status, False
    finally:
        if not kept:
            shutil.rmtree(directory, ignore_errors=True)


def lacks_other_nodes(ranks: list[RankRecord], directory: Path) -> bool:
    """Returns whether the job ended early and ranks of other nodes have left their records on those
    nodes."""
    head = ranks[0].head
    hosts = {text(one.head.host) for one in ranks}
    return not (directory / "job").exists() and len(ranks) < head.ranks and head.nodes > len(hosts)


def elsewhere(ranks: list[RankRecord], directory: Path) -> str:
    missing = ranks[0].head.ranks - len(ranks)
    return (
        f"the records of {missing} ranks are on their own nodes, as {directory}/rank-*: copy them"
        f" into {directory} of this node and run weft advise --from {directory}"
    )


def collect(directory: Path, target: Path) -> None:
    """Writes a record from the files that ranks have left in a directory. Raises ResultError if
    there are none."""
    ranks = read_directory(directory)
    if not ranks:
        raise ResultError(f"{directory}: it holds no rank's record (rank-*)")
    when = datetime.now(timezone.utc).isoformat(timespec="seconds")
    command = [text(ranks[0].head.program)]
    about = {"command": command, "inside": True, "when": when, "overhead": 0, "status": 1}
    store.write(target, ranks, about)
