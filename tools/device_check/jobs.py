"""Jobs on the cores of a machine, and what is kept of them."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from device_check import programs

JOB_S = 30
FORMS = "blocking,nonblocking,persistent"
LIBRARIES = ("mpich", "openmpi")


@dataclass
class Row:
    """A measurement: the total of computation and collective divided by native's, by engine; for
    kernels, each variant's time divided by that of the blocking one without Weft."""

    group: str
    collective: str
    size: str
    ranks: int
    words: str  # difference between the rows of a group
    native_us: float = 0
    of_native: dict[str, float] = field(default_factory=dict)  # empty: it did not run

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        return self.group, self.collective, self.size, self.ranks, self.words


DONE: dict[tuple[str, str, str, int, str], Row] = {}  # by an earlier call


def kept(row: Row) -> Row | None:
    return DONE.get(row.key)


def kept_of(row: Row) -> list[Row]:
    """Those of the job from which this row and others like it come: their words begin alike."""
    mine = row.key[:-1]
    return [
        one for one in DONE.values() if one.key[:-1] == mine and one.words.startswith(row.words)
    ]


def keep(path: Path) -> None:
    """Takes the rows of an earlier call's file for measured; those that did not run are tried
    again."""
    for row in (Row(**one) for one in json.loads(path.read_text())["rows"]):
        if row.of_native:
            DONE[row.key] = row


def preloaded(engine: str, mpi: str = "mpich", **variables: str) -> dict[str, str]:
    """Variables of ranks under Weft; of none: engine is empty."""
    library = str(programs.BUILD / "lib" / f"libweft-{mpi}.so")
    return {"LD_PRELOAD": library, "WEFT_ENGINE": engine, **variables} if engine else {}


def launcher(mpi: str, ranks: int, each: int, variables: dict[str, str]) -> list[object]:
    """Each rank on `each` cores of its own."""
    command: list[object] = [programs.prefix(mpi) / "bin" / "mpiexec", "-n", ranks]
    if mpi == "openmpi":
        command += ["--oversubscribe", "--map-by", f"slot:PE={each}", "--bind-to", "core"]
        for name, value in variables.items():
            command += ["-x", f"{name}={value}"]
        return command
    command += ["-bind-to", f"core:{each}"]
    for name, value in variables.items():
        command += ["-genv", name, value]
    return command


def output_of(
    ranks: int,
    program: str,
    options: Sequence[object],
    variables: dict[str, str],
    mpi: str = "mpich",
    each: int = 1,
) -> str | None:
    """Returns the output of a job; None if it did not run."""
    path = programs.BUILD / "bin" / mpi / program
    words = [*launcher(mpi, ranks, each, variables), path, *options]
    try:
        done = subprocess.run(
            [str(word) for word in words],
            env=programs.environment(mpi),
            timeout=JOB_S,
            capture_output=True,
            text=True,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    return done.stdout if done.returncode == 0 else None


def found_by(
    ranks: int,
    program: str,
    options: Sequence[object],
    variables: dict[str, str],
    each: int = 1,
) -> dict:
    """Returns the data that such a job writes with --json; empty if it did not run."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "found.json"
        words = [*options, "--json", path]
        if output_of(ranks, program, words, variables, each=each) is None:
            return {}
        return json.loads(path.read_text()) if path.exists() else {}


def in_memory(
    ranks: int, engine: str, lengths: str, algorithm: str = "", mpi: str = "mpich"
) -> dict[tuple[str, str], float]:
    """Time of an allreduce by form and bytes, in microseconds; empty: it did not run. engine: of
    Weft's, which carries out blocking ones, too; auto decides that; empty: without Weft."""
    settings = preloaded(engine, mpi)
    if engine and engine != "auto":
        settings["WEFT_BLOCKING"] = "1"
    if algorithm:
        settings["WEFT_ALGORITHM_ALLREDUCE"] = algorithm
    words = ["--forms", FORMS, "--bytes", lengths]
    told = output_of(ranks, "latency", words, settings, mpi) or ""
    lines = (line.split() for line in told.splitlines())
    return {(form, size): float(median) for form, size, _, median in lines}
