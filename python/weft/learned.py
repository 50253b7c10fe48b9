"""`weft learned`: what engine auto has found out about programs, site by site.

It reads the file in which Weft keeps plans (src/select/plan_cache.h). A site is what all ranks of a
program tell apart: the collectives of one kind and about one size on one communicator.
"""

import os
import sys
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from weft.advise.places import NO_TOOL, Frame, resolve, tool
from weft.stored import ResultError

if TYPE_CHECKING:
    from rich.console import Console

HEADER = "# weft plans"
LEARNT = "learnt"
SCHEMA = "weft-learned/1"
IN_TURN = " in turn"  # ends the words of calls that come around in a cycle (src/runtime/learnt.cc)
# Words of communicators in the file (src/runtime/learnt.cc), those that are shown for them, and why
# other ways apply there.
EXPLAINED = {
    ", level kept": (
        ", by shared memory alone",
        "By shared memory alone: where a job is inside one node, Weft leaves the level of threads"
        " as the program asked for it, so that its own threads call no MPI.",
    ),
    ", on a lane": (
        ", beside many communicators",
        "Beside many communicators: this one's messages share another one, so that neither assist"
        " nor tcc is tried.",
    ),
}


@dataclass(frozen=True)
class Way:
    """A way that was tried."""

    words: str  # "thread ring"
    period_us: float  # from one call to the next, on the slowest rank


@dataclass(frozen=True)
class Site:
    """What was found at one site of a program."""

    version: str
    machine: str
    program: str
    job: str  # "4 ranks"
    communicator: str  # "4 ranks on 2 nodes"
    calls: str  # "allreduce, predefined operator, below 1 MiB"
    chosen: Way
    lost: int  # rounds in which it was not faster than the library's own
    rounds: Optional[int]  # in which both were tried; None: not known
    tried: tuple[Way, ...]
    trials: Optional[int] = None  # calls on trial; None: not known
    cost_us: Optional[float] = None  # what they took more than the way in use would have
    places: tuple[tuple[str, int], ...] = ()  # module and offset of the first callers on rank 0

    def gain(self) -> Optional[tuple[float, str]]:
        """Part of the period that it saves, against the library's own or the next best."""
        others = [way for way in self.tried if way.words != self.chosen.words]
        if not others:
            return None
        native = [way for way in others if way.words == "native"]
        rival = native[0] if native else min(others, key=lambda way: way.period_us)
        return 1 - self.chosen.period_us / rival.period_us, rival.words


def cache_file(named: Optional[Path] = None) -> Optional[Path]:
    """Where Weft keeps plans, as its library finds it (src/base/config.cc)."""
    if named:
        return named
    variable = os.environ.get("WEFT_PLAN_CACHE")
    if variable:
        return None if variable == "none" else Path(variable)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if cache.startswith("/"):
        return Path(cache) / "weft/plans"
    home = os.environ.get("HOME", "")
    return Path(home) / ".cache/weft/plans" if home.startswith("/") else None


def remarks_of(text: str) -> dict[str, str]:
    """ "trials=18 cost_ns=1200000", as src/runtime/learnt.cc writes it."""
    return dict(word.split("=", 1) for word in text.split(" ") if "=" in word)


def places_of(text: str) -> tuple[tuple[str, int], ...]:
    """ "0x11c9:/home/user/app|0x1200:/home/user/app" -> modules and offsets."""
    pairs = [place.partition(":") for place in text.split("|") if place]
    return tuple((module, int(offset, 16)) for offset, _, module in pairs)


def site_of(line: str) -> Optional[Site]:
    """What a line of the file says; None where it is about something else, or damaged."""
    try:
        key, chosen, doubts, tried, *more = line.rstrip("\n").split("\t")
        words = key.split("|")
        if len(words) != 7 or words[2] != LEARNT:
            return None
        version, machine, _, program, job, communicator, calls = words
        ways = []
        for entry in tried.split(","):
            way, ns = entry.rsplit("=", 1)
            ways.append(Way(way.split("/")[0], int(ns) / 1000))
        name = chosen.split("/")[0]
        period = next(way for way in ways if way.words == name)
        words, _, places = (more[0] if more else "").partition(" at=")
        remarks = remarks_of(words)
        cost_ns = remarks.get("cost_ns")
        cycle = int(remarks.get("cycle", "1"))
        if cycle > 1 and not calls.endswith(IN_TURN):
            calls += f", call 1 of {cycle}{IN_TURN}"
        return Site(
            version,
            machine,
            program,
            job,
            communicator,
            calls,
            period,
            int(doubts),
            int(remarks["rounds"]) if "rounds" in remarks else None,
            tuple(ways),
            int(remarks["trials"]) if "trials" in remarks else None,
            int(cost_ns) / 1000 if cost_ns is not None else None,
            places_of(places),
        )
    except (ValueError, StopIteration):
        return None


def read(file: Path, program: Optional[str] = None) -> list[Site]:
    """The sites of the programs that have `program` in their names, of all if there is none."""
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    if lines and not lines[0].startswith(HEADER):
        raise ResultError(f"{file}: no file in which Weft keeps plans: name another one")
    sites = [site for site in map(site_of, lines) if site]
    return [site for site in sites if not program or program in site.program]


def named_places(sites: list[Site]) -> dict[tuple[str, int], Frame]:
    """The innermost frame of each caller, by the files as they are now."""
    found = resolve(place for site in sites for place in site.places)
    return {place: frames[0] for place, frames in found.items()}


def as_json(sites: list[Site]) -> dict:
    named = named_places(sites)
    return {
        "schema": SCHEMA,
        "sites": [
            {
                "weft": site.version,
                "machine": site.machine,
                "program": site.program,
                "job": site.job,
                "communicator": site.communicator,
                "calls": site.calls,
                "way": site.chosen.words,
                "rounds_lost": site.lost,
                "rounds": site.rounds,
                "calls_on_trial": site.trials,
                "trials_cost_us": site.cost_us,
                "places": [
                    {"module": place[0], "offset": place[1], **asdict(named[place])}
                    for place in site.places
                ],
                "tried": [{"way": way.words, "period_us": way.period_us} for way in site.tried],
            }
            for site in sites
        ],
    }


def time_words(us: float) -> str:
    if us < 10:
        return f"{us:.1f} µs"
    return f"{us:.0f} µs" if us < 1000 else f"{us / 1000:.1f} ms"


def chance_of(won: int, rounds: int) -> float:
    """That of two ways that are alike one wins so many rounds, or more (sign test)."""
    return sum(comb(rounds, number) for number in range(won, rounds + 1)) / 2**rounds


def gain_words(site: Site) -> str:
    """ ", 25% less time than native, in 8 of 9 rounds (by chance: 2%)"."""
    gain = site.gain()
    if not gain:
        return ""
    part, rival = gain
    if part < 0:
        own = "the library's own, " if site.chosen.words == "native" else ""
        return f", {own}within {-part:.0%} of {rival}"
    words = f", {part:.0%} less time than {rival}"
    if site.chosen.words == "native":
        return words
    if site.rounds:
        won = site.rounds - site.lost
        chance = chance_of(won, site.rounds)
        said = f"{chance:.0%}" if chance >= 0.01 else f"{chance:.1%}"
        return words + f", in {won} of {site.rounds} rounds (by chance: {said})"
    if site.lost:
        words += f"; slower in {site.lost} {'round' if site.lost == 1 else 'rounds'}"
    return words


def shown(communicator: str) -> str:
    """The words for it that are shown."""
    for words, (in_their_place, _) in EXPLAINED.items():
        communicator = communicator.replace(words, in_their_place)
    return communicator


def show(sites: list[Site], console: "Console") -> None:
    """A table for each site: what was tried, the fastest first, and what is taken."""
    from rich.table import Table

    named = named_places(sites)
    for site in sites:
        heading = f"[bold]{site.program}[/], {site.job}: {site.calls}"
        console.print(f"{heading} ({shown(site.communicator)})")
        table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
        for way in sorted(site.tried, key=lambda way: way.period_us):
            taken = way.words == site.chosen.words
            what = ""
            if taken:
                what = "taken" + gain_words(site)
            style = "bold" if taken else ""
            table.add_row(way.words, time_words(way.period_us), what, style=style)
        console.print(table)
        if site.places:
            console.print("    called by " + ", ".join(str(named[place]) for place in site.places))
        if site.trials is not None and site.cost_us is not None:
            console.print(
                f"    {site.trials} calls were tried, which cost {time_words(site.cost_us)}."
            )
    if named and not tool():
        console.print(NO_TOOL)
    console.print(
        "Times are those from one call to the next, or of a blocking call its own, on the slowest "
        "rank."
    )
    for words, (_, why) in EXPLAINED.items():
        if any(words in site.communicator for site in sites):
            console.print(why)


def learned(
    program: Annotated[
        Optional[str], typer.Argument(help="Part of a program's name; all programs by default.")
    ] = None,
    file: Annotated[
        Optional[Path],
        typer.Option("--plan-cache", metavar="FILE", help="The file, if it is not the usual one."),
    ] = None,
    json: Annotated[
        Optional[Path], typer.Option("--json", metavar="FILE", help="Writes it to FILE, too.")
    ] = None,
) -> None:
    """Show what engine auto has learnt about programs: what it tried, and what it takes."""
    from rich.console import Console

    console = Console()
    found = cache_file(file)
    try:
        sites = read(found, program) if found else []
    except ResultError as error:
        print(f"weft learned: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if json:
        import json as format_

        json.write_text(format_.dumps(as_json(sites), indent=1) + "\n")
    if sites:
        show(sites, console)
        return
    about = f" about a program named {program}" if program else ""
    console.print(
        f"Nothing is known{about} yet{f' in {found}' if found else ''}. Engine auto learns while a "
        "program runs on several nodes. What it learns in the lab is kept only where a file is "
        "named: weft lab run --nodes 2 -- weft run --plan-cache plans -- ./app, and then: weft "
        "learned --plan-cache plans"
    )
