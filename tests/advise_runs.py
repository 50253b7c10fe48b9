"""Functions that the tests of `weft advise` share, besides the fixtures in conftest.py."""

from __future__ import annotations

import json
from pathlib import Path

from weft.advise import store

# These are the numbers of rounds in which the command replays calls in these tests.
LEAST_ROUNDS, MOST_ROUNDS = 2, 3
FEW_ROUNDS = f"""
from weft.advise import verify
from weft.cli import main
verify.ROUNDS, verify.MOST_ROUNDS = {LEAST_ROUNDS}, {MOST_ROUNDS}
main()
"""
HERE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def sites(path: Path) -> dict[str, dict]:
    """Returns the sites in a JSON file, by function and call."""
    document = json.loads(path.read_text())
    assert document["schema"] == "weft-advise/2"
    return {f"{site['function']} {site['call']}": site for site in document["sites"]}


def made(call: str, arrivals: list[tuple[int, int, int]], root: int = 0) -> store.Stored:
    """Returns a record in which each rank made one call. Arrivals are (rank, arrived, left) in
    ns."""
    ranks = len(arrivals)
    shared = {"module": "m", "offset": 1, "place": "f.c:7:work", "call": call, "comm_kind": 0}
    site = {**shared, "site": 0, "comm_size": ranks, "comm_nodes": 2, "size_class": 4, "bytes": 8}
    zero = dict.fromkeys(
        ("after", "before", "completed", "between_ns", "waited_ns", "tests", "repeated"), 0
    ) | {"after_broken": 0, "before_broken": 0, "binding": 0, "own": 1}
    machine = {
        "cores": 4,
        "threads": 1,
        "node_ranks": 1,
        "copy_bytes_per_ms": 10_000_000,
        "ranks": ranks,
    }
    zeros = dict.fromkeys(("windows_off", "guarding_ns", "clock_error_ns", "began_ns", "events"), 0)
    zeros["observing_ns"] = 20_000
    window = {"site": 0, "side": "after", "least_ns": 500_000, "most_ns": 500_000}
    tables = {
        "rank": [
            {
                **machine,
                **zeros,
                "rank": r,
                "host": str(r),
                "library": "libmpi.so.12",
                "elapsed_ns": 10_000_000,
            }
            | {"mpi_ns": left - came, "finalized": 1}
            for r, came, left in arrivals
        ],
        "call": [],
        "site": [
            {**site, **zero, "rank": r, "calls": 1, "ns": left - came} for r, came, left in arrivals
        ],
        "time_window": [{**window, "rank": r} for r, _, _ in arrivals],
        "unknown": [],
        "touch": [],
        "message_wait": [],
        "outer_place": [],
        "arrival": [
            {"rank": r, "site": 0, "comm": "1", "sequence": 1, "arrived_ns": came, "left_ns": left}
            | {"comm_rank": r, "root": root}
            for r, came, left in arrivals
        ],
        "event": [],
        "thread_span": [],
        "frame": [],
        "source": [],
        "replay": [],
    }
    return store.Stored(Path("made"), {}, tables, [])
