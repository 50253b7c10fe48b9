"""The settings of `weft bench`, which are checked before anything is measured.

Each refusal names the option, the mistake and a right value. Settings are stored with the result,
so that --resume measures with the same ones."""

from __future__ import annotations

import re
import subprocess
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path

from weft.lab import LabError
from weft.lab.plan import make_plan
from weft.measurements import statistics
from weft.system import info, installation

COLLECTIVES = ("allreduce", "alltoall", "bcast", "reduce", "allgather", "scan", "barrier")
LIBRARY_ASYNC = "library-async"
ENGINES = (*info.ENGINES, LIBRARY_ASYNC)
SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
LAB_WORDS = {
    "nodes": "nodes",
    "per-node": "per_node",
    "rate": "rate",
    "burst": "burst",
    "delay": "delay",
}


class SettingsError(Exception):
    """Raised for a wrong option. The message names the option and says what would be right."""


@dataclass
class Settings:
    collectives: list[str]
    bytes: list[int]
    engines: list[str]
    mpis: list[str]
    placements: list[str]
    backoffs: list[str]
    algorithms: list[str]
    amounts: str
    kernel: str
    time_budget_s: float
    ranks: list[int]
    lab: dict = field(default_factory=dict)  # values by the names in LAB_WORDS; empty without a lab
    launcher: str = "mpiexec"
    working_set_bytes: int = 0
    compute_library: str = ""
    fixed_work: bool = False
    tolerance: float = statistics.TOLERANCE
    hang_s: float = 20.0
    seed: int = 1
    preset: str = ""

    def to_json(self) -> dict:
        return asdict(self)

    @property
    def kernel_name(self) -> str:
        return f"library:{Path(self.compute_library).name}" if self.compute_library else self.kernel

    def cases(self) -> list[tuple[str, int, int]]:
        """Returns tuples of collective, bytes and ranks. With fixed work the largest number of
        ranks comes first, since it determines the work."""
        ranks = sorted(self.ranks, reverse=True)
        return list(product(self.collectives, self.bytes, ranks))


def measured(option: str, text: str, units: dict[str, float], example: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if not match or (match[2] and match[2] not in units):
        raise SettingsError(
            f"{option} needs a number with {', '.join(units)}, such as {example}, not '{text}'"
        )
    return float(match[1]) * (units[match[2]] if match[2] else 1)


def size_bytes(option: str, text: str) -> int:
    size = int(measured(option, text, SIZES, "1MiB"))
    if not 8 <= size <= 8 * (2**31 - 1):
        raise SettingsError(f"{option} must be between 8B and 15GiB, not '{text}'")
    return size


def seconds(option: str, text: str) -> float:
    """Converts `120s` or `2min` to seconds. A number without a unit is in seconds. Raises
    SettingsError unless it is positive."""
    value = measured(option, text, SECONDS, "120s")
    if value <= 0:
        raise SettingsError(f"{option} must be above 0, not '{text}'")
    return value


def words(option: str, text: str, choices: tuple[str, ...] = ()) -> list[str]:
    """Splits words at commas, except inside `list:0,1`. Raises SettingsError for an empty or
    unknown word."""
    found: list[str] = []
    for word in text.split(","):
        if word.isdigit() and found and found[-1].startswith("list:"):
            found[-1] += f",{word}"
        else:
            found.append(word.strip())
    for word in found:
        if not word:
            raise SettingsError(f"{option}: a word is missing in '{text}'")
        if choices and word not in choices:
            raise SettingsError(f"{option}: unknown '{word}'; choose from {', '.join(choices)}")
    return list(dict.fromkeys(found))


def counts(option: str, text: str) -> list[int]:
    found = words(option, text)
    for word in found:
        if not word.isdigit() or int(word) < 1:
            raise SettingsError(f"{option} needs whole numbers such as 2,4, not '{word}'")
    return [int(word) for word in found]


def lab_words(text: str) -> dict:
    """Converts `nodes=2,rate=200mbit,delay=1ms` to a dictionary. Raises SettingsError if the lab
    would refuse the values."""
    found: dict = {"nodes": 2, "per_node": 1, "rate": "200mbit", "burst": None, "delay": "0"}
    for word in text.split(","):
        name, equals, value = word.partition("=")
        if not equals or name not in LAB_WORDS:
            choices = "=…, ".join(LAB_WORDS)
            raise SettingsError(f"--lab: unknown '{word}'; it takes {choices}=…")
        number = name in ("nodes", "per-node")
        if number and not value.isdigit():
            raise SettingsError(f"--lab: {name} needs a whole number, not '{value}'")
        found[LAB_WORDS[name]] = int(value) if number else value
    try:
        plan = make_plan(**found, cores=None)
    except LabError as error:
        raise SettingsError(f"--lab: {str(error).removeprefix('--')}") from None
    return {**found, "burst": plan.burst}


def check_amounts(text: str) -> str:
    """Checks the text of --amounts and returns it. `10` is a number of amounts, `0.5x,2x` are
    multiples of the communication time, `1ms,40ms` are times. Raises SettingsError for anything
    else."""
    if text.isdigit():
        if not 1 <= int(text) <= 1000:
            raise SettingsError(f"--amounts must be between 1 and 1000, not {text}")
        return text
    for word in words("--amounts", text):
        times = re.fullmatch(r"(\d+(?:\.\d+)?)(x|us|ms|s)", word)
        if not times or float(times[1]) <= 0:
            raise SettingsError(
                "--amounts needs a number such as 10, multiples of the communication such as"
                f" 0.5x,2x, or times such as 1ms,40ms, not '{word}'"
            )
    return text


def amounts_us(text: str, communication_us: list[float]) -> list[float]:
    """Returns the times of computation in us that --amounts describes."""
    if text.isdigit():
        return statistics.amounts_us(communication_us, int(text))
    found = []
    for word in text.split(","):
        number, unit = re.fullmatch(r"([\d.]+)(x|us|ms|s)", word.strip()).groups()
        scale = min(communication_us) if unit == "x" else SECONDS[unit] * 1e6
        found.append(float(number) * scale)
    return sorted(found)


def refusal(options: list[str]) -> str:
    """Returns the error message of `weft run` for these options; an empty string if it accepts
    them."""
    native = installation.weft_command()
    if not native.exists():
        raise SettingsError(f"{native} is missing; {installation.REMEDY}")
    command = [str(native), "run", *options, "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    said = done.stderr.strip().splitlines()
    return said[-1].removeprefix("weft: ") if done.returncode == 2 and said else ""


def check_native_words(settings: Settings) -> None:
    """Lets `weft run` check placements, back-offs and algorithms. Raises SettingsError for one that
    it refuses. An algorithm must exist for at least one of the collectives."""
    words = [("--placement", word) for word in settings.placements]
    words += [("--backoff", word) for word in settings.backoffs]
    for option, word in words:
        if reason := refusal([option, word]):
            raise SettingsError(f"{option}s: {reason}")
    for word in settings.algorithms:
        refusals = [
            "" if word == "selected" else refusal(["--algorithm", f"{collective}={word}"])
            for collective in settings.collectives
        ]
        if all(refusals):
            raise SettingsError(f"--algorithms: {refusals[0]}")


def library(path: Path | None) -> str:
    if not path:
        return ""
    if not path.is_file():
        raise SettingsError(f"--compute-library: there is no file {path}")
    return str(path.resolve())


def choose_place(settings: Settings, lab: str | None, launcher: str | None) -> None:
    """Sets where the jobs run: in the lab unless a launcher is named. In the lab the number of
    ranks follows from its nodes."""
    if lab and launcher:
        raise SettingsError("--lab and --launcher exclude each other")
    if settings.fixed_work and len(settings.ranks) < 2:
        raise SettingsError("--fixed-work needs two or more numbers in --ranks, such as 2,3,4")
    if launcher:
        settings.launcher = launcher
        settings.ranks = settings.ranks or [2]
        return
    settings.lab = lab_words(lab or "nodes=2,rate=200mbit")
    per_node = settings.lab["per_node"]
    settings.ranks = settings.ranks or [settings.lab["nodes"] * per_node]
    for ranks in settings.ranks:
        if ranks % per_node:
            raise SettingsError(f"--ranks {ranks} is no multiple of per-node={per_node} of --lab")
