"""Findings as a table, and as a page with the figures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft.reproduce.findings import Reproduction


def show(found: Reproduction, out: Path | None) -> None:
    console = Console()
    console.print(found.title, style="bold", highlight=False)
    console.print(found.source, style="dim", highlight=False)
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for title in ("published", "here", "verdict"):
        table.add_column(title)
    for finding in found.findings:
        style = "green" if finding.holds else "yellow"
        table.add_row(finding.published, finding.here, f"[{style}]{finding.verdict}[/]")
    console.print(table)
    for why in dict.fromkeys(finding.why for finding in found.findings if finding.why):
        console.print(why, style="dim", highlight=False)
    console.print(found.conditions, style="dim", highlight=False)
    if out:
        console.print(f"Page: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)


def write(path: Path, found: Reproduction) -> None:
    from weft.report import html

    path.parent.mkdir(parents=True, exist_ok=True)
    figures = [asdict(figure) for figure in found.figures]
    path.write_text(html.render("reproduction.html.j2", found=found, figures=figures))
