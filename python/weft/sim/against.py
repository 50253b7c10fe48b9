"""Measures and simulates the same collectives on this machine, side by side (`weft sim
--against-measured`).

The simulated machine is this one, as --calibrate describes it. Nothing is fitted to the compared
times. They are those of bench/overlap.cc: medians of the slowest rank, for a collective from its
start to the end of its wait, and for the same overlapped with computation."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft.bench.settings import SettingsError, lab_words
from weft.data import files, json_file
from weft.lab import Lab, LabError
from weft.sim import calibration, native
from weft.sim.native import SimError
from weft.system import installation, mpi_libraries
from weft.system.mpi_libraries import Implementation, MpiError

KIB, MIB = 1 << 10, 1 << 20
NEAR = 0.2
REPETITIONS = 9
TIMEOUT_S = 600


@dataclass(frozen=True)
class Case:
    collective: str
    bytes: int
    nodes: int  # number of nodes; 1 means in the node's memory
    ranks: int
    engines: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{self.collective} of {self.bytes:,} bytes on {self.nodes} nodes"


@dataclass(frozen=True)
class Row:
    collective: str
    bytes: int
    nodes: int
    ranks: int
    engine: str
    compute_us: float  # computation in us; 0 means the collective alone
    measured_us: float
    simulated_us: float
    crowded: bool  # there are more ranks than cores

    @property
    def ratio(self) -> float:
        return self.simulated_us / self.measured_us

    @property
    def is_near(self) -> bool:
        return abs(self.ratio - 1) <= NEAR


def cases(nodes: Sequence[int] = (1, 2, 4)) -> Iterator[Case]:
    for number in nodes:
        if number == 1:
            for size in (8 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB):
                yield Case("allreduce", size, 1, 2, ("function", "thread"))
            continue
        for collective in ("allreduce", "alltoall"):
            for size in (256 * KIB, MIB, 4 * MIB):
                yield Case(collective, size, number, number, ("function", "thread", "tcc"))


def measured(mpi: Implementation, case: Case, lab: Lab | None, result: Path) -> dict[str, Any]:
    words = [str(installation.weft_command()), "run", "--learn", "off", "--"]
    words += [calibration.program_of(mpi, "overlap"), "--collective", case.collective]
    words += ["--bytes", str(case.bytes), "--engines", ",".join(case.engines)]
    words += ["--repetitions", str(REPETITIONS), "--json", str(result)]
    # Between nodes a pause lets the link's token bucket fill again. Inside a node no pause is
    # needed, and it would let the caches get cold.
    words += ["--pause-us", "0"] if case.nodes == 1 else []
    result.unlink(missing_ok=True)
    calibration.said_by(mpi, words, case.ranks, lab, TIMEOUT_S)
    return json.loads(result.read_text())


def simulated_us(machine: Path, case: Case, engine: str, compute_us: float) -> float:
    run = native.simulate(
        str(machine),
        collective=case.collective,
        bytes=case.bytes,
        ranks=case.ranks,
        nodes=case.nodes,
        engine=engine,
        placement="bind",
        compute=f"{compute_us:.3f}",
    )
    return run.total_us


def rows_of(case: Case, found: dict[str, Any], machine: Path, cores: int) -> Iterator[Row]:
    computation = found["computation_us"]["median"]
    for engine in found["engines"]:
        for compute, figure in ((0.0, "immediate_us"), (computation, "total_us")):
            yield Row(
                case.collective,
                case.bytes,
                case.nodes,
                case.ranks,
                engine["engine"],
                round(compute, 1),
                engine[figure]["median"],
                simulated_us(machine, case, engine["engine"], compute),
                case.ranks > cores,
            )


def compare(
    machine: dict[str, Any],
    words: dict[str, Any],
    mpi: Implementation,
    wanted: Sequence[Case],
    missing: Callable[[str], None],
) -> Iterator[Row]:
    """Yields a row for each case. The reason why a case was not measured is passed to `missing`."""
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        result, file = Path(folder) / "overlap.json", Path(folder) / "machine.json"
        for nodes in dict.fromkeys(case.nodes for case in wanted):
            own = calibration.node_of_the_lab(machine, cores // nodes)
            file.write_text(json.dumps({**machine, **own}))
            with contextlib.ExitStack() as places:
                lab = None
                if nodes > 1:
                    made = Lab(nodes, 1, words["rate"], words["burst"], mpi, delay=words["delay"])
                    lab = places.enter_context(made)
                for case in [case for case in wanted if case.nodes == nodes]:
                    try:
                        found = measured(mpi, case, lab, result)
                    except (SimError, subprocess.TimeoutExpired) as error:
                        missing(f"{case.words}: {error}")
                        continue
                    yield from rows_of(case, found, file, cores)


def share(rows: Sequence[Row]) -> str:
    near = sum(row.is_near for row in rows)
    return f"{near} of {len(rows)} within {NEAR:.0%} ({near / len(rows):.0%})"


def summary(rows: Sequence[Row]) -> list[str]:
    lines = []
    for crowded, words in ((False, "no more ranks than cores"), (True, "more ranks than cores")):
        of_kind = [row for row in rows if row.crowded == crowded]
        if of_kind:
            middle = statistics.median(row.ratio for row in of_kind)
            lines.append(f"{words}: {share(of_kind)}; the median ratio is {middle:.2f}")
    return lines


def busy_note(load: float, cores: int) -> str:
    """Says that the machine was busy before the first measurement; "" if it was idle."""
    if load < cores / 4:
        return ""
    return (
        f"The machine was busy (load {load:.1f} on {cores} cores): measured times are too long and"
        " the ratios say nothing of the model; measure again on an idle machine"
    )


def table(rows: Sequence[Row]) -> Table:
    result = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("collective", "engine"):
        result.add_column(name)
    for name in ("bytes", "nodes", "ranks", "compute µs", "measured µs", "simulated µs", "ratio"):
        result.add_column(name, justify="right")
    for row in rows:
        result.add_row(
            row.collective,
            row.engine,
            f"{row.bytes:,}",
            str(row.nodes),
            str(row.ranks),
            f"{row.compute_us:,.0f}",
            f"{row.measured_us:,.0f}",
            f"{row.simulated_us:,.0f}",
            f"{row.ratio:.2f}{'' if row.is_near else ' !'}",
        )
    return result


def against_measured(
    machine: str | None, lab: str | None, mpi_name: str | None, file: Path | None, out: Path | None
) -> None:
    """Compares measured and simulated times, and writes the results. `machine` is a file that
    --calibrate wrote; without one this machine is measured first."""
    load = os.getloadavg()[0]
    rows: list[Row] = []
    not_measured: list[str] = []

    def missing(why: str) -> None:
        not_measured.append(why)
        print(f"weft sim: not measured: {why}", file=sys.stderr)

    def answer() -> str:
        found = {"load": load, "machine": facts, "rows": [asdict(row) for row in rows]}
        return json.dumps({**found, "not_measured": not_measured}, indent=1)

    try:
        facts, words, mpi = described(machine, lab or "nodes=2,rate=200mbit", mpi_name)
        if out:
            files.try_to_write(out)
        for row in compare(facts, words, mpi, list(cases()), missing):
            rows.append(row)
            if out:  # the following steps may fail
                files.write_text(out, answer() + "\n")
    except (MpiError, LabError, SettingsError, subprocess.TimeoutExpired) as error:
        raise SimError(str(error)) from None
    if not rows:
        raise SimError("nothing was measured, for the reasons above")
    if file:
        json_file.write(file, json.loads(answer()))
    if json_file.is_alone(file):
        return
    console = Console()
    console.print(table(rows))
    for line in summary(rows):
        console.print(line, highlight=False)
    if note := busy_note(load, len(os.sched_getaffinity(0))):
        console.print(note, style="yellow", highlight=False)


def described(
    machine: str | None, lab: str, mpi_name: str | None
) -> tuple[dict[str, Any], dict[str, Any], Implementation]:
    """Returns the machine's description, the lab's settings, and the MPI library."""
    words = lab_words(lab)
    mpi = mpi_libraries.chosen(mpi_name)
    if machine:
        file = native.machine_file(machine)
        # The simulator refuses a wrong machine file.
        native.simulate(str(file), collective="bcast", bytes=8, ranks=1)
        return json.loads(file.read_text()), words, mpi
    facts = json.loads(native.calibrate())
    calibration.with_messages(facts, lab, mpi_name)
    return facts, words, mpi
