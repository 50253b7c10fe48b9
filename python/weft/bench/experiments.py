"""Runs a preset: its runs of the benchmark, or its program of kernels/, then the judgement.

Why apart from presets.py: that file is what the publications say; this one carries it out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from weft.bench import kernels, machine, settings
from weft.bench.presets import Preset, presets, remarks
from weft.bench.result import Result
from weft.bench.settings import SettingsError
from weft.report import effect_page, kernel_page


def find(name: str) -> Preset:
    known = presets(os.cpu_count() or 1)
    if name not in known:
        raise SettingsError(f"unknown preset '{name}'; choose one of {', '.join(known)}")
    return known[name]


def through(preset: Preset, launcher: str | None, ranks: str | None) -> Preset:
    """Its runs through a launcher, with as many ranks as its lab or asked for; each run once."""
    if not launcher:
        return preset
    runs: list[dict[str, Any]] = []
    for options in preset.runs:
        lab = settings.lab_words(options["lab"]) if options.get("lab") else None
        count = lab["nodes"] * lab["per_node"] if lab else options.get("ranks", 2)
        place = {"lab": None, "launcher": launcher, "ranks": ranks or str(count)}
        if (run := {**options, **place}) not in runs:
            runs.append(run)
    return replace(preset, runs=runs)


def tell(text: str, style: str | None = None) -> None:
    Console().print(text, style=style, markup=False, highlight=False)


def carry_out(preset: Preset, measure: Callable[[dict[str, Any]], Result], page: Path) -> int:
    """Measures, prints what was published beside what was found, and writes the page."""
    announce(preset)
    sources = []
    for options in preset.runs:
        found = measure(options)
        if not found.points:
            return 1
        tell(f"Found: {preset.judge(found)}")
        sources.append(effect_page.Source(preset.title, found, remarks=remarks(preset, found)))
    if sources:
        effect_page.write(page, sources)
        tell(f"Report: {page}")
    return 0


def carry_out_kernel(preset: Preset, mpis: Sequence[str], file: Path, page: Path) -> int:
    """The same for a program of kernels/, under each MPI library; what cannot run is said."""
    announce(preset)
    found = kernels.KernelResult(preset.name, machine.describe(""))
    for options in preset.runs:
        for mpi in mpis:
            try:
                run = kernels.measure(preset.program, options, mpi)
            except SettingsError as error:
                found.failed.append(str(error))
                tell(f"Not measured: {error}", "yellow")
                continue
            found.runs.append(run)
            tell(f"Found: {preset.judge(run)}")
    if not found.runs:
        return 1
    kernels.save(found, file)
    kernel_page.write(page, [found])
    tell(f"Samples: {file}; report: {page}")
    return 0


def announce(preset: Preset) -> None:
    tell(preset.title, "bold")
    tell(f"Published: {preset.published}")
    if preset.not_available:
        tell(f"Not measured here: {preset.not_available}")
