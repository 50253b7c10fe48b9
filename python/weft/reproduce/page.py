"""Shows findings as tables in the terminal, and as a page with the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.data import files
from weft.reproduce.claims import Published
from weft.reproduce.findings import (
    CANNOT,
    DOES_NOT_HOLD,
    HOLDS,
    VERDICTS,
    Figure,
    Finding,
    Reproduction,
    Reproductions,
)

if TYPE_CHECKING:
    from weft.report.svg import Bars, Graph

STYLES = {HOLDS: "green", DOES_NOT_HOLD: "yellow", CANNOT: "dim"}


# ---- List of all findings ---------------------------------------------------------------------


def show_list(findings: Sequence[Published]) -> None:
    table = empty("finding", "where", "published", "tested here", "needs")
    paper = ""
    for one in findings:
        if one.paper != paper:
            paper = one.paper
            table.add_row("", f"[bold]{escape(paper)}[/]")
        for number, claim in enumerate(one.claims):
            tests = [f"{how}: {by}" for how, by in one.tests_of(claim).items()]
            table.add_row(
                f"[bold]{one.name}[/]" if number == 0 else "",
                escape(claim.where),
                escape(claim.words),
                escape("; ".join(tests)) or f"[{STYLES[CANNOT]}]{CANNOT}[/]",
                escape(one.needs_of(claim)),
            )
    console = Console()
    console.print(table)
    console.print(reasons_not_simulated(findings))


def reasons_not_simulated(findings: Sequence[Published]) -> Table:
    table = empty("finding", "not simulated, since")
    for one in findings:
        whys = dict.fromkeys(one.not_simulated_since(claim) for claim in one.claims)
        for why in filter(None, whys):
            table.add_row(f"[bold]{one.name}[/]", escape(why))
    return table


def empty(*titles: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


# ---- Output in the terminal -------------------------------------------------------------------


def show(found: Reproduction) -> None:
    console = Console()
    console.print(found.title, style="bold", markup=False, highlight=False)
    console.print(found.paper, style="dim", markup=False, highlight=False)
    table = empty("published", "how", "here", "verdict")
    for finding, is_first in with_first(found.findings):
        published = escape(f"{finding.published} ({finding.where})") if is_first else ""
        table.add_row(published, escape(way(finding)), escape(finding.here), verdict(finding))
    console.print(table)
    for why in reasons(found):
        console.print(why, style="dim", markup=False, highlight=False)
    for text in found.conditions:
        console.print(text, style="dim", markup=False, highlight=False)


def show_all(found: Sequence[Reproduction]) -> None:
    """Prints a table of all findings. The page has the details."""
    console = Console()
    table = empty("finding", "published", "how", "verdict")
    for one in found:
        name = f"[bold]{one.name}[/]"
        for finding, is_first in with_first(one.findings):
            published = escape(f"{finding.published} ({finding.where})") if is_first else ""
            table.add_row(name, published, escape(way(finding)), verdict(finding))
            name = ""
    console.print(table)
    console.print(tally(found), markup=False, highlight=False)


def show_page(out: Path) -> None:
    Console().print(f"Page: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)


def with_first(findings: Sequence[Finding]) -> list[tuple[Finding, bool]]:
    """Returns each finding, and whether its row is the first of its statement."""
    statements = [(finding.where, finding.published) for finding in findings]
    return [
        (finding, i == 0 or statements[i] != statements[i - 1])
        for i, finding in enumerate(findings)
    ]


def way(finding: Finding) -> str:
    return ": ".join(word for word in (finding.how, finding.on) if word)


def verdict(finding: Finding) -> str:
    text = f"[{STYLES[finding.verdict]}]{finding.verdict}[/]"
    return f"{text}: {escape(finding.why)}" if finding.verdict == CANNOT and finding.why else text


def reasons(found: Reproduction) -> list[str]:
    """Returns the reasons of the verdicts, each once. A claim that cannot be tested shows its
    reason in its own row."""
    said = (finding.why for finding in found.findings if finding.verdict != CANNOT)
    return list(dict.fromkeys(why for why in said if why))


def tally(found: Sequence[Reproduction]) -> str:
    count = Counter(finding.verdict for one in found for finding in one.findings)
    parts = [f"{word.capitalize()}: {count[word]}." for word in VERDICTS]
    return f"Tests: {sum(count.values())}. {' '.join(parts)}"


# ---- Page -------------------------------------------------------------------------------------


def write(path: Path, found: Reproductions) -> None:
    from weft.report import html

    sections = [
        {"one": one, "rows": with_first(one.findings), "reasons": reasons(one)}
        for one in found.reproductions
    ]
    text = html.render(
        "reproduction.html.j2",
        sections=sections,
        several=len(sections) > 1,
        tally=tally(found.reproductions),
        untested=CANNOT,
        facts=facts(found),
        way=way,
        chart=chart,
    )
    files.write_text(path, text)


def chart(figure: Figure) -> Graph | Bars:
    from weft.report.svg import Bar, Bars, Graph, Line, look

    if not figure.bars:
        lines = []
        for number, one in enumerate(figure.lines):
            said = ["" if y is None else f"{one.name}: {y:.3g}" for y in one.y]
            lines.append(Line(one.name, look(number), one.x, one.y, said=said))
        return Graph(lines, figure.x, figure.y, figure.title)
    several, bars = len(figure.lines) > 1, []
    for place, name in enumerate(figure.names):
        for number, one in enumerate(figure.lines):
            value = one.y[place]
            if value is None:
                continue
            label = f"{one.name} {value:.3g}" if several else f"{value:.3g}"
            part = (value, look(number).colour, f"{one.name}: {value:.3g}")
            bars.append(Bar(name if number == 0 else "", [part], label))
    names = [(one.name, look(i).colour) for i, one in enumerate(figure.lines)]
    return Bars(bars, figure.y, figure.title, entries=names if several else ())


def facts(found: Reproductions) -> list[tuple[str, str]]:
    from weft.report import effect_page

    return effect_page.facts(found.machine)
