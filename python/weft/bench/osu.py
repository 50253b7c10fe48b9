"""Prints the overlap of every non-blocking collective for each MPI library and engine, as OSU's
benchmarks do (`weft bench --preset osu`), since many people know these figures.
docs/benchmarking.md says what they do not show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional

from rich.console import Console
from rich.table import Table

from weft.bench import experiments, kernel_runs, machine, settings
from weft.bench.settings import SettingsError
from weft.data import json_file
from weft.data.stored import head
from weft.system import info, mpi_libraries

NAME = PROGRAM = "osu"
SCHEMA, RUN_SCHEMA = "weft-osu/1", "weft-osu-run/1"
LAB = "nodes=2,rate=200mbit"
ENGINES, SIZE = "native,thread,tcc", "256KiB"
CALLS = ("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv")
CALLS += ("alltoall", "alltoallv", "alltoallw", "reduce", "allreduce", "reduce_scatter")
CALLS += ("reduce_scatter_block", "scan", "exscan")
OPTIONS = {"preset", "mpi", "lab", "launcher", "ranks", "engines", "size", "collective"}
OPTIONS |= {"json_file"}
LIMIT_S = 600


@dataclass(frozen=True)
class Row:
    """One line of the output. Times are means over repetitions and ranks; `overlap` is in per cent,
    and never below 0."""

    call: str
    engine: str
    alone_us: float
    computation_us: float
    total_us: float
    overlap: float


@dataclass(frozen=True)
class Figures:
    """The tables of one MPI library."""

    mpi: str
    ranks: int
    bytes: int
    repetitions: int
    rows: list[Row] = field(default_factory=list)


def carry_out(given: dict[str, Any], said: Collection[str], file: Optional[Path]) -> int:
    """Measures all libraries and prints their tables. Returns the exit status: 1 if no library came
    to a result."""
    options = options_of(given, said)
    found: list[tuple[Figures, str]] = []
    failed = []
    for mpi in libraries(given["mpi"]):
        try:
            words = (PROGRAM, options, mpi, Figures, RUN_SCHEMA, LIMIT_S)
            found.append(kernel_runs.figures_of(*words))
        except SettingsError as error:
            failed.append(str(error))
            experiments.tell(f"Not measured: {error}", "yellow")
            continue
        show(*found[-1])
    if file:
        json_file.write(file, as_json(found, failed))
    return 0 if found else 1


def libraries(text: Optional[str]) -> list[str]:
    """Returns the libraries that the words name; without words all installed ones."""
    here = dict.fromkeys(mpi.name for mpi in mpi_libraries.found())
    return mpi_libraries.words(text or ",".join(here))


def options_of(given: dict[str, Any], said: Collection[str]) -> dict[str, Any]:
    """Returns the program's options. Raises SettingsError for an option of the command line that
    has no effect here."""
    for name in sorted(set(said) - OPTIONS):
        flag = experiments.flag(name)
        raise SettingsError(f"{flag} has no effect on preset {NAME}; leave it out")
    if {"lab", "launcher"} <= set(said):
        raise SettingsError("--lab and --launcher exclude each other")
    if "ranks" in said and "launcher" not in said:
        raise SettingsError("--ranks needs --launcher here; in the lab say --lab nodes=N")
    engines = given["engines"] if "engines" in said else ENGINES
    settings.words("--engines", engines, tuple(info.ENGINES))
    size = settings.size_bytes("--bytes", given["size"] if "size" in said else SIZE)
    words = f"--bytes {size}"
    if "collective" in said:
        calls = settings.words("--collective", given["collective"], CALLS)
        words += f" --calls {','.join(calls)}"
    lab = None if "launcher" in said else given["lab"] or LAB
    ranks = given["ranks"] or "2"
    options = {"arguments": words, "engines": engines, "lab": lab, "ranks": ranks}
    return {**options, "launcher": given["launcher"]}


def show(figures: Figures, network: str) -> None:
    """Prints a row for each call, with a column for each engine."""
    engines = list(dict.fromkeys(row.engine for row in figures.rows))
    by_call: dict[str, dict[str, Row]] = {}
    for row in figures.rows:
        by_call.setdefault(row.call, {})[row.engine] = row
    library = figures.mpi.split(",")[0]
    title = f"{library}, {figures.ranks} ranks, {network}, {figures.bytes} bytes"
    experiments.tell(f"Overlap in per cent, by OSU's method: {title}", "bold")
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("call")
    for name in engines:
        table.add_column(name, justify="right")
    for call, rows in by_call.items():
        cells = (f"{rows[name].overlap:.1f} ({rows[name].total_us:,.0f} µs)" for name in engines)
        table.add_row(call, *cells)
    Console().print(table)


def as_json(found: Sequence[tuple[Figures, str]], failed: Sequence[str]) -> dict[str, Any]:
    libraries = [{**asdict(figures), "network": network} for figures, network in found]
    ranks = found[0][0].ranks if found else None
    headline = {"libraries": len(found), "failed": len(failed)}
    return {
        **head(SCHEMA, headline, ", ".join(figures.mpi for figures, _ in found), ranks),
        "machine": machine.describe(found[0][1] if found else ""),
        "failed": list(failed),
        "libraries": libraries,
    }
