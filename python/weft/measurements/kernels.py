"""Figures of the programs of kernels/: their samples, which are stored in files and read back.

A kernel has no amount of computation to vary, unlike the benchmark. Its result is one time per
variant, in the schema weft-kernels/1 (docs/benchmarking.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen

from weft.data import files, stored
from weft.data.stored import ResultError
from weft.measurements import statistics
from weft.measurements.result import Statistic, ranks_in_words

SCHEMA = "weft-kernels/1"
RUN_SCHEMA = "weft-kernel/1"  # schema of the program's output
BLOCKING = "blocking"
# In a run's arguments this is replaced by a temporary directory, which is removed after the run.
SCRATCH = "{scratch}"


@dataclass(frozen=True)
class Run:
    """The results of one job: the kernel with blocking calls, and overlapped with each engine."""

    kernel: str
    mpi: str
    ranks: int
    problem: str
    network: str
    times_us: dict[str, Statistic]  # times of each variant; BLOCKING is the one without overlap
    samples_us: dict[str, list[float]]
    # This is the communication's share of the blocking kernel's time; 0 if it was not counted.
    communication_share: float = 0.0
    amount: int = 0  # amount of computation, if the program chose it; otherwise 0
    series: str = ""  # name of the series of runs to which this one belongs
    case: str = ""

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
    def library(self) -> str:
        return " ".join(self.mpi.replace(" Version:", "").split(",")[0].split())

    @property
    def title(self) -> str:
        words = (self.case, self.library, ranks_in_words(self.ranks), self.problem, self.network)
        return ", ".join(word for word in words if word)

    def to_json(self) -> dict[str, Any]:
        variants = [{"name": n, "samples_us": samples} for n, samples in self.samples_us.items()]
        about = {"schema": RUN_SCHEMA, "kernel": self.kernel, "mpi": self.mpi}
        where = {"ranks": self.ranks, "problem": self.problem, "network": self.network}
        share: dict[str, Any] = {"communication_share": self.communication_share}
        if self.amount:
            share["amount"] = self.amount
        if self.case:
            share |= {"series": self.series, "case": self.case}
        return {**about, **where, **share, "variants": variants}


@dataclass
class KernelResult:
    """All runs of a kernel's preset, and reasons for those that could not run."""

    preset: str
    machine: dict[str, Any]
    runs: list[Run] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        runs = [run.to_json() for run in self.runs]
        about = {"schema": SCHEMA, "preset": self.preset, "machine": self.machine}
        return {**about, "runs": runs, "failed": self.failed}


# ---- Files ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VariantFigures:
    samples_us: Annotated[list[float], MinLen(1)]
    name: str = ""
    engine: str = ""

    @property
    def label(self) -> str:
        """Returns the variant's name on a page. This is the engine alone if the variant has no
        other name than "overlapped"."""
        if self.name in ("", "overlapped"):
            return self.engine or BLOCKING
        return f"{self.name}, {self.engine}" if self.engine else self.name


@dataclass(frozen=True)
class RunFigures:
    """The figures of a run, as the program writes them."""

    kernel: str
    mpi: str
    ranks: int
    variants: list[VariantFigures]
    problem: str = ""
    elements: int = 0  # older files have this number of elements instead of `problem`
    network: str = ""
    communication_share: float = 0.0
    amount: int = 0
    series: str = ""
    case: str = ""


@dataclass(frozen=True)
class KernelFigures:
    """The figures of all runs of a preset, as they are stored."""

    preset: str
    machine: dict[str, Any]
    runs: list[RunFigures]
    failed: list[str] = field(default_factory=list)


def run_of(figures: RunFigures, where: str) -> Run:
    """Returns the run. Raises ResultError, with a message that begins with `where`, if there is
    nothing to compare."""
    samples = {one.label: one.samples_us for one in figures.variants}
    if BLOCKING not in samples or len(samples) < 2:
        raise ResultError(f"{where}: variants need the blocking kernel and at least one engine")
    times = {name: statistics.of(values) for name, values in samples.items()}
    problem = figures.problem or f"{figures.elements} doubles"
    about = (figures.kernel, figures.mpi, figures.ranks, problem, figures.network)
    share, amount = figures.communication_share, figures.amount
    return Run(*about, times, samples, share, amount, figures.series, figures.case)


def save(result: KernelResult, path: Path) -> None:
    files.write_text(path, json.dumps(result.to_json(), indent=1) + "\n")


def load(path: Path) -> KernelResult | None:
    """Returns the result in a file; None if it is not a kernel's. Raises ResultError if it is a
    damaged file of a kernel."""
    schema = stored.schema_of(path)
    if schema == RUN_SCHEMA:
        figures = stored.read(RunFigures, path, schema)
        return KernelResult(figures.kernel, {}, [run_of(figures, str(path))])
    if schema != SCHEMA:
        return None
    found = stored.read(KernelFigures, path, schema)
    runs = [run_of(run, f"{path}: runs[{i}]") for i, run in enumerate(found.runs)]
    return KernelResult(found.preset, found.machine, runs, found.failed)
