"""Figures of the programs of kernels/: runs them, keeps their samples, reads them back.

Why apart from the benchmark: a kernel has no amount of computation to vary; its result is one time
per engine, in schema weft-kernels/1 (docs/benchmarking.md).
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft import installation, mpi_libraries
from weft.bench import places, settings, statistics
from weft.bench.result import ResultError, Statistic, ranks_in_words
from weft.bench.settings import SettingsError
from weft.lab import LabError

SCHEMA = "weft-kernels/1"
RUN_SCHEMA = "weft-kernel/1"  # what the program writes
BLOCKING = "blocking"
LIMIT_S = 120
LAB_PAUSE_US = 15000  # lets the links' buckets fill again
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Run:
    """One job: the kernel, blocking and with each engine."""

    kernel: str
    mpi: str
    ranks: int
    elements: int
    network: str
    times_us: dict[str, Statistic]  # by engine; BLOCKING: without overlap
    samples_us: dict[str, list[float]]

    @property
    def blocking(self) -> Statistic:
        return self.times_us[BLOCKING]

    @property
    def engines(self) -> dict[str, Statistic]:
        return {name: time for name, time in self.times_us.items() if name != BLOCKING}

    @property
    def best(self) -> str:
        return min(self.engines, key=lambda engine: self.engines[engine].median)

    @property
    def title(self) -> str:
        library = " ".join(self.mpi.replace(" Version:", "").split(",")[0].split())
        words = (library, ranks_in_words(self.ranks), f"{self.elements} doubles", self.network)
        return ", ".join(word for word in words if word)

    def to_json(self) -> dict[str, Any]:
        variants = [
            {"engine": "" if name == BLOCKING else name, "samples_us": samples}
            for name, samples in self.samples_us.items()
        ]
        about = {"schema": RUN_SCHEMA, "kernel": self.kernel, "mpi": self.mpi}
        where = {"ranks": self.ranks, "elements": self.elements, "network": self.network}
        return {**about, **where, "variants": variants}


@dataclass
class KernelResult:
    """All runs of a kernel's preset, and what could not run."""

    preset: str
    machine: dict[str, Any]
    runs: list[Run] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        runs = [run.to_json() for run in self.runs]
        about = {"schema": SCHEMA, "preset": self.preset, "machine": self.machine}
        return {**about, "runs": runs, "failed": self.failed}


def run_of(figures: dict[str, Any]) -> Run:
    """ValueError if these are not figures of a kernel."""
    if figures.get("schema") != RUN_SCHEMA:
        raise ValueError(f"not figures of a kernel (schema {RUN_SCHEMA})")
    try:
        samples = {
            variant["engine"] or BLOCKING: [float(us) for us in variant["samples_us"]]
            for variant in figures["variants"]
        }
        times = {name: statistics.of(values) for name, values in samples.items()}
        where = (figures["ranks"], figures["elements"], figures.get("network", ""))
        run = Run(figures["kernel"], figures["mpi"], *where, times, samples)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(f"damaged: {error!r}") from None
    if BLOCKING not in times or len(times) < 2:
        raise ValueError("it needs the blocking kernel and at least one engine")
    return run


def save(result: KernelResult, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result.to_json(), indent=1) + "\n")


def load(path: Path) -> KernelResult | None:
    """None if the file is not a kernel's; ResultError says what is wrong with one that is."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema not in (SCHEMA, RUN_SCHEMA):
        return None
    try:
        if schema == RUN_SCHEMA:
            return KernelResult(data.get("kernel", ""), {}, [run_of(data)])
        runs = [run_of(figures) for figures in data["runs"]]
        return KernelResult(data["preset"], data["machine"], runs, data.get("failed", []))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ResultError(f"{path}: {error}") from None


# ---- Running ----------------------------------------------------------------------------------


def measure(program: str, options: dict[str, Any], mpi: str) -> Run:
    """One run of a program of kernels/ under Weft; SettingsError says why there is none."""
    library = mpi_libraries.implementation(mpi)
    if not library.program(program).exists():
        target = mpi_libraries.make_target(library.name)
        raise SettingsError(f"{library.program(program)} is missing; build it with: {target}")
    place = place_of(options)
    with tempfile.TemporaryDirectory() as directory:
        figures = Path(directory) / "figures.json"
        try:
            job = place.start(mpi, ranks_of(options), words_of(program, options, mpi, figures), {})
            status = wait(job)
        except LabError as error:
            raise SettingsError(str(error)) from None
        finally:
            place.close()
        if status != 0 or not figures.exists():
            said = (job.said().strip().splitlines() or ["no output"])[-1]
            raise SettingsError(f"{program} under {mpi} ended with status {status}: {said}")
        found = json.loads(figures.read_text())
    return run_of({**found, "network": place.description})


def place_of(options: dict[str, Any]) -> places.Place:
    if options["lab"]:
        return places.LabPlace(settings.lab_words(options["lab"]))
    return places.LauncherPlace(options.get("launcher") or "mpiexec")


def ranks_of(options: dict[str, Any]) -> int:
    if not options["lab"]:
        return settings.counts("--ranks", str(options["ranks"]))[0]
    words = settings.lab_words(options["lab"])
    return words["nodes"] * words["per_node"]


def words_of(program: str, options: dict[str, Any], mpi: str, figures: Path) -> list[str]:
    words: Sequence[Any] = (installation.weft_command(), "run", "--engine", "thread", "--")
    words = (*words, mpi_libraries.implementation(mpi).program(program))
    words = (*words, "--elements", options["elements"], "--engines", options["engines"])
    words = (*words, "--json", figures)
    if options["lab"]:
        words = (*words, "--pause-us", LAB_PAUSE_US)
    return [str(word) for word in words]


def wait(job: places.Job) -> int:
    """The exit status; a job that takes too long is stopped."""
    end = time.monotonic() + LIMIT_S
    try:
        while (status := job.status()) is None:
            if time.monotonic() > end:
                raise SettingsError(f"no answer within {LIMIT_S} s; try: weft doctor")
            time.sleep(POLL_SECONDS)
    except BaseException:
        job.stop()
        raise
    return status
