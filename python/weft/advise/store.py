"""Stores the record of a job as one SQLite file: the measurements of each rank, and the places of
calls.

Places and source lines are stored, so that the record can be analysed on a machine without the
program. A record of another version is read as far as the two have tables and columns in common. A
column may be missing if its default value claims nothing false."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from weft import __version__
from weft.advise import places
from weft.advise.record import RankRecord, Windows, text
from weft.advise.threads import ThreadSpan
from weft.data.stored import ResultError

FORMAT = "weft-advise-record/"
SCHEMA = f"{FORMAT}8"
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE rank (rank INTEGER PRIMARY KEY, host TEXT DEFAULT '', finalized INTEGER DEFAULT 1,
  ranks INTEGER DEFAULT 0, nodes INTEGER DEFAULT 0, cores INTEGER DEFAULT 1,
  node_ranks INTEGER DEFAULT 0, windows_off INTEGER DEFAULT 0, elapsed_ns INTEGER,
  mpi_ns INTEGER, guarding_ns INTEGER DEFAULT 0, clock_ns INTEGER DEFAULT 0,
  clock_error_ns INTEGER DEFAULT 0, copy_bytes_per_ms INTEGER DEFAULT 0, library TEXT DEFAULT '',
  began_ns INTEGER DEFAULT 0, events INTEGER DEFAULT 0, threads INTEGER DEFAULT 1,
  observing_ns INTEGER DEFAULT 20000);
CREATE TABLE call (rank INTEGER, name TEXT, calls INTEGER, ns INTEGER,
  timed INTEGER DEFAULT 0, variance_ns2 REAL DEFAULT 0);
CREATE TABLE site (rank INTEGER, site INTEGER, module TEXT DEFAULT '?', offset INTEGER DEFAULT 0,
  place TEXT DEFAULT '', call TEXT, comm_kind INTEGER DEFAULT 2, comm_size INTEGER,
  comm_nodes INTEGER, size_class INTEGER DEFAULT 0, calls INTEGER, bytes INTEGER, ns INTEGER,
  after INTEGER DEFAULT 0, before INTEGER DEFAULT 0, completed INTEGER, between_ns INTEGER,
  waited_ns INTEGER, tests INTEGER, repeated INTEGER DEFAULT 0,
  op INTEGER DEFAULT 0, after_broken INTEGER DEFAULT -1, before_broken INTEGER DEFAULT -1,
  binding INTEGER DEFAULT 0, own INTEGER DEFAULT 1, PRIMARY KEY (rank, site));
CREATE TABLE outer_place (rank INTEGER, site INTEGER, depth INTEGER, module TEXT, offset INTEGER,
  line INTEGER, own INTEGER);
CREATE TABLE time_window (rank INTEGER, site INTEGER, side TEXT, least_ns INTEGER,
  most_ns INTEGER);
CREATE TABLE message_wait (rank INTEGER, module TEXT, offset INTEGER, place TEXT, call TEXT,
  binding INTEGER, waits INTEGER, messages INTEGER, bytes INTEGER, between_ns INTEGER,
  waited_ns INTEGER, tests INTEGER);
CREATE TABLE touch (rank INTEGER, site INTEGER, side TEXT, module TEXT, offset INTEGER,
  count INTEGER);
CREATE TABLE unknown (rank INTEGER, site INTEGER, side TEXT, why INTEGER, count INTEGER);
CREATE TABLE event (rank INTEGER, site INTEGER, what INTEGER, began_ns INTEGER, ended_ns INTEGER,
  apart INTEGER DEFAULT 0);
CREATE TABLE thread_span (rank INTEGER, thread TEXT, doing TEXT, began_ns INTEGER,
  ended_ns INTEGER);
CREATE TABLE arrival (rank INTEGER, site INTEGER, comm TEXT, sequence INTEGER, arrived_ns INTEGER,
  left_ns INTEGER, comm_rank INTEGER, root INTEGER);
CREATE TABLE replay (rank INTEGER, site INTEGER, form TEXT, us REAL);
CREATE TABLE frame (module TEXT, offset INTEGER, depth INTEGER, function TEXT,
  file TEXT DEFAULT '', line INTEGER DEFAULT 0);
CREATE TABLE source (file TEXT, line INTEGER, text TEXT);
"""


def rank_row(one: RankRecord) -> tuple:
    head = one.head
    return (
        *(head.rank, text(head.host), head.finalized, head.ranks, head.nodes, head.cores),
        *(head.node_ranks, head.windows_off, head.ended_ns - head.began_ns, head.in_mpi_ns),
        *(head.guarding_ns, head.clock_ns, head.clock_error_ns, head.copy_bytes_per_ms),
        *(text(head.library), head.began_ns + head.clock_ns, head.events, head.threads),
        head.observing_ns,
    )


def site_rows(one: RankRecord) -> Iterable[tuple]:
    for number, site in enumerate(one.sites):
        yield (
            *(one.head.rank, number, one.modules[site.module], site.offset, text(site.where)),
            *(text(one.totals[site.call].name), site.comm_kind, site.comm_size, site.comm_nodes),
            *(site.size_class, site.calls, site.bytes, site.ns, site.after.measured),
            *(site.before.measured, site.completed),
            *(site.between_ns, site.waited_ns, site.tests, site.repeated, site.op),
            *(site.after.broken_off, site.before.broken_off, site.binding, site.own),
        )


def outer_rows(one: RankRecord) -> Iterable[tuple]:
    for number, site in enumerate(one.sites):
        for depth, outer in enumerate(site.outer):
            if outer.module:
                place = one.modules[outer.module - 1], outer.offset, outer.line, outer.own
                yield (one.head.rank, number, depth, *place)


Place = tuple[str, int]  # path of a module, and an offset in it


def touches(one: RankRecord, windows: Windows) -> Iterable[tuple[Place, int]]:
    """Yields the places of the instructions that ended or began these idle times, with their
    counts."""
    for touch in windows.touches:
        if touch.address and touch.module:
            yield (one.modules[touch.module - 1], touch.offset), touch.count


def message_wait_rows(one: RankRecord) -> Iterable[tuple]:
    for wait in one.message_waits:
        yield (
            *(one.head.rank, one.modules[wait.module], wait.offset, text(wait.where)),
            *(text(one.totals[wait.call].name), wait.binding, wait.waits, wait.messages),
            *(wait.bytes, wait.between_ns, wait.waited_ns, wait.tests),
        )


def insert(database: sqlite3.Connection, table: str, rows: Iterable[tuple]) -> None:
    rows = list(rows)
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def insert_rank(database: sqlite3.Connection, one: RankRecord) -> None:
    rank = one.head.rank
    insert(database, "rank", [rank_row(one)])
    called = [total for total in one.totals if total.calls]
    rows = [(rank, text(t.name), t.calls, t.ns, t.timed, t.variance_ns2) for t in called]
    insert(database, "call", rows)
    insert(database, "site", site_rows(one))
    insert(database, "outer_place", outer_rows(one))
    insert(database, "message_wait", message_wait_rows(one))
    for number, site in enumerate(one.sites):
        for side, windows in (("after", site.after), ("before", site.before)):
            kept = [(rank, number, side, *bounds) for bounds in windows.bounds()]
            insert(database, "time_window", kept)
            rows = [(rank, number, side, *place, n) for place, n in touches(one, windows)]
            insert(database, "touch", rows)
            whys = enumerate(windows.unknown)
            insert(database, "unknown", [(rank, number, side, *why) for why in whys if why[1]])
    clock = one.head.clock_ns
    insert(
        database,
        "event",
        [
            (rank, e.site, e.what, e.began_ns + clock, e.ended_ns + clock, e.apart)
            for e in one.events
        ],
    )
    insert(
        database,
        "arrival",
        [
            (rank, a.site, str(a.comm), a.sequence, a.arrived_ns + clock, a.left_ns + clock)
            + (a.comm_rank, a.root)
            for a in one.arrivals
        ],
    )


def insert_places(database: sqlite3.Connection, ranks: list[RankRecord]) -> None:
    """Stores the frames, and the source lines at their places."""
    sites = [(one, site) for one in ranks for site in one.sites]
    wanted = [(one.modules[site.module], site.offset) for one, site in sites if not site.where]
    for one, site in sites:
        for windows in (site.after, site.before):
            wanted += [place for place, _ in touches(one, windows)]
    outers = [row[3:6] for one in ranks for row in outer_rows(one)]
    wanted += [(module, offset) for module, offset, line in outers if not line]
    waits = [(one, wait) for one in ranks for wait in one.message_waits]
    wanted += [(one.modules[wait.module], wait.offset) for one, wait in waits if not wait.where]
    found = places.resolve(wanted)
    for (module, offset), frames in found.items():
        for depth, frame in enumerate(frames):
            row = (module, offset, depth, frame.function, frame.file, frame.line)
            insert(database, "frame", [row])
    shown = [frame for frames in found.values() for frame in frames if frame.file]
    wheres = [text(here.where) for _, here in (*sites, *waits) if here.where]
    shown += [places.of_interpreter(where)[0] for where in wheres]
    called = {(module, line) for module, _, line in outers if line}
    lines = places.source_lines({(frame.file, frame.line) for frame in shown} | called)
    insert(database, "source", [(*place, line) for place, line in lines.items()])


def thread_rows(ranks: list[RankRecord], threads: Iterable[ThreadSpan]) -> Iterable[tuple]:
    clocks = {one.head.rank: one.head.clock_ns for one in ranks}
    for one in threads:
        if one.rank in clocks:
            times = (time + clocks[one.rank] for time in (one.began_ns, one.ended_ns))
            yield (one.rank, one.thread, one.doing, *times)


def write(
    path: Path,
    ranks: list[RankRecord],
    about: dict[str, Any],
    threads: Iterable[ThreadSpan] = (),
) -> None:
    """Writes the record under a temporary name and renames it, so that a file of the given name is
    always complete."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    about = {"schema": SCHEMA, "weft": __version__, "addr2line": places.tool(), **about}
    try:
        database = sqlite3.connect(part)
        with database:
            database.executescript(TABLES)
            insert(database, "about", [(name, json.dumps(value)) for name, value in about.items()])
            for one in ranks:
                insert_rank(database, one)
            insert(database, "thread_span", thread_rows(ranks, threads))
            insert_places(database, ranks)
        database.close()
        part.replace(path)
    except (sqlite3.Error, OSError, OverflowError) as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise ResultError(f"{path}: the record cannot be written: {error}") from None


def try_to_write(path: Path) -> None:
    """Raises ResultError if no record can be written to the path."""
    part = path.with_name(path.name + ".part")
    try:
        part.touch()
        part.unlink()
    except OSError as error:
        raise ResultError(f"{path}: no record can be written there: {error.strerror}") from None


def add_replay(path: Path, rows: list[tuple]) -> None:
    try:
        with sqlite3.connect(path) as database:
            insert(database, "replay", rows)
        database.close()
    except sqlite3.Error as error:
        raise ResultError(f"{path}: the replay cannot be written: {error}") from None


@dataclass
class Stored:
    """The tables of a record, each row as a dictionary."""

    path: Path
    about: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]
    unread: list[str]  # names of tables or columns that are missing or damaged

    def __getitem__(self, table: str) -> list[dict[str, Any]]:
        return self.tables[table]

    def is_whole(self, table: str) -> bool:
        return not any(part.split(" ")[0] == table for part in self.unread)

    @property
    def other_version(self) -> str:
        """Returns the record's schema if it is that of another version of Weft; otherwise an empty
        string."""
        schema = self.about.get("schema", SCHEMA)
        return schema if schema != SCHEMA else ""


# These are Python's types of columns, by their type in SQLite.
KINDS = {"INTEGER": int, "TEXT": str, "REAL": (int, float)}


class Column(NamedTuple):
    """A column as SQLite describes it."""

    number: int
    name: str
    type: str
    not_null: int
    default: str | None  # default value as an SQL expression
    key: int


def columns_of(database: sqlite3.Connection, table: str) -> list[Column]:
    return [Column(*row) for row in database.execute(f"PRAGMA table_info({table})")]


def tables_of(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in rows]


def known_tables() -> dict[str, list[Column]]:
    """Returns the tables of this version and their columns, without the table `about`."""
    database = sqlite3.connect(":memory:")
    database.executescript(TABLES)
    return {name: columns_of(database, name) for name in tables_of(database) if name != "about"}


def rows_of(
    database: sqlite3.Connection, table: str, wanted: list[Column], unread: list[str]
) -> list[dict[str, Any]]:
    """Returns the rows of a table up to the first damaged one. Missing parts are added to
    `unread`."""
    found: list[dict[str, Any]] = []
    strange = 0
    try:
        there = [column.name for column in columns_of(database, table)]
        missing = [column for column in wanted if column.name not in there]
        if missing:
            lacks = ", ".join(column.name for column in missing)
            unread.append(f"{table} (without {lacks})" if there else table)
        if any(column.default is None for column in missing):
            return []
        names = [column.name for column in wanted]
        kinds = [KINDS[column.type] for column in wanted]
        taken = [c.default if c in missing else c.name for c in wanted]
        for row in database.execute(f"SELECT {', '.join(taken)} FROM {table}"):
            if all(map(isinstance, row, kinds)):
                found.append(dict(zip(names, row)))
            else:
                strange += 1
    except sqlite3.Error as error:
        unread.append(f"{table} ({error})")
    if strange:
        unread.append(f"{table} ({strange} rows of another kind)")
    return found


def not_known(database: sqlite3.Connection, known: dict[str, list[Column]]) -> list[str]:
    """Returns tables and columns that only another version has."""
    found = [name for name in tables_of(database) if name not in (*known, "about")]
    for table, wanted in known.items():
        mine = {column.name for column in wanted}
        more = [column.name for column in columns_of(database, table) if column.name not in mine]
        if more:
            found.append(f"{table} (its {', '.join(more)})")
    return found


def read(path: Path) -> Stored:
    """Reads a record, as far as possible also one of another version. Raises ResultError if it
    contains no rank."""
    if not path.is_file():
        raise ResultError(f"there is no record {path}: weft advise -- COMMAND writes one")
    unread: list[str] = []
    known = known_tables()
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        # Without this pragma SQLite refuses a truncated file as a whole.
        database.execute("PRAGMA writable_schema = ON")
        about = {
            name: json.loads(value)
            for name, value in database.execute("SELECT name, value FROM about")
        }
        tables = {name: rows_of(database, name, known[name], unread) for name in known}
        unread += not_known(database, known)
        database.close()
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise ResultError(
            f"{path}: it cannot be read as a record of weft advise: {error}"
        ) from None
    schema = str(about.get("schema"))
    if not schema.startswith(FORMAT):
        raise ResultError(f"{path}: it has schema {schema}, and is no record of weft advise")
    if not tables["rank"]:
        raise ResultError(f"{path}: it contains no rank: {', '.join(unread)}")
    return Stored(path, about, tables, unread)
