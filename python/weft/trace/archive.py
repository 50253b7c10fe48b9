"""A timeline as an archive of OTF2, which ViTE and Vampir read.

A host is a node of the system tree, a rank a process (location group), and a row of the timeline a
location. Each span is a region that is entered and left. Times are in nanoseconds after the
timeline's first event.
"""

from __future__ import annotations

import importlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft.trace.spans import Row, Span

PACKAGE = "pip install 'weft-mpi[otf2]' (Python 3.9 to 3.11), or Debian's python3-otf2"
ANCHOR = "traces.otf2"  # the file in the archive's folder that tools open
NS_PER_S = 1_000_000_000
ACTIVITIES = ("working", "polling", "asleep")  # activities of Weft's threads


class NoWriter(Exception):
    """Raised if the package otf2 is not installed, or if the archive cannot be made."""


def package() -> tuple[Any, Any]:
    """Returns the package's two modules: the one to call, and the one below it, whose errors come
    through."""
    try:
        return importlib.import_module("otf2"), importlib.import_module("_otf2")
    except ImportError:
        raise NoWriter(f"OTF2 needs the Python package otf2: {PACKAGE}") from None


def write(directory: Path, rows: list[Row]) -> Path:
    """Writes the archive, and returns its file that tools open. Raises NoWriter, also if the
    directory exists already."""
    otf2, below = package()
    if directory.exists():
        raise NoWriter(f"{directory} is there already; name a new directory for the archive")
    directory.mkdir()
    try:
        with otf2.writer.open(str(directory), timer_resolution=NS_PER_S) as writer:
            fill(otf2, writer, rows)
    except (otf2.error.Error, below.Error, OSError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise NoWriter(f"the archive {directory} could not be written: {error}") from None
    return directory / ANCHOR


def fill(otf2: Any, writer: Any, rows: list[Row]) -> None:
    known = writer.definitions
    job = known.system_tree_node("job")
    first_ns = min((span.began_ns for row in rows for span in row.spans), default=0)
    regions: dict[tuple[str, str], Any] = {}  # regions by name and kind
    for row in rows:
        host = known.system_tree_node(host_of(row.process), "node", parent=job)
        process = known.location_group(row.process, system_tree_parent=host)
        location = known.location(f"rank {row.rank}, {row.name}", group=process)
        events = writer.event_writer_from_location(location)
        for at_ns, span, begins in changes(row.spans):
            key = span.name, span.kind
            if key not in regions:
                regions[key] = region_of(otf2, known, span)
            act = events.enter if begins else events.leave
            act(at_ns - first_ns, regions[key])


def host_of(process: str) -> str:
    """Returns the host in the name that a timeline gives a rank, such as "node1" in
    "rank 0 (node1)"; the whole name if it has no host."""
    found = re.search(r"\((.*)\)$", process)
    return found[1] if found else process


def region_of(otf2: Any, known: Any, span: Span) -> Any:
    paradigm = otf2.Paradigm.USER
    if span.name.startswith("MPI_"):
        paradigm = otf2.Paradigm.MPI
    elif span.name in ACTIVITIES:
        paradigm = otf2.Paradigm.MEASUREMENT_SYSTEM
    return known.region(span.name, description=span.kind, paradigm=paradigm)


def changes(spans: list[Span]) -> Iterator[tuple[int, Span, bool]]:
    """Returns the beginnings (True) and ends of a row's spans, in the order of time."""
    inside: list[Span] = []
    for span in spans:
        while inside and inside[-1].ended_ns <= span.began_ns:
            ended = inside.pop()
            yield ended.ended_ns, ended, False
        yield span.began_ns, span, True
        inside.append(span)
    for ended in reversed(inside):
        yield ended.ended_ns, ended, False
