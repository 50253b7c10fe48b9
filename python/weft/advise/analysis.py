"""Turns a record into advice: where the time is spent, how much of it ranks wait for each other,
whether there is computation to overlap with, and what that could gain. The gain is an interval. Its
upper end is min(idle time, transfer) of the calls, where the idle time is how long the call's
buffer is left alone. If no core is free, the processor time of copying the data is subtracted. The
idle time before a call counts if the proposed change starts the call earlier. A replay of the calls
gives both ends. Without a replay the lower end is unknown, and the report says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

from weft.advise.arguments import MOST_LINES, statement
from weft.advise.checked import Checks
from weft.advise.names import base_name, is_nonblocking, language_of
from weft.advise.order import independent
from weft.advise.places import NO_TOOL, Frame, of_interpreter, unresolved
from weft.advise.record import BINDINGS, BROKEN_OFF, NO_END, OPERATORS, SENT, UNKNOWNS
from weft.advise.sites import MessageWait, Site, Spread, Toucher, Windows
from weft.advise.store import SCHEMA, Stored
from weft.advise.timeline import Timeline, timeline
from weft.advise.ways import group_key, outer_of, tell_apart, ways_of

COMMUNICATORS = ("MPI_COMM_WORLD", "MPI_COMM_SELF", "a communicator")
# In these collectives every rank needs data of every other, so that nobody leaves before the last
# one arrives.
ALL_MEET = ("barrier", "allreduce", "allgather", "alltoall", "reduce_scatter")
FROM_ROOT, TO_ROOT = ("bcast", "scatter"), ("reduce", "gather")
LITTLE = 0.05  # share of the run time; if collectives take less, no change is worth it


# This is the least number of replays. Fewer would all be faster by chance in more than 3 of 100
# cases.
FEWEST = 5
CLEAR = 0.02  # share of the run time; a larger figure exceeds the variation between runs
GAIN, NO_GAIN, OPEN = "gain", "no gain", "open"
LEAST_WORTH = 0.005  # share of the run time; smaller gains are not proposed


@dataclass
class Advice:
    command: list[str]
    ranks: int
    reported: int  # number of ranks whose record was found
    hosts: int
    elapsed_us: float
    collective_share: float
    other_mpi_share: float
    mpi_error_us: float
    # Each entry has a name, the number of calls, and their time in us, of one rank.
    calls: list[tuple[str, float, float]]
    sites: list[Site]  # call sites, those with the longest time first
    finalized: bool
    # This is the part of the run time that guarding memory pages took, on the rank where it took
    # most.
    overhead: float
    clock_error_us: float
    windows_off: str
    has_lines: bool
    # The waits are sorted, with the longest first.
    message_waits: list[MessageWait] = field(default_factory=list)
    # These are pairs of sites whose calls could be in flight together.
    pairs: list[tuple[Site, Site]] = field(default_factory=list)
    timeline: Timeline = field(default_factory=lambda: Timeline([], {}, 0))
    with_weft: bool = False  # threads of Weft ran in the recorded job
    notes: list[str] = field(default_factory=list)
    inside: bool = False  # the command was started on each rank, behind the launcher
    mpi: str = ""  # path of the MPI library's file
    checks: Checks = field(default_factory=lambda: Checks(""))  # compiles the proposed fragments

    @property
    def free(self) -> Spread | None:
        """Returns the gain in us of the average rank with Weft and an unchanged program, as far as
        calls were replayed."""
        found = [(site.unchanged, len(site.members)) for site in self.sites if site.unchanged]
        if not found:
            return None
        low, middle, high = (
            sum(getattr(one, end) * ranks for one, ranks in found) / max(1, self.ranks)
            for end in ("low", "median", "high")
        )
        return Spread(low, middle, high, min(one.samples for one, _ in found))

    @property
    def free_us(self) -> float | None:
        return self.free.median if self.free else None

    @property
    def free_gain(self) -> str | None:
        """Returns whether the gain of the unchanged program exceeds the variation between runs:
        GAIN, NO_GAIN or OPEN. Returns None if nothing was replayed."""
        if not self.free:
            return None
        clear_us = CLEAR * self.elapsed_us
        if self.free.median <= clear_us:
            return NO_GAIN
        enough = self.free.samples >= FEWEST
        return GAIN if enough and self.free.low > clear_us else OPEN

    @property
    def best(self) -> list[Site]:
        """Returns the three sites whose change gains most, the most valuable first; fewer if the
        others gain too little."""
        least_us = LEAST_WORTH * self.elapsed_us
        worth = [site for site in self.sites if (site.gain_high_us or 0) > least_us]
        return sorted(worth, key=lambda site: -(site.gain_high_us or 0))[:3]


# Waiting and transfer ----------------------------------------------------------------------------


def meeting_time(kind: str, members: dict[int, dict], one: dict) -> int | None:
    """Returns the time in ns at which the last rank arrived that this rank must wait for; None if
    that is not known."""
    if kind.startswith(FROM_ROOT):
        root = members.get(one["root"])
        return root["arrived_ns"] if root else None
    last = max(member["arrived_ns"] for member in members.values())
    if kind.startswith(ALL_MEET) or (kind.startswith(TO_ROOT) and one["comm_rank"] == one["root"]):
        return last
    return None


def blocking_arrivals(stored: Stored) -> list[dict]:
    calls = {(site["rank"], site["site"]): site["call"] for site in stored["site"]}
    none = "MPI_I"  # in a damaged record a call may have no site; it then counts as non-blocking
    return [
        one
        for one in stored["arrival"]
        if not is_nonblocking(calls.get((one["rank"], one["site"]), none))
    ]


def waiting_shares(stored: Stored, group_of: dict) -> dict:
    """Returns for each group of sites the share of its time spent waiting for other ranks, and the
    number of arrivals from which it was computed."""
    sites = {(s["rank"], s["site"]): s for s in stored["site"]}
    calls: dict[tuple, dict[int, dict]] = defaultdict(dict)
    for one in blocking_arrivals(stored):
        calls[one["comm"], one["sequence"]][one["comm_rank"]] = one
    waited: dict = defaultdict(int)
    spent: dict = defaultdict(int)
    known: dict = defaultdict(int)
    for members in calls.values():
        first = next(iter(members.values()))
        site = sites.get((first["rank"], first["site"]))
        if site is None or len(members) < site["comm_size"]:
            continue
        for one in members.values():
            when = meeting_time(base_name(site["call"]), members, one)
            group = group_of.get((one["rank"], one["site"]))
            if when is None or group is None:
                continue
            inside = one["left_ns"] - one["arrived_ns"]
            waited[group] += min(max(0, when - one["arrived_ns"]), inside)
            spent[group] += inside
            known[group] += 1
    return {group: (waited[group] / max(1, spent[group]), known[group]) for group in known}


# Waits for messages ------------------------------------------------------------------------------

# All calls that have no site of their own count to this site (src/advise/record.h).
OTHERS = ":0:"


def binding_of(row: dict) -> str:
    place = row["place"]
    if place and not place.startswith(OTHERS):
        return "python"
    return BINDINGS[row["binding"] % len(BINDINGS)]


def message_waits_of(stored: Stored, elapsed_us: float) -> list[MessageWait]:
    """Returns the waits for messages by source line. Several addresses of one line are added up,
    since a compiler may repeat the line's code."""
    frames = frames_by_place(stored)
    sources = sources_of(stored)
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for row in stored["message_wait"]:
        place = row["module"], row["offset"]
        here = of_interpreter(row["place"]) if row["place"] else frames.get(place)
        groups[tuple(here or unresolved(*place)), row["call"]].append(row)
    ranks = max(1, len(stored["rank"]))
    found = []
    for (here, call), rows in groups.items():
        names = ("waits", "messages", "bytes", "between_ns", "waited_ns", "tests")
        total = {name: sum(row[name] for row in rows) for name in names}
        waits, messages = max(1, total["waits"]), max(1, total["messages"])
        found.append(
            MessageWait(
                frames=list(here),
                call=call,
                source=sources.get((here[0].file, here[0].line), ""),
                binding=binding_of(rows[0]),
                waits=total["waits"] / ranks,
                messages=total["messages"] / ranks,
                bytes=total["bytes"] / messages,
                between_us=total["between_ns"] / 1e3 / waits,
                waited_us=total["waited_ns"] / 1e3 / waits,
                tests=total["tests"] / messages,
                share=total["waited_ns"] / 1e3 / ranks / elapsed_us if elapsed_us else 0,
            )
        )
    return sorted(found, key=lambda one: -one.share)


# The gain ----------------------------------------------------------------------------------------


def processor_us(stored: Stored, bytes_of_call: float) -> float:
    """Returns the time in us that copying a call's data in and out takes from the computing
    cores."""
    rates = [rank["copy_bytes_per_ms"] for rank in stored["rank"] if rank["copy_bytes_per_ms"]]
    return 2 * bytes_of_call / median(rates) * 1e3 if rates else 0


def why_no_gain(site: Site, stored: Stored) -> str:
    """Returns why overlap at this site gains nothing; an empty string if nothing prevents a
    gain."""
    if is_nonblocking(site.call):
        return "it is non-blocking already"
    if not site.after.least:
        return site.why_unknown("after")
    if site.transfer_us is None:
        return "how long the ranks wait for each other is not known"
    if not earliest_us(site) and (why := why_at_once(site, stored)):
        return why
    if site.nodes <= 1 and not free_core(stored):
        return "all cores of the node compute, and the data are moved by the same cores"
    return ""


AT_ONCE = "the result is used at once"
WRITTEN_AT_ONCE = "what it sends is written again at once"


def why_at_once(site: Site, stored: Stored) -> str:
    """Returns why the wait could not come later than the call; an empty string if it could."""
    shortest = observing_us(stored)
    if site.after.is_none(shortest):
        return AT_ONCE
    written = site.unwritten_us is not None and site.unwritten_us <= shortest
    return WRITTEN_AT_ONCE if written else ""


def observing_us(stored: Stored) -> float:
    """Returns the shortest idle time of a buffer, in us, that differs from none: the cost of
    observing one, on the rank where it is highest."""
    return max((rank["observing_ns"] for rank in stored["rank"]), default=0) / 1e3


def free_core(stored: Stored) -> bool:
    """Returns whether every node has an unused core. The number of a rank's threads is that at its
    end."""
    missing: dict[str, int] = defaultdict(int)  # busy cores beyond one for each rank, by node
    for rank in stored["rank"]:
        missing[rank["host"]] += max(1, rank["threads"]) - 1
    return all(
        rank["cores"] > rank["node_ranks"] + missing[rank["host"]] for rank in stored["rank"]
    )


def set_upper_gain(site: Site, stored: Stored) -> None:
    """Sets the site's greatest possible gain, in microseconds of one rank over the run, or the
    reason why there is none."""
    site.why_no_gain = why_no_gain(site, stored)
    transfer = site.transfer_us
    if is_nonblocking(site.call) or not site.after.least or transfer is None:
        return
    site.gain_high_us = 0.0
    if site.why_no_gain:
        return
    cost = 0.0 if free_core(stored) else processor_us(stored, site.bytes)
    at_once = why_at_once(site, stored)

    def hidden(earlier_us: float) -> float:
        known = (window for window in site.after.most if window is not None)
        afters = (0.0 if at_once else site.can_run_us(window) for window in known)
        windows = (window + earlier_us for window in afters)
        return site.calls * fmean(max(0.0, min(window, transfer) - cost) for window in windows)

    here, earlier = hidden(0), hidden(earliest_us(site))
    site.earlier_us = earlier - here if earlier - here > EARLIER * here else 0.0
    site.gain_high_us = here + site.earlier_us
    site.why_no_gain = "" if site.gain_high_us > 0 else at_once or AT_ONCE


# This is a share of the gain at the call's present place. A smaller additional gain is no reason to
# move the call.
EARLIER = 0.1


def earliest_us(site: Site) -> float:
    """Returns by how many us the call could be started earlier, at most. Returns 0 if that is not
    known, or if the sent data is not written between two calls."""
    bounds = site.before.bounds
    return bounds[1] if bounds and bounds[0] > 0 and bounds[1] is not None else 0.0


def windows_known(rows: list[dict], measured: int, broken_off: int) -> Windows:
    """Returns the measured idle times. Returns none if most observations broke off, since the
    others are no fair sample."""
    if broken_off > measured:
        return Windows()
    most = [None if row["most_ns"] == NO_END else row["most_ns"] / 1e3 for row in rows]
    return Windows([row["least_ns"] / 1e3 for row in rows], most)


def observations(side: str, members: list[dict], unknown: dict) -> tuple[int, int]:
    """Returns how many idle times were measured, and how many observations broke off."""
    measured, broken_off = (sum(row[name] for row in members) for name in (side, f"{side}_broken"))
    if broken_off < 0:  # the record's version did not count observations that broke off
        broken_off = sum(unknown[side].get(why, 0) for why in BROKEN_OFF)
    return measured, broken_off


def windows_of(side: str, members: list[dict], rows: list[dict], unknown: dict) -> Windows:
    measured, broken_off = observations(side, members, unknown)
    return windows_known([row for row in rows if row["side"] == side], measured, broken_off)


Place = tuple[str, int]


def of_program(frames: list[Frame], site: Frame) -> Frame:
    """Returns the innermost frame whose file is in the same folder as the site's file, which
    excludes headers of libraries. Returns the innermost of all if there is none."""
    beside = [one for one in frames if Path(one.file).parent == Path(site.file).parent]
    return beside[0] if site.file and beside else frames[0]


def touchers(
    side: str, members: list[dict], rows: list[dict], named: Callable[[str, int], Toucher]
) -> list[Toucher]:
    """Returns the instructions that ended or began idle times, the most frequent first.
    Instructions of one source line are counted together."""
    measured = sum(row[side] for row in members)
    count: dict[Toucher, int] = defaultdict(int)
    for row in rows:
        if row["side"] == side:
            count[named(row["module"], row["offset"])] += row["count"]
    found = [replace(one, windows=min(n, measured), of=measured) for one, n in count.items()]
    return sorted(found, key=lambda one: -one.windows)


def unwritten_us(events: list[dict]) -> float | None:
    """Returns the shortest time in us from a call to the first write of its send buffer; None if
    none was seen."""
    spans = (row["ended_ns"] - row["began_ns"] for row in events if row["what"] == SENT)
    return min((span / 1e3 for span in spans), default=None)


def unknown_of(rows: list[dict]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {"after": defaultdict(int), "before": defaultdict(int)}
    for row in rows:
        why = UNKNOWNS[row["why"]] if row["why"] < len(UNKNOWNS) else "?"
        if row["side"] in found:
            found[row["side"]][why] += row["count"]
    return found


# Sites -------------------------------------------------------------------------------------------


def frames_by_place(stored: Stored) -> dict[tuple[str, int], list[Frame]]:
    found: dict[tuple[str, int], list[Frame]] = defaultdict(list)
    for row in sorted(stored["frame"], key=lambda row: row["depth"]):
        found[row["module"], row["offset"]].append(Frame(row["function"], row["file"], row["line"]))
    return found


def sources_of(stored: Stored) -> dict[tuple[str, int], str]:
    return {(row["file"], row["line"]): row["text"] for row in stored["source"]}


def whole_call(sources: dict[tuple[str, int], str], frame: Frame, binding: str) -> str:
    """Returns the source line of a call together with the lines that continue it."""
    lines = (sources.get((frame.file, frame.line + i), "") for i in range(MOST_LINES))
    return "\n".join(statement(lines, language_of(frame.file, binding)))


def gathered(rows: Iterable[dict], group_of: dict) -> dict:
    found = defaultdict(list)
    for row in rows:
        if (row["rank"], row["site"]) in group_of:
            found[group_of[row["rank"], row["site"]]].append(row)
    return found


def sites_of(stored: Stored, elapsed_us: float) -> list[Site]:
    ways = ways_of(stored)
    members_ = [(row["rank"], row["site"]) for row in stored["site"]]
    keys = [group_key(row, ways[one]) for one, row in zip(members_, stored["site"])]
    group_of = dict(zip(members_, keys))
    rows = gathered(stored["site"], group_of)
    windows = gathered(stored["time_window"], group_of)
    unknowns = gathered(stored["unknown"], group_of)
    touched = gathered(stored["touch"], group_of)
    replays = gathered(stored["replay"], group_of)
    events = gathered(stored["event"], group_of)
    frames = frames_by_place(stored)
    sources = sources_of(stored)
    waiting = waiting_shares(stored, group_of)
    found = []
    for group, members in rows.items():
        first = members[0]
        total = {
            name: sum(row[name] for row in members)
            for name in ("calls", "bytes", "ns", "completed", "between_ns", "waited_ns", "tests")
        }
        done = total["completed"]
        place = (first["module"], first["offset"])
        share, arrivals = waiting.get(group, (None, 0))
        time_us = (total["ns"] + total["waited_ns"]) / 1e3 / len(members)
        unknown = unknown_of(unknowns.get(group, []))
        if not stored.is_whole("time_window"):
            for whys in unknown.values():
                whys["the windows of this record cannot be read"] += 0
        here = of_interpreter(first["place"]) if first["place"] else frames.get(place)
        here = here or unresolved(*place)
        # The memory accesses of an interpreted program come from addresses in the interpreter, and
        # say nothing about its source.
        touches = [] if binding_of(first) == "python" else touched.get(group, [])

        def toucher(module: str, offset: int, site: Frame = here[0]) -> Toucher:
            place = module, offset
            frame = of_program(frames.get(place) or unresolved(*place), site)
            return Toucher(frame, sources.get((frame.file, frame.line), ""))

        site = Site(
            frames=here,
            call=first["call"],
            communicator=COMMUNICATORS[min(2, first["comm_kind"])],
            comm_size=first["comm_size"],
            nodes=first["comm_nodes"],
            bytes=total["bytes"] / max(1, total["calls"]),
            calls=max(row["calls"] for row in members),
            all_calls=total["calls"],
            watched=sum(observations("after", members, unknown)),
            time_us=time_us,
            share=time_us / elapsed_us if elapsed_us else 0,
            waiting=share,
            arrivals=arrivals,
            after=windows_of("after", members, windows.get(group, []), unknown),
            before=windows_of("before", members, windows.get(group, []), unknown),
            users=touchers("after", members, touches, toucher),
            writers=touchers("before", members, touches, toucher),
            unwritten_us=unwritten_us(events.get(group, [])),
            binding=binding_of(first),
            own=bool(first["own"]),
            outer=outer_of(ways[first["rank"], first["site"]], frames),
            unknown=unknown,
            gain_high_us=None,
            why_no_gain="",
            between_us=total["between_ns"] / 1e3 / done if done else None,
            waited_us=total["waited_ns"] / 1e3 / done if done else None,
            tests=total["tests"] / done if done else 0,
            # The first call of a site has no predecessor whose arguments it could repeat.
            repeated=sum(row["repeated"] for row in members)
            / max(1, total["calls"] - len(members)),
            members={(row["rank"], row["site"]) for row in members},
            source=sources.get((here[0].file, here[0].line), ""),
            statement=whole_call(sources, here[0], binding_of(first)),
            op=OPERATORS[min(first.get("op", 0), len(OPERATORS) - 1)],
        )
        set_upper_gain(site, stored)
        won: dict[str, list[float]] = defaultdict(list)
        for row in replays.get(group, []):
            won[row["form"]].append(row["us"])
        site.add_replay(won)
        found.append(site)
    tell_apart(found)
    return sorted(found, key=lambda site: -site.time_us)


def calls_of(stored: Stored) -> list[tuple[str, float, float]]:
    count: dict[str, float] = defaultdict(float)
    time: dict[str, float] = defaultdict(float)
    ranks = max(1, len(stored["rank"]))
    for row in stored["call"]:
        count[row["name"]] += row["calls"] / ranks
        time[row["name"]] += row["ns"] / 1e3 / ranks
    return sorted(((n, count[n], time[n]) for n in count), key=lambda one: -one[2])


def without_lines(stored: Stored, advice: Advice) -> str:
    """Returns why calls have no line numbers; an empty string if some have, or if the reason is
    unknown."""
    if not stored.is_whole("frame"):
        return ""
    if stored.about.get("addr2line", "") is None and any(not site.place for site in advice.sites):
        return f"{NO_TOOL} Then run it again."
    if advice.has_lines or not advice.sites:
        return ""
    return "There are no line numbers: compile with -g to get them."


def notes_of(stored: Stored, advice: Advice) -> list[str]:
    notes = []
    if stored.other_version:
        notes.append(
            f"This record has schema {stored.other_version}, this Weft writes {SCHEMA}:"
            " what the two have in common is shown."
        )
    if not advice.finalized:
        notes.append(
            "The program did not come to MPI_Finalize: this is what"
            f" {advice.reported} of {advice.ranks} ranks had recorded until then."
        )
    if stored.unread:
        notes.append(
            "Of this record, these parts cannot be read: " + ", ".join(stored.unread) + "."
        )
    if note := without_lines(stored, advice):
        notes.append(note)
    if advice.windows_off:
        notes.append(f"No windows: {advice.windows_off}.")
    return notes


def names_of(sites: list[Site]) -> Callable[[int, int], str]:
    """Returns the function that names a call on the timeline, by its rank and the number of its
    site."""
    names = {}
    for site in sites:
        frame = site.frames[0]
        place = f" {Path(frame.file).name}:{frame.line}" if frame.file else ""
        for member in site.members:
            names[member] = f"{site.call}, {frame.name}{place}"
    return lambda rank, number: names.get((rank, number), "?")


def analyse(stored: Stored) -> Advice:
    ranks = stored["rank"]
    elapsed_us = fmean(rank["elapsed_ns"] for rank in ranks) / 1e3 if ranks else 0
    sites = sites_of(stored, elapsed_us)
    with_weft = bool(stored["thread_span"])
    for site in sites:
        site.with_weft = with_weft
    calls = calls_of(stored)
    in_mpi = fmean(rank["mpi_ns"] for rank in ranks) / 1e3 if ranks else 0
    variance = sum(row["variance_ns2"] for row in stored["call"])
    # A wait for several requests counts for the site of each request. Not every rank has every
    # site.
    in_sites = sum(site.time_us * len(site.members) for site in sites) / max(1, len(ranks))
    in_collectives = min(in_mpi, in_sites)
    off = {rank["windows_off"] for rank in ranks} - {0}
    advice = Advice(
        command=stored.about.get("command", []),
        inside=bool(stored.about.get("inside")),
        ranks=max((rank["ranks"] or len(ranks) for rank in ranks), default=0),
        reported=len(ranks),
        hosts=len({rank["host"] for rank in ranks}),
        mpi=", ".join(dict.fromkeys(Path(rank["library"]).name for rank in ranks)),
        elapsed_us=elapsed_us,
        collective_share=in_collectives / elapsed_us if elapsed_us else 0,
        other_mpi_share=max(0, in_mpi - in_collectives) / elapsed_us if elapsed_us else 0,
        # The error is two standard errors of the mean over the ranks. It is needed because short
        # calls are timed by sampling.
        mpi_error_us=2 * variance**0.5 / 1e3 / len(ranks) if ranks else 0,
        calls=calls,
        sites=sites,
        finalized=bool(ranks) and all(rank["finalized"] for rank in ranks),
        overhead=max(
            (r["guarding_ns"] / r["elapsed_ns"] for r in ranks if r["elapsed_ns"]), default=0
        ),
        clock_error_us=max((rank["clock_error_ns"] for rank in ranks), default=0) / 1e3,
        windows_off=UNKNOWNS[min(off.pop(), len(UNKNOWNS) - 1)] if off else "",
        has_lines=any(site.place for site in sites),
        message_waits=message_waits_of(stored, elapsed_us),
        pairs=independent(stored, sites),
        timeline=timeline(stored, names_of(sites)),
        with_weft=with_weft,
        checks=Checks(next((rank["library"] for rank in ranks), "")),
    )
    advice.notes = notes_of(stored, advice)
    return advice
