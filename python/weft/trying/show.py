"""Prints the output of `weft try` in the terminal."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from statistics import median
from typing import Optional

from rich.console import Console
from rich.table import Table

from weft.measurements import statistics
from weft.measurements.statistics import FASTER, SAME, SLOWER
from weft.system import linked, mpi_libraries
from weft.terminal.messages import typed
from weft.trying import MOST_ROUNDS
from weft.trying.rounds import PLACE, SHORT_S, UNDECIDED, Trial, Way, with_weft

WORDS = {
    FASTER: "faster",
    SAME: "no difference",
    SLOWER: "slower",
    UNDECIDED: "cannot tell",
}
SCATTERED = 1.1  # ratio of one way's times from which the machine counts as busy
NOT_LOADED = re.compile("cannot open shared object file|cannot load MPI library")
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
            cells += ["" if trial.too_short else interval, judgement(trial, way)]
        shown.add_row(*cells)
    return shown


def judgement(trial: Trial, way: Way) -> str:
    if trial.too_short:
        return "too short"
    if way.did_nothing:
        return "nothing done"
    verdict = trial.verdict(way)
    few = verdict == UNDECIDED and trial.rounds < trial.fewest
    return f"too few rounds ({trial.fewest} needed)" if few else WORDS[verdict]


def first_of_all(trial: Trial) -> str:
    """Returns a sentence about what makes the times less meaningful; an empty string if there is
    nothing."""
    idle = [way for way in trial.ways[1:] if way.did_nothing]
    if not trial.by_summary:
        return NO_SUMMARY[0].upper() + NO_SUMMARY[1:] + "."
    if not idle:
        return ""
    alone = len(idle) == len(trial.ways) - 1
    where = "" if alone else f" under {' and '.join(way.title for way in idle)}"
    return f"Weft carried out nothing of this program{where}: a difference there is not Weft's."


def what_next(trial: Trial, command: Sequence[str], json_file: Optional[Path] = None) -> list[str]:
    """Returns the sentences below the table, about what to do next."""
    if trial.too_short:
        return [f"The program runs for less than {SHORT_S:g} s; give it more steps."]
    working = [way for way in trial.ways[1:] if not way.did_nothing]
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
        return [why_undecided(trial, longer(trial, command, json_file))]
    program = typed(word for word in command if word != PLACE)
    return [f"Which calls would gain if the program were changed: weft advise -- {program}"]


def why_undecided(trial: Trial, measuring_longer: str) -> str:
    begun = "1 round is" if trial.rounds == 1 else f"{trial.rounds} rounds are"
    if trial.rounds < trial.fewest:
        took = time_in_words(trial.fewest * median(trial.took_s))
        why = f"{begun} too few: {trial.fewest} are needed, about {took}"
        return f"{why}. To measure longer: {measuring_longer}"
    times = trial.seconds(trial.ways[0])
    least, most = min(times), max(times)
    why, more = f"{begun} not enough to tell", "To measure longer"
    if most > SCATTERED * least:
        why += f": {trial.ways[0].name} alone varied from {least:.3g} to {seconds(most)}"
        more = "Try when the machine is quieter, or measure longer"
    if trial.rounds >= MOST_ROUNDS:
        return f"{why}, and more cannot be measured."
    return f"{why}. {more}: {measuring_longer}"


def longer(trial: Trial, command: Sequence[str], json_file: Optional[Path]) -> str:
    """Returns the command as it was given, with more rounds and more time."""
    most = min(MOST_ROUNDS, 2 * max(trial.most, trial.fewest))
    needed = Trial(trial.ways, most).fewest + 2  # adds the first run, and a round that takes longer
    minutes = ceil(max(2 * trial.budget_s, needed * median(trial.took_s)) / 60)
    ways = [shlex.join(way.options) for way in trial.ways[1:]]
    words = ["weft", "try"]
    for way in ways if ways != [""] else []:
        words += ["--with", way]
    words += ["--runs", str(most), "--time-budget", f"{minutes}min"]
    if json_file:
        words += ["--json", str(json_file)]
    return typed([*words, "--", *command])


def time_in_words(value: float) -> str:
    """Returns the time rounded up to ten seconds, such as 40 s or 2 min 30 s."""
    minutes, rest = divmod(10 * ceil(value / 10), 60)
    words = [f"{minutes} min"] * (minutes > 0) + [f"{rest} s"] * (rest > 0)
    return " ".join(words)


def choice(trial: Trial, ways: Sequence[Way]) -> Way:
    """Returns the simplest of the ways that are as fast as the fastest one within the intervals.

    A way with fewer options is simpler. A way that is faster than the program without Weft is
    preferred to those that are not."""
    gains = {way.name: trial.gain(way) for way in ways}
    ahead = [way for way in ways if trial.verdict(way) == FASTER] or ways
    most = max(ahead, key=lambda way: gains[way.name].median)
    equal = [way for way in ahead if gains[way.name].high >= gains[most.name].low]
    return min(equal, key=lambda way: len(way.options))


def kept(way: Way, command: Sequence[str], *more: str) -> str:
    return typed(with_weft(command, ["weft", "run", *way.options, *more, "--"]))


def one_rank(command: Sequence[str]) -> str:
    return (
        f"1 rank: did you forget mpiexec -n 4? Weft has nothing to do in one rank;"
        f" try: weft try -- mpiexec -n 4 {typed(command)}"
    )


def libraries_not_found(command: Sequence[str], said: str) -> list[str]:
    """Returns advice about libraries that the loader does not find, for a program that opens its
    MPI library itself, such as mpi4py. `said`: the program's output."""
    if linked.linked(command) or not NOT_LOADED.search(said):
        return []
    launchers = [Path(found).absolute().parent for word in command if (found := shutil.which(word))]
    embedded = [mpi for mpi in mpi_libraries.found() if mpi.where == "embedded"]
    named = [mpi for mpi in embedded if mpi.mpiexec.parent in launchers]
    lines = {mpi.family: linked.path_for_loader(mpi) for mpi in named}
    return [
        f"the loader finds no {mpi_libraries.FAMILY_LIBRARY[family]}, which mpi4py needs;"
        f" try: {line}"
        for family, line in lines.items()
        if line
    ]


def result(
    trial: Trial, command: Sequence[str], console: Console, json_file: Optional[Path] = None
) -> None:
    whole = "from MPI_Init to MPI_Finalize" if trial.by_summary else "of the whole command"
    if warning := first_of_all(trial):
        console.print(warning, markup=False, highlight=False, soft_wrap=True)
    rounds = "1 round" if trial.rounds == 1 else f"{trial.rounds} rounds"
    console.print(f"{rounds}, all ways in turn; seconds {whole}", markup=False, highlight=False)
    console.print(table(trial))
    for line in what_next(trial, command, json_file):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
