"""What the proposed changes win: stretches of the recorded calls again, as they were and with Weft,
on the same nodes, in jobs that take turns.

Why by the program's own launcher command: only that puts the ranks where they were. Why in jobs of
their own: with Weft loaded nothing is as it was.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from weft import installation
from weft.advise import launched
from weft.advise.analysis import Advice
from weft.advise.sites import FREE, WITH_CHANGE, Site, spread
from weft.advise.store import Stored
from weft.advise.stretches import Stretch, is_known, plan, stretches_of

ROUNDS, MOST_ROUNDS = 9, 25  # of both jobs; all of them where the figures are not narrow after 9
CHANGES = 3  # sites that are changed, each for itself
WIDTH_OF_HIGH, WIDTH_OF_RUN = 1 / 3, 0.02  # of a gain's two ends that are narrow: either
JOB_SECONDS = 600
LIBRARY, AUTO = "library", "auto"
FAMILIES = {"libmpi.so.12": "mpich", "libmpi.so.40": "openmpi"}
Times = dict[tuple[int, int], float]  # by stretch and form, microseconds of the last rank


def changed_sites(advice: Advice) -> list[Site]:
    """Those that may win most."""
    worth = [site for site in advice.sites if is_known(site) and (site.gain_high_us or 0) > 0]
    return sorted(worth, key=lambda site: -(site.gain_high_us or 0))[:CHANGES]


def read_times(path: Path) -> Times:
    """Of lines "stretch form microseconds"; a last one that was cut short is left out."""
    found: Times = {}
    for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
        if line.endswith("\n"):
            stretch, form, us = line.split()
            found[int(stretch), int(form)] = float(us)
    return found


def shares_of(stretch: Stretch) -> dict[int, float]:
    """By site (its id): its calls' part of the time of all the record's calls, of the rank that
    came last; of what is non-blocking, with its wait. Where ranks make a call at different sites,
    it is each one's, since each rank has that time at its own."""
    found: dict[int, float] = defaultdict(float)
    whole = 0.0
    for call in stretch.calls:
        shortest = min(row["left_ns"] - row["arrived_ns"] for row in call.rows.values())
        time_ns = shortest + (call.site.waited_us or 0.0) * 1e3
        whole += time_ns
        for key in {id(site) for site in call.sites.values()}:
            found[key] += time_ns
    return {key: time_ns / (whole or 1.0) for key, time_ns in found.items()}


def won(stretches: list[Stretch], changes: list[Site], library: Times, auto: Times) -> list[tuple]:
    """Rows of the table `replay`, of one round: microseconds of a site's call, over all stretches.
    What Weft wins of a stretch without a change belongs to its sites by the time of their calls."""
    wins: dict[tuple[int, str], float] = defaultdict(float)
    calls: dict[tuple[int, str], int] = defaultdict(int)
    sites: dict[int, Site] = {}

    def count(site: Site, what: str, us: float, stretch: Stretch) -> None:
        wins[id(site), what] += us
        calls[id(site), what] += stretch.calls_at(site)

    for number, stretch in enumerate(stretches):
        if (number, 0) not in library or (number, 0) not in auto:
            continue
        free = library[number, 0] - auto[number, 0]
        sites |= {id(one): one for call in stretch.calls for one in call.sites.values()}
        for key, share in shares_of(stretch).items():
            count(sites[key], FREE, free * share, stretch)
        for form, site in enumerate(changes, 1):
            if stretch.calls_at(site) and (number, form) in auto:
                count(site, WITH_CHANGE, auto[number, 0] - auto[number, form], stretch)
    return [
        (*min(sites[key].members), what, us / calls[key, what]) for (key, what), us in wins.items()
    ]


def is_narrow(rows: list[tuple], changes: list[Site], elapsed_us: float) -> bool:
    """Whether the two ends of each change's gain lie so close that more rounds tell little more."""
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


def run(command: list[str], mpi: str, stored: Stored, advice: Advice) -> list[tuple]:
    """The rows of the table `replay`; none, after saying why, where nothing could be replayed."""
    library = Path(next((row["library"] for row in stored["rank"]), ""))
    program = installation.mpi_program(FAMILIES.get(library.name, library.name), "replay")
    if not program.exists():
        print(f"weft advise: nothing was replayed: there is no {program}", file=sys.stderr)
        return []
    changes = changed_sites(advice)
    stretches = stretches_of(stored, advice.sites, changes)
    if not stretches:
        print("weft advise: nothing was replayed: no call has what it needs", file=sys.stderr)
        return []
    rows = []
    with tempfile.TemporaryDirectory(prefix="weft-replay-") as directory:
        path = Path(directory) / "plan"
        path.write_text(plan(stored, stretches, changes))
        options = ["--directory", directory, "--replay", str(program), "--plan", str(path)]
        options += ["--libraries", str(library.parent), *(["--mpi", mpi] if mpi else [])]
        for number in range(MOST_ROUNDS):
            if number == ROUNDS and is_narrow(rows, changes, advice.elapsed_us):
                break
            times: dict[str, Times] = {}
            for form in (LIBRARY, AUTO)[:: -1 if number % 2 else 1]:
                written = Path(f"{path}.times")
                written.unlink(missing_ok=True)
                job = launched.words([*options, "--form", form], command)
                # What launchers say of each job concerns nobody, unless it fails.
                try:
                    done = subprocess.run(
                        job, close_fds=False, stderr=subprocess.PIPE, text=True, timeout=JOB_SECONDS
                    )
                except subprocess.TimeoutExpired:
                    print(f"weft advise: a replay took over {JOB_SECONDS} s", file=sys.stderr)
                    return rows if number >= ROUNDS else []
                if done.returncode:
                    print(done.stderr, end="", file=sys.stderr)
                    print(f"weft advise: a replay ended with {done.returncode}", file=sys.stderr)
                    return rows if number >= ROUNDS else []
                times[form] = read_times(written)
            rows += won(stretches, changes, times[LIBRARY], times[AUTO])
    return rows
