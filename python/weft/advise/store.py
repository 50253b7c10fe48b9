"""The record of a job as one SQLite file: what each rank measured, and where its calls stand.

Why places are in it: it can be analysed on another machine, which has no such program.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft import __version__
from weft.advise import places
from weft.advise.record import RankRecord, text
from weft.stored import ResultError

SCHEMA = "weft-advise-record/3"
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE rank (rank INTEGER PRIMARY KEY, host TEXT, finalized INTEGER, ranks INTEGER,
  nodes INTEGER, cores INTEGER, node_ranks INTEGER, windows_off INTEGER, elapsed_ns INTEGER,
  mpi_ns INTEGER, guarding_ns INTEGER, clock_ns INTEGER, clock_error_ns INTEGER,
  copy_bytes_per_ms INTEGER, library TEXT, began_ns INTEGER, events INTEGER);
CREATE TABLE call (rank INTEGER, name TEXT, calls INTEGER, ns INTEGER);
CREATE TABLE site (rank INTEGER, site INTEGER, module TEXT, offset INTEGER, place TEXT, call TEXT,
  comm_kind INTEGER, comm_size INTEGER, comm_nodes INTEGER, size_class INTEGER, calls INTEGER,
  bytes INTEGER, ns INTEGER, after INTEGER, before INTEGER, completed INTEGER, between_ns INTEGER,
  waited_ns INTEGER, tests INTEGER, repeated INTEGER, PRIMARY KEY (rank, site));
CREATE TABLE time_window (rank INTEGER, site INTEGER, side TEXT, least_ns INTEGER,
  most_ns INTEGER);
CREATE TABLE unknown (rank INTEGER, site INTEGER, side TEXT, why INTEGER, count INTEGER);
CREATE TABLE event (rank INTEGER, site INTEGER, what INTEGER, began_ns INTEGER, ended_ns INTEGER);
CREATE TABLE arrival (rank INTEGER, site INTEGER, comm TEXT, sequence INTEGER, arrived_ns INTEGER,
  left_ns INTEGER, comm_rank INTEGER, root INTEGER);
CREATE TABLE replay (rank INTEGER, site INTEGER, form TEXT, us REAL);
CREATE TABLE frame (module TEXT, offset INTEGER, depth INTEGER, function TEXT, file TEXT,
  line INTEGER);
"""


def rank_row(one: RankRecord) -> tuple:
    head = one.head
    return (
        *(head.rank, text(head.host), head.finalized, head.ranks, head.nodes, head.cores),
        *(head.node_ranks, head.windows_off, head.ended_ns - head.began_ns, head.in_mpi_ns),
        *(head.guarding_ns, head.clock_ns, head.clock_error_ns, head.copy_bytes_per_ms),
        *(text(head.library), head.began_ns + head.clock_ns, head.events),
    )


def site_rows(one: RankRecord) -> Iterable[tuple]:
    for number, site in enumerate(one.sites):
        yield (
            *(one.head.rank, number, one.modules[site.module], site.offset, text(site.where)),
            *(text(one.totals[site.call].name), site.comm_kind, site.comm_size, site.comm_nodes),
            *(site.size_class, site.calls, site.bytes, site.ns, site.after.measured),
            *(site.before.measured, site.completed),
            *(site.between_ns, site.waited_ns, site.tests, site.repeated),
        )


def insert(database: sqlite3.Connection, table: str, rows: Iterable[tuple]) -> None:
    rows = list(rows)
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def insert_rank(database: sqlite3.Connection, one: RankRecord) -> None:
    rank = one.head.rank
    insert(database, "rank", [rank_row(one)])
    insert(database, "call", [(rank, text(t.name), t.calls, t.ns) for t in one.totals if t.calls])
    insert(database, "site", site_rows(one))
    for number, site in enumerate(one.sites):
        for side, windows in (("after", site.after), ("before", site.before)):
            kept = [(rank, number, side, *bounds) for bounds in windows.bounds()]
            insert(database, "time_window", kept)
            whys = enumerate(windows.unknown)
            insert(database, "unknown", [(rank, number, side, *why) for why in whys if why[1]])
    clock = one.head.clock_ns
    insert(
        database,
        "event",
        [(rank, e.site, e.what, e.began_ns + clock, e.ended_ns + clock) for e in one.events],
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


def write(path: Path, ranks: list[RankRecord], about: dict[str, Any]) -> None:
    """Under another name first, so that a file that is there is whole."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    wanted = [
        (one.modules[site.module], site.offset)
        for one in ranks
        for site in one.sites
        if not site.where
    ]
    try:
        database = sqlite3.connect(part)
        with database:
            database.executescript(TABLES)
            for name, value in {"schema": SCHEMA, "weft": __version__, **about}.items():
                insert(database, "about", [(name, json.dumps(value))])
            for one in ranks:
                insert_rank(database, one)
            for (module, offset), frames in places.resolve(wanted).items():
                for depth, frame in enumerate(frames):
                    row = (module, offset, depth, frame.function, frame.file, frame.line)
                    insert(database, "frame", [row])
        database.close()
        part.replace(path)
    except (sqlite3.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise ResultError(f"{path}: the record cannot be written: {error}") from None


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
    unread: list[str]  # what is missing or damaged

    def __getitem__(self, table: str) -> list[dict[str, Any]]:
        return self.tables[table]


TABLE_NAMES = (
    *("rank", "call", "site", "time_window", "unknown", "arrival", "event"),
    *("replay", "frame"),
)


def rows_of(database: sqlite3.Connection, table: str, unread: list[str]) -> list[dict[str, Any]]:
    """Its rows, up to the first that is damaged."""
    found = []
    try:
        for row in database.execute(f"SELECT * FROM {table}"):
            found.append(dict(row))
    except sqlite3.Error as error:
        unread.append(f"{table} ({error})")
    return found


def read(path: Path) -> Stored:
    """What can be read; an error where there is no rank left."""
    if not path.is_file():
        raise ResultError(f"there is no record {path}: weft advise -- COMMAND writes one")
    unread: list[str] = []
    try:
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        database.row_factory = sqlite3.Row
        # Else a file that was cut short is refused as a whole.
        database.execute("PRAGMA writable_schema = ON")
        rows = database.execute("SELECT * FROM about").fetchall()
        about = {row["name"]: json.loads(row["value"]) for row in rows}
        tables = {table: rows_of(database, table, unread) for table in TABLE_NAMES}
        database.close()
    except (sqlite3.Error, ValueError) as error:
        raise ResultError(
            f"{path}: it cannot be read as a record of weft advise: {error}"
        ) from None
    if about.get("schema") != SCHEMA:
        found = about.get("schema")
        raise ResultError(f"{path}: it has schema {found}, this Weft reads {SCHEMA}")
    if not tables["rank"]:
        raise ResultError(f"{path}: nothing is left of its ranks: {', '.join(unread)}")
    return Stored(path, about, tables, unread)
