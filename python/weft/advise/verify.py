"""Measures the gain of the proposed changes by replaying stretches of the recorded calls.

Jobs without and with Weft alternate on the same nodes. They are started by the program's own
launcher command, since only that places the ranks as before. The jobs are separate, since Weft
changes a process as soon as it is loaded."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from weft.advise import launched
from weft.advise.analysis import Advice
from weft.advise.sites import FREE, WITH_CHANGE, Site, spread
from weft.advise.store import Stored
from weft.advise.stretches import (
    Call,
    Changed,
    Form,
    Stretch,
    evenly,
    is_known,
    plan,
    stretches_of,
)
from weft.system import building, installation

# Both jobs run this often; the larger number is used if the figures still vary much after 9 rounds.
ROUNDS, MOST_ROUNDS = 9, 25
CHANGES = 3  # greatest number of changed sites, each of which is measured by itself
# A gain's interval is narrow if its width is below one of these shares.
WIDTH_OF_HIGH, WIDTH_OF_RUN = 1 / 3, 0.02
JOB_SECONDS = 600
LIBRARY, AUTO = "library", "auto"
# MPICH's library has one of these names. The interface is the same.
STANDARD, DEBIANS = "libmpi.so.12", "libmpich.so.12"
FAMILIES = {STANDARD: "mpich", DEBIANS: "mpich", "libmpi.so.40": "openmpi"}
SAMPLE_ROUNDS, SAMPLE_STRETCHES = 6, 3
START_S = 1.0  # approximate time in seconds that a job needs to start
Times = dict[tuple[int, int], float]  # time in us of the last rank, by stretch and form
FIRST_RUN = -1  # in the place of a stretch: the first run of the first one, before all others


def changed_sites(advice: Advice) -> list[Site]:
    """Returns the sites whose change may gain most."""
    worth = [site for site in advice.sites if is_known(site) and (site.gain_high_us or 0) > 0]
    return sorted(worth, key=lambda site: -(site.gain_high_us or 0))[:CHANGES]


def read_times(path: Path) -> Times:
    """Reads lines "stretch form microseconds"; an incomplete last one is skipped."""
    found: Times = {}
    for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
        if line.endswith("\n"):
            stretch, form, us = line.split()
            found[int(stretch), int(form)] = float(us)
    return found


def transfers_of(stretch: Stretch) -> dict[int, float]:
    """Returns the transfer time of each site's calls in us, by the site's id.

    It is that of the rank that arrived last, so that it contains no waiting for others. For
    non-blocking calls it includes the wait. If ranks make a call at different sites, it counts at
    each of them."""
    found: dict[int, float] = defaultdict(float)
    for call in stretch.calls:
        for key in {id(site) for site in call.sites.values()}:
            found[key] += transfer_us(call)
    return found


def transfer_us(call: Call) -> float:
    shortest = min(row["left_ns"] - row["arrived_ns"] for row in call.rows.values())
    return shortest / 1e3 + (call.site.waited_us or 0.0)


def disturbed(stretch: Stretch, library_us: float) -> float:
    """Returns the factor for the gains of a stretch, at most 1. A replay that is disturbed takes
    longer than the recorded run, and would show a larger gain."""
    return min(1.0, stretch.recorded_ns / 1e3 / max(1.0, library_us))


def won(stretches: list[Stretch], changes: list[Site], library: Times, auto: Times) -> list[tuple]:
    """Returns rows of the table `replay` for one round: the gain of one call of each site in us,
    averaged over all stretches.

    Without a change Weft gains at most the time of a stretch's calls. The gain is divided among
    their sites in proportion to that time, since waiting for a late rank is the same with Weft."""
    wins: dict[tuple[int, str], float] = defaultdict(float)
    calls: dict[tuple[int, str], int] = defaultdict(int)
    sites: dict[int, Site] = {}

    def count(site: Site, what: str, us: float, stretch: Stretch) -> None:
        wins[id(site), what] += us
        calls[id(site), what] += stretch.calls_at(site)

    for number, stretch in enumerate(stretches):
        if (number, 0) not in library or (number, 0) not in auto:
            continue
        free = (library[number, 0] - auto[number, 0]) * disturbed(stretch, library[number, 0])
        whole = sum(map(transfer_us, stretch.calls))
        free = min(free, whole)
        sites |= {id(one): one for call in stretch.calls for one in call.sites.values()}
        for key, us in transfers_of(stretch).items():
            count(sites[key], FREE, free * us / (whole or 1.0), stretch)
        for form, site in enumerate(changes, 1):
            if stretch.calls_at(site) and (number, form) in auto:
                count(site, WITH_CHANGE, auto[number, 0] - auto[number, form], stretch)
    return [
        (*min(sites[key].members), what, us / calls[key, what]) for (key, what), us in wins.items()
    ]


def is_narrow(rows: list[tuple], changes: list[Site], elapsed_us: float) -> bool:
    """Returns whether the ends of each change's gain are so close that more rounds would tell
    little more."""
    for site in changes:
        key = min(site.members)
        samples = [us for *where, form, us in rows if (tuple(where), form) == (key, WITH_CHANGE)]
        if not samples:
            continue
        seen = spread(samples, site.calls)
        high = min(max(0.0, seen.high), site.gain_high_us or 0.0)
        width = high - max(0.0, seen.low)
        if width > max(WIDTH_OF_HIGH * high, WIDTH_OF_RUN * elapsed_us):
            return False
    return True


class NotReplayed(Exception):
    """Raised if nothing could be replayed, or only a part; the message says why."""


@dataclass
class Pace:
    """Tracks how long rounds take, and whether there is time for more."""

    budget_s: float
    most: int
    clock: Callable[[], float] = time.monotonic
    round_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began_s = self.clock()

    def has_time(self) -> bool:
        """Returns whether there is time for one more round. Two rounds are always run, since a
        single sample says nothing."""
        left_s = self.budget_s - (self.clock() - self.began_s)
        return len(self.round_s) < 2 or max(self.round_s) <= left_s

    def progress(self) -> str:
        """Returns a message about the round that begins and the time that remains."""
        number = len(self.round_s) + 1
        round_s = fmean(self.round_s)
        rounds = self.most - len(self.round_s)
        left_s = min(rounds * round_s, self.budget_s - (self.clock() - self.began_s))
        return f"round {number} of {self.most}, about {max(left_s, round_s):.0f} s left"


@dataclass
class Replay:
    """The alternating jobs that replay one plan."""

    command: list[str]
    options: list[str]
    times: Path  # file to which a job writes its times

    def once(self, form: str) -> Times:
        self.times.unlink(missing_ok=True)
        job = launched.words([*self.options, "--form", form], self.command)
        # The launcher's output is shown only if the job fails.
        try:
            done = subprocess.run(
                job, close_fds=False, stderr=subprocess.PIPE, text=True, timeout=JOB_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise NotReplayed(f"a replay took over {JOB_SECONDS} s") from None
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise NotReplayed(f"a replay ended with {done.returncode}")
        return read_times(self.times)


def libraries_of(library: Path, directory: Path) -> str:
    """Returns the directories in which the replay program finds this library under the name that it
    was built for."""
    if library.name == DEBIANS and not (library.parent / STANDARD).exists():
        (directory / STANDARD).symlink_to(library)
        return f"{directory}:{library.parent}"
    return str(library.parent)


def program_for(library: Path) -> Path:
    """Returns the replay program for this MPI library. Debian's MPICH has another name, but the
    interface of libmpi.so.12. Raises NotReplayed if the program is missing."""
    family = FAMILIES.get(library.name, library.name)
    program = installation.mpi_program(family, "replay")
    if not building.is_there(program):
        raise NotReplayed(f"there is no {program}")
    return program


def replay_of(command: list[str], mpi: str, library: Path, plan_file: Path) -> Replay:
    options = ["--directory", str(plan_file.parent), "--replay", str(program_for(library))]
    options += ["--plan", str(plan_file), "--libraries", libraries_of(library, plan_file.parent)]
    options += ["--mpi", mpi] if mpi else []
    return Replay(command, options, Path(f"{plan_file}.times"))


def rounds(
    command: list[str],
    mpi: str,
    stored: Stored,
    stretches: list[Stretch],
    forms: Sequence[Form],
    pace: Pace,
) -> Iterator[tuple[Times, Times]]:
    """Yields the times of the calls as they were, without Weft, and those of all forms with it."""
    library = Path(next((row["library"] for row in stored["rank"]), ""))
    with tempfile.TemporaryDirectory(prefix="weft-replay-") as directory:
        path = Path(directory) / "plan"
        path.write_text(plan(stored, stretches, forms))
        replay = replay_of(command, mpi, library, path)
        while len(pace.round_s) < pace.most and pace.has_time():
            began_s = pace.clock()
            order = (LIBRARY, AUTO)[:: -1 if len(pace.round_s) % 2 else 1]
            times = {way: replay.once(way) for way in order}
            pace.round_s.append(pace.clock() - began_s)
            yield times[LIBRARY], times[AUTO]


def run(
    command: list[str],
    mpi: str,
    stored: Stored,
    advice: Advice,
    budget_s: float,
    sample: bool = False,
) -> list[tuple]:
    """Returns the rows of the table `replay`. If nothing can be replayed, prints the reason and
    returns none.

    `sample`: measures only what Weft gains without a change, in a few short rounds and without
    messages."""
    rows: list[tuple] = []
    most, least = (SAMPLE_ROUNDS, SAMPLE_ROUNDS) if sample else (MOST_ROUNDS, ROUNDS)
    pace = Pace(budget_s, least)
    try:
        changes = [] if sample else changed_sites(advice)
        stretches = stretches_of(stored, advice.sites, changes)
        if not stretches:
            raise NotReplayed("no call has what it needs")
        if sample:
            stretches = evenly(stretches, SAMPLE_STRETCHES)
        else:
            print(f"weft advise: {announced(stretches, changes)}", file=sys.stderr, flush=True)
        forms = [[Changed(site)] for site in changes]
        for number, times in enumerate(rounds(command, mpi, stored, stretches, forms, pace), 1):
            rows += won(stretches, changes, *times)
            if number == least:
                if sample or is_narrow(rows, changes, advice.elapsed_us):
                    break
                pace.most = most
            if number < pace.most and pace.has_time() and not sample:
                print(f"weft advise: {pace.progress()}", file=sys.stderr, flush=True)
    except NotReplayed as why:
        if not sample:
            what = f"the replay ended early: {why}" if rows else f"nothing was replayed: {why}"
            print(f"weft advise: {what}", file=sys.stderr)
    return rows


def announced(stretches: list[Stretch], changes: list[Site]) -> str:
    once_s = sum(one.length_ns for one in stretches) / 1e9
    # Each form runs a stretch twice: the first run is not timed.
    about_s = ROUNDS * (2 * once_s * (2 + len(changes)) + 2 * START_S)
    return (
        f"replaying {len(stretches)} stretches of the recorded calls in {ROUNDS} rounds or more,"
        f" about {about_s:.0f} s (--time-budget shortens that)"
    )
