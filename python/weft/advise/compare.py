"""Compares two records of one program, before and after a change: how its run time and the time of
its collectives changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.advise.analysis import LEAST_WORTH, Advice
from weft.advise.fragments import count, microseconds
from weft.advise.names import base_name
from weft.advise.places import bare
from weft.advise.show import per_cent, short_place
from weft.data.stored import head

ONE_RUN = "one run each: repeat them, since runs differ"
# These are the possible changes of a collective between two runs.
SHORTER, LONGER, NEW, GONE, ALIKE = "shorter", "longer", "new", "gone", "alike"
MOST_NAMED = 3  # collectives of each kind named in the sentences


@dataclass
class Side:
    """The calls of a collective from one function of the program, in one of the two records."""

    us: float = 0.0  # time of the average rank over the run
    share: float = 0.0  # share of the run time
    calls: float = 0.0  # calls of the average rank
    # These are names of the calls: MPI_Allreduce, MPI_Iallreduce, ….
    forms: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


@dataclass
class Change:
    collective: str
    function: str
    before: Side | None
    after: Side | None
    kind: str

    @property
    def name(self) -> str:
        return f"{self.collective} in {bare(self.function)}"

    @property
    def us(self) -> float:
        """Returns by how many us the collective takes longer than before; negative if it takes
        less."""
        return (self.after.us if self.after else 0.0) - (self.before.us if self.before else 0.0)


def by_function(advice: Advice) -> dict[tuple[str, str], Side]:
    """Returns the collectives by name and calling function. A change moves lines and gives a call
    another form, but functions keep their names."""
    found: dict[tuple[str, str], Side] = {}
    for site in advice.sites:
        side = found.setdefault((base_name(site.call), site.function), Side())
        part = len(site.members) / max(1, advice.reported)
        side.us += site.time_us * part
        side.share += site.share * part
        side.calls += site.calls * part
        for name, names in ((site.call, side.forms), (short_place(site), side.places)):
            if name not in names:
                names.append(name)
    return found


def kind_of(before: Side | None, after: Side | None, least_us: float) -> str:
    if before is None or after is None:
        return GONE if after is None else NEW
    if abs(after.us - before.us) <= least_us:
        return ALIKE
    return SHORTER if after.us < before.us else LONGER


@dataclass
class Comparison:
    before: Advice
    after: Advice
    changes: list[Change]  # in the order of their time, the longest first

    @property
    def ratio(self) -> float:
        """Returns by which share of its time the run became longer: 0.1 is 10 % longer."""
        before = self.before.elapsed_us
        return self.after.elapsed_us / before - 1 if before else 0.0

    def of_kind(self, kind: str) -> list[Change]:
        """Returns the changes of this kind, the greatest first."""
        found = [change for change in self.changes if change.kind == kind]
        return sorted(found, key=lambda change: -abs(change.us))


def compare(before: Advice, after: Advice) -> Comparison:
    old, new = by_function(before), by_function(after)
    least_us = LEAST_WORTH * before.elapsed_us
    found = []
    for key in {**old, **new}:
        sides = old.get(key), new.get(key)
        found.append(Change(*key, *sides, kind_of(*sides, least_us)))
    longest = [max(side.us for side in (one.before, one.after) if side) for one in found]
    order = sorted(range(len(found)), key=lambda i: -longest[i])
    return Comparison(before, after, [found[i] for i in order])


# Text of the comparison --------------------------------------------------------------------------


def headline(found: Comparison) -> str:
    before, after = (microseconds(one.elapsed_us) for one in (found.before, found.after))
    changed = f"{per_cent(abs(found.ratio))} {'longer' if found.ratio > 0 else 'shorter'}"
    if abs(found.ratio) < 0.0005:  # per_cent() would show it as zero
        changed = "as long as before"
    return f"{before} before, {after} after: {changed}"


def collectives_us(advice: Advice) -> float:
    return advice.collective_share * advice.elapsed_us


def shares(found: Comparison) -> str:
    said = [
        f"{per_cent(one.collective_share)} ({microseconds(collectives_us(one))} of a rank)"
        for one in (found.before, found.after)
    ]
    return f"In collectives: {said[0]} before, {said[1]} after."


def times(change: Change) -> str:
    """Returns both times, such as "0.70 s → 0.24 s", or the only one if the collective is new or
    gone."""
    return " → ".join(microseconds(side.us) for side in (change.before, change.after) if side)


WORDS = {SHORTER: "Shorter", LONGER: "Longer", NEW: "New", GONE: "Gone"}


def sentences(found: Comparison) -> list[str]:
    """Says which collectives became shorter or longer, which are new and which are gone."""
    said = []
    for kind, word in WORDS.items():
        changes = found.of_kind(kind)
        if not changes:
            continue
        named = [f"{change.name} ({times(change)})" for change in changes[:MOST_NAMED]]
        more = len(changes) - len(named)
        named += [f"{more} more"] if more else []
        said.append(f"{word}: {', '.join(named)}.")
    if not found.changes:
        return ["Neither run called a collective."]
    return said or ["No collective takes noticeably more or less time than before."]


def notes(found: Comparison) -> list[str]:
    """Returns sentences about what makes the two runs hard to compare, and the notes about each
    run."""
    said = []
    sizes = [
        f"{count(one.ranks, 'rank')} on {count(one.hosts, 'node')}"
        for one in (found.before, found.after)
    ]
    if sizes[0] != sizes[1]:
        said.append(f"The two runs are not alike: {sizes[0]} before, {sizes[1]} after.")
    for when, advice in (("Before", found.before), ("After", found.after)):
        said += [f"{when}: {note}" for note in advice.notes]
    return said


def forms(change: Change) -> str:
    """Returns how the calls' names changed, such as "MPI_Allreduce → MPI_Iallreduce", or the name
    alone if it has not changed."""
    sides = [", ".join(side.forms) for side in (change.before, change.after) if side]
    return " → ".join(dict.fromkeys(sides))


def as_json(found: Comparison) -> dict:
    """Returns the comparison as a document of the schema weft-advise-comparison/2. Times are in
    microseconds."""

    def run(advice: Advice) -> dict:
        return {
            "command": advice.command,
            "ranks": advice.ranks,
            "nodes": advice.hosts,
            "run_us": advice.elapsed_us,
            "collectives_us": collectives_us(advice),
            "collective_share": advice.collective_share,
            "other_mpi_share": advice.other_mpi_share,
            "with_weft": advice.with_weft,
            "notes": advice.notes,
        }

    def side(one: Side | None) -> dict | None:
        if one is None:
            return None
        numbers = {"time_us": one.us, "share": one.share, "calls": one.calls}
        return {**numbers, "forms": one.forms, "places": one.places}

    headline = {"run_change": found.ratio}
    return {
        **head("weft-advise-comparison/2", headline, found.after.mpi, found.after.ranks),
        "before": run(found.before),
        "after": run(found.after),
        "run_change": found.ratio,
        "collectives": [
            {
                "collective": one.collective,
                "function": one.function,
                "change": one.kind,
                "change_us": one.us,
                "before": side(one.before),
                "after": side(one.after),
            }
            for one in found.changes
        ],
    }


# Output in the terminal --------------------------------------------------------------------------


def show(found: Comparison, files: list[str]) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]{headline(found)}[/]; [dim]{ONE_RUN}[/]")
    for note in notes(found):
        console.print(f"[yellow]{escape(note)}[/]")
    for sentence in (shares(found), *sentences(found)):
        console.print(escape(sentence))
    if found.changes:
        console.print(table(found))
    for file in files:
        console.print(f"[dim]{escape(file)}[/]", soft_wrap=True)


def table(found: Comparison) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("collective")
    shown.add_column("time before", justify="right")
    shown.add_column("after", justify="right")
    shown.add_column("")
    for change in found.changes:
        sides = (change.before, change.after)
        words = ["not there" if side is None else microseconds(side.us) for side in sides]
        shown.add_row(escape(change.name), *words, change.kind)
    return shown
