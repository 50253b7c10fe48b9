"""Figures of the programs of kernels/: runs them, keeps their samples, reads them back.

Why apart from the benchmark: a kernel has no amount of computation to vary; its result is one time
per variant, in schema weft-kernels/1 (docs/benchmarking.md).
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen

from weft.bench import places, settings, statistics
from weft.bench.result import Statistic, ranks_in_words
from weft.bench.settings import SettingsError
from weft.data import files, stored
from weft.data.stored import ResultError
from weft.lab import LabError
from weft.system import building, info, installation, mpi_libraries
from weft.system.probe import how_to_build

SCHEMA = "weft-kernels/1"
RUN_SCHEMA = "weft-kernel/1"  # what the program writes
BLOCKING = "blocking"
LIMIT_S = 300
NEEDS = {"fft3d": "FFTW (Debian: libfftw3-dev)"}  # what not every build has
LAB_PAUSE_US = 15000  # lets the links' buckets fill again
POLL_SECONDS = 0.05
SCRATCH = "{scratch}"  # in a run's arguments: a directory that goes with the run


@dataclass(frozen=True)
class Run:
    """One job: the kernel, blocking and with each engine."""

    kernel: str
    mpi: str
    ranks: int
    problem: str
    network: str
    times_us: dict[str, Statistic]  # by variant; BLOCKING: without overlap
    samples_us: dict[str, list[float]]
    communication_share: float = 0.0  # of the blocking kernel's time; 0: not counted
    amount: int = 0  # of computation, where the program chose it
    series: str = ""  # the experiment of which this run is a case
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
    """All runs of a kernel's preset, and what could not run."""

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
        """What a page calls it: the engine alone where it is merely overlapped."""
        if self.name in ("", "overlapped"):
            return self.engine or BLOCKING
        return f"{self.name}, {self.engine}" if self.engine else self.name


@dataclass(frozen=True)
class RunFigures:
    """A run, as the program writes it."""

    kernel: str
    mpi: str
    ranks: int
    variants: list[VariantFigures]
    problem: str = ""
    elements: int = 0  # in files of before, which have no problem
    network: str = ""
    communication_share: float = 0.0
    amount: int = 0
    series: str = ""
    case: str = ""


@dataclass(frozen=True)
class KernelFigures:
    """All runs of a preset, as they are kept."""

    preset: str
    machine: dict[str, Any]
    runs: list[RunFigures]
    failed: list[str] = field(default_factory=list)


def run_of(figures: RunFigures, where: str) -> Run:
    """ResultError, beginning with `where`, if something is missing to compare."""
    samples = {one.label: one.samples_us for one in figures.variants}
    if BLOCKING not in samples or len(samples) < 2:
        raise ResultError(f"{where}: variants need the blocking kernel and at least one engine")
    times = {name: statistics.of(values) for name, values in samples.items()}
    problem = figures.problem or f"{figures.elements} doubles"
    about = (figures.kernel, figures.mpi, figures.ranks, problem, figures.network)
    share, amount = figures.communication_share, figures.amount
    return Run(*about, times, samples, share, amount, figures.series, figures.case)


def try_to_write(path: Path) -> None:
    """SettingsError if a result could not be kept there; what it holds stays."""
    try:
        files.try_to_write(path)
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error.strerror}") from None


def save(result: KernelResult, path: Path) -> None:
    files.write_text(path, json.dumps(result.to_json(), indent=1) + "\n")


def load(path: Path) -> KernelResult | None:
    """None if the file is not a kernel's; ResultError says what is wrong with one that is."""
    schema = stored.schema_of(path)
    if schema == RUN_SCHEMA:
        figures = stored.read(RunFigures, path, schema)
        return KernelResult(figures.kernel, {}, [run_of(figures, str(path))])
    if schema != SCHEMA:
        return None
    found = stored.read(KernelFigures, path, schema)
    runs = [run_of(run, f"{path}: runs[{i}]") for i, run in enumerate(found.runs)]
    return KernelResult(found.preset, found.machine, runs, found.failed)


# ---- Running ----------------------------------------------------------------------------------


def measure(program: str, options: dict[str, Any], mpi: str, limit_s: float = LIMIT_S) -> Run:
    """One run of a program of kernels/ under Weft; SettingsError says why there is none."""
    library = mpi_libraries.implementation(mpi)
    if not building.is_there(library.program(program)):
        raise SettingsError(f"{library.program(program)} is missing; {remedy(program, library)}")
    place = place_of(options)
    with tempfile.TemporaryDirectory() as directory:
        figures = Path(directory) / "figures.json"
        try:
            job = place.start(mpi, ranks_of(options), words_of(program, options, mpi, figures), {})
            status = wait(job, limit_s)
        except LabError as error:
            raise SettingsError(str(error)) from None
        finally:
            place.close()
        if status != 0 or not figures.exists():
            said = (job.said().strip().splitlines() or ["no output"])[-1]
            raise SettingsError(f"{program} under {mpi} ended with status {status}: {said}")
        found = stored.read(RunFigures, figures, RUN_SCHEMA)
    told = {name: options.get(name, "") for name in ("series", "case")}
    return run_of(replace(found, network=place.description, **told), f"{program} under {mpi}")


def remedy(program: str, library: mpi_libraries.Implementation) -> str:
    package = NEEDS.get(program)
    if package is None:
        return how_to_build(library)
    if not installation.SOURCE:
        return f"it needs {package}, and a build of Weft from its source tree"
    return f"install {package} and {how_to_build(library)}"


def place_of(options: dict[str, Any]) -> places.Place:
    if options["lab"]:
        words = settings.lab_words(options["lab"])
        return places.LabPlace(words | {"cores": node_cores(options, words["nodes"])})
    return places.LauncherPlace(options.get("launcher") or "mpiexec")


def node_cores(options: dict[str, Any], nodes: int) -> list[str] | None:
    """Of a run whose ranks have threads of their own; None: as the lab shares cores."""
    if not (each := options.get("cores_per_node")):
        return None
    cpus = info.whole_cores()[: nodes * each]
    if len(cpus) < nodes * each:
        raise SettingsError(
            f"needs {nodes * each} cores, {each} for each node; usable: {len(cpus)}"
        )
    return [",".join(map(str, cpus[i : i + each])) for i in range(0, len(cpus), each)]


def ranks_of(options: dict[str, Any]) -> int:
    if options["lab"]:
        words = settings.lab_words(options["lab"])
        return words["nodes"] * words["per_node"]
    ranks = settings.counts("--ranks", str(options["ranks"]))
    if len(ranks) > 1:
        raise SettingsError("--ranks takes one number with a preset that runs a program of its own")
    return ranks[0]


def words_of(program: str, options: dict[str, Any], mpi: str, figures: Path) -> list[str]:
    # Where ranks are on several nodes, the variants' hints have their effect under auto, too, which
    # then learns; inside one node it may leave the whole job to the library.
    in_lab = bool(options["lab"]) and settings.lab_words(options["lab"])["nodes"] > 1
    engine = "auto" if in_lab else "thread"
    words: Sequence[Any] = (installation.weft_command(), "run", "--engine", engine)
    if placement := options.get("placement"):
        words = (*words, "--placement", placement)
    if cores := options.get("on_cores"):
        words = (*bound_to(info.whole_cores()[:cores]), *words)
    words = (*words, "--", mpi_libraries.implementation(mpi).program(program))
    words = (*words, *options["arguments"].replace(SCRATCH, str(figures.parent)).split())
    if engines := options.get("engines"):
        words = (*words, "--engines", engines)
    words = (*words, "--json", figures)
    if options["lab"]:
        words = (*words, "--pause-us", LAB_PAUSE_US)
    return [str(word) for word in words]


def bound_to(cpus: Sequence[int]) -> Sequence[str]:
    """Puts each rank on one of these CPUs in turn, whatever starts the ranks."""
    names = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
    rank = "".join(f"${{{name}:-" for name in names) + "0" + "}" * len(names)
    chosen = f"set -- {' '.join(map(str, cpus))}; shift $(({rank} % {len(cpus)})); echo $1"
    return ("sh", "-c", f'exec taskset -c "$({chosen})" "$@"', "on-cpu")


def wait(job: places.Job, limit_s: float = LIMIT_S) -> int:
    """The exit status; a job that takes too long is stopped."""
    end = time.monotonic() + limit_s
    try:
        while (status := job.status()) is None:
            if time.monotonic() > end:
                raise SettingsError(f"no answer within {limit_s} s; try: weft doctor")
            time.sleep(POLL_SECONDS)
    except BaseException:
        job.stop()
        raise
    return status
