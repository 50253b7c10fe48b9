"""Runs a preset: its runs of the benchmark, or its program of kernels/, then the judgement.

Why apart from presets.py: that file is what the publications say; this one carries it out.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from weft import installation
from weft.bench import settings
from weft.bench.presets import Preset, presets
from weft.bench.result import Result
from weft.bench.settings import SettingsError
from weft.lab import Lab
from weft.report import effect_page

KERNEL_MPI = "mpich"
KERNEL_LIMIT_S = 120
LAB_PAUSE_US = 15000  # lets the links' buckets fill again


def find(name: str) -> Preset:
    known = presets(os.cpu_count() or 1)
    if name not in known:
        raise SettingsError(f"unknown preset '{name}'; choose one of {', '.join(known)}")
    return known[name]


def carry_out(preset: Preset, measure: Callable[[dict[str, Any]], Result], page: Path) -> int:
    """Measures, prints what was published beside what was found, and writes the page."""
    console = Console()

    def tell(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    console.print(preset.title, style="bold", markup=False, highlight=False)
    tell(f"Published: {preset.published}")
    if preset.not_available:
        tell(f"Not measured here: {preset.not_available}")
    if preset.program:
        for options in preset.runs:
            tell(f"Found: {preset.judge(kernel_figures(preset.program, options))}")
        return 0
    sources = []
    for options in preset.runs:
        found = measure(options)
        if not found.points:
            return 1
        judgement = f"Found: {preset.judge(found)}"
        tell(judgement)
        remarks = [f"Published: {preset.published}", judgement]
        if preset.not_available:
            remarks.append(f"Not measured here: {preset.not_available}")
        sources.append(effect_page.Source(preset.title, found, remarks=tuple(remarks)))
    if sources:
        effect_page.write(page, sources)
        tell(f"Report: {page}")
    return 0


def kernel_figures(program: str, options: dict[str, Any]) -> dict[str, Any]:
    """One run of a program of kernels/ under Weft: what it wrote."""
    library = installation.implementation(KERNEL_MPI)
    with tempfile.TemporaryDirectory() as directory:
        figures = Path(directory) / "figures.json"
        command = [installation.weft_command(), "run", "--", library.program(program)]
        command += ["--elements", options["elements"], "--engines", options["engines"]]
        command += ["--json", figures]
        words = [str(word) for word in command]
        if options["lab"]:
            place = settings.lab_words(options["lab"])
            with Lab(mpi=KERNEL_MPI, **place) as lab:
                words += ["--pause-us", str(LAB_PAUSE_US)]
                status = lab.run(words, capture=True, timeout=KERNEL_LIMIT_S).returncode
        else:
            launcher = [str(library.mpiexec), "-n", str(options["ranks"])]
            environment = {**os.environ, **library.environment()}
            done = subprocess.run(
                launcher + words,
                env=environment,
                capture_output=True,
                timeout=KERNEL_LIMIT_S,
            )
            status = done.returncode
        if status != 0 or not figures.exists():
            raise SettingsError(f"{program} ended with status {status}; try: weft doctor")
        return json.loads(figures.read_text())
