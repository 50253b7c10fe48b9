"""What `weft bench` shows at the terminal: progress with the current best, and the final table."""

from __future__ import annotations

import time
from collections import defaultdict

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from weft.bench.driver import Progress
from weft.bench.result import MEASURED, Point, Result, ranks_in_words
from weft.bench.store import Store

BEST_EVERY_SECONDS = 5.0
# Below this lead, two candidates count as equally fast.
NOTICEABLE = 0.02


def point_label(point: Point) -> str:
    usual = ("none", "bind", "yield", "library", "selected")
    rest = [word for word in point.key[2:] if word not in usual]
    return " ".join([point.mpi.split()[0], point.engine, *rest])


def by_amount(result: Result) -> dict[tuple, list[Point]]:
    """(case, amount) -> its points, fastest first."""
    groups: dict[tuple, list[Point]] = defaultdict(list)
    for point in result.points:
        groups[(*point.case, point.amount)].append(point)
    return {key: sorted(g, key=lambda p: p.total_us.median) for key, g in sorted(groups.items())}


def best_so_far(result: Result) -> str:
    """The candidate that is fastest at most amounts."""
    wins: dict[str, int] = defaultdict(int)
    for points in by_amount(result).values():
        wins[point_label(points[0])] += 1
    if not wins:
        return ""
    name = max(wins, key=wins.__getitem__)
    return f"{name}, at {wins[name]} of {sum(wins.values())} amounts"


class Display:
    """Draws Progress; `tick` is what the driver calls."""

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


def case_title(point: Point) -> str:
    where = f"{ranks_in_words(point.ranks)} on {point.nodes} node{'s' if point.nodes > 1 else ''}"
    alone = f"communication alone {milliseconds(point.communication_us)} ms"
    return f"{point.collective}, {point.bytes} bytes, {where}: {alone}"


def table(groups: list[list[Point]]) -> Table:
    """Per amount: the fastest candidate, and its lead over the one after it."""
    found = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    columns = ("computes\nms", "blocking\nms", "fastest", "total\nms", "hidden", "slowed")
    for title in (*columns, "lead"):
        name = title == "fastest"  # the only one that may take several lines
        found.add_column(title, justify="left" if name else "right", no_wrap=not name)
    several = len({point.mpi for points in groups for point in points}) > 1
    for points in groups:
        found.add_row(*cells(points, several))
    return found


def cells(points: list[Point], several_mpis: bool) -> list[str]:
    best = points[0]
    names = [
        label if several_mpis else label.split(" ", 1)[1] for label in map(point_label, points)
    ]
    lead = points[1].total_us.median / best.total_us.median - 1 if len(points) > 1 else 0.0
    equal = len(points) > 1 and lead < NOTICEABLE
    name = " ≈ ".join(names[:2] if equal else names[:1])
    return [
        milliseconds(best.computation_us),
        milliseconds(best.computation_us + best.communication_us),
        name,
        milliseconds(best.total_us.median),
        "–" if best.known_share is None else f"{100 * best.known_share:.0f} %".replace("-", "−"),
        f"{best.slowdown_of_computation:.2f}",
        f"{100 * lead:.0f} %" if len(points) > 1 else "",
    ]


def show(console: Console, result: Result) -> None:
    cases: dict[tuple, list[list[Point]]] = defaultdict(list)
    for (*case, _), points in by_amount(result).items():
        cases[tuple(case)].append(points)
    for groups in cases.values():
        console.print(case_title(groups[0][0]), style="bold", markup=False, highlight=False)
        console.print(table(groups))
    for candidate in result.candidates:
        if candidate.status != MEASURED:
            text = f"{candidate.label}: {candidate.status}: {candidate.reason}"
            console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
