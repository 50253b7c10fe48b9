"""What `weft try` says at the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from weft.measurements import statistics
from weft.measurements.statistics import FASTER, SAME, SLOWER
from weft.terminal.messages import typed
from weft.trying.rounds import PLACE, UNDECIDED, Trial, Way, with_weft

WORDS = {
    FASTER: "faster",
    SAME: "no difference",
    SLOWER: "slower",
    UNDECIDED: "cannot tell",
}
NO_SUMMARY = (
    "no MPI program has left a summary: either there is none in the command, or it does not call"
    " MPI_Finalize, or its first rank is on another machine; so times are of the whole command, and"
    " a difference need not be Weft's"
)


def seconds(value: float) -> str:
    return f"{value:.3g} s"


def progress(trial: Trial) -> str:
    times = ", ".join(f"{way.name} {seconds(trial.seconds(way)[-1])}" for way in trial.ways)
    return f"round {trial.rounds}: {times}"


def table(trial: Trial) -> Table:
    shown = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    shown.add_column("weft run …", overflow="fold")
    for name in ("seconds, median", "times as fast"):
        shown.add_column(name, no_wrap=True, justify="right")
    shown.add_column("", no_wrap=True)
    for way in trial.ways:
        time = statistics.of(trial.seconds(way))
        cells = [way.name, f"{time.median:.3g} ({time.low:.3g}–{time.high:.3g})"]
        if way is not trial.ways[0]:
            gain = trial.gain(way)
            interval = f"{gain.median:.2f} ({gain.low:.2f}–{gain.high:.2f})"
            cells += [interval, "nothing done" if way.did_nothing else WORDS[trial.verdict(way)]]
        shown.add_row(*cells)
    return shown


def first_of_all(trial: Trial) -> str:
    """What makes the times of less worth; "": nothing."""
    idle = [way for way in trial.ways[1:] if way.did_nothing]
    if not trial.by_summary:
        return NO_SUMMARY[0].upper() + NO_SUMMARY[1:] + "."
    if not idle:
        return ""
    alone = len(idle) == len(trial.ways) - 1
    where = "" if alone else f" under {' and '.join(way.title for way in idle)}"
    return f"Weft carried out nothing of this program{where}: a difference there is not Weft's."


def what_next(trial: Trial, command: Sequence[str], out_of_time: bool) -> list[str]:
    """The sentences below the table."""
    working = [way for way in trial.ways[1:] if not way.did_nothing]
    program = typed(word for word in command if word != PLACE)
    if not working:
        shown = kept(trial.ways[1], command, "--summary")
        return [f"Why it carried out nothing, says the summary: {shown}"]
    if not trial.by_summary:
        return [f"To see what Weft finds in it: {kept(working[0], command, '--verbose')}"]
    best = choice(trial, working)
    verdict = trial.verdict(best)
    if verdict == FASTER:
        return [f"Keep it: {kept(best, command)}"]
    if verdict == UNDECIDED:
        more = "--time-budget 20min" if out_of_time else f"--runs {2 * max(6, trial.rounds)}"
        begun = "1 round is" if trial.rounds == 1 else f"{trial.rounds} rounds are"
        return [f"{begun} not enough to tell. To measure longer: weft try {more} -- {program}"]
    return [f"Which calls would gain if the program were changed: weft advise -- {program}"]


def choice(trial: Trial, ways: Sequence[Way]) -> Way:
    """The simplest of those that are as fast as the fastest one within the intervals.

    The fewer options, the simpler; one that is faster than without goes before those that are not.
    """
    gains = {way.name: trial.gain(way) for way in ways}
    ahead = [way for way in ways if trial.verdict(way) == FASTER] or ways
    most = max(ahead, key=lambda way: gains[way.name].median)
    equal = [way for way in ahead if gains[way.name].high >= gains[most.name].low]
    return min(equal, key=lambda way: len(way.options))


def kept(way: Way, command: Sequence[str], *more: str) -> str:
    return typed(with_weft(command, ["weft", "run", *way.options, *more, "--"]))


def result(trial: Trial, command: Sequence[str], out_of_time: bool, console: Console) -> None:
    whole = "from MPI_Init to MPI_Finalize" if trial.by_summary else "of the whole command"
    if warning := first_of_all(trial):
        console.print(warning, markup=False, highlight=False, soft_wrap=True)
    rounds = "1 round" if trial.rounds == 1 else f"{trial.rounds} rounds"
    console.print(f"{rounds}, all ways in turn; seconds {whole}", markup=False, highlight=False)
    console.print(table(trial))
    for line in what_next(trial, command, out_of_time):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
