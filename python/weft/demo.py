"""`weft demo`: one unmodified MPI program without and with Weft, as a table and as a page.

Why in the lab: overlap needs a network that works while the cores compute; without permission for
namespaces the ranks share memory instead, and the demo says what that means.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from weft import installation, mpi_libraries
from weft.lab import Lab, LabError, LabUnavailable
from weft.report import overlap, page
from weft.report.overlap import Comparison, percent

COLLECTIVES = ("allreduce", "alltoall", "bcast")
ENGINES = ("native", "function", "thread", "tcc", "assist")
SIZE = "2MiB"
SHARED_MEMORY_SIZE = "16MiB"  # there 2 MiB take less than a millisecond
RANKS = 2
RATE = "200mbit"
JOB_SECONDS = 120


class Place(Protocol):
    """Where jobs of RANKS ranks run."""

    network: str
    size: str

    def run(self, command: list[str]) -> tuple[int, str]:
        """The exit status and everything the job said."""


@dataclass
class LabPlace:
    lab: Lab
    network: str = (
        f"the lab: {RANKS} network namespaces on this machine, one rank on a core each, joined by a"
        " link of 200 Mbit/s"
    )
    size: str = SIZE

    def run(self, command: list[str]) -> tuple[int, str]:
        result = self.lab.run(command, capture=True, timeout=JOB_SECONDS)
        return result.returncode, f"{result.stderr}{result.stdout}"


@dataclass
class SharedMemory:
    mpi: mpi_libraries.Implementation
    network: str = (
        "shared memory of this machine: the cores themselves move the data, so there is little that"
        " could be hidden"
    )
    size: str = SHARED_MEMORY_SIZE

    def run(self, command: list[str]) -> tuple[int, str]:
        environment = {**os.environ, **self.mpi.environment()}
        full = [str(self.mpi.mpiexec), "-n", str(RANKS), *command]
        done = subprocess.run(
            full, env=environment, capture_output=True, text=True, timeout=JOB_SECONDS
        )
        return done.returncode, done.stderr + done.stdout


class DemoError(Exception):
    """The message says what to do."""


@contextlib.contextmanager
def place(mpi: str, console: Console) -> Iterator[Place]:
    """The lab, or shared memory with a sentence where this machine does not permit a lab."""
    with contextlib.ExitStack() as stack:
        try:
            found: Place = LabPlace(stack.enter_context(Lab(nodes=RANKS, rate=RATE, mpi=mpi)))
        except LabUnavailable as error:
            console.print(
                f"{error}.\nThe ranks share memory instead: the demo runs, but moving data then"
                " takes the cores' own time and little can be hidden.",
                style="yellow",
                markup=False,
            )
            found = SharedMemory(mpi_libraries.implementation(mpi))
        yield found


def measure(
    where: Place, mpi: str, collective: str, without: dict | None, repetitions: int
) -> dict:
    """One job: the program without Weft, or, given that measurement, with it and the same work."""
    program = mpi_libraries.implementation(mpi).program("overlap")
    if not program.exists():
        command = mpi_libraries.make_target(mpi)
        raise DemoError(f"{program} is missing; build it with: {command}")
    # The engines are hints; where none is named, Weft may leave the whole job alone.
    front = [str(installation.weft_command()), "run", "--engine", "thread", "--"]
    front = front if without else []
    engines = ENGINES if without else ENGINES[:1]
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory) / "overlap.json"
        command = [*front, str(program), "--collective", collective, "--bytes", where.size]
        command += ["--engines", ",".join(engines), "--repetitions", str(repetitions)]
        command += ["--json", str(answer)]
        if without:
            command += ["--iterations", str(without["iterations"])]
        try:
            status, said = where.run(command)
        except subprocess.TimeoutExpired:
            raise DemoError(f"{' '.join(command)} did not end within {JOB_SECONDS} s") from None
        if status != 0:
            raise DemoError(f"{' '.join(command)} ended with status {status}:\n{said.strip()}")
        return overlap.read(answer)


def compare_all(where: Place, mpi: str, repetitions: int, console: Console) -> list[Comparison]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    comparisons = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=2 * len(COLLECTIVES))
        for collective in COLLECTIVES:
            runs: list[dict] = []
            for weft in (False, True):
                how = f"with Weft, {len(ENGINES)} engines" if weft else "without Weft"
                progress.update(task, description=f"MPI_I{collective}, {where.size}, {how}")
                without = runs[0] if weft else None
                runs.append(measure(where, mpi, collective, without, repetitions))
                progress.advance(task)
            comparisons.append(overlap.compare(*runs))
            progress.console.print(comparisons[-1].sentence, markup=False, highlight=False)
    return comparisons


def table(comparisons: list[Comparison]) -> Table:
    result = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    result.add_column("", no_wrap=True)
    for title in (
        "communi-\ncation\nalone ms",
        "compu-\ntation\nalone ms",
        "both\nms",
        "",
        "hidden",
        "times as\nfast as\nwithout",
        "times as\nfast as\nnative",
    ):
        result.add_column(title, justify="right", vertical="bottom", no_wrap=True)
    for comparison in comparisons:
        result.add_section()
        result.add_row(comparison.call, style="bold")
        for row in comparison.rows:
            result.add_row(
                "  " + row.name,
                f"{row.communication_ms:.1f}",
                f"{row.computation.median:.1f}",
                f"{row.total.median:.1f}",
                f"{row.total.low:.1f}–{row.total.high:.1f}",
                percent(row.hidden),
                f"{row.against_without:.2f}",
                f"{row.against_native:.2f}",
                style="green" if row.name == comparison.best.name else None,
            )
    return result


def run(mpi: str = "mpich", out: Path = Path("out/demo.html"), quick: bool = False) -> int:
    """The whole demo; the exit status."""
    console = Console()
    try:
        if mpi not in mpi_libraries.IMPLEMENTATIONS:
            choices = ", ".join(mpi_libraries.IMPLEMENTATIONS)
            raise DemoError(f"unknown MPI '{mpi}'; choose one of {choices}")
        console.print(f"One unmodified MPI program, {RANKS} ranks, without and with Weft ({mpi})")
        with place(mpi, console) as where:
            comparisons = compare_all(where, mpi, 3 if quick else 7, console)
            network = where.network
    except (DemoError, LabError) as error:
        Console(stderr=True).print(f"weft demo: {error}", style="red", markup=False)
        return 2
    console.print(table(comparisons))
    console.print(
        f"Medians of {comparisons[0].repetitions}, their quartiles beside them; green: the fastest"
        " engine, native where none is faster beyond the spread.",
        style="dim",
    )
    page.write(out, comparisons, network)
    console.print(f"Report: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)
    return 0
