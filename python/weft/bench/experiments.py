"""Carries out a preset: its runs of the benchmark, or its program of kernels/, and then the
judgement.

weft.measurements.presets has what the publications say about each experiment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from weft.bench import kernel_runs, machine, settings
from weft.bench.settings import SettingsError
from weft.measurements import kernels
from weft.measurements.presets import Preset, presets, remarks
from weft.measurements.result import Result
from weft.report import effect_page, kernel_page
from weft.system import gpu, info


def find(name: str) -> Preset:
    known = presets(len(info.whole_cores()))
    if name not in known:
        raise SettingsError(f"unknown preset '{name}'; choose one of {', '.join(known)}")
    return known[name]


# ---- Options given beside a preset ----------------------------------------------------------

# All other parameters have the names of their options: "working_set" is --working-set.
FLAGS = {"size": "--bytes", "json_file": "--json", "csv_file": "--csv"}
# These options apply to presets that run a program of kernels/. The others have no effect on them.
OF_KERNELS = {"preset", "mpi", "lab", "launcher", "ranks", "engines", "json_file", "out"}


def flag(name: str) -> str:
    return FLAGS.get(name, "--" + name.replace("_", "-"))


def adapted(preset: Preset, given: dict[str, Any], said: Collection[str]) -> Preset:
    """Returns the preset with the options that were given on the command line.

    Raises SettingsError if an option would change the experiment into another one, or has no
    effect."""
    if preset.program:
        for name in sorted(set(said) - (OF_KERNELS - preset.fixed)):
            raise SettingsError(
                f"{flag(name)} has no effect on preset {preset.name}, which runs a program of its"
                " own; leave it out"
            )
        if "engines" in said:
            settings.words("--engines", given["engines"], tuple(info.ENGINES))
        if {"lab", "launcher"} <= set(said):
            raise SettingsError("--lab and --launcher exclude each other")
        in_lab = "lab" in said or all(options.get("lab") for options in preset.runs)
        if "ranks" in said and "launcher" not in said and in_lab:
            raise SettingsError(
                f"--ranks has no effect on preset {preset.name} in the lab, whose nodes give the"
                " ranks; say --lab nodes=N, or add --launcher"
            )
    runs: list[dict[str, Any]] = []
    for options in preset.runs:
        run = adapted_run(preset, options, given, said)
        if run not in runs:  # with --launcher, runs that differ only in their lab are equal
            runs.append(run)
    return replace(preset, runs=runs)


def adapted_run(
    preset: Preset, options: dict[str, Any], given: dict[str, Any], said: Collection[str]
) -> dict[str, Any]:
    for name in preset.about:
        if name in said and name in options:
            needed = settings.words(flag(name), options[name])
            if not set(needed) <= set(settings.words(flag(name), given[name])):
                raise SettingsError(
                    f"{flag(name)} {given[name]} makes another experiment than preset"
                    f" {preset.name}, which needs {options[name]}; leave out one of the two"
                )
    run = {**options, **{name: given[name] for name in said if name in given}}
    if "launcher" in said and "lab" not in said:
        lab = run.pop("lab", None)
        words = settings.lab_words(lab) if lab else {}
        ranks = words["nodes"] * words["per_node"] if words else 2
        run |= {"lab": None, "ranks": str(run.get("ranks") or ranks)}
    return run


# ---- Carrying out -----------------------------------------------------------------------------


def tell(text: str, style: str | None = None) -> None:
    Console().print(text, style=style, markup=False, highlight=False)


class NothingMeasuredError(SettingsError):
    """Raised if no run of a preset gave a result. `reasons` says why."""

    def __init__(self, preset: str, reasons: Sequence[str]) -> None:
        super().__init__(f"no run of preset {preset} came to a result")
        self.reasons = list(dict.fromkeys(reasons))


def carry_out(preset: Preset, measure: Callable[[dict[str, Any]], Result], page: Path) -> int:
    """Measures a preset, prints the published beside the measured results, and writes the page.
    Returns the exit status."""
    announce(preset)
    sources, status = [], 0
    for options in preset.runs:
        found = measure(options)
        if not found.points:
            status = 1
            continue
        tell(f"Found: {preset.judge(found)}")
        sources.append(effect_page.Source(preset.title, found, remarks=remarks(preset, found)))
    if sources:
        effect_page.write(page, sources)
        tell(f"Report: {page}")
    return status


def carry_out_kernel(preset: Preset, mpis: Sequence[str], file: Path, page: Path) -> int:
    """Runs a preset's program of kernels/ under each MPI library, and reports which of them cannot
    run it. Returns the exit status."""
    if preset.needs_gpu and (lacking := gpu.facts()["problem"]):
        raise SettingsError(f"preset {preset.name} cannot run: {lacking}")
    kernel_runs.try_to_write(file)
    announce(preset)
    found = kernels.KernelResult(preset.name, machine.describe(""))
    amounts: dict[str, int] = {}  # amount of computation that the last run chose, by MPI library
    for options in preset.runs:
        for mpi in mpis:
            try:
                adapted_options = with_amount(options, amounts.get(mpi))
                run = kernel_runs.measure(preset.program, adapted_options, mpi)
            except SettingsError as error:
                found.failed.append(str(error))
                tell(f"Not measured: {error}", "yellow")
                continue
            finally:
                if AMOUNT not in options["arguments"]:
                    amounts.pop(mpi, None)
            amounts.setdefault(mpi, run.amount)
            found.runs.append(run)
            kernels.save(found, file)
            if not preset.series:
                tell(f"Found: {preset.judge(run)}")
    if not found.runs:
        raise NothingMeasuredError(preset.name, found.failed)
    if preset.series:
        tell(f"Found: {preset.judge(found.runs)}")
    kernels.save(found, file)  # saves the runs that failed after the last success, too
    kernel_page.write(page, [found])
    tell(f"Samples: {file}; report: {page}")
    return 0


# In a run's arguments this is replaced by the amount of computation that another run has chosen.
AMOUNT = "{amount}"


def with_amount(options: dict[str, Any], amount: int | None) -> dict[str, Any]:
    words = options["arguments"]
    if AMOUNT not in words:
        return options
    if not amount:
        raise SettingsError(f"{options['case']} needs a run before it, which chooses the amount")
    return {**options, "arguments": words.replace(AMOUNT, str(amount))}


def announce(preset: Preset) -> None:
    tell(preset.title, "bold")
    tell(f"Published: {preset.published}")
    if preset.not_available:
        tell(f"Not measured here: {preset.not_available}")
