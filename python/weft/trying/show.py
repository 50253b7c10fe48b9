"""What `weft try` says at the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from weft.bench import statistics
from weft.bench.statistics import FASTER, SAME, SLOWER
from weft.trying.rounds import PLACE, UNDECIDED, Trial, Way, with_weft

WORDS = {
    FASTER: "faster",
    SAME: "no difference",
    SLOWER: "slower",
    UNDECIDED: "cannot tell",
}


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
            cells += [interval, WORDS[trial.verdict(way)]]
        shown.add_row(*cells)
    return shown


def what_next(trial: Trial, command: Sequence[str], out_of_time: bool) -> list[str]:
    """The sentences below the table."""
    best = max(trial.ways[1:], key=lambda way: trial.gain(way).median)
    verdict = trial.verdict(best)
    program = shlex.join(word for word in command if word != PLACE)
    if verdict == FASTER:
        return [f"Keep it: {kept(best, command)}"]
    if verdict == UNDECIDED:
        more = "--time-budget 20min" if out_of_time else f"--runs {2 * max(6, trial.rounds)}"
        begun = "1 round is" if trial.rounds == 1 else f"{trial.rounds} rounds are"
        return [f"{begun} not enough to tell. To measure longer: weft try {more} -- {program}"]
    if best.handled is None:
        return [
            "Its last run has left no summary: either the program does not call MPI_Finalize, or"
            f" its first rank is on another machine. To see one: {kept(best, command, '--summary')}"
        ]
    if best.handled == 0:
        return [
            "Weft carried out none of its collectives. Why, says the summary:"
            f" {kept(best, command, '--summary')}"
        ]
    return [f"Which calls would gain if the program were changed: weft advise -- {program}"]


def kept(way: Way, command: Sequence[str], *more: str) -> str:
    return shlex.join(with_weft(command, ["weft", "run", *way.options, *more, "--"]))


def result(trial: Trial, command: Sequence[str], out_of_time: bool, console: Console) -> None:
    whole = "from MPI_Init to MPI_Finalize" if trial.by_summary else "of the whole command"
    rounds = "1 round" if trial.rounds == 1 else f"{trial.rounds} rounds"
    console.print(f"{rounds}, all ways in turn; seconds {whole}", markup=False, highlight=False)
    console.print(table(trial))
    for line in what_next(trial, command, out_of_time):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
