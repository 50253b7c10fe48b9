"""Prints the demo in the terminal: progress, a sentence per collective, the table, and what to try
next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from weft.bench import settings
from weft.bench.settings import SettingsError
from weft.data import files, json_file, stored
from weft.data.stored import ResultError
from weft.demo import typed
from weft.demo.place import RANKS, DemoError, open_place
from weft.demo.rounds import Rounds, State, Subject
from weft.lab import LabError
from weft.report import overlap, page
from weft.report.overlap import CallComparison, Comparison
from weft.system import mpi_libraries
from weft.system.mpi_libraries import MpiError
from weft.system.probe import how_to_build
from weft.terminal import messages


def run(mpi: str | None, time_budget: str, out: Path, json: Path | None = None) -> int:
    """Runs the whole demo, and returns its exit status."""
    console = Console()
    try:
        seconds = settings.seconds("--time-budget", time_budget)
        # A missing folder should be noticed before the measurement.
        files.make_own_folder(out, typed.PAGE)
        files.try_to_write(out)
        library = choose(mpi)

        def warn(text: str) -> None:
            console.print(text, style="yellow", markup=False)

        begin = time.monotonic()
        with open_place(library, warn) as where:
            console.print(
                f"One unmodified MPI program, {RANKS} ranks under {library.name} {where.words},"
                " without and with Weft",
                highlight=False,
                soft_wrap=True,
            )
            left_s = seconds - (time.monotonic() - begin)
            found = measure(console, Rounds(where, library, left_s))
            words, network, is_lab = where.words, where.network, where.is_lab
    except (DemoError, LabError, ResultError, MpiError, SettingsError) as error:
        messages.say("weft demo", error)
        return 2
    except KeyboardInterrupt:
        return 130
    if comparisons := [one for one in found if isinstance(one, Comparison)]:
        console.print(table(comparisons))
        console.print(
            f"Medians of at least {min(one.samples for one in comparisons)}, with the 95 %"
            " confidence interval of each; green: the engine to use; native: Weft is loaded, but"
            " the MPI library does the work.",
            style="dim",
        )
        if remarks := overlap.remarks([row for one in comparisons for row in one.rows]):
            console.print(remarks, style="dim", highlight=False)
    page.write(out, found, network, words)
    if json:
        json_file.write(json, to_json(found, network, is_lab))
    text = advice(found, library, is_lab)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(f"Report: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)
    return 0


def choose(name: str | None) -> mpi_libraries.Implementation:
    """Returns the requested MPI library, or else the first that is installed. Raises DemoError if
    it cannot run the demo."""
    library = mpi_libraries.chosen(name)
    program = library.program("overlap")
    if not program.exists():
        raise DemoError(f"{program} is missing; {how_to_build(library)}")
    return library


def to_json(
    found: Sequence[Comparison | CallComparison], network: str, is_lab: bool
) -> dict[str, Any]:
    """Returns the results as a document of the schema weft-demo/1."""
    headline = {
        one.call: {"times_as_fast": one.gain.median, "finding": one.finding} for one in found
    }
    return {
        **stored.head("weft-demo/1", headline, found[0].mpi if found else "", RANKS),
        "lab": is_lab,
        "network": network,
        "calls": [{"call": one.call, "sentence": one.sentence, **asdict(one)} for one in found],
    }


# ---- Output during the measurement ------------------------------------------------------------


class Display:
    """The line that changes with the progress, and the sentences above it, which stay."""

    def __init__(self, console: Console, seconds: float) -> None:
        self.console = console
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            transient=True,
        )
        self.task = self.bar.add_task("", total=seconds, left="")
        self.begun: set[str] = set()  # collectives of which a first figure was printed
        self.told: set[str] = set()  # collectives whose final sentence was printed

    def tell(self, state: State) -> None:
        how = "with Weft" if state.with_weft else "without Weft"
        text = f"{state.subject.name}, round {state.subject.rounds + 1}, {how}"
        text += so_far(state.subject)
        left = f"at most {max(0.0, state.left_s):.0f} s left"
        self.bar.update(self.task, description=text, completed=state.elapsed_s, left=left)
        if not self.console.is_terminal and state.with_weft == state.subject.order[0]:
            self.console.print(f"{text}; {left}", markup=False, highlight=False, soft_wrap=True)

    def known(self, subject: Subject) -> None:
        """Prints a collective's first figure as soon as it is certain, and its sentence once it is
        decided."""
        found, name = subject.comparison, subject.name
        if subject.decided and name not in self.told:
            self.told.add(name)
            self.bar.console.print(found.sentence, markup=False, highlight=False)
        elif found.gain.is_certain and name not in self.begun:
            text = f"{name}{so_far(subject)}; more rounds will tell"
            self.bar.console.print(text, style="dim", markup=False, highlight=False)
        if found.gain.is_certain:
            self.begun.add(name)


def so_far(subject: Subject) -> str:
    found = subject.comparison
    if found is None:
        return ""
    gain = overlap.interval(found.gain) or f"about {found.gain.median:.2f}"
    return f": so far {gain} times as fast"


def measure(console: Console, rounds: Rounds) -> list[Comparison | CallComparison]:
    display = Display(console, rounds.seconds)
    rounds.tell = display.tell
    with display.bar:
        for subject in rounds.measure():
            display.known(subject)
        for subject in rounds.subjects:
            if subject.comparison and subject.name not in display.told:
                console.print(subject.comparison.sentence, markup=False, highlight=False)
            if not subject.comparison:
                text = f"{subject.name}: not measured; the time was up"
                console.print(text, style="yellow", markup=False, highlight=False)
    found = [subject.comparison for subject in rounds.subjects]
    return [comparison for comparison in found if comparison]


# ---- Output at the end ------------------------------------------------------------------------


def table(comparisons: Sequence[Comparison]) -> Table:
    result = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    result.add_column("", no_wrap=True)
    for title in (
        "communi-\ncation\nalone ms",
        "compu-\ntation\nalone ms",
        "both\nms",
        "",
        "hidden",
        "times as\nfast as\nwithout",
        "",
    ):
        result.add_column(title, justify="right", vertical="bottom", no_wrap=True)
    for comparison in comparisons:
        result.add_section()
        result.add_row(comparison.call, style="bold")
        for row in comparison.rows:
            result.add_row(*cells(row), style="green" if row is comparison.best else None)
    return result


def cells(row: overlap.Row) -> list[str]:
    spread = f"{row.total.low:.1f}–{row.total.high:.1f}" if row.total.is_certain else ""
    return [
        "  " + row.name,
        overlap.figure(row.communication),
        overlap.figure(row.computation),
        f"{row.total.median:.1f}",
        spread,
        overlap.hidden(row),
        f"{row.gain.median:.2f}" if row.gain else "",
        overlap.interval(row.gain),
    ]


def advice(
    found: Sequence[Comparison | CallComparison], mpi: mpi_libraries.Implementation, is_lab: bool
) -> str:
    """Returns three commands that users may try on their own programs, as they would be typed
    here."""
    weft, launcher = typed.weft(), typed.program(mpi.mpiexec)
    start = f"{launcher} -n {RANKS} {weft} run"
    commands = [
        (
            f"{start} --summary -- ./app",
            "with Weft, which chooses the engine; says at the end what was hidden",
        ),
        (
            f"{weft} try -- {launcher} -n {RANKS} ./app",
            "without Weft and with it in turn, until it is clear, at most 12 rounds or 5 minutes",
        ),
    ]
    if is_lab:
        commands.append(
            (
                f"{weft} lab run --nodes {RANKS} -- {weft} run --summary -- ./app",
                "the first one on two nodes joined by a slow link, as here",
            )
        )
    else:
        commands.append((f"{weft} doctor", "why this machine permits no lab"))
    lines = [f"  {what}:\n    {command}" for command, what in commands]
    longer = []
    if undecided := ", ".join(one.call for one in found if one.finding == overlap.CANNOT_TELL):
        longer = [
            f"The intervals are still wide: {undecided}. To measure longer:"
            f" {weft} demo --time-budget 300s"
        ]
    return "\n".join([*longer, "Next, with a program of your own:", *lines])
