"""The SQLite file of a benchmark: every sample, the machine and the settings. Runs are appended.

With SQLite each sample is safe as soon as it is written, even if the run is stopped, and one file
holds all runs of a machine. docs/benchmarking.md describes the tables."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from weft.data import files, stored
from weft.data.stored import ResultError
from weft.measurements import statistics
from weft.measurements.result import (
    FAILED,
    STOPPED,
    Alone,
    Candidate,
    Point,
    Result,
    hidden_share,
    load_json,
)

T = TypeVar("T")
SCHEMA = "weft-bench-sqlite/1"
KINDS = ("blocking", "immediate", "computation", "overlapped")
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE run (id INTEGER PRIMARY KEY, started TEXT NOT NULL, machine TEXT NOT NULL,
  settings TEXT NOT NULL, complete INTEGER NOT NULL DEFAULT 0);
CREATE TABLE candidate (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run,
  mpi TEXT NOT NULL, engine TEXT NOT NULL, placement TEXT NOT NULL, backoff TEXT NOT NULL,
  algorithm TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
  UNIQUE (run, mpi, engine, placement, backoff, algorithm));
CREATE TABLE measured_case (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run,
  collective TEXT NOT NULL, bytes INTEGER NOT NULL, ranks INTEGER NOT NULL,
  nodes INTEGER NOT NULL, kernel TEXT NOT NULL,
  UNIQUE (run, collective, bytes, ranks, nodes, kernel));
CREATE TABLE amount (measured_case INTEGER NOT NULL REFERENCES measured_case,
  number INTEGER NOT NULL, iterations INTEGER NOT NULL, PRIMARY KEY (measured_case, number));
CREATE TABLE job (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run,
  measured_case INTEGER NOT NULL REFERENCES measured_case, mpi TEXT NOT NULL,
  library_async INTEGER NOT NULL, round INTEGER NOT NULL, started TEXT NOT NULL);
CREATE TABLE sample (id INTEGER PRIMARY KEY, job INTEGER NOT NULL REFERENCES job,
  candidate INTEGER REFERENCES candidate, kind TEXT NOT NULL, amount INTEGER, us REAL NOT NULL,
  computation_us REAL);
CREATE INDEX sample_of_job ON sample (job);
"""
# This table has the candidates that a resumed run need not measure again. It is created separately,
# since older files lack it.
ENDED = """
CREATE TABLE IF NOT EXISTS ended (measured_case INTEGER NOT NULL REFERENCES measured_case,
  candidate INTEGER NOT NULL REFERENCES candidate, round INTEGER NOT NULL, iteration_us REAL,
  PRIMARY KEY (measured_case, candidate, round));
"""
NAMES = ("about", "run", "candidate", "measured_case", "amount", "job", "sample")
CANDIDATE = "mpi, engine, placement, backoff, algorithm, status, reason"


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def reject(path: Path, what: str) -> ResultError:
    return ResultError(f"{path}: {what}")


@dataclass
class Begun:
    """The results of an earlier part of a run for one case."""

    number: int  # number of the case in the store
    nodes: int
    ended: set[tuple[tuple, int]]  # pairs of a candidate's key and a round
    iteration_us: list[float]
    # the key has the kind, the candidate's key or (MPI, own progress), and the amount
    samples: dict[tuple, list[float]]


class Store:
    """A result file, open for reading and appending."""

    def __init__(self, path: Path, create: bool = True) -> None:
        self.path = path
        if not create and not path.exists():
            raise reject(path, "there is no such file")
        new = not path.exists() or path.stat().st_size == 0
        if create:
            files.try_to_write(path)
        try:
            self.connection = sqlite3.connect(path)
            if new:
                self.connection.executescript(TABLES)
                self.connection.execute("INSERT INTO about VALUES ('schema', ?)", (SCHEMA,))
                self.connection.commit()
            self.check()
        except sqlite3.Error as error:
            if not new:
                raise reject(path, f"not a result of weft bench, or damaged: {error}") from None
            self.connection.close()
            path.unlink(missing_ok=True)
            raise reject(path, f"cannot be written: {error}") from None

    def check(self) -> None:
        rows = self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = {name for (name,) in rows}
        for name in NAMES:
            if name not in found:
                raise reject(self.path, f"table {name} is missing: not a result of weft bench")
        row = self.connection.execute("SELECT value FROM about WHERE name = 'schema'").fetchone()
        if not row or row[0] != SCHEMA:
            version = row[0] if row else "unknown"
            raise reject(self.path, f"table about: schema {version}, this Weft reads {SCHEMA}")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.commit()
        self.connection.close()

    def insert(self, statement: str, values: tuple) -> int:
        cursor = self.connection.execute(statement, values)
        self.connection.commit()
        return cursor.lastrowid or 0

    def new_run(self, machine: dict[str, Any], settings: dict[str, Any]) -> int:
        values = (now(), json.dumps(machine), json.dumps(settings))
        return self.insert("INSERT INTO run (started, machine, settings) VALUES (?, ?, ?)", values)

    def last_run(self) -> int:
        row = self.connection.execute("SELECT max(id) FROM run").fetchone()
        if row[0] is None:
            raise reject(self.path, "table run: empty, nothing was measured")
        return row[0]

    def run_facts(
        self, run: int, settings: type[T] = dict[str, Any]
    ) -> tuple[dict[str, Any], T, bool]:
        """Returns the machine, the settings as the given type, and whether the run was completed.
        Raises ResultError if there is no such run."""
        query = "SELECT machine, settings, complete FROM run WHERE id = ?"
        row = self.connection.execute(query, (run,)).fetchone()
        if not row:
            raise reject(self.path, f"table run: there is no run {run}")
        where = f"{self.path}: table run, row {run}"
        machine = stored.parse(dict[str, Any], row[0], f"{where}, machine")
        return machine, stored.parse(settings, row[1], f"{where}, settings"), bool(row[2])

    def complete(self, run: int, complete: bool = True) -> None:
        self.insert("UPDATE run SET complete = ? WHERE id = ?", (int(complete), run))

    def candidate(self, run: int, candidate: Candidate) -> int:
        """Adds a candidate, or updates its status. Returns its number."""
        values = (run, *candidate.key, candidate.status, candidate.reason)
        # SQLite before 3.35 requires the names of the columns that conflict.
        self.insert(
            f"INSERT INTO candidate (run, {CANDIDATE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (run, mpi, engine, placement, backoff, algorithm)"
            " DO UPDATE SET status = excluded.status, reason = excluded.reason",
            values,
        )
        query = (
            "SELECT id FROM candidate WHERE run = ? AND mpi = ? AND engine = ? AND placement = ?"
            " AND backoff = ? AND algorithm = ?"
        )
        return self.connection.execute(query, (run, *candidate.key)).fetchone()[0]

    def case(
        self, run: int, case: tuple[str, int, int, int], kernel: str, iterations: list[int]
    ) -> int:
        """Adds a case (collective, bytes, ranks, nodes) and its amounts of computation, and returns
        its number."""
        values = (run, *case, kernel)
        self.insert(
            "INSERT OR IGNORE INTO measured_case (run, collective, bytes, ranks, nodes, kernel)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )
        query = (
            "SELECT id FROM measured_case WHERE run = ? AND collective = ? AND bytes = ? AND"
            " ranks = ? AND nodes = ? AND kernel = ?"
        )
        number = self.connection.execute(query, values).fetchone()[0]
        for place, count in enumerate(iterations):
            self.insert("INSERT OR IGNORE INTO amount VALUES (?, ?, ?)", (number, place, count))
        return number

    def iterations(self, run: int, case: tuple[str, int, int, int]) -> list[int]:
        """Returns the amounts of computation of a case that has been started; an empty list if it
        has not."""
        query = (
            "SELECT iterations FROM amount JOIN measured_case ON measured_case.id = measured_case"
            " WHERE run = ? AND collective = ? AND bytes = ? AND ranks = ? AND nodes = ?"
            " ORDER BY number"
        )
        return [row[0] for row in self.connection.execute(query, (run, *case))]

    def job(self, run: int, case: int, mpi: str, library_async: bool, number: int) -> int:
        return self.insert(
            "INSERT INTO job (run, measured_case, mpi, library_async, round, started)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (run, case, mpi, int(library_async), number, now()),
        )

    def samples(self, job: int, rows: list[tuple]) -> None:
        """Adds samples. A row is (candidate or None, kind, amount or None, us, computation_us or
        None)."""
        self.connection.executemany(
            "INSERT INTO sample (job, candidate, kind, amount, us, computation_us)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [(job, *row) for row in rows],
        )
        self.connection.commit()

    def end(
        self, case: int, candidates: Sequence[int], number: int, iteration_us: float | None
    ) -> None:
        """Records that the job of these candidates in this round is complete."""
        self.connection.execute(ENDED)
        self.connection.executemany(
            "INSERT OR REPLACE INTO ended VALUES (?, ?, ?, ?)",
            [(case, candidate, number, iteration_us) for candidate in candidates],
        )
        self.connection.commit()

    def jobs(self, run: int) -> int:
        query = "SELECT count(*) FROM job WHERE run = ?"
        return self.connection.execute(query, (run,)).fetchone()[0]

    def lost(self, run: int) -> set[tuple]:
        """Returns the keys of the candidates that hung or failed."""
        query = (
            "SELECT mpi, engine, placement, backoff, algorithm FROM candidate WHERE run = ?"
            " AND status IN (?, ?)"
        )
        return set(self.connection.execute(query, (run, STOPPED, FAILED)))

    def begun(self, run: int, collective: str, size: int, ranks: int) -> Begun | None:
        """Returns the earlier results for a case; None if nothing of it has been measured."""
        query = (
            "SELECT id, nodes FROM measured_case WHERE run = ? AND collective = ? AND bytes = ?"
            " AND ranks = ? ORDER BY id"
        )
        row = self.connection.execute(query, (run, collective, size, ranks)).fetchone()
        if not row:
            return None
        keys = {number: candidate.key for number, candidate in self.candidates(run).items()}
        self.connection.execute(ENDED)
        query = "SELECT candidate, round, iteration_us FROM ended WHERE measured_case = ?"
        ended = self.connection.execute(query, (row[0],)).fetchall()
        return Begun(
            number=row[0],
            nodes=row[1],
            ended={(keys[candidate], number) for candidate, number, _ in ended},
            iteration_us=[us for _, _, us in ended if us],
            samples=self.samples_of(row[0], keys),
        )

    def samples_of(self, case: int, keys: dict[int, tuple]) -> dict[tuple, list[float]]:
        query = (
            "SELECT kind, candidate, mpi, library_async, amount, us FROM sample JOIN job"
            " ON job.id = sample.job WHERE measured_case = ? ORDER BY sample.id"
        )
        found: dict[tuple, list[float]] = defaultdict(list)
        for kind, candidate, mpi, own, amount, us in self.connection.execute(query, (case,)):
            found[kind, keys.get(candidate, (mpi, bool(own))), amount].append(us)
        return found

    def candidates(self, run: int) -> dict[int, Candidate]:
        query = f"SELECT id, {CANDIDATE} FROM candidate WHERE run = ? ORDER BY id"
        rows = self.connection.execute(query, (run,))
        return {number: Candidate(*values) for number, *values in rows}

    def result(self, run: int | None = None) -> Result:
        """Returns one run as points, by default the last run. Raises ResultError if the file is
        damaged."""
        try:
            return Reading(self, run or self.last_run()).result()
        except (sqlite3.Error, KeyError) as error:
            raise reject(self.path, f"damaged: {error}") from None


class Reading:
    """The samples of one run, grouped by point."""

    def __init__(self, store: Store, run: int) -> None:
        self.store = store
        self.run = run
        self.machine, self.settings, self.complete = store.run_facts(run)
        self.candidates = store.candidates(run)
        self.cases: dict[int, tuple] = {}
        query = "SELECT id, collective, bytes, ranks, nodes, kernel FROM measured_case"
        for number, *values in store.connection.execute(f"{query} WHERE run = ?", (run,)):
            self.cases[number] = tuple(values)
        # These are samples by (case, …). Computation and blocking calls are separated by whether
        # the MPI library progresses by itself.
        self.blocking: dict[tuple, list[float]] = defaultdict(list)
        self.immediate: dict[tuple, list[float]] = defaultdict(list)
        self.computation: dict[tuple, list[float]] = defaultdict(list)
        self.overlapped: dict[tuple, list[tuple[float, float]]] = defaultdict(list)
        self.read()

    def read(self) -> None:
        query = (
            "SELECT sample.id, measured_case, mpi, library_async, candidate, kind, amount, us,"
            " computation_us FROM sample JOIN job ON job.id = sample.job WHERE run = ?"
        )
        rows = self.store.connection.execute(query, (self.run,))
        for row, case, mpi, own, candidate, kind, amount, us, inside in rows:
            alone = kind in ("blocking", "computation")
            known = case in self.cases and (alone or candidate in self.candidates)
            if kind not in KINDS or not known or not isinstance(us, float) or us < 0:
                raise reject(self.store.path, f"table sample, row {row}: damaged")
            if kind == "blocking":
                self.blocking[case, mpi, own].append(us)
            elif kind == "immediate":
                self.immediate[case, candidate].append(us)
            elif kind == "computation":
                self.computation[case, amount, own].append(us)
            else:
                self.overlapped[case, candidate, amount].append((us, inside or 0.0))

    def communication_us(self, case: int) -> float | None:
        """Returns the time of the best candidate without computation."""
        times = [s for key, s in self.blocking.items() if key[0] == case]
        times += [s for key, s in self.immediate.items() if key[0] == case]
        return min((statistics.of(samples).median for samples in times), default=None)

    def computation_us(self, case: int, amount: int) -> float | None:
        """Returns the time of the computation alone, from jobs without a progress thread of the MPI
        library if there are any; None if it was not measured."""
        samples = self.computation.get((case, amount, 0)) or self.computation.get((case, amount, 1))
        return statistics.of(samples).median if samples else None

    def points(self) -> list[Point]:
        found = []
        communication = {case: self.communication_us(case) for case in self.cases}
        for (case, candidate, amount), samples in sorted(self.overlapped.items()):
            computation_us = self.computation_us(case, amount)
            communication_us = communication[case]
            if not computation_us or not communication_us:
                continue  # the run was stopped before either was measured
            if self.candidates[candidate].status == FAILED:
                continue  # the candidate gave wrong results or crashed
            total = statistics.of([us for us, _ in samples])
            inside = statistics.of([inside for _, inside in samples]).median
            *where, kernel = self.cases[case]
            found.append(
                Point(
                    *self.candidates[candidate].key,
                    *where,
                    computation_us=computation_us,
                    communication_us=communication_us,
                    total_us=total,
                    hidden=hidden_share(communication_us, computation_us, total.median),
                    slowdown_of_computation=inside / computation_us,
                    amount=amount,
                    kernel=kernel,
                )
            )
        return found

    def alone(self) -> list[Alone]:
        found = []
        for (case, candidate), samples in sorted(self.immediate.items()):
            facts = self.candidates[candidate]
            own = int(facts.engine == "library-async")
            blocking = self.blocking.get((case, facts.mpi, own))
            if blocking:
                times = statistics.of(blocking), statistics.of(samples)
                found.append(Alone(*facts.key, *self.cases[case][:4], *times))
        return found

    def result(self) -> Result:
        return Result(
            machine=self.machine,
            points=self.points(),
            candidates=list(self.candidates.values()),
            alone=self.alone(),
            settings=self.settings,
            complete=self.complete,
        )


def load_sqlite(path: Path, run: int | None = None) -> Result:
    """Returns the last run of the file, or the given one."""
    with Store(path, create=False) as store:
        return store.result(run)


def load(path: Path) -> Result:
    """Returns a result from a JSON or an SQLite file. Raises ResultError if it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise reject(path, f"cannot be read: {error.strerror}") from None
    return load_sqlite(path) if start.startswith(b"SQLite format 3") else load_json(path)
