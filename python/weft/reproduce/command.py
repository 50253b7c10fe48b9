"""Defines the options of `weft reproduce`, and prints its results."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from weft.data import json_file

if TYPE_CHECKING:
    from weft.reproduce.claims import Published
    from weft.reproduce.findings import Reproductions
    from weft.reproduce.measured import Bench

Name = Literal[
    "all",
    "tcc",
    "progress-calls",
    "threads-per-core",
    "nbc-eff",
    "sharp",
    "gpu-stencil",
    "precision",
    "pipecg",
    "stencil",
    "fft3d",
    "cpals",
    "atmosphere",
    "placement",
    "split-tree",
    "model",
    "iallreduce-kernel",
    "shm-allreduce",
]
Way = Literal["measured", "simulated"]
ALL = "all"
PAGE = Path("out/reproduce.html")
INTERRUPTED = 130


def reproduce(
    name: Annotated[
        Optional[Name],
        typer.Argument(
            help="A finding of the papers, or all of them.", metavar="NAME", show_default=False
        ),
    ] = None,
    listed: Annotated[
        bool,
        typer.Option("--list", help="All findings of the papers, and how each is tested here."),
    ] = False,
    only: Annotated[
        Optional[Way],
        typer.Option(
            help="Only what is measured on this machine, or only what is simulated.",
            metavar="WAY",
            show_default="both",
        ),
    ] = None,
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="MPI libraries to measure, as for weft bench.",
            show_default="as weft bench takes them",
            metavar="NAMES",
        ),
    ] = None,
    time_budget: Annotated[
        Optional[str],
        typer.Option(
            help="The longest time to measure for each run of presets nbc-eff and placement; all"
            " other experiments have a length of their own.",
            show_default="120s",
            metavar="TIME",
        ),
    ] = None,
    json: Annotated[Optional[Path], json_file.option("Write it as JSON.")] = None,
    out: Annotated[
        Optional[Path],
        typer.Option(
            "-o",
            "--out",
            help="Also write a page with the figures; samples go into a folder beside it, such as"
            " out/reproduce-samples.",
            show_default="out/reproduce.html for all",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Put the papers' findings to the test, on this machine and in the simulator."""
    from weft.bench.settings import SettingsError
    from weft.reproduce import page, published
    from weft.system.mpi_libraries import MpiError

    try:
        if listed:
            check_list(name, only, mpi, time_budget, out)
            findings = published.all_findings()
            if json:
                json_file.write(json, [one.to_json() for one in findings])
            if not json_file.is_alone(json):
                page.show_list(findings)
            return
        if name is None:
            raise SettingsError("give NAME, or --list alone or with --json")
        found, interrupted = carry_out(name, only, mpi, time_budget, out)
    except (SettingsError, MpiError) as error:
        from weft.terminal import messages

        messages.say("weft reproduce", error)
        raise typer.Exit(2) from None
    answer(found, name, json, page_of(name, out))
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def check_list(*others: object) -> None:
    from weft.bench.settings import SettingsError

    if any(value is not None for value in others):
        raise SettingsError("give NAME, or --list alone or with --json")


def page_of(name: str, out: Optional[Path]) -> Optional[Path]:
    """Returns the file of the page; None if none is written."""
    return PAGE if name == ALL and out is None else out


def carry_out(
    name: str,
    only: Optional[str],
    mpi: Optional[str],
    time_budget: Optional[str],
    out: Optional[Path],
) -> tuple["Reproductions", bool]:
    """Returns the findings, and whether the user has interrupted the command. The page is written
    anew after each finding."""
    from weft.bench import machine
    from weft.reproduce import carry_out as way
    from weft.reproduce import here, page
    from weft.reproduce.findings import Reproductions
    from weft.reproduce.measured import Bench

    this = here.this_machine()
    bench = Bench(samples_beside(out or PAGE), this.cores, mpi, time_budget)
    chosen = chosen_findings(name, only, bench)
    path = page_of(name, out)
    if path:
        begin(path)
    found = Reproductions(machine.describe(""), [])
    for number, one in enumerate(chosen, 1):
        begins = f"{number} of {len(chosen)}, " if len(chosen) > 1 else ""
        print(f"{begins}{one.name}: {one.title}", file=sys.stderr, flush=True)
        try:
            found.reproductions.append(way.reproduce(one, bench, this, only))
        except (KeyboardInterrupt, typer.Exit):  # weft bench raises typer.Exit if it is interrupted
            if path and path.stat().st_size == 0:
                path.unlink()
            return found, True
        if path:
            page.write(path, found)
    return found, False


def samples_beside(page: Path) -> Path:
    return page.with_name(f"{page.stem}-samples")


def chosen_findings(name: str, only: Optional[str], bench: "Bench") -> list["Published"]:
    """Returns the requested findings. Raises SettingsError if an option has no effect on them."""
    from weft.bench import settings
    from weft.bench.settings import SettingsError
    from weft.reproduce import carry_out as way
    from weft.reproduce import published
    from weft.system import mpi_libraries

    if bench.mpi:
        mpi_libraries.words(bench.mpi)
    if bench.time_budget:
        settings.seconds("--time-budget", bench.time_budget)
    if name == ALL:
        everything = published.all_findings()
        return [one for one in everything if only is None or only in way.ways_of(one)]
    one = published.named(name)
    if only and only not in way.ways_of(one):
        raise SettingsError(f"nothing of {name} is {only}; leave out --only")
    if bench.time_budget and not way.takes_a_budget(one, bench):
        raise SettingsError(
            f"--time-budget has no effect on {name}, whose length is fixed; leave it out"
        )
    return [one]


def begin(path: Path) -> None:
    """Refuses a page that cannot be written before anything is measured."""
    from weft.data import files

    files.make_own_folder(path, PAGE)
    files.try_to_write(path)


def answer(found: "Reproductions", name: str, json: Optional[Path], path: Optional[Path]) -> None:
    from weft.reproduce import page

    if json:
        one = name != ALL and found.reproductions
        json_file.write(json, (found.reproductions[0] if one else found).to_json())
    if json_file.is_alone(json):
        return
    for each in found.reproductions if name != ALL else ():
        page.show(each)
    if name == ALL:
        page.show_all(found.reproductions)
    if path and found.reproductions:
        page.show_page(path)
