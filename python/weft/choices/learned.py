"""Shows what engine auto has learnt about programs, one call class at a time (`weft learned`).

It reads the file in which Weft stores plans (src/select/plan_cache.h). A call class is what all
ranks of a program can tell from other calls: the collectives of one kind and similar size on one
communicator."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from weft import __version__
from weft.advise.places import NO_TOOL, Frame, resolve, tool
from weft.data import json_file
from weft.data.kept_plans import HEADER, VERSIONS, cache_file, this_machine
from weft.data.stored import ResultError, head
from weft.terminal import messages

if TYPE_CHECKING:
    from rich.console import Console

LEARNT = "learnt"
SCHEMA = "weft-learned/3"
IN_TURN = " in turn"  # ends the text of calls that alternate in a cycle (job/records.cc)
# The keys describe communicators in the file (src/runtime/adaptive/learnt.cc). The values are the
# text shown instead, and the reason why other variants apply to such communicators.
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
    " by messages": (
        ", with --transport mpi",
        "With --transport mpi: ranks of one node send each other messages, too, so that nothing is"
        " tried in a node's memory.",
    ),
}
# A variant that is slower than another by less than this share may stay in use. It may be slower by
# more if it was often faster in direct comparison.
MOST_SLOWER = 0.05
BY_CHANCE = ", by chance "
# A result is doubtful if two equal variants give it with a higher probability. Three wins of three
# rounds are not doubtful (src/runtime/job/records.cc).
MOST_BY_CHANCE = 0.125


@dataclass(frozen=True)
class Way:
    """A variant that was tried."""

    words: str  # text of the variant, such as "thread ring"
    period_us: float  # time from one call to the next on the slowest rank


@dataclass(frozen=True)
class Site:
    """The results for one call class of a program."""

    version: str  # version of Weft that learnt it, such as "weft 0.1.0"
    machine: str
    library: str  # MPI library, such as "MPICH 5.0.2"
    program: str
    job: str  # size of the job, such as "4 ranks"
    communicator: str  # description of the communicator, such as "4 ranks on 2 nodes"
    calls: str  # description of the calls, such as "allreduce, predefined operator, below 1 MiB"
    chosen: Way
    lost: int  # number of rounds in which the chosen variant was not faster than its rival
    rounds: Optional[int]  # number of rounds in which both were tried; None if it is not known
    tried: tuple[Way, ...]  # tried variants, with the rule's first
    trials: Optional[int] = None  # number of calls that tried a variant; None if it is not known
    # This is the time in us that trials cost compared with the variant in use; None if it is not
    # known.
    cost_us: Optional[float] = None
    # module and offset of the first places of the calls on rank 0
    places: tuple[tuple[str, int], ...] = ()
    # The chosen variant replaced its rival, which was clearly slower in all rounds.
    was_left: bool = False

    def rival(self) -> Optional[Way]:
        """Returns the variant with which the chosen one was compared: the native one, else the
        rule's, else the second best. rival_of() in src/select/tried_variants.cc does the same. The
        numbers of rounds refer to this variant."""
        others = [way for way in self.tried if way.words != self.chosen.words]
        if not others:
            return None
        native = [way for way in others if way.words == "native"]
        if native:
            return native[0]
        rule = self.tried[0]
        return rule if rule in others else fastest(others)

    def why_unused(self) -> str:
        """Returns why programs do not use the result here; an empty string if they do."""
        if self.version != f"weft {__version__}":
            return f"learnt by {self.version.capitalize()}, and this is {__version__}"
        return "" if self.machine == this_machine() else "learnt on another machine"


def fastest(ways: Iterable[Way]) -> Way:
    return min(ways, key=lambda way: way.period_us)


def library_of(words: str) -> str:
    """Returns a library's short name: "MPICH 5.0.2" for "MPICH Version: 5.0.2"."""
    return " ".join(words.replace("Version:", "").split())


def remarks_of(text: str) -> dict[str, str]:
    """Parses text such as "trials=18 cost_ns=1200000", which src/runtime/adaptive/learnt.cc
    writes."""
    return dict(word.split("=", 1) for word in text.split(" ") if "=" in word)


def places_of(text: str) -> tuple[tuple[str, int], ...]:
    """Parses text such as "0x11c9:/home/user/app|0x1200:/home/user/app" into modules and
    offsets."""
    pairs = [place.partition(":") for place in text.split("|") if place]
    return tuple((module, int(offset, 16)) for offset, _, module in pairs)


def site_of(line: str) -> Optional[Site]:
    """Parses a line of the file; None if it is about something else or damaged."""
    try:
        key, chosen, doubts, tried, *more = line.rstrip("\n").split("\t")
        words = key.split("|")
        if len(words) != 7 or words[2] != LEARNT:
            return None
        version, platform, _, program, job, communicator, calls = words
        machine, _, library = platform.rpartition(", ")
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
            library_of(library),
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
            "left" in remarks,
        )
    except (ValueError, StopIteration):
        return None


def read(file: Path, program: Optional[str] = None) -> list[Site]:
    """Returns the results for programs whose names contain `program`, or for all programs without
    it. Raises ResultError if the file is not one of this version's."""
    lines = file.read_text(errors="replace").splitlines()
    if lines and not lines[0].startswith(HEADER):
        raise ResultError(f"{file}: no file in which Weft keeps plans: name another one")
    if lines and lines[0][len(HEADER) :] not in VERSIONS:
        raise ResultError(
            f'{file}: written by another Weft ("{lines[0][2:]}"): this one cannot read it, and puts'
            " it aside when a program runs"
        )
    sites = [site for site in map(site_of, lines) if site]
    return [site for site in sites if not program or program in site.program]


def named_places(sites: list[Site]) -> dict[tuple[str, int], Frame]:
    """Returns, for each place (module and offset) from which the program made the calls, its
    innermost frame: function, file and line. They are read from the program files as they are
    now."""
    found = resolve(place for site in sites for place in site.places)
    return {place: frames[0] for place, frames in found.items()}


def as_json(sites: list[Site]) -> dict:
    named = named_places(sites)
    headline = {"sites": len(sites), "programs": len({site.program for site in sites})}
    return {
        **head(SCHEMA, headline, ", ".join(sorted({site.library for site in sites}))),
        "sites": [
            {
                "weft": site.version,
                "machine": site.machine,
                "library": site.library,
                "used_here": not site.why_unused(),
                "program": site.program,
                "job": site.job,
                "communicator": site.communicator,
                "calls": site.calls,
                "way": site.chosen.words,
                "rival": rival.words if (rival := site.rival()) else None,
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
    """Returns the probability that one of two equal variants wins at least so many rounds (sign
    test)."""
    return sum(comb(rounds, number) for number in range(won, rounds + 1)) / 2**rounds


def percent(part: float) -> str:
    return f"{100 * part:.0f} %" if part >= 0.01 else f"{100 * part:.1f} %"


def rounds_words(site: Site, rival: Way) -> str:
    """Returns text such as " (in 8 of 9 rounds)", or for a doubtful result " (in 2 of 3 rounds, by
    chance 50 %)"."""
    if not site.rounds:
        return ""
    times = rival.period_us / site.chosen.period_us
    if site.was_left:
        rounds = "1 round" if site.rounds == 1 else f"{site.rounds} rounds"
        return f", which took {times:.1f} times as long and was met in {rounds} only"
    won = site.rounds - site.lost
    chance = chance_of(won, site.rounds)
    doubt = BY_CHANCE + percent(chance) if chance > MOST_BY_CHANCE else ""
    return f" (in {won} of {site.rounds} rounds{doubt})"


def hardly_slower_words(site: Site, other: Way) -> str:
    slower = site.chosen.period_us / other.period_us - 1
    if slower > MOST_SLOWER:
        return f"; {other.words} was not surely faster"
    return f", within {percent(max(abs(slower), 0.01))} of {other.words}"


def gain_words(site: Site) -> str:
    """Returns text such as ", 25 % less time than native (in 8 of 9 rounds)"."""
    words = ", the library's own" if site.chosen.words == "native" else ""
    rival = site.rival()
    if not rival:
        return words
    part = 1 - site.chosen.period_us / rival.period_us
    if part < 0.01:
        words += hardly_slower_words(site, rival)
    else:
        words += f", {percent(part)} less time than {rival.words}" + rounds_words(site, rival)
    best = fastest(site.tried)
    if best.period_us < site.chosen.period_us and best != rival:
        words += hardly_slower_words(site, best)
    return words


def shown(communicator: str) -> str:
    """Returns the description of a communicator as it is shown."""
    for words, (in_their_place, _) in EXPLAINED.items():
        communicator = communicator.replace(words, in_their_place)
    return communicator


def show_site(site: Site, named: dict[tuple[str, int], Frame], console: "Console") -> None:
    """Prints the variants that were tried, the fastest first, and the one in use."""
    from rich.table import Table
    from rich.text import Text

    heading = f", {site.job}, {site.library}: {site.calls} ({shown(site.communicator)})"
    console.print(Text.assemble((site.program, "bold"), heading))
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for way in sorted(site.tried, key=lambda way: way.period_us):
        taken = way.words == site.chosen.words
        what = "taken" + gain_words(site) if taken else ""
        style = "bold" if taken else ""
        table.add_row(way.words, time_words(way.period_us), what, style=style)
    console.print(table)
    if site.places:
        console.print("    called by " + ", ".join(str(named[place]) for place in site.places))
    if site.trials is not None and site.cost_us is not None:
        console.print(f"    {site.trials} calls were tried, which cost {time_words(site.cost_us)}.")


def show(sites: list[Site], console: "Console") -> None:
    """Prints the result for each call class. Those that no program uses here come last."""
    named = named_places(sites)
    ordered = sorted(sites, key=lambda site: (site.why_unused(), site.machine))
    for (why, machine), group in groupby(
        ordered, key=lambda site: (site.why_unused(), site.machine)
    ):
        where = f"Not used here, {why} ({machine}):" if why else f"On this machine ({machine}):"
        console.print(where)
        for site in group:
            show_site(site, named, console)
    if named and not tool():
        console.print(NO_TOOL)
    console.print(
        "Times are those from one call to the next, or of a blocking call its own, on the slowest "
        "rank."
    )
    if any(BY_CHANCE in gain_words(site) for site in sites):
        console.print("By chance: how probable that would be if both took the same time.")
    for words, (_, why) in EXPLAINED.items():
        if any(words in site.communicator for site in sites):
            console.print(why)


def why_nothing(file: Path, program: Optional[str]) -> str:
    """Returns a sentence that says what is missing, and which commands produce it."""
    again = "weft run --plan-cache plans -- ./app"
    try_it = (
        f"Run it where collectives take time: mpiexec -n 4 {again} on several nodes, or "
        f"weft lab run --nodes 2 -- {again}. Then: weft learned --plan-cache plans"
    )
    if not file.exists():
        return f"There is no {file}: no program has run under engine auto long enough. {try_it}"
    known = sorted({Path(site.program).name for site in read(file, None)})
    if program and known:
        return f"{file} has no program named {program}; it has {', '.join(known)}."
    return (
        f"{file} holds plans, and nothing about programs: none of them made the same collective "
        f"often enough under engine auto. {try_it}"
    )


def learned(
    program: Annotated[
        Optional[str], typer.Argument(help="Part of a program's name; all programs by default.")
    ] = None,
    file: Annotated[
        Optional[str],
        typer.Option(
            "--plan-cache",
            metavar="FILE",
            help="The file, if it is not the usual one (~/.cache/weft/plans).",
        ),
    ] = None,
    json: Annotated[Optional[Path], json_file.option()] = None,
) -> None:
    """Show what engine auto has learnt about programs: what it tried, and what it takes."""
    from rich.console import Console

    console = Console(markup=False, emoji=False)
    found = cache_file(file)
    try:
        # Weft creates the file when it has something to store. A file that the user names must
        # exist.
        sites = read(found, program) if found and (file or found.exists()) else []
    except OSError as error:
        messages.say("weft learned", error)
        raise typer.Exit(1) from None
    except ResultError as error:
        messages.say("weft learned", error)
        raise typer.Exit(2) from None
    if json:
        json_file.write(json, as_json(sites))
    if sites:
        show(sites, console)
    elif not found:
        console.print(
            "No file is named by --plan-cache, WEFT_PLAN_CACHE or HOME, so nothing that is learnt "
            "is kept."
        )
    else:
        console.print(why_nothing(found, program), soft_wrap=True)
    if program and not sites:
        raise typer.Exit(1)
