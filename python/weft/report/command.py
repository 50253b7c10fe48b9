"""Writes results as pages (`weft report`), and compares results (`weft compare`)."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from weft.data import json_file

if TYPE_CHECKING:
    from rich.table import Table

    from weft.measurements import kernels
    from weft.measurements.result import Result
    from weft.report.effect_page import Source
    from weft.report.history import Course

MOST_SHOWN = 6  # most results in the terminal's table: the oldest and the newest ones


def fail(verb: str, message: object) -> typer.Exit:
    from weft.terminal import messages

    messages.say(f"weft {verb}", message)
    return typer.Exit(2)


def load(verb: str, path: Path) -> "Result":
    from weft.data.stored import ResultError
    from weft.measurements import store

    if not path.exists():
        raise fail(verb, f"there is no file {path}")
    try:
        return store.load(path)
    except ResultError as error:
        raise fail(verb, error) from None


def kernel_results(paths: list[Path]) -> list["kernels.KernelResult"]:
    """Returns the results of kernels; an empty list if the files are results of the benchmark.
    Refuses a mixture of both."""
    from weft.data.stored import ResultError
    from weft.measurements import kernels

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
    json: Annotated[Optional[Path], json_file.option("Also write the advice as JSON.")] = None,
) -> None:
    """Show results of weft bench as a page that works offline, and say what to use."""
    # The modules are imported here, since that takes longer than other commands run.
    from rich.console import Console

    from weft.measurements import effect
    from weft.report import effect_page, picture

    of_kernels = kernel_results(results)
    if of_kernels:
        if json:
            raise fail(
                "report", "--json gives the advice of results of the benchmark: leave it out"
            )
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
        if json:
            json_file.write(json, as_json(sources))
        if svg:
            picture.write(svg, sources)
    except (ValueError, OSError) as error:
        raise fail("report", error) from None
    for path in (out, *([svg] if svg else [])):
        console.print(f"Written: {path.resolve()}", markup=False, highlight=False, soft_wrap=True)


def as_json(sources: list["Source"]) -> dict:
    """Returns the advice as a document of the schema weft-report/1."""
    from weft.data.stored import head
    from weft.measurements import effect

    advice = [
        {"result": source.name, "case": case.title, "advice": effect.advice(case)}
        for source in sources
        for case in source.cases
    ]
    return {**head("weft-report/1", {"cases": len(advice)}), "cases": advice}


def source_of(path: Path) -> "Source":
    """Returns a result. If it was measured for a preset, the remarks have the published finding."""
    from weft.measurements import presets
    from weft.report import effect_page

    found = load("report", path)
    preset = presets.measured_for(found.settings.get("preset"), found.machine)
    remarks = presets.remarks(preset, found) if preset and found.points else ()
    return effect_page.Source(str(path), found, remarks=remarks)


def compare(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="OLD NEW...",
            help="Results of weft bench, the oldest first; with more than two the page draws"
            " each candidate's history.",
        ),
    ],
    fail_if_slower: Annotated[
        Optional[str],
        typer.Option(
            metavar="PERCENT",
            help="End with status 1 where the last result is slower than the first by more than"
            " this, such as 5%, beyond the intervals.",
        ),
    ] = None,
    out: Annotated[
        Optional[Path], typer.Option("-o", "--out", metavar="FILE", help="Also write a page.")
    ] = None,
    json: Annotated[Optional[Path], json_file.option("Also write the ratios as JSON.")] = None,
) -> None:
    """Compare results of weft bench point by point: the last one's time divided by the first's."""
    from rich.console import Console

    from weft.report import history, versus

    if len(results) < 2:
        raise fail("compare", "name two results or more, the oldest first")
    loaded = [load("compare", path) for path in results]
    names = [str(path) for path in results]
    found = versus.compare(loaded[0], loaded[-1])
    failed, verdict = False, ""
    try:
        if fail_if_slower is not None:
            allowed = history.share(fail_if_slower)
            if other := history.another_machine(names, loaded):
                raise history.HistoryError(
                    f"--fail-if-slower needs results of one machine: {other}"
                )
            failed, verdict = history.judgement(found, allowed)
    except history.HistoryError as error:
        raise fail("compare", error) from None
    console = Console()
    if other := history.another_machine(names, loaded):
        console.print(f"not of one machine: {other}", markup=False, highlight=False)
    courses = history.courses(loaded) if len(loaded) > 2 else []
    for table in course_tables(courses, len(loaded)) if courses else ratio_tables(found):
        console.print(table)
    for name in found.only_a:
        console.print(f"only in A: {name}", markup=False, highlight=False)
    for name in found.only_b:
        console.print(f"only in B: {name}", markup=False, highlight=False)
    for change in found.changes:
        console.print(f"winner changed: {change.sentence}", markup=False, highlight=False)
    for sentence in filter(None, (found.sentence, verdict)):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if json:
        write_json(json, found.to_json(verdict))
    if out:
        try:
            if courses:
                said = found.told("the oldest result", "the newest result")
                history.write(out, names, courses, verdict or said)
            else:
                versus.write(out, found, names, verdict)
        except OSError as error:
            raise fail("compare", error) from None
        console.print(f"Written: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def write_json(path: Path, document: dict) -> None:
    try:
        json_file.write(path, document)
    except OSError as error:
        raise fail("compare", error) from None


def course_tables(courses: list["Course"], count: int) -> Iterator["Table"]:
    """Yields tables with the time in each result, divided by that in the oldest one."""
    from rich.table import Table

    from weft.report.history import by_case

    numbers = [1, *range(max(2, count - MOST_SHOWN + 2), count + 1)]
    for title, shown in by_case(courses).items():
        table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
        table.title, table.title_justify, table.title_style = title, "left", "bold"
        table.add_column("", no_wrap=True)
        for number in numbers:
            table.add_column(f"result {number}", justify="right", no_wrap=True)
        for course in shown:
            times = [course.times.get(number) for number in numbers]
            table.add_row(
                "  " + course.name, *(f"{time.median:.3f}" if time else "" for time in times)
            )
        yield table


def ratio_tables(found) -> Iterator["Table"]:
    """Yields one table per case, since the name of a case is wider than any column."""
    from rich.table import Table

    from weft.measurements.effect import duration
    from weft.measurements.statistics import FASTER, SAME, SLOWER

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
