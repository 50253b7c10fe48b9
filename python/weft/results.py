"""Results of Weft as columns and pictures, as `weft.load` returns them.

Columns are dictionaries of lists, which pandas, polars and matplotlib accept directly."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from weft.data import stored
from weft.data.stored import ResultError

Row = Mapping[str, Any]
# This is the newest version of each schema that can be read. All older versions can be read, too.
NEWEST = {"bench": 2, "try": 2, "advise": 2, "summary": 2, "learned": 3, "sim": 1}
SQLITE = b"SQLite format 3\0"


class Figure:
    """A picture as SVG. Notebooks show it; `save(path)` writes it, and `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Union[str, Path]) -> None:
        """Writes the picture to an SVG file."""
        from weft.data import files

        files.write_text(Path(path), self.svg + "\n", encoding="utf-8")


class Result:
    """One result of Weft.

    kind    "try", "bench", "advise", "summary", "learned" or "sim".
    facts   facts about the result: `weft` (the version), `date` (ISO 8601, UTC), `host`,
            `mpi`, `ranks`, `command`, and `headline`, the figures of the command's first sentence.
            Files of an older Weft lack some of these.
    tables  names of the tables; `columns()` returns the first one by default."""

    def __init__(
        self,
        kind: str,
        facts: Row,
        tables: Mapping[str, Sequence[Row]],
        draw: Callable[[], str] | None = None,
    ) -> None:
        self.kind = kind
        self.facts = dict(facts)
        self.rows = tables
        self.draw = draw

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(rows)} rows" for name, rows in self.rows.items())
        return f"<weft {self.kind} result; {sizes}>"

    @property
    def tables(self) -> list[str]:
        """Returns the names that columns() accepts."""
        return list(self.rows)

    def columns(self, table: str = "") -> dict[str, list]:
        """Returns a table as a dictionary of equally long lists, which pandas.DataFrame accepts.

        The column of a median has the plain name. The columns of its 95 % interval end in _low and
        _high. A value is None if the row has none. Raises ResultError if there is no such table."""
        name = table or self.tables[0]
        if name not in self.rows:
            raise ResultError(f"a result of kind {self.kind} has no table {name}: {self.tables}")
        rows = [dict(flat(row)) for row in self.rows[name]]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    def figure(self) -> Figure:
        """Returns the picture of a result of kind "bench" or "try": time over the amount of
        computation, or over the rounds. Raises ResultError for other kinds."""
        if not self.draw:
            raise ResultError(f"a result of kind {self.kind} has no picture: use its columns()")
        try:
            return Figure(self.draw())
        except ValueError as error:
            raise ResultError(str(error)) from None


def flat(row: Row, begins: str = "") -> Iterable[tuple[str, Any]]:
    """Yields names and values. Members of nested objects get combined names, and lists of objects
    are left out."""
    for name, value in row.items():
        own = begins if name == "median" else f"{begins}_{name}" if begins else name
        if isinstance(value, Mapping):
            yield from flat(value, own)
        elif not (isinstance(value, (list, tuple)) and any(isinstance(v, dict) for v in value)):
            yield own, value


def load(path: Union[str, Path]) -> Result:
    """Reads a result: JSON of weft try, bench, advise, learned or sim, a summary of weft run
    (--summary=json:FILE), or the SQLite file of weft bench or weft advise.

    Raises ResultError, with one sentence, if the file cannot be read."""
    path = Path(path)
    contents = stored.contents(path)
    if contents.startswith(SQLITE):
        return of_bench(path, {}) if is_of_bench(path) else of_record(path)
    try:
        found = json.loads(contents)
    except ValueError as error:
        raise ResultError(f"{path}: neither JSON nor SQLite: {error}") from None
    kind = kind_of(path, found)
    if kind == "bench":
        return of_bench(path, facts_of(found))
    try:
        return READERS[kind](found)
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"{path}: a damaged result of weft {kind}: {error!r}") from None


def kind_of(path: Path, found: Any) -> str:
    schema = str(found.get("schema")) if isinstance(found, dict) else ""
    name, _, number = schema.removeprefix("weft-").partition("/")
    if not schema.startswith("weft-") or name not in NEWEST or not number.isdigit():
        raise ResultError(f"{path}: no result that weft.load reads: {', '.join(NEWEST)}")
    if int(number) > NEWEST[name]:
        raise ResultError(f"{path}: written by a newer Weft ({schema}): update this one")
    return name


def facts_of(found: Row) -> dict[str, Any]:
    """Returns all members that are no tables."""
    return {name: value for name, value in found.items() if not is_table(value)}


def is_table(value: Any) -> bool:
    return isinstance(value, list) and (not value or isinstance(value[0], dict))


# ---- Kinds of results -------------------------------------------------------------------------


def of_try(found: Row) -> Result:
    ways, runs = [], []
    for way in found["ways"]:
        name = " ".join(way["options"]) or "weft run"
        gain = way.get("times_as_fast", {})
        ways.append(
            {
                "way": name,
                "gain": {key: gain.get(key) for key in ("median", "low", "high")},
                "rounds": len(way["seconds"]),
                "verdict": way.get("verdict"),
                "weft_did_nothing": way.get("weft_did_nothing"),
            }
        )
        runs += [
            {"way": name, "round": number, "seconds": seconds}
            for number, seconds in enumerate(way["seconds"], 1)
        ]
    facts = facts_of(found)
    return Result("try", facts, {"ways": ways, "runs": runs}, lambda: drawn_rounds(ways, runs))


def drawn_rounds(ways: Sequence[Row], runs: Sequence[Row]) -> str:
    from weft.report import picture
    from weft.report.svg import Graph, Line, look

    lines = []
    for number, way in enumerate(ways):
        own = [run for run in runs if run["way"] == way["way"]]
        x, y = [run["round"] for run in own], [run["seconds"] for run in own]
        said = [f"{way['way']}: {seconds:.3g} s" for seconds in y]
        lines.append(Line(way["way"], look(number), x, y, said=said))
    title = "Each way in each round"
    return picture.drawing([(title, Graph(lines, "round", "s", title, height=picture.PLOT))])


def of_advice(found: Row) -> Result:
    tables = {name: found[name] for name in ("sites", "message_waits")}
    return Result("advise", facts_of(found), tables)


def of_summary(found: Row) -> Result:
    calls = [{**call, "passed_on": sum(call["passed_on"].values())} for call in found["calls"]]
    tables = {"calls": calls, "plans": found["plans"], "learnt": found["learnt"]}
    return Result("summary", facts_of(found), tables)


def of_learned(found: Row) -> Result:
    tried = [
        {"program": site["program"], "communicator": site["communicator"], "taken": site["way"]}
        | way
        for site in found["sites"]
        for way in site["tried"]
    ]
    return Result("learned", facts_of(found), {"sites": found["sites"], "tried": tried})


def of_sim(found: Row) -> Result:
    return Result("sim", facts_of(found), {"runs": found["runs"]})


READERS = {
    "try": of_try,
    "advise": of_advice,
    "summary": of_summary,
    "learned": of_learned,
    "sim": of_sim,
}


def of_bench(path: Path, facts: Row) -> Result:
    from dataclasses import asdict

    from weft.measurements import store

    found = store.load(path)
    facts = facts or {"machine": found.machine, "settings": found.settings}
    tables = {
        name: [asdict(one) for one in getattr(found, name)]
        for name in ("points", "candidates", "alone")
    }

    def draw() -> str:
        from weft.report import picture
        from weft.report.effect_page import Source

        return picture.of_results([Source(str(path), found)])

    return Result("bench", facts, tables, draw)


def is_of_bench(path: Path) -> bool:
    import sqlite3

    try:
        with sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True) as database:
            query = "SELECT 1 FROM sqlite_master WHERE name = 'measured_case'"
            return database.execute(query).fetchone() is not None
    except sqlite3.Error as error:
        raise ResultError(f"{path}: a damaged SQLite file: {error}") from None


def of_record(path: Path) -> Result:
    """Returns the result of a record of weft advise. Its facts are those of the run, not of this
    reading."""
    from weft.advise import analysis, as_data, store

    record = store.read(path)
    advice = analysis.analyse(record)
    found = as_data.as_json(advice)
    facts = {name: found[name] for name in ("mpi", "ranks", "headline")}
    facts |= {"weft": record.about.get("weft"), "command": shlex.join(advice.command)}
    return Result("advise", facts, of_advice(found).rows)
