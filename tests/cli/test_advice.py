"""Tests the advice of `weft advise` on records that are made here: waiting and transfer, windows,
gains, timelines, and the text about them. No program runs."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from advise_runs import made

from weft.advise import (
    analysis,
    fragments,
    page,
    places,
    record,
    show,
    sites,
    store,
    stretches,
    timeline,
)


def test_waiting_is_told_from_transferring():
    advice = analysis.analyse(made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)]))
    site = advice.sites[0]
    assert site.waiting == pytest.approx(600_000 / 1_400_000)
    # The gain is min(window of 500, transfer of 400), and a core is free.
    assert site.gain_high_us == pytest.approx(400)


@pytest.mark.parametrize(("window_us", "gain_us"), [(20, 0), (21, 21)])
def test_a_window_as_short_as_observing_takes_is_none(window_us, gain_us):
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 0, 1_000_000)])
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = window_us * 1000
    assert {rank["observing_ns"] for rank in stored["rank"]} == {20_000}
    site = analysis.analyse(stored).sites[0]
    assert site.gain_high_us == pytest.approx(gain_us)
    assert site.why_no_gain == ("" if gain_us else analysis.AT_ONCE)


def test_a_site_of_some_ranks_counts_for_these():
    """The root's site of a gather is another one than that of the other ranks, since it has more
    bytes."""
    stored = made("MPI_Gather", [(0, 0, 4_000_000), (1, 0, 2_000_000)])
    stored["site"][1]["size_class"] = 3
    for rank in stored["rank"]:
        rank["mpi_ns"] = 8_000_000
    advice = analysis.analyse(stored)
    assert len(advice.sites) == 2
    assert advice.collective_share == pytest.approx(0.3)
    assert advice.other_mpi_share == pytest.approx(0.5)


def test_nobody_waits_for_others_than_the_root_of_a_bcast():
    arrivals = [(0, 0, 100_000), (1, 50_000, 300_000), (2, 900_000, 950_000)]
    site = analysis.analyse(made("MPI_Bcast", arrivals)).sites[0]
    assert site.waiting == 0


def test_without_all_ranks_nothing_is_split():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["arrival"].pop()
    site = analysis.analyse(stored).sites[0]
    assert (site.waiting, site.gain_high_us) == (None, None)


def test_no_gain_where_all_cores_of_a_node_compute(tmp_path):
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for rank in stored["rank"]:
        rank["cores"] = rank["node_ranks"]
    for row in stored["site"]:
        row["comm_nodes"] = 1
    advice = analysis.analyse(stored)
    assert advice.sites[0].gain_high_us == 0
    said = next(
        reason for reason in show.reasons(advice) if reason.startswith("nothing to win by a")
    )
    assert "the data are moved by the same cores" in said
    page.write(tmp_path / "p.html", advice)
    first = (tmp_path / "p.html").read_text().partition("Where the time is")[0]
    assert "room to run behind computation:" in first and f"<li>N{said[1:]}</li>" in first


def test_threads_of_the_program_need_cores():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row["comm_nodes"] = 1
    stored["rank"][1]["threads"] = 3
    assert analysis.free_core(stored)
    stored["rank"][1]["threads"] = 4
    assert not analysis.free_core(stored)
    assert analysis.analyse(stored).sites[0].gain_high_us == 0


@pytest.mark.parametrize(
    ("binding", "file", "language"),
    [(1, "", "fortran"), (1, "solve.c", "c"), (0, "", "c"), (0, "solve.f90", "fortran")],
)
def test_who_calls_by_a_binding_writes_its_language(binding, file, language):
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row |= {"place": "", "binding": binding}
    stored["frame"].append(
        {"module": "m", "offset": 1, "depth": 0, "function": "work", "file": file, "line": 3}
    )
    assert analysis.analyse(stored).sites[0].language == language


def test_a_script_without_a_suffix_is_python():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row["place"] = "/usr/bin/simulate:7:main"
    assert analysis.analyse(stored).sites[0].language == "python"


def test_windows_that_mostly_broke_off_are_unknown():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row["after"] = 1
    neighbours = record.UNKNOWNS.index("too many accesses right beside the result")
    why = {"rank": 0, "site": 0, "side": "after", "why": neighbours, "count": 3}
    stored["unknown"].append(why)
    stored["site"][0]["after_broken"] = 2
    assert analysis.analyse(stored).sites[0].window_us == 500
    stored["site"][0]["after_broken"] = 3
    site = analysis.analyse(stored).sites[0]
    assert site.window_us is None and "beside the result" in site.why_unknown("after")


def test_of_an_older_record_the_reasons_say_what_broke_off():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row |= {"after": 1, "after_broken": -1}
    neighbours = record.UNKNOWNS.index("too many accesses right beside the result")
    stored["unknown"].append({"rank": 0, "site": 0, "side": "after", "why": neighbours, "count": 2})
    assert analysis.analyse(stored).sites[0].window_us == 500
    stored["unknown"][0]["count"] = 3
    assert analysis.analyse(stored).sites[0].window_us is None


def touch(offset: int, count: int) -> dict:
    return {"rank": 0, "site": 0, "side": "after", "module": "m", "offset": offset, "count": count}


def test_the_place_of_a_use_is_one_of_the_program():
    """The place must not be in a header of a library that was inlined there, nor in an
    interpreter."""
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row |= {"place": "", "after": 8}
    frames = [(1, 0, "/a/f.cc", 7), (2, 0, "/usr/include/sum.h", 3), (2, 1, "/a/g.cc", 9)]
    stored["frame"].extend(
        {"module": "m", "offset": offset, "depth": depth, "function": "f", "file": file, "line": n}
        for offset, depth, file, n in frames
    )
    stored["touch"].extend([touch(2, 12), touch(9, 4)])
    site = analysis.analyse(stored).sites[0]
    assert [(one.place, one.windows, one.of) for one in site.users] == [
        ("g.cc:9", 12, 16),
        ("m+0x9", 4, 16),
    ]
    assert "first use of the result: g.cc:9" in fragments.fragment(site)
    stored["touch"][0]["count"] = 7  # no place has half of the windows
    site = analysis.analyse(stored).sites[0]
    assert "first use of the result */" in fragments.fragment(site)
    for row in stored["site"]:
        row["place"] = "app.py:7:work"
    assert analysis.analyse(stored).sites[0].users == []


def replayed(form: str, won: list[float]) -> list[dict]:
    return [{"rank": 0, "site": 0, "form": form, "us": us} for us in won]


def test_a_replay_gives_the_gain_a_lower_end():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["replay"].extend(replayed(sites.FREE, [10, 10, 10, 10, 10]))
    stored["replay"].extend(replayed(sites.WITH_CHANGE, [10 * i for i in range(31)]))
    advice = analysis.analyse(stored)
    site = advice.sites[0]
    # With a certainty of 97.5 %, at least eight of 31 samples are below the median and eight above
    # it.
    assert (site.gain_low_us, site.changed.median, site.gain_high_us) == (80, 150, 220)
    assert advice.free_us == 10
    assert show.gain(site) == "80.0–220 µs"
    said = "31 replays say 150 µs, with a certainty of 95 % 80.0 µs to 220 µs"
    assert said in show.worth(site, advice)
    assert show.free(advice) == (
        "Without a change: no clear gain; replaying these calls, Weft took 10.0 µs less."
    )


def test_the_page_begins_with_what_the_changes_are_worth(tmp_path):
    stored = made("MPI_Allreduce", [(0, 1_000_000, 3_000_000), (1, 1_000_000, 3_000_000)])
    stored.about["command"] = ["mpiexec", "-n", "2", "./app"]
    stored["source"].append({"file": "f.c", "line": 7, "text": "MPI_Allreduce(in, out, n,"})
    stored["source"].append({"file": "f.c", "line": 8, "text": "type, op, comm);"})
    page.write(tmp_path / "p.html", analysis.analyse(stored))
    text = (tmp_path / "p.html").read_text()
    assert not re.search("<(script|link|img|iframe)|src=|http", text)
    assert "without a change.</h1>" in text and "<p>Try it: <code>weft try -- " in text
    first, list_, rest = text.partition("</ol>")
    said = " in work f.c:7</a>: at most 5.0 % of the run (500 µs)</li>"
    assert list_ and said in first and "<pre>" not in first
    assert "<code>MPI_Allreduce(in, out, n, type, op, comm);</code>" in rest
    assert f"{show.ONLY_A_RUN}: <code>weft advise --verify -- mpiexec -n 2 ./app</code>" in rest
    stored["replay"].extend(replayed(sites.WITH_CHANGE, [10 * i for i in range(31)]))
    advice = analysis.analyse(stored)
    assert show.in_short(advice.sites[0], advice) == "0.8 % to 2.2 % of the run (80.0–220 µs)"
    assert show.between(0, 220) == "0–220 µs"
    assert show.verify_it(advice) == ""


def test_the_key_names_what_is_drawn():
    stored = made("MPI_Allreduce", [(0, 1_000_000, 3_000_000), (1, 2_000_000, 3_000_000)])
    key = [name for name, _ in page.chart(analysis.analyse(stored)).entries]
    assert key == [page.TRANSFER, page.WAITING]
    stored["arrival"].clear()
    assert [name for name, _ in page.chart(analysis.analyse(stored)).entries] == [page.UNKNOWN]


def test_how_many_calls_were_watched_is_said():
    stored = made("MPI_Allreduce", [(0, 0, 3_000_000), (1, 0, 3_000_000)])
    for row in stored["site"]:
        # Two of three observations found no window.
        row |= {"calls": 3, "after": 1, "after_broken": 2}
    site = analysis.analyse(stored).sites[0]
    used = sites.Toucher(places.Frame("work", "/home/f.c", 9), "", 2, 2)
    site.users = [used]
    said = "Its result is first used at f.c:9 (in 2 of 6 watched calls)."
    assert fragments.use(site) == said
    site.all_calls = 30
    more = " The ranks made 30 such calls; 6 of them were watched."
    assert fragments.use(site) == said + more


@pytest.mark.parametrize(("nodes", "said"), [(1, "inside a node"), (2, "it learns whether")])
def test_what_weft_may_win_of_blocking_calls_fits_the_nodes(nodes, said):
    stored = made("MPI_Allreduce", [(0, 0, 3_000_000), (1, 0, 3_000_000)])
    for row in stored["site"]:
        row["comm_nodes"] = nodes
    assert said in show.free(analysis.analyse(stored))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("work", "work"),
        (
            "(anonymous namespace)::Program::step((anonymous namespace)::Case const&)",
            "Program::step",
        ),
        ("std::vector<int, std::allocator<int> >::resize(unsigned long)", "std::vector::resize"),
        ("Settings::cannot_write[abi:cxx11]() const", "Settings::cannot_write"),
        ("main::{lambda(int)#1}::operator()(int) const",) * 2,
        ("outer.<locals>.inner",) * 2,
    ],
)
def test_names_of_cpp_are_short(function, name):
    assert places.Frame(function, "", 0).name == name


def test_a_page_of_many_sites_is_small_and_counts_the_ones_it_leaves_out(tmp_path):
    stored = made("MPI_Allreduce", [(0, 0, 3_000_000), (1, 0, 3_000_000)])
    advice = analysis.analyse(stored)
    advice.sites = advice.sites * 1000
    page.write(tmp_path / "p.html", advice)
    text = (tmp_path / "p.html").read_text()
    assert len(text.encode()) < 150_000 and text.count('<td class="site">') == page.MOST_ROWS
    assert f"{1000 - page.MOST_ROWS} more call sites take " in text


def test_a_replay_does_not_go_beyond_what_windows_allow_unless_most_of_it_does():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["replay"].extend(replayed(sites.WITH_CHANGE, [300, 500, 600]))
    # The replay exceeds the bound, which is 400.
    assert analysis.analyse(stored).sites[0].gain_high_us == 500
    stored["replay"].extend(replayed(sites.WITH_CHANGE, [100, 300]))
    assert analysis.analyse(stored).sites[0].gain_high_us == pytest.approx(400)


def test_a_replay_wins_no_more_than_the_call_takes_and_may_lose():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["replay"].extend(replayed(sites.FREE, [89_100, -100, -100]))
    stored["replay"].extend(replayed(sites.WITH_CHANGE, [89_900, -100, -100]))
    site = analysis.analyse(stored).sites[0]
    assert site.gain_low_us == 0 and site.changed.median == -100
    assert site.changed.high <= site.time_us
    assert show.free(analysis.analyse(stored)) == (
        "Without a change: no clear gain; replaying these calls, Weft took 100 µs longer."
    )


def test_the_plan_has_the_steps_of_each_rank_in_each_form():
    # The bytes of an alltoall are blocks for two ranks.
    stored = made("MPI_Alltoall", [(0, 5_000, 90_000), (1, 2_000, 90_000)])
    advice = analysis.analyse(stored)
    [site] = advice.sites
    forms = [[stretches.Changed(site)], [stretches.Changed(site, planned=True, late=False)]]
    text = stretches.plan(stored, stretches.stretches_of(stored, advice.sites), forms)
    assert text.splitlines() == [
        *("1", "2 0 1"),  # calls of both ranks
        *("1", "alltoall 8 0 sum"),
        "1 3",  # a stretch in three forms, for both ranks
        *("3 c 3.0 b 0 c 500.0", "2 b 0 c 500.0"),
        *("4 c 3.0 s 0 0 c 500.0 w 0", "3 s 0 0 c 500.0 w 0"),
        *("4 c 3.0 p 0 0 w 0 c 500.0", "3 p 0 0 w 0 c 500.0"),
    ]


def operation(call: str, bytes_: tuple[int, int]) -> tuple:
    """Returns the operation of a call of two ranks, whose bytes may be in different size
    classes."""
    stored = made(call, [(0, 5_000, 90_000), (1, 2_000, 90_000)])
    for row, own in zip(stored["site"], bytes_):
        row |= {"bytes": own, "size_class": own.bit_length()}
    (one,) = stretches.calls_of(stored, analysis.analyse(stored).sites)
    return one.operation


def test_blocks_of_a_root_are_those_of_all_ranks():
    assert operation("MPI_Gather", (64, 32)) == ("gather", 32, (0, 1), "sum")


@pytest.mark.parametrize("call", ["MPI_Reduce_scatter", "MPI_Reduce_scatter_block"])
def test_blocks_of_a_reduce_scatter_are_those_of_all_ranks(call):
    assert operation(call, (64, 64)) == (call[4:].lower(), 32, (0, 1), "sum")


def before(least_us: float, most_us: float | None, stored: store.Stored) -> store.Stored:
    for row in list(stored["site"]):
        row["before"] = 1
        most = record.NO_END if most_us is None else most_us * 1e3
        bounds = {"side": "before", "least_ns": least_us * 1e3, "most_ns": most}
        stored["time_window"].append({"rank": row["rank"], "site": 0, **bounds})
    return stored


def short_result() -> store.Stored:
    """Returns a record whose result is accessed after 100 us, while its transfer takes 400 us."""
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = 100_000
    return stored


def test_a_call_may_start_earlier():
    site = analysis.analyse(before(140, 150, short_result())).sites[0]
    assert site.gain_high_us == pytest.approx(250) and site.earlier_us == pytest.approx(150)
    assert show.window(site, "before") == "150 µs"
    assert fragments.fragment(site).startswith("/* where what it sends is written last, now 140 µs")
    assert "150 µs of it by starting earlier" in show.worth(site, analysis.analyse(short_result()))


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
        # The better known half of the windows is used.
        ([(0, 2000), (990, 1000), (0, 5000), (980, 1000)], "1.00 ms"),
        ([], "unknown"),
    ],
)
def test_what_is_said_of_windows(bounds, said):
    site = analysis.analyse(made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.before = sites.Windows([low for low, _ in bounds], [high for _, high in bounds])
    assert show.window(site, "before") == said


def with_events(spans: list[tuple[int, int, int]], recorded: int) -> analysis.Advice:
    """Returns advice with events of rank 0. Spans are (kind, begin, end) in us."""
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    stored["rank"][0]["events"] = recorded
    for what, began, ended in spans:
        times = {"began_ns": began * 1000, "ended_ns": ended * 1000}
        stored["event"].append({"rank": 0, "site": 0, "what": what, "apart": 0, **times})
    return analysis.analyse(stored)


def test_spans_that_overlap_get_rows_of_their_own():
    flights = [(record.IN_FLIGHT, 0, 10), (record.IN_FLIGHT, 5, 20), (record.IN_FLIGHT, 10, 30)]
    line = with_events([(record.CALL, 0, 4), *flights], 4).timeline
    rows = timeline.rows(line)
    names = ["rank 0, collectives", "rank 0, in flight", "rank 0, in flight"]
    assert [name for name, _ in rows] == names
    times = [[(span.began_us, span.ended_us) for span in spans] for _, spans in rows]
    assert times == [[(0, 4)], [(0, 10), (10, 30)], [(5, 20)]]
    assert {span.name for _, spans in rows for span in spans} == {"MPI_Allreduce, work f.c:7"}
    assert timeline.calls_in(rows) == 4


def test_what_was_not_kept_is_shown_as_a_gap():
    line = with_events([(record.CALL, 0, 4), (record.CALL, 90, 95)], 12).timeline
    holes = [span for span in line.spans if span.kind == timeline.GAP]
    assert [(hole.began_us, hole.ended_us) for hole in holes] == [(4, 90)]
    assert (line.kept, line.recorded) == (2, 12)
    assert "of 12 events 2" in timeline.left_out(line, 2)


def with_threads(*spans: tuple[str, int, int]) -> analysis.Advice:
    """Returns advice with activities of Weft's thread on rank 0. Spans are (doing, begin, end) in
    us. The rank begins at 100 us."""
    stored = made("MPI_Iallreduce", [(0, 0, 10), (1, 0, 10)])
    for rank in stored["rank"]:
        rank["began_ns"] = 100_000
    for doing, began, ended in spans:
        times = {"began_ns": began * 1000, "ended_ns": ended * 1000}
        stored["thread_span"].append(
            {"rank": 0, "thread": "weft-progress", "doing": doing, **times}
        )
    return analysis.analyse(stored)


def test_wefts_threads_have_a_row_from_the_ranks_begin_on():
    spans = [("asleep", 20, 90), ("polling", 90, 130), ("asleep", 130, 140), ("working", 140, 150)]
    advice = with_threads(*spans)
    kinds = [(span.kind, span.began_us, span.ended_us) for span in advice.timeline.spans]
    assert kinds == [
        (timeline.POLLING, 0, 30),
        (timeline.ASLEEP, 30, 40),
        (timeline.WORKING, 40, 50),
    ]
    ((name, spans),) = timeline.rows(advice.timeline)
    assert name == "rank 0, weft-progress"
    assert [span.kind for span in spans] == [timeline.POLLING, timeline.WORKING]
    assert advice.timeline.kept == 0


def test_what_runs_with_weft_is_not_told_to_run_with_weft():
    advice = with_threads(("working", 140, 150))
    site = advice.sites[0]
    site.between_us, site.waited_us, site.tests = 1000, 800, 0
    assert "weft run" not in fragments.of_nonblocking(site) + show.free(advice)
    assert "--placement" in fragments.of_nonblocking(site)
    assert "--engine native" in show.free(advice)


def test_inlined_frames_come_first():
    lines = ["inner", "/a/x.c:5", "outer", "/a/x.c:9 (discriminator 2)"]
    frames = places.parse_frames(lines, "m", 1)
    assert frames == [places.Frame("inner", "/a/x.c", 5), places.Frame("outer", "/a/x.c", 9)]
    assert places.parse_frames(["??", "??:0"], "/b/app", 16) == [places.Frame("app+0x10", "", 0)]


def test_no_neighbour_is_named_for_a_function_of_a_stripped_file(tmp_path):
    """The stripped file keeps the name and the size of shown(), and nothing of the function behind
    it."""
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


def test_without_addr2line_functions_are_named(tmp_path, monkeypatch):
    source, library = tmp_path / "a.c", tmp_path / "liba.so"
    source.write_text("int shown(int x) { return x + 1; }\n")
    words = ["cc", "-g", "-shared", "-fPIC", "-O0", source, "-o", library]
    subprocess.run(words, check=True, timeout=60)
    begin = next(one.begin for one in places.functions(str(library)) if one.name == "shown")
    monkeypatch.setattr(places, "tool", lambda: None)
    found = places.resolve([(str(library), begin + 4), (str(source), 4)])
    assert found[str(library), begin + 4] == [places.Frame("shown", "", 0)]
    assert found[str(source), 4] == [places.Frame("a.c+0x4", "", 0)]


def test_what_names_no_lines_is_told():
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    stored.about["addr2line"] = None
    # Line numbers need no debug information in a Python program.
    assert analysis.analyse(stored).notes == []
    for row in stored["site"]:
        row["place"] = ""
    assert "package binutils" in analysis.analyse(stored).notes[0]
    stored.about["addr2line"] = "/usr/bin/addr2line"
    assert "compile with -g" in analysis.analyse(stored).notes[0]


@pytest.fixture
def kept(tmp_path):
    """Returns the record of one rank that called MPI from a Python program, which was removed
    since."""
    script = tmp_path / ("a-long-name-" * 10) / "app.py"
    script.parent.mkdir()
    script.write_text("def work():\n    return comm.allgather(1)\n")
    head = record.Head(rank=0, ranks=1, finalized=1, ended_ns=10_000_000, in_mpi_ns=1_000_000)
    total = record.CallTotal(name=b"MPI_Allgather", calls=5, ns=1_000_000)
    where = f"{script}:2:work".encode()
    site = record.Site(where=where, comm_size=1, comm_nodes=1, calls=5, bytes=40, ns=1_000_000)
    site.after.measured = 1
    site.after.kept[0] = record.Bounds(500_000, 500_000)
    path = tmp_path / "kept.sqlite"
    rank = record.RankRecord(head, [total], ["/python"], [site], [], [], [])
    store.write(path, [rank], {"command": ["python3", "app.py"]})
    script.unlink()
    return path


def test_the_record_has_lines_of_the_source(kept):
    stored = store.read(kept)
    (site,) = analysis.analyse(stored).sites
    assert site.frames[0].file.endswith("/app.py") and Path(site.frames[0].file).is_absolute()
    assert (site.source, site.object_method) == ("return comm.allgather(1)", "allgather")
    assert (stored.unread, stored.other_version) == ([], "")


def change(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


OTHER = "UPDATE about SET value = '\"weft-advise-record/9\"' WHERE name = 'schema'"


def test_of_another_version_what_is_known_is_shown(kept, call, tmp_path):
    change(
        *(kept, OTHER, "DROP TABLE source", "ALTER TABLE site ADD COLUMN energy REAL"),
        *("ALTER TABLE site RENAME COLUMN repeated TO again", "CREATE TABLE power (watts REAL)"),
    )
    done = call("advise", "--from", kept, "-o", tmp_path / "p.html")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "10.0 % of the run time is in collectives" in said
    assert f"has schema weft-advise-record/9, this Weft writes {store.SCHEMA}" in said
    missing = "cannot be read: site (without repeated), source, power, site (its again, energy)."
    assert missing in said


def test_windows_of_another_kind_are_not_known(kept):
    change(
        *(kept, OTHER, "ALTER TABLE time_window RENAME COLUMN side TO way"),
        "INSERT INTO call (rank, name, calls, ns) VALUES (0, 'MPI_Send', 'many', 1)",
    )
    stored = store.read(kept)
    (site,) = analysis.analyse(stored).sites
    assert site.window_us is None
    assert site.why_unknown("after") == "the windows of this record cannot be read"
    assert "call (1 rows of another kind)" in stored.unread


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("ALTER TABLE rank RENAME COLUMN elapsed_ns TO elapsed", "rank (without elapsed_ns)"),
        ("UPDATE about SET value = '\"weft-bench/1\"' WHERE name = 'schema'", "is no record of"),
        ("DELETE FROM about", "it has schema None"),
        ("DROP TABLE about", "cannot be read as a record"),
    ],
)
def test_what_is_no_record_is_refused(kept, call, statement, sentence):
    change(kept, statement)
    done = call("advise", "--from", kept)
    assert done.returncode == 2 and sentence in done.stderr
