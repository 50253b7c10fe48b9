"""The bars of the advisor's windows: what counts as right. No program runs."""

import sys
from dataclasses import replace

from advise_runs import made

from weft.advise import analysis, sites
from weft.advise.record import AFTER, CALL, IN_FLIGHT, WAIT
from weft.system import installation

sys.path.append(str(installation.ROOT / "tools"))

import window_bars


def event(rank: int, what: int, began_us: float, ended_us: float) -> dict:
    times = {"began_ns": round(began_us * 1e3), "ended_ns": round(ended_us * 1e3)}
    return {"rank": rank, "site": 0, "what": what, **times}


def test_windows_are_held_against_the_time_of_their_own_call():
    """Four calls of each rank, of which not the same are watched."""
    stored = made("MPI_Bcast", [(0, 0, 10), (1, 0, 10)])
    for rank in (0, 1):
        stored["event"].extend(event(rank, CALL, 100 * i, 100 * i + 10) for i in range(4))
    stored["event"].append(event(0, AFTER, 110.5, 135.5))
    stored["event"].append(event(0, AFTER, 310.5, 360.5))
    stored["event"].append(event(1, AFTER, 10.5, 50.5))
    site = analysis.analyse(stored).sites[0]
    site.after = sites.Windows([40.0], [40.0])
    own = {0: [40.0, 20.0, 40.0, 45.0], 1: [39.0, 25.0, 25.0, 25.0]}
    assert window_bars.held_against(own, site, stored) == (40.0, [5.0, 5.0, 1.0])
    site.after = sites.Windows([0.0], [2000.0])  # no one figure
    assert window_bars.held_against(own, site, stored) == (None, [])
    assert window_bars.held_against(own, None, stored) == (None, [])


def test_windows_after_waits_are_held_against_the_call_that_was_waited_for():
    stored = made("MPI_Ibcast", [(0, 0, 10), (1, 0, 10)])
    stored["event"].extend(event(0, WAIT, 100 * i, 100 * i + 10) for i in range(2))
    stored["event"].append(event(0, IN_FLIGHT, 0, 100))
    stored["event"].append(event(0, AFTER, 111, 131))
    site = analysis.analyse(stored).sites[0]
    assert list(window_bars.watched(stored, site)) == [(0, 1, 20.0)]


def test_windows_are_right_within_a_part_or_a_time():
    found = window_bars.Found("mpich", "C", "heap", 0.2, 200, 221, [21, 19, 30])
    assert not found.is_right and not found.is_missing and found.right_calls == 1
    assert replace(found, offs_us=[-20]).is_right
    assert replace(found, own_us=2000, offs_us=[39]).is_right
    unknown = replace(found, measured_us=None, offs_us=[])
    assert unknown.is_missing and not replace(unknown, function="stack").is_missing
    assert unknown.to_json()["measured_us"] is None and unknown.in_words().endswith("unknown")
