"""Runs the programs of kernels/ under Weft, in the lab or by a launcher."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from weft.bench import places, settings
from weft.bench.settings import SettingsError
from weft.data import files, stored
from weft.lab import LabError
from weft.measurements.kernels import RUN_SCHEMA, SCRATCH, Run, RunFigures, run_of
from weft.system import building, info, installation, mpi_libraries
from weft.system.probe import how_to_build

T = TypeVar("T")
LIMIT_S = 300
NEEDS = {"fft3d": "FFTW (Debian: libfftw3-dev)"}  # requirements that some builds lack
LAB_PAUSE_US = 15000  # pause in us, in which the token buckets of the lab's links fill again
POLL_SECONDS = 0.05


def try_to_write(path: Path) -> None:
    """Raises SettingsError if no result could be written to the path. An existing file stays
    unchanged."""
    try:
        files.try_to_write(path)
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error.strerror}") from None


def measure(program: str, options: dict[str, Any], mpi: str, limit_s: float = LIMIT_S) -> Run:
    """Runs a program of kernels/ once under Weft. Raises SettingsError with the reason if it cannot
    run."""
    found, network = figures_of(program, options, mpi, RunFigures, RUN_SCHEMA, limit_s)
    told = {name: options.get(name, "") for name in ("series", "case")}
    return run_of(replace(found, network=network, **told), f"{program} under {mpi}")


def figures_of(
    program: str, options: dict[str, Any], mpi: str, kind: type[T], schema: str, limit_s: float
) -> tuple[T, str]:
    """Returns the figures that a program writes, and what joins its ranks."""
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
        return stored.read(kind, figures, schema), place.description


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
    """Returns the cores of each node if the ranks need cores for threads of their own; None if the
    lab divides the cores itself. Raises SettingsError if there are too few cores."""
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
    # Engine auto is used on several nodes, where it learns and follows the hints of the variants.
    # Inside one node it may leave the whole job to the library.
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
    """Returns command words that bind each rank to one of these CPUs in turn, whichever launcher
    starts the ranks."""
    names = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
    rank = "".join(f"${{{name}:-" for name in names) + "0" + "}" * len(names)
    chosen = f"set -- {' '.join(map(str, cpus))}; shift $(({rank} % {len(cpus)})); echo $1"
    return ("sh", "-c", f'exec taskset -c "$({chosen})" "$@"', "on-cpu")


def wait(job: places.Job, limit_s: float = LIMIT_S) -> int:
    """Waits for the job and returns its exit status. A job that takes longer than the limit is
    stopped, and SettingsError is raised."""
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
