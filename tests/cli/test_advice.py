"""What `weft advise` makes of a record: waiting and transfer, windows, gains, timelines, and what
it says of them. Records are made here, and no program runs.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from weft.advise import analysis, fragments, places, record, show, store, timeline, verify


def made(call: str, arrivals: list[tuple[int, int, int]], root: int = 0) -> store.Stored:
    """A record in which each rank made one call: (rank, arrived, left) in ns."""
    ranks = len(arrivals)
    shared = {"module": "m", "offset": 1, "place": "f.c:7:work", "call": call, "comm_kind": 0}
    site = {**shared, "site": 0, "comm_size": ranks, "comm_nodes": 2, "size_class": 4, "bytes": 8}
    zero = dict.fromkeys(
        ("after", "before", "completed", "between_ns", "waited_ns", "tests", "repeated"), 0
    )
    machine = {"cores": 4, "node_ranks": 1, "copy_bytes_per_ms": 10_000_000, "ranks": ranks}
    zeros = dict.fromkeys(("windows_off", "guarding_ns", "clock_error_ns", "began_ns", "events"), 0)
    window = {"site": 0, "side": "after", "least_ns": 500_000, "most_ns": 500_000}
    tables = {
        "rank": [
            {**machine, **zeros, "rank": r, "host": str(r), "elapsed_ns": 10_000_000}
            | {"mpi_ns": left - came, "finalized": 1}
            for r, came, left in arrivals
        ],
        "call": [],
        "site": [
            {**site, **zero, "rank": r, "calls": 1, "ns": left - came} for r, came, left in arrivals
        ],
        "time_window": [{**window, "rank": r} for r, _, _ in arrivals],
        "unknown": [],
        "arrival": [
            {"rank": r, "site": 0, "comm": "1", "sequence": 1, "arrived_ns": came, "left_ns": left}
            | {"comm_rank": r, "root": root}
            for r, came, left in arrivals
        ],
        "event": [],
        "frame": [],
        "replay": [],
    }
    return store.Stored(Path("made"), {}, tables, [])


def test_waiting_is_told_from_transferring():
    advice = analysis.analyse(made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)]))
    site = advice.sites[0]
    assert site.waiting == pytest.approx(600_000 / 1_400_000)
    # min(window of 500, transfer of 400), and a core is free for it.
    assert site.gain_high_us == pytest.approx(400)


def test_nobody_waits_for_others_than_the_root_of_a_bcast():
    arrivals = [(0, 0, 100_000), (1, 50_000, 300_000), (2, 900_000, 950_000)]
    site = analysis.analyse(made("MPI_Bcast", arrivals)).sites[0]
    assert site.waiting == 0


def test_without_all_ranks_nothing_is_split():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["arrival"].pop()
    site = analysis.analyse(stored).sites[0]
    assert (site.waiting, site.gain_high_us) == (None, None)


def test_no_gain_where_all_cores_of_a_node_compute():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for rank in stored["rank"]:
        rank["cores"] = rank["node_ranks"]
    for row in stored["site"]:
        row["comm_nodes"] = 1
    assert analysis.analyse(stored).sites[0].gain_high_us == 0


def test_windows_that_mostly_broke_off_are_unknown():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row["after"] = 1
    neighbours = record.UNKNOWNS.index("too many accesses right beside the result")
    why = {"rank": 0, "site": 0, "side": "after", "why": neighbours, "count": 2}
    stored["unknown"].append(why)
    assert analysis.analyse(stored).sites[0].window_us == 500
    stored["unknown"][0]["count"] = 3
    site = analysis.analyse(stored).sites[0]
    assert site.window_us is None and "beside the result" in site.why_unknown("after")


def replayed(form: str, times: list[float]) -> list[dict]:
    return [{"rank": 0, "site": 0, "form": form, "us": us} for us in times]


def test_a_replay_gives_the_gain_a_lower_end():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["replay"].extend(replayed("library", [900, 900, 900, 900, 900]))
    stored["replay"].extend(replayed("auto", [890, 890, 890, 890, 890]))
    stored["replay"].extend(replayed("auto-nonblocking", [700, 750, 600, 650, 900]))
    advice = analysis.analyse(stored)
    site = advice.sites[0]
    # Won: 200, 150, 300, 250, 0.
    assert (site.gain_low_us, site.changed.median) == (150, 200)
    assert site.gain_high_us == pytest.approx(400)
    assert advice.free_us == 10
    assert show.gain(site) == "150.0–400.0 µs"
    assert "5 replayed calls say 200.0 µs, half of them 150.0 µs to 250.0 µs" in show.worth(
        site, advice
    )
    assert "weft run wins 10.0 µs" in show.free(advice)


def test_a_replay_wins_no_more_than_the_call_takes_and_may_lose():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["replay"].extend(replayed("library", [90_000, 800, 800]))
    stored["replay"].extend(replayed("auto", [900, 900, 900]))
    stored["replay"].extend(replayed("auto-nonblocking", [100, 900, 900]))
    site = analysis.analyse(stored).sites[0]
    assert site.gain_low_us == 0 and site.changed.median == -100
    assert site.changed.high <= site.time_us
    assert "would lose 100.0 µs" in show.free(analysis.analyse(stored))


def test_the_plan_has_windows_and_how_late_each_rank_came():
    stored = made("MPI_Alltoall", [(0, 5_000, 90_000), (1, 2_000, 90_000)])
    advice = analysis.analyse(stored)
    text, chosen = verify.plan(stored, advice, 0)
    assert chosen == advice.sites
    first, *samples = text.splitlines()
    # Its bytes are blocks for two ranks.
    assert first == f"alltoall 8 0 {verify.SAMPLES}"
    assert samples == ["500.0 3.0 0.0"] * verify.SAMPLES


def before(least_us: float, most_us: float | None, stored: store.Stored) -> store.Stored:
    for row in list(stored["site"]):
        row["before"] = 1
        most = record.NO_END if most_us is None else most_us * 1e3
        bounds = {"side": "before", "least_ns": least_us * 1e3, "most_ns": most}
        stored["time_window"].append({"rank": row["rank"], "site": 0, **bounds})
    return stored


def short_result() -> store.Stored:
    """Touched after 100 us; its transfer takes 400."""
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = 100_000
    return stored


def test_a_call_may_start_earlier():
    site = analysis.analyse(before(140, 150, short_result())).sites[0]
    assert site.gain_high_us == pytest.approx(250) and site.earlier_us == pytest.approx(150)
    assert show.window(site, "before") == "150.0 µs"
    assert fragments.fragment(site).startswith("/* where what it sends is written last, now 140.0")
    assert verify.proposed_windows(site) == [240, 240]
    assert "150.0 µs of it by starting earlier" in show.worth(
        site, analysis.analyse(short_result())
    )


@pytest.mark.parametrize("bounds", [(0, 150), (140, None), (5, 6)])
def test_a_call_stays_where_an_earlier_start_wins_little_or_is_not_known(bounds):
    site = analysis.analyse(before(*bounds, short_result())).sites[0]
    assert site.gain_high_us == pytest.approx(100) and site.earlier_us == 0
    assert "written last" not in fragments.fragment(site)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ([(1000, 1010)], "1.01 ms"),
        ([(1000, 2000)], "1.00–2.00 ms"),
        ([(1000, None)], "≥ 1.00 ms"),
        ([(0, 2000)], "≤ 2.00 ms"),
        # The half that is known best.
        ([(0, 2000), (990, 1000), (0, 5000), (980, 1000)], "1.00 ms"),
        ([], "unknown"),
    ],
)
def test_what_is_said_of_windows(bounds, said):
    site = analysis.analyse(made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.before = analysis.Windows([low for low, _ in bounds], [high for _, high in bounds])
    assert show.window(site, "before") == said


def with_events(spans: list[tuple[int, int, int]], recorded: int) -> analysis.Advice:
    """Of rank 0: (kind, begin, end) in us."""
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    stored["rank"][0]["events"] = recorded
    for what, began, ended in spans:
        times = {"began_ns": began * 1000, "ended_ns": ended * 1000}
        stored["event"].append({"rank": 0, "site": 0, "what": what, **times})
    return analysis.analyse(stored)


def test_spans_that_overlap_get_rows_of_their_own():
    flights = [(record.IN_FLIGHT, 0, 10), (record.IN_FLIGHT, 5, 20), (record.IN_FLIGHT, 10, 30)]
    line = with_events([(record.CALL, 0, 4), *flights], 4).timeline
    picture = timeline.picture(line)
    assert picture["rows"] == ["rank 0, collectives", "rank 0, in flight", "rank 0, in flight"]
    rows = [(row, began, ended) for row, began, ended, _, _ in picture["spans"]]
    assert rows == [(0, 0, 0.004), (1, 0, 0.01), (1, 0.01, 0.03), (2, 0.005, 0.02)]
    assert picture["names"] == ["MPI_Allreduce, work f.c:7"]


def test_what_was_not_kept_is_shown_as_a_gap():
    line = with_events([(record.CALL, 0, 4), (record.CALL, 90, 95)], 12).timeline
    holes = [span for span in line.spans if span.kind == timeline.GAP]
    assert [(hole.began_us, hole.ended_us) for hole in holes] == [(4, 90)]
    assert (line.kept, line.recorded) == (2, 12)
    assert "of 12 events 2" in timeline.left_out(line, 2)


def nonblocking_site(between_us: float, waited_us: float, tests: float) -> analysis.Site:
    site = analysis.analyse(made("MPI_Iallreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.between_us, site.waited_us, site.tests = between_us, waited_us, tests
    return site


@pytest.mark.parametrize(
    ("between_us", "waited_us", "tests", "said"),
    [
        (10, 500, 0, "wait later, right before"),
        (300, 500, 0, "the window is too short"),
        (900, 500, 0, "since nobody tested"),
        (900, 500, 3, "one every 300.0 µs: that is too seldom"),
        (900, 500, 900, "every 1.0 µs: that takes the time"),
        (900, 10, 0, ""),
    ],
)
def test_what_is_said_of_nonblocking_calls(between_us, waited_us, tests, said):
    text = fragments.of_nonblocking(nonblocking_site(between_us, waited_us, tests))
    assert said in text and bool(said) == bool(text)


def two_in_a_row(window_ns: int) -> store.Stored:
    """Site 1 is called right behind site 0, four times on each rank; 100 us each."""
    stored = made("MPI_Allreduce", [(0, 0, 400_000), (1, 0, 400_000)])
    second = [{**row, "site": 1, "offset": 2, "calls": 4, "ns": 400_000} for row in stored["site"]]
    stored["site"].extend(second)
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = window_ns
    stored["arrival"].clear()
    for rank, number, site in [(r, n, s) for r in (0, 1) for n in range(4) for s in (0, 1)]:
        came = number * 1_000_000 + site * 101_000
        one = {"rank": rank, "site": site, "comm": "1", "sequence": 2 * number + site}
        one |= {"arrived_ns": came, "left_ns": came + 100_000, "comm_rank": rank, "root": 0}
        stored["arrival"].append(one)
    return stored


def test_calls_that_do_not_need_each_other_are_told():
    advice = analysis.analyse(two_in_a_row(500_000))
    assert [(one.frames, other.frames) for one, other in advice.pairs] == [
        (advice.sites[0].frames, advice.sites[1].frames)
    ]
    text, code = show.changes(advice)[0]
    assert "do not need each other" in text and "MPI_Waitall(2, requests" in code
    # The second call took the first's result.
    assert analysis.analyse(two_in_a_row(1_000)).pairs == []


def test_waits_for_messages_are_told_from_those_for_collectives():
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    names = {"MPI_Waitall": 2_000_000, "MPI_Irecv": 1_000}
    stored["call"].extend(
        {"rank": r, "name": name, "calls": 5, "ns": ns}
        for r in (0, 1)
        for name, ns in names.items()
    )
    advice = analysis.analyse(stored)
    assert advice.messages_share == pytest.approx(0.2)
    assert "20.0 % of the run time waits for messages" in show.changes(advice)[-1][0]


@pytest.mark.parametrize("language", ["c", "c++", "fortran", "python"])
def test_fragments_are_in_the_programs_language(language):
    site = analysis.analyse(made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    suffix = {"c": "c", "c++": "cc", "fortran": "f90", "python": "py"}[language]
    site.frames = [places.Frame("work", f"a.{suffix}", 3)]
    site.calls, site.repeated = 20, 1.0
    call = {"fortran": "call MPI_Iallreduce(", "python": "comm.Iallreduce("}
    plan = {"fortran": "call MPI_Allreduce_init(", "python": "comm.Allreduce_init("}
    assert call.get(language, "MPI_Iallreduce(") in fragments.fragment(site)
    assert call.get(language, "MPI_Iallreduce(") in fragments.together(site, site)
    assert plan.get(language, "MPI_Allreduce_init(") in fragments.planned(site)


def test_inlined_frames_come_first():
    lines = ["inner", "/a/x.c:5", "outer", "/a/x.c:9 (discriminator 2)"]
    frames = places.parse_frames(lines, "m", 1)
    assert frames == [places.Frame("inner", "/a/x.c", 5), places.Frame("outer", "/a/x.c", 9)]
    assert places.parse_frames(["??", "??:0"], "/b/app", 16) == [places.Frame("app+0x10", "", 0)]


def test_no_neighbour_is_named_for_a_function_of_a_stripped_file(tmp_path):
    """Of shown() the file keeps name and size, of the function behind it nothing."""
    source, library = tmp_path / "a.c", tmp_path / "liba.so"
    source.write_text(
        "int shown(int x) { return x + 1; }\n"
        "__attribute__((noinline, used)) static int hidden(int x) { return x * x; }\n"
    )
    words = ["cc", "-shared", "-fPIC", "-O0", "-fno-toplevel-reorder", source, "-o", library]
    subprocess.run(words, check=True, timeout=60)
    listed = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    begins = {name: int(begin, 16) for begin, _, name in re.findall(r"(\w+) (\w) (\w+)", listed)}
    subprocess.run(["strip", library], check=True, timeout=60)
    assert begins["hidden"] > begins["shown"]
    inside = {name: begins[name] + 4 for name in ("shown", "hidden")}
    found = places.resolve([(str(library), offset) for offset in inside.values()])
    assert found[str(library), inside["shown"]] == [places.Frame("shown", "", 0)]
    unnamed = places.Frame(f"liba.so+{inside['hidden']:#x}", "", 0)
    assert found[str(library), inside["hidden"]] == [unnamed]
