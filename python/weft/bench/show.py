"""Prints the output of `weft bench` in the terminal: the progress with the current best candidate,
and the final table.

The fastest candidate is that of the HTML page, since both ask weft.measurements.effect."""

from __future__ import annotations

import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from weft.bench.driver import Progress
from weft.measurements import effect, statistics
from weft.measurements.effect import Case
from weft.measurements.result import FEWEST, MEASURED, Result, Statistic
from weft.measurements.store import Store

BEST_EVERY_SECONDS = 5.0
EMPTY = (
    f"Empty: fewer than {FEWEST} samples, or too little to tell a share of it; ≈ joins what is"
    " equally fast within the intervals."
)


def best_so_far(result: Result) -> str:
    """Returns the candidate that leads at most amounts by more than the confidence intervals; an
    empty string if none does."""
    standings = [standing for case in effect.cases(result) for standing in case.standings]
    leads = Counter(standing.leader.name for standing in standings if not standing.tied)
    if not leads:
        return ""
    (name, count), *_ = leads.most_common(1)
    return f"{name}, at {count} of {len(standings)} amounts"


class Display:
    """Draws the progress. The driver calls `tick` regularly."""

    def __init__(self, console: Console, store: Store, run: int) -> None:
        self.console = console
        self.store = store
        self.run = run
        self.best = ""
        self.best_at = 0.0
        self.last_line = ""
        self.bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            transient=True,
        )
        self.task = self.bar.add_task("starting", total=1.0, left="")

    def __enter__(self) -> Display:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def tick(self, progress: Progress) -> None:
        if progress.doing != self.last_line and not self.console.is_terminal:
            self.console.print(progress.doing, markup=False, highlight=False)
        self.last_line = progress.doing
        while progress.notes:
            self.console.print(progress.notes.pop(0), style="yellow", markup=False)
        if time.monotonic() - self.best_at > BEST_EVERY_SECONDS and progress.samples:
            self.best = best_so_far(self.store.result(self.run))
            self.best_at = time.monotonic()
        left_s = max(0.0, progress.budget_s - progress.elapsed_s)
        best = f"; best: {self.best}" if self.best else ""
        self.bar.update(
            self.task,
            description=f"{progress.doing}{best}",
            total=progress.budget_s,
            completed=min(progress.elapsed_s, progress.budget_s),
            left=f"at most {left_s:.0f} s left",
        )


def milliseconds(us: float) -> str:
    return f"{us / 1000:.2f}" if us < 100000 else f"{us / 1000:.1f}"


def table(case: Case) -> Table:
    """Returns a table of the fastest candidate at each amount of computation, within the confidence
    intervals."""
    found = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    columns = ("computes\nms", "blocking\nms", "fastest", "total\nms", "hidden", "slowed")
    for title in (*columns, "times as fast\nas blocking"):
        name = title == "fastest"  # only this column may have several lines
        found.add_column(title, justify="left" if name else "right", no_wrap=not name)
    for amount in case.amounts:
        found.add_row(*cells(case, amount))
    return found


def cells(case: Case, amount: int) -> list[str]:
    """Returns the cells of a table's row. A cell is empty if the value is uncertain, or if the
    blocking call has none."""
    standing = case.standings[amount]
    best = standing.leader.readings[amount]
    blocking = case.blocking.readings.get(amount)
    shown = [
        milliseconds(case.computation_us[amount]),
        milliseconds(blocking.total.median) if blocking else "",
    ]
    if not standing.is_certain(amount):
        return [*shown, *[""] * 5]
    won = blocking and not standing.leader.is_blocking
    return [
        *shown,
        " ≈ ".join(curve.name for curve in standing.all),
        milliseconds(best.total.median),
        effect.percent(best.hidden),
        f"{best.slowdown:.2f}" if best.slowdown else "",
        gain(blocking.total, best.total) if won else "",
    ]


def footnote(case: Case) -> str:
    """Returns a note that explains empty cells; an empty string if all cells are filled."""
    known = [
        standing.is_certain(amount)
        and (standing.leader.is_blocking or standing.leader.readings[amount].hidden is not None)
        for amount, standing in enumerate(case.standings)
    ]
    return "" if all(known) else EMPTY


def gain(blocking: Statistic, best: Statistic) -> str:
    """Returns the ratio of the times, with the least and greatest ratio that both confidence
    intervals permit."""
    times = statistics.ratio(blocking, best)
    spread = f" ({times.low:.2f}–{times.high:.2f})" if times.is_certain else ""
    return f"{times.median:.2f}{spread}"


def show(console: Console, result: Result) -> None:
    for case in effect.cases(result):
        alone = f"communication alone {effect.duration(case.communication_us)}"
        console.print(f"{case.title}: {alone}", style="bold", markup=False, highlight=False)
        console.print(table(case))
        if remark := footnote(case):
            console.print(remark, style="dim", markup=False, highlight=False)
        advice = effect.advice(case)
        console.print(advice[0].upper() + advice[1:], markup=False, highlight=False)
    for candidate in result.candidates:
        if candidate.status != MEASURED:
            text = f"{candidate.label}: {candidate.status}: {candidate.reason}"
            console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
