"""`weft report` and `weft compare`: results as pages, and two results against each other."""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from weft.bench import kernels
    from weft.bench.result import Result
    from weft.report.effect_page import Source


def fail(verb: str, message: object) -> typer.Exit:
    print(f"weft {verb}: {message}", file=sys.stderr)
    return typer.Exit(2)


def load(verb: str, path: Path) -> "Result":
    from weft.bench import store
    from weft.stored import ResultError

    if not path.exists():
        raise fail(verb, f"there is no file {path}")
    try:
        return store.load(path)
    except ResultError as error:
        raise fail(verb, error) from None


def kernel_results(paths: list[Path]) -> list["kernels.KernelResult"]:
    """Empty if these are results of the benchmark; both kinds at once are refused."""
    from weft.bench import kernels
    from weft.stored import ResultError

    try:
        found = [kernels.load(path) for path in paths]
    except ResultError as error:
        raise fail("report", error) from None
    of_kernels = [one for one in found if one]
    if of_kernels and len(of_kernels) < len(paths):
        raise fail("report", "figures of kernels and results of the benchmark need a page each")
    return of_kernels


def report_kernels(results: list["kernels.KernelResult"], out: Path, svg: Optional[Path]) -> None:
    from weft.report import kernel_page

    if svg:
        raise fail("report", "--svg draws results of the benchmark, not figures of kernels")
    try:
        kernel_page.write(out, results)
    except (ValueError, OSError) as error:
        raise fail("report", error) from None
    for result in results:
        for finding in kernel_page.section(result)["findings"]:
            print(finding)
    print(f"Written: {out.resolve()}")


def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT...", help="Files that weft bench wrote, JSON or SQLite."),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    svg: Annotated[
        Optional[Path], typer.Option(metavar="FILE", help="Also draw the curves, for a paper.")
    ] = None,
) -> None:
    """Show results of weft bench as a page that works offline, and say what to use."""
    # Loaded here: its report library takes longer to load than the other commands take.
    from rich.console import Console

    from weft.report import effect, effect_page, picture

    of_kernels = kernel_results(results)
    if of_kernels:
        report_kernels(of_kernels, out, svg)
        return
    sources = [source_of(path) for path in results]
    console = Console()
    try:
        effect_page.write(out, sources)
        for source in sources:
            for case in source.cases:
                sentence = f"{case.title}: {effect.advice(case)}"
                console.print(sentence, markup=False, highlight=False)
        if svg:
            picture.write(svg, sources)
    except (ValueError, OSError) as error:
        raise fail("report", error) from None
    for path in (out, *([svg] if svg else [])):
        console.print(f"Written: {path.resolve()}", markup=False, highlight=False, soft_wrap=True)


def source_of(path: Path) -> "Source":
    """A result; with what its preset's publication says, if it was measured for one."""
    from weft.bench import presets
    from weft.report import effect_page

    found = load("report", path)
    preset = presets.measured_for(found.settings.get("preset"), found.machine)
    remarks = presets.remarks(preset, found) if preset and found.points else ()
    return effect_page.Source(str(path), found, remarks=remarks)


def compare(
    a: Annotated[Path, typer.Argument(help="The result to compare with.")],
    b: Annotated[Path, typer.Argument(help="The result that is compared.")],
    out: Annotated[
        Optional[Path], typer.Option("-o", "--out", metavar="FILE", help="Also write a page.")
    ] = None,
) -> None:
    """Compare two results of weft bench point by point: B's time divided by A's."""
    from rich.console import Console

    from weft.report import versus

    found = versus.compare(load("compare", a), load("compare", b))
    console = Console()
    if found.ratios:
        for table in ratio_tables(found):
            console.print(table)
    for name in found.only_a:
        console.print(f"only in A: {name}", markup=False, highlight=False)
    for name in found.only_b:
        console.print(f"only in B: {name}", markup=False, highlight=False)
    for change in found.changes:
        console.print(f"winner changed: {change.sentence}", markup=False, highlight=False)
    console.print(found.sentence, markup=False, highlight=False)
    if out:
        try:
            versus.write(out, found, (str(a), str(b)))
        except OSError as error:
            raise fail("compare", error) from None
        console.print(f"Written: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)


def ratio_tables(found) -> Iterator["Table"]:
    """A table per case, since the case's name is longer than any column."""
    from rich.table import Table

    from weft.bench.statistics import FASTER, SAME, SLOWER
    from weft.report.effect import duration

    style = {FASTER: "green", SLOWER: "red", SAME: None}
    for title, ratios in groupby(found.ratios, lambda ratio: ratio.case.title):
        table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
        table.title, table.title_justify, table.title_style = title, "left", "bold"
        table.add_column("", no_wrap=True)
        for column in ("computation", "B / A", "between", "B is"):
            table.add_column(column, justify="right", no_wrap=True)
        for ratio in ratios:
            table.add_row(
                "  " + ratio.name,
                duration(ratio.computation_us),
                f"{ratio.times.median:.3f}",
                f"{ratio.times.low:.3f}–{ratio.times.high:.3f}",
                {FASTER: "faster", SLOWER: "slower", SAME: "same"}[ratio.verdict],
                style=style[ratio.verdict],
            )
        yield table
