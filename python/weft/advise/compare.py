"""Two records of one program, before and after a change: what became of its run time and sites."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.advise.analysis import Advice
from weft.advise.fragments import microseconds
from weft.advise.sites import base_name


@dataclass
class Change:
    name: str
    before_us: float | None
    after_us: float | None


def by_function(advice: Advice) -> dict[str, float]:
    """Lines move with a change, and a call gets another form; functions keep their names."""
    found: dict[str, float] = {}
    for site in advice.sites:
        name = f"{base_name(site.call)} in {site.function}"
        found[name] = found.get(name, 0) + site.time_us
    return found


def changes(before: Advice, after: Advice) -> list[Change]:
    old, new = by_function(before), by_function(after)
    names = sorted(set(old) | set(new), key=lambda name: -max(old.get(name, 0), new.get(name, 0)))
    return [Change(name, old.get(name), new.get(name)) for name in names]


def show(before: Advice, after: Advice) -> None:
    console = Console(highlight=False)
    ratio = after.elapsed_us / before.elapsed_us - 1 if before.elapsed_us else 0
    console.print(
        f"[bold]{microseconds(before.elapsed_us)} before, {microseconds(after.elapsed_us)} after"
        f" ({ratio:+.1%})[/] [dim]one run each: repeat them, since runs differ[/]"
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("collective")
    table.add_column("time before", justify="right")
    table.add_column("after", justify="right")
    for change in changes(before, after):
        times = (change.before_us, change.after_us)
        shown = ["not there" if us is None else microseconds(us) for us in times]
        table.add_row(escape(change.name), *shown)
    console.print(table)
