"""`weft sim --against-measured`: the same collectives measured here and simulated, side by side.

The simulated machine is this one, as --calibrate describes it; nothing is fitted to the figures
that are compared. Times are those of bench/overlap.cc: medians of the slowest rank, of a collective
from its start to the end of its wait, and of the same over computation.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft import installation, mpi_libraries
from weft.bench.settings import SettingsError, lab_words
from weft.lab import Lab, LabError
from weft.mpi_libraries import Implementation, MpiError
from weft.probe import how_to_build
from weft.sim import calibration, native
from weft.sim.native import SimError

KIB, MIB = 1 << 10, 1 << 20
NEAR = 0.2
REPETITIONS = 9
TIMEOUT_S = 600


@dataclass(frozen=True)
class Case:
    collective: str
    bytes: int
    nodes: int  # 1: in the node's memory
    ranks: int
    engines: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    collective: str
    bytes: int
    nodes: int
    ranks: int
    engine: str
    compute_us: float  # 0: the collective alone
    measured_us: float
    simulated_us: float
    crowded: bool  # more ranks than cores

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


def overlap_command(mpi: Implementation, case: Case, result: Path) -> list[str]:
    program = mpi.program("overlap")
    if not program.exists():
        raise SimError(f"{program} is missing; {how_to_build(mpi)}")
    words = [str(installation.weft_command()), "run", "--learn", "off", "--", str(program)]
    words += ["--collective", case.collective, "--bytes", str(case.bytes)]
    words += ["--engines", ",".join(case.engines), "--repetitions", str(REPETITIONS)]
    return [*words, "--json", str(result)]


def measured(mpi: Implementation, case: Case, lab: Lab | None, result: Path) -> dict[str, Any]:
    command = overlap_command(mpi, case, result)
    if lab:
        done = lab.run(command, capture=True, timeout=TIMEOUT_S)
        status, said = done.returncode, done.stderr
    else:
        environment = {**os.environ, **mpi.environment()}
        full = [*mpi.launcher(case.ranks), *command]
        ended = subprocess.run(
            full, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S
        )
        status, said = ended.returncode, ended.stderr
    if status != 0:
        raise SimError(f"overlap failed with {status}: {(said or '').strip()}")
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
    machine: dict[str, Any], words: dict[str, Any], mpi: Implementation, wanted: Sequence[Case]
) -> list[Row]:
    cores = len(os.sched_getaffinity(0))
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        result, file = Path(folder) / "overlap.json", Path(folder) / "machine.json"
        for nodes in dict.fromkeys(case.nodes for case in wanted):
            own = {**machine, "cores": cores if nodes == 1 else max(1, cores // nodes)}
            file.write_text(json.dumps(own))
            here = [case for case in wanted if case.nodes == nodes]
            if nodes == 1:
                for case in here:
                    found += rows_of(case, measured(mpi, case, None, result), file, cores)
                continue
            with Lab(nodes, 1, words["rate"], words["burst"], mpi, delay=words["delay"]) as lab:
                for case in here:
                    found += rows_of(case, measured(mpi, case, lab, result), file, cores)
    return found


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
    """Of the load before the first measurement; empty where the machine was idle."""
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
    machine: str | None, lab: str | None, mpi_name: str | None, as_json: bool, out: Path | None
) -> None:
    """`machine`: a file of --calibrate's, else this machine is measured first."""
    text = lab or "nodes=2,rate=200mbit"
    load = os.getloadavg()[0]
    try:
        words = lab_words(text)
        mpi = mpi_libraries.chosen(mpi_name)
        if machine:
            facts = json.loads(native.machine_file(machine).read_text())
        else:
            facts = json.loads(native.calibrate())
            calibration.with_messages(facts, text, mpi_name)
        rows = compare(facts, words, mpi, list(cases()))
    except (MpiError, LabError, SettingsError, subprocess.TimeoutExpired) as error:
        raise SimError(str(error)) from None
    found = {"load": load, "machine": facts, "rows": [asdict(row) for row in rows]}
    answer = json.dumps(found, indent=1)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(answer + "\n")
    if as_json:
        print(answer)
        return
    console = Console()
    console.print(table(rows))
    for line in summary(rows):
        console.print(line, highlight=False)
    if note := busy_note(load, len(os.sched_getaffinity(0))):
        console.print(note, style="yellow", highlight=False)
