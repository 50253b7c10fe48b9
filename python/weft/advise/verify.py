"""What the proposed changes win: the recorded calls again, as they were and with Weft, on the same
nodes, in jobs that take turns.

Why by the program's own launcher command: only that puts the ranks where they were. Why in jobs of
their own: with Weft loaded nothing is as it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from weft import installation
from weft.advise.analysis import Advice
from weft.advise.sites import Site, base_name, is_nonblocking, is_vector
from weft.advise.store import Stored

SITES, ROUNDS, SAMPLES = 8, 3, 10  # samples: of one site and round
BUDGET_US = 3e5  # of one form of one site and round
# Of the collectives that the replay program knows: whether a call's bytes are blocks of all ranks;
# of those that are ROOTED they are at the root.
KNOWN = {"allreduce": False, "bcast": False, "reduce": False, "scan": False, "barrier": False}
KNOWN |= {"allgather": True, "alltoall": True, "reduce_scatter": True, "reduce_scatter_block": True}
ROOTED = ("gather", "scatter")
FAMILIES = {"libmpi.so.12": "mpich", "libmpi.so.40": "openmpi"}


def collective(site: Site) -> str:
    """As the replay program calls it: blocks of different lengths become equal ones."""
    name = base_name(site.call)
    return name[:-1] if is_vector(name) else name


def arrivals(stored: Stored, site: Site) -> list[dict]:
    return [one for one in stored["arrival"] if (one["rank"], one["site"]) in site.members]


def block_bytes(stored: Stored, site: Site) -> float:
    """Of what the call's count argument describes."""
    name = collective(site)
    at_root = any(one["comm_rank"] == one["root"] for one in arrivals(stored, site))
    of_all = at_root if name in ROOTED else KNOWN[name]
    return site.bytes / (site.comm_size if of_all else 1)


def lateness(stored: Stored, site: Site) -> list[list[float]]:
    """For each recorded call of a site that all its ranks kept, how much later than the first each
    rank of the job came, in microseconds; -1: no member."""
    ranks = max(row["ranks"] for row in stored["rank"])
    of_site = {(one["comm"], one["sequence"]) for one in arrivals(stored, site)}
    calls: dict[tuple, list[dict]] = defaultdict(list)
    # Of one call, ranks may be at different sites, such as a root that has the blocks of all.
    for one in stored["arrival"]:
        if (one["comm"], one["sequence"]) in of_site:
            calls[one["comm"], one["sequence"]].append(one)
    found = []
    whole = [call for call in calls.values() if len(call) == site.comm_size]
    group = {one["rank"] for one in whole[0]} if whole else set()
    for call in whole:
        if {one["rank"] for one in call} != group:
            continue
        first = min(one["arrived_ns"] for one in call)
        late = [-1.0] * ranks
        for one in call:
            late[one["rank"]] = (one["arrived_ns"] - first) / 1e3
        found.append(late)
    return found


def at_once(stored: Stored, site: Site) -> list[list[float]]:
    """Without recorded arrivals all ranks come at once, if they are all members."""
    ranks = max(row["ranks"] for row in stored["rank"])
    return [[0.0] * ranks] if site.comm_size == ranks else []


def proposed_windows(site: Site) -> list[float]:
    """Where the change starts the call earlier, by that much longer."""
    before = site.before.bounds
    earlier = before[0] if site.earlier_us and before else 0.0
    return [window + earlier for window in site.after.least] or [0.0]


def samples(stored: Stored, site: Site, number: int) -> list[str]:
    """Of this round: the window, and how late each rank comes."""
    late = lateness(stored, site)
    # Without arrivals nobody knows who was the root.
    if not late and collective(site) not in ROOTED:
        late = at_once(stored, site)
    waits = is_nonblocking(site.call)
    windows = [site.between_us or 0.0] if waits else proposed_windows(site)
    if not late:
        return []
    each = site.time_us / max(1, site.calls) + sum(windows) / len(windows)
    count = max(2, min(SAMPLES, int(BUDGET_US / max(1.0, each))))
    lines = []
    for i in range(number, count * ROUNDS, ROUNDS):
        # Evenly from all that there are.
        window = windows[i * len(windows) // (count * ROUNDS)]
        them = late[i * len(late) // (count * ROUNDS)]
        lines.append(" ".join(f"{us:.1f}" for us in (window, *them)))
    return lines


def is_known(site: Site) -> bool:
    return collective(site) in (*KNOWN, *ROOTED) and site.comm_size > 1


def plan(stored: Stored, advice: Advice, number: int) -> tuple[str, list[Site]]:
    """The replay program's file for a round, and the sites in their order there."""
    text, chosen = "", []
    for site in filter(is_known, advice.sites):
        name = collective(site)
        lines = samples(stored, site, number)
        if not lines or len(chosen) == SITES:
            continue
        bytes_ = max(8, round(block_bytes(stored, site)))
        text += f"{name} {bytes_} {int(is_nonblocking(site.call))} {len(lines)}\n"
        text += "".join(f"{line}\n" for line in lines)
        chosen.append(site)
    return text, chosen


def read_times(path: Path, chosen: list[Site]) -> list[tuple]:
    """Rows of the table `replay`; a last line that was cut short is left out."""
    rows = []
    for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
        if line.endswith("\n"):
            number, form, *times = line.split()
            rank, site = min(chosen[int(number)].members)
            rows += [(rank, site, form, float(us)) for us in times]
    return rows


def run(command: list[str], mpi: str, stored: Stored, advice: Advice) -> list[tuple]:
    """The rows of the table `replay`; none, after saying why, where nothing could be replayed."""
    library = Path(next((row["library"] for row in stored["rank"]), ""))
    program = installation.mpi_program(FAMILIES.get(library.name, library.name), "replay")
    if not program.exists():
        print(f"weft advise: nothing was replayed: there is no {program}", file=sys.stderr)
        return []
    rows = []
    for number in range(ROUNDS):
        text, chosen = plan(stored, advice, number)
        if not chosen:
            print("weft advise: nothing was replayed: no site has what it needs", file=sys.stderr)
            return []
        with tempfile.TemporaryDirectory(prefix="weft-replay-") as directory:
            path = Path(directory) / "plan"
            path.write_text(text)
            words = [str(installation.weft_command()), "advise", "--directory", directory]
            words += ["--replay", str(program), "--plan", str(path)]
            words += ["--libraries", str(library.parent), *(["--mpi", mpi] if mpi else [])]
            for form in ("library", "auto")[:: -1 if number % 2 else 1]:
                job = [*words, "--form", form, "--", *command]
                done = subprocess.run(job, close_fds=False, env={**os.environ})
                if done.returncode:
                    print(f"weft advise: a replay ended with {done.returncode}", file=sys.stderr)
                    return []
            rows += read_times(Path(f"{path}.times"), chosen)
    return rows
