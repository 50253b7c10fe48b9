"""Prints the report in the terminal: the share in collectives, the best three changes, the
table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.advise import fragments
from weft.advise.analysis import GAIN, LEAST_WORTH, LITTLE, NO_GAIN, OPEN, Advice
from weft.advise.fragments import count, microseconds, size
from weft.advise.names import is_nonblocking
from weft.advise.places import Frame
from weft.advise.sites import MessageWait, Site, Spread, Windows
from weft.terminal.messages import typed

MOST_SITES, MOST_CHANGES = 12, 2
NO_SITES = "There is none: no rank called a collective."
NOTHING = "nothing to win by a change"
ONLY_A_RUN = "How much of that a change wins, only a run tells"
# These texts stand in place of an unknown idle time or waiting time, and of a missing gain.
UNKNOWN, NOT_NAMED = "unknown", "–"


def per_cent(share: float) -> str:
    return f"{share * 100:.1f} %"


def short_frame(frame: Frame) -> str:
    place = f"{Path(frame.file).name}:{frame.line}" if frame.file else ""
    return " ".join(filter(None, (frame.name, place)))


def short_place(site: Site | MessageWait) -> str:
    """Returns the file and line of a call. The callers are added if other calls are made at the
    same place, or if it lies in a library."""
    callers = site.callers if isinstance(site, Site) else []
    return " from ".join(map(short_frame, (site.frames[0], *callers)))


def headline(advice: Advice) -> str:
    waited = sum(wait.share for wait in advice.message_waits)
    messages = f"{per_cent(waited)} waits for messages" if waited >= LITTLE else ""
    if not advice.sites:
        none = "The program called no collective"
        if not messages:
            return f"{none}: there is nothing to advise on."
        return f"{none}; {messages}."
    where = f"{per_cent(advice.collective_share)} of the run time is in collectives"
    if advice.collective_share < LITTLE and messages:
        return f"{where}; {messages}."
    if advice.collective_share < LITTLE:
        return f"{where}: little to win, whatever is changed."
    error = advice.mpi_error_us / advice.elapsed_us if advice.elapsed_us else 0
    about = f" (± {per_cent(error)})" if error > 0.001 else ""
    return f"{where}, {per_cent(advice.other_mpi_share)}{about} in other MPI calls."


MAINLY = 0.8  # share of the time in collectives; a single one with more is named
NO_FREE_GAIN = "without a change, replayed calls show no clear gain"


def where_the_time_is(advice: Advice) -> str:
    """Returns a clause such as "88 % of the time is in MPI_Allreduce"."""
    us: dict[str, float] = {}
    for site in advice.sites:
        us[site.call] = us.get(site.call, 0) + site.time_us * len(site.members)
    name, most = max(us.items(), key=lambda one: one[1])
    what = name if most >= MAINLY * sum(us.values()) else "collectives"
    return f"{advice.collective_share * 100:.0f} % of the time is in {what}"


def try_it(advice: Advice) -> str:
    return f"weft try -- {launched(advice)}"


def launched(advice: Advice) -> str:
    """Returns the command that runs the job, for the user to type. A rank that was recorded behind
    its launcher does not know it; mpiexec is assumed."""
    launcher = ["mpiexec", "-n", str(advice.ranks)] if advice.inside else []
    return typed([*launcher, *advice.command])


def faster(advice: Advice, won_us: float) -> str:
    times = advice.elapsed_us / max(1.0, advice.elapsed_us - won_us)
    return f"{times:.{2 if times < 2 else 1}f} times as fast"


def verdict(advice: Advice) -> str:
    """Returns the first line of the report, with the gain that costs least effort first."""
    if advice.collective_share < LITTLE or not advice.sites:
        return headline(advice)
    where, free = where_the_time_is(advice), advice.free
    change = (
        f"a change of the program wins {in_short(advice.best[0], advice)}" if advice.best else ""
    )
    if advice.with_weft:
        return f"{where}, with Weft; {change or 'no change is known to win more'}."
    if free is None:
        return f"{where}; Weft may shorten it without a change: {try_it(advice)}"
    if advice.free_gain == GAIN:
        return (
            f"{where}; with Weft, and without a change, the run is {faster(advice, free.median)} by"
            f" a replay of its calls: {try_it(advice)}"
        )
    if advice.free_gain == OPEN:
        most = per_cent(free.high / advice.elapsed_us)
        return (
            f"{where}; Weft may shorten it without a change, by at most {most} of the run, which"
            f" replays on this machine leave open: {try_it(advice)}"
        )
    if change:
        return f"{where}; {change}; {NO_FREE_GAIN}."
    return f"{where}; nothing is known to win: {why_nothing(advice)}."


def why_nothing(advice: Advice) -> str:
    whys = [site.why_no_gain for site in advice.sites if site.why_no_gain]
    return ", and ".join([NO_FREE_GAIN, *whys[:1]])


def worth(site: Site, advice: Advice) -> str:
    """Returns the interval of the gain as text, and the part of it that needs an earlier start."""
    if not site.earlier_us:
        return interval(site, advice)
    return f"{interval(site, advice)}; {microseconds(site.earlier_us)} of it by starting earlier"


def in_short(site: Site, advice: Advice) -> str:
    """Returns the gain of a change as short text for the list of changes."""
    high, low = site.gain_high_us or 0, site.gain_low_us
    part = per_cent(high / advice.elapsed_us)
    if low is None:
        return f"at most {part} of the run ({microseconds(high)})"
    return f"{per_cent(low / advice.elapsed_us)} to {part} of the run ({between(low, high)})"


def called(site: Site) -> str:
    """Returns the call in one line as the program writes it; an empty string if it is not known."""
    return " ".join((site.statement or site.source).split())


def interval(site: Site, advice: Advice) -> str:
    gain = site.gain_high_us or 0
    if site.changed and site.gain_low_us is not None:
        seen, low = site.changed, site.gain_low_us
        return (
            f"{microseconds(low)} to {microseconds(gain)} of each rank's"
            f" {microseconds(advice.elapsed_us)} ({per_cent(low / advice.elapsed_us)} to"
            f" {per_cent(gain / advice.elapsed_us)}); {seen.samples} replays say"
            f" {signed(seen.median)}, with a certainty of 95 % {signed(seen.low)} to"
            f" {signed(seen.high)}"
        )
    return (
        f"at most {microseconds(gain)} of each rank's {microseconds(advice.elapsed_us)}"
        f" ({per_cent(gain / advice.elapsed_us)})"
    )


def verify_it(advice: Advice) -> str:
    """Returns the command that finds the lower ends of the gains; an empty string if they are
    known."""
    if not advice.best or any(site.changed for site in advice.best):
        return ""
    return f"weft advise --verify -- {launched(advice)}"


def signed(us: float) -> str:
    return f"{'−' if us < 0 else ''}{microseconds(abs(us))}"


def free(advice: Advice) -> str:
    """Returns a sentence about the gain by Weft without a change of the program."""
    if advice.free:
        return f"Without a change: {replayed(advice, advice.free)}."
    if advice.with_weft:
        return (
            "The program ran with Weft's engines: run it with --engine native to see what they win."
        )
    return (
        f"Without a change: run it with weft run; {may_win(advice)}. Not measured here: weft try"
        " does."
    )


IN_DOUBT = {NO_GAIN: "no clear gain; ", OPEN: "whether there is a gain is open; "}


def replayed(advice: Advice, free: Spread) -> str:
    """Returns a clause about the gain by Weft when the calls were replayed."""
    compared = "less" if free.median > 0 else "longer"
    part = (
        ""
        if advice.free_gain == NO_GAIN
        else f" ({per_cent(free.median / advice.elapsed_us)} of the run)"
    )
    took = f"replaying these calls, Weft took {microseconds(abs(free.median))} {compared}{part}"
    return f"{IN_DOUBT.get(advice.free_gain, '')}{took}"


def may_win(advice: Advice) -> str:
    if any(site.waited_us is not None for site in advice.sites):
        return "its non-blocking collectives get on while it computes"
    if any(site.nodes == 1 for site in advice.sites):
        return "blocking collectives inside a node may become shorter"
    return "it learns whether its algorithms make blocking collectives shorter"


def between(least_us: float, most_us: float) -> str:
    """Returns a range of times, such as "6.44–8.17 ms"."""
    least, most = microseconds(least_us), microseconds(most_us)
    if not least_us:
        return f"0–{most}"
    number, unit = least.split()
    return f"{number}–{most}" if unit == most.split()[1] else f"{least} – {most}"


def window(site: Site, side: str) -> str:
    """Returns the idle time of the buffer on one side of a call as text: bounds if it is not known
    precisely. `side` is "after" or "before"."""
    found: Windows = getattr(site, side)
    if found.bounds is None:
        return UNKNOWN
    least, most = found.bounds
    if found.exact_us is not None and least:
        return microseconds(found.exact_us)
    if most is None:
        return f"≥ {microseconds(least)}"
    return between(least, most) if least else f"≤ {microseconds(most)}"


def waiting(site: Site) -> str:
    return per_cent(site.waiting) if site.waiting is not None else UNKNOWN


def gain(site: Site) -> str:
    if site.gain_high_us is None:
        return NOT_NAMED
    if site.gain_high_us == 0:
        return "none"
    if site.gain_low_us is None:
        return f"≤ {microseconds(site.gain_high_us)}"
    return between(site.gain_low_us, site.gain_high_us)


def table(advice: Advice) -> Table:
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    shown.add_column("call site", overflow="fold", min_width=19)
    for name in ("time", "share", "waiting", "window\nbefore", "window\nafter", "gain"):
        shown.add_column(name, justify="right", no_wrap=True)
    for site in advice.sites[:MOST_SITES]:
        shown.add_row(
            f"{escape(site.call)}, {site.calls} × {size(site.bytes)}"
            f"\n[dim]{escape(short_place(site))}[/]",
            *(microseconds(site.time_us), per_cent(site.share)),
            *(waiting(site), window(site, "before"), window(site, "after"), gain(site)),
        )
    return shown


def why_unknown(site: Site, side: str) -> str:
    """Returns why the idle time on this side of the call is unknown; an empty string if it is
    known. For the side before the call, the text speaks of the send buffer."""
    if getattr(site, side).bounds or is_nonblocking(site.call):
        return ""
    why = site.why_unknown(side)
    if side == "after":
        return why
    for word, other in BEFORE_WORDS:
        why = why.replace(word, other)
    return why


# These words replace those about results in texts about send buffers.
BEFORE_WORDS = (
    ("this rank gets no result", "this rank sends nothing, or sends in place"),
    ("the result was not touched", "the same was not sent again"),
    ("how long its result is", "how much it sends"),
    ("the result", "what is sent"),
)


def reasons(advice: Advice) -> list[str]:
    """Returns each reason why a known idle time brings no gain, or why an idle time is unknown,
    once with its places."""
    found: dict[str, list[str]] = {}
    for site in advice.sites[:MOST_SITES]:
        for side in ("after", "before"):
            if why := why_unknown(site, side):
                found.setdefault(f"window {side} unknown: {why}", []).append(short_place(site))
        if site.gain_high_us == 0 and site.why_no_gain:
            found.setdefault(f"{NOTHING}: {site.why_no_gain}", []).append(short_place(site))
    said = {reason: list(dict.fromkeys(places))[:4] for reason, places in found.items()}
    first = sorted(said, key=lambda reason: not reason.startswith(NOTHING))
    return [f"{reason} ({', '.join(said[reason])})" for reason in first]


def remarks(site: Site) -> list[str]:
    """Returns the page's remarks about a site."""
    return [
        text
        for text in (
            f"no gain is named: {site.why_no_gain}." if site.why_no_gain else "",
            fragments.of_nonblocking(site),
        )
        if text
    ]


def with_arrays(advice: Advice) -> list[tuple[str, str]]:
    """Returns advice on calls that pickle objects, except those in the best changes."""
    said = [site.frames for site in advice.best]
    found = {
        f"In {short_place(site)}, {fragments.of_objects(name)}": fragments.with_arrays(name)
        for site in advice.sites[:MOST_SITES]
        if (name := site.object_method) and site.frames not in said and site.share > LEAST_WORTH
    }
    return list(found.items())[:MOST_CHANGES]


def code(advice: Advice, fragment: Callable[..., str], *sites: Site) -> str:
    """Returns the code for these sites; an empty string if a check has found a fault in it."""
    return fragment(*sites) if advice.checks.permit(fragment, *sites) else ""


def changes(advice: Advice) -> list[tuple[str, str]]:
    """Returns further changes and their code: concurrent calls, persistent calls, messages."""
    found = []
    for first, second in advice.pairs[:MOST_CHANGES]:
        if first is second:
            text = (
                f"Calls of {first.call} in {short_place(first)} come in a row and do not need each"
                " other: have all of them in flight."
            )
            found.append((text, code(advice, fragments.in_a_loop, first)))
            continue
        found.append(
            (
                f"{first.call} in {short_place(first)} and {second.call} in {short_place(second)}"
                " do not need each other: have both in flight.",
                code(advice, fragments.together, first, second),
            )
        )
    found += with_arrays(advice)
    repeated = [site for site in advice.sites[:MOST_SITES] if fragments.persistent(site)]
    for site in repeated[:MOST_CHANGES]:
        if plan := code(advice, fragments.planned, site):
            text = (
                f"{site.call} in {short_place(site)}, {per_cent(site.share)} of the run time,"
                f" always has the same arguments: {fragments.persistent(site)} (MPI 4) plans it"
                " once, as long as its buffers are there."
            )
            found.append((text, plan))
    for wait in [one for one in advice.message_waits if one.share > LITTLE][:MOST_CHANGES]:
        text, lines = fragments.of_messages(wait)
        found.append((f"In {short_place(wait)}, {text}", lines))
    return found


def show(advice: Advice, files: list[str]) -> None:
    console = Console(highlight=False)
    say = console.print
    say(f"[bold]{escape(verdict(advice))}[/]", soft_wrap=True)
    first = "" if verdict(advice) == headline(advice) else f"{headline(advice)} "
    say(
        f"{first}[dim]{count(advice.ranks, 'rank')} on {count(advice.hosts, 'node')},"
        f" {microseconds(advice.elapsed_us)} from MPI_Init to MPI_Finalize; observing took"
        f" {per_cent(advice.overhead)}[/]"
    )
    for note in advice.notes:
        say(f"[yellow]{escape(note)}[/]")
    titles = [
        f"[bold]{number}. {escape(site.call)} in {escape(short_place(site))}[/]"
        for number, site in enumerate(advice.best, 1)
    ]
    if len(titles) > 1:
        for title, site in zip(titles, advice.best):
            say(f"{title}: {in_short(site, advice)}")
    for title, site in zip(titles, advice.best):
        say(f"\n{title}: {escape(worth(site, advice))}")
        if called(site):
            say(f"   [dim]It says:[/] {escape(called(site))}")
        hints = (fragments.use(site), fragments.buffers(site), fragments.split(site))
        hints += (fragments.running(site),)
        say(f"   [dim]{escape(' '.join(filter(None, hints)))}[/]")
        for line in code(advice, fragments.fragment, site).splitlines():
            say(f"     {escape(line)}", soft_wrap=True)
    if command := verify_it(advice):
        say(f"\n{ONLY_A_RUN}: {escape(command)}", soft_wrap=True)
    if advice.sites:
        show_sites(advice, say)
    for text, lines in changes(advice):
        say(escape(text))
        for line in lines.splitlines():
            say(f"     {escape(line)}", soft_wrap=True)
    for file in files:
        say(f"[dim]{escape(file)}[/]", soft_wrap=True)


def show_sites(advice: Advice, say: Callable[..., None]) -> None:
    if not advice.best:
        say("No blocking collective is known to have room to run behind computation.")
    say(f"\n{free(advice)}\n")
    say(table(advice))
    for reason in reasons(advice):
        say(f"[dim]{escape(reason)}[/]")
    for site in advice.sites[:MOST_SITES]:
        if remark := fragments.of_nonblocking(site):
            say(f"{escape(site.call)} in {escape(short_place(site))}: {escape(remark)}")
