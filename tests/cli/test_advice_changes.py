"""Tests the code that `weft advise` proposes, and its text about waits. Records are made here, and
no program runs."""

from __future__ import annotations

import pytest
from advise_runs import made

from weft.advise import analysis, fragments, places, record, show, sites, store


def nonblocking_site(
    between_us: float, waited_us: float, tests: float, window_us: float | None = None
) -> sites.Site:
    site = analysis.analyse(made("MPI_Iallreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.between_us, site.waited_us, site.tests = between_us, waited_us, tests
    site.after = sites.Windows() if window_us is None else sites.Windows([window_us], [window_us])
    return site


@pytest.mark.parametrize(
    ("between_us", "waited_us", "tests", "said"),
    [
        (10, 500, 0, "start it earlier, or wait later, right before"),
        (300, 500, 0, "the window is too short"),
        (900, 500, 0, "since nobody tested"),
        (900, 500, 3, "one every 300 µs: that is too seldom"),
        (900, 500, 900, "every 1.00 µs: that takes the time"),
        (900, 10, 0, ""),
    ],
)
def test_what_is_said_of_nonblocking_calls(between_us, waited_us, tests, said):
    text = fragments.of_nonblocking(nonblocking_site(between_us, waited_us, tests))
    assert said in text and bool(said) == bool(text)


@pytest.mark.parametrize("between_us", [10, 300])
@pytest.mark.parametrize(
    ("window_us", "hidden_us", "said"),
    [
        (None, None, "start it earlier, or wait later, right before the result is used or"),
        (4, 4, "start it earlier, since its result is used at once."),
        (200, 200, "which is 200 µs after the wait, or before what it sends is written: up to"),
        (9000, 500, "what it sends is written: up to 500 µs of it can be hidden each time."),
    ],
)
def test_a_wait_comes_later_where_the_result_is_left_alone(between_us, window_us, hidden_us, said):
    site = nonblocking_site(between_us, 500, 0, window_us)
    assert site.wait_later_us == hidden_us
    text = fragments.of_nonblocking(site)
    assert said in text and ("wait later" in text) == ("at once" not in said)


def test_a_result_of_which_little_is_known_is_not_said_to_be_used_at_once():
    site = nonblocking_site(10, 8000, 0)
    site.after = sites.Windows([3.0] * 5, [9000.0] * 5)
    said = fragments.of_nonblocking(site)
    assert "start it earlier, or wait later, right before the result is used or" in said


def test_what_plans_a_large_call_is_large():
    site = nonblocking_site(10, 500, 0)
    site.call, site.repeated, site.calls = "MPI_Allreduce_c", 1.0, 100
    assert fragments.persistent(site) == "MPI_Allreduce_init_c"


def test_where_a_result_is_used_stands_in_the_advice():
    site = nonblocking_site(10, 500, 0, 200)
    frame = places.Frame("work", "/a/f.c", 9)
    site.users = [sites.Toucher(frame, "sum += total[0];", 3, 4)]
    assert "used (f.c:9, sum += total[0];), which is" in fragments.of_nonblocking(site)


def sent_again(after_us: float, window_us: float = 500) -> store.Stored:
    """Returns a record in which each call's send buffer is written after this time, and its result
    is used after this window."""
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 0, 1_000_000)])
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = window_us * 1e3
    times = {"began_ns": 1_000_000, "ended_ns": 1_000_000 + after_us * 1e3}
    one = {"rank": 0, "site": 0, "what": record.SENT, "apart": 0, **times}
    stored["event"].extend([one, {**one, "ended_ns": one["ended_ns"] + 200_000}])
    return stored


@pytest.mark.parametrize(
    ("after_us", "gain_us", "until"),
    [
        (100, 100, "what it sends is written again, 100 µs after the call"),
        (600, 500, "first use of the result"),
    ],
)
def test_a_wait_comes_before_what_is_sent_is_written(after_us, gain_us, until):
    site = analysis.analyse(sent_again(after_us)).sites[0]
    assert site.gain_high_us == pytest.approx(gain_us)
    assert until in fragments.fragment(site).splitlines()[-1]


def test_what_is_sent_and_written_at_once_has_no_gain():
    site = analysis.analyse(sent_again(5)).sites[0]
    assert (site.gain_high_us, site.why_no_gain) == (0, analysis.WRITTEN_AT_ONCE)


PERIOD, TIME, GAP = 1_000_000, 100_000, 1_000  # times in ns


def in_a_row(sites_: tuple[int, ...], left_alone: int = 500_000, written: int = 500_000, apart=16):
    """Returns a record with consecutive calls of these sites, four times on each rank. Each result
    is left alone for this time in ns, and the sent data was not written for this time before the
    call."""
    stored = made("MPI_Allreduce", [(0, 0, 400_000), (1, 0, 400_000)])
    both = {site: row for site in set(sites_) for row in stored["site"]}
    stored.tables["site"] = [
        {**row, "rank": rank, "site": site, "offset": site, "calls": 4, "ns": 4 * TIME}
        for site, row in both.items()
        for rank in (0, 1)
    ]
    for rank, number, i in [
        (r, n, i) for r in (0, 1) for n in range(4) for i in range(len(sites_))
    ]:
        came = number * PERIOD + i * (TIME + GAP)
        left = came + TIME
        spans = [(record.CALL, came, left), (record.AFTER, left, left + left_alone)]
        for what, began, ended in [*spans, (record.BEFORE, came - written, came)]:
            one = {"rank": rank, "site": sites_[i], "what": what, "apart": apart}
            stored["event"].append({**one, "began_ns": began, "ended_ns": ended})
    return stored


def test_calls_that_do_not_need_each_other_are_told():
    advice = analysis.analyse(in_a_row((0, 1)))
    assert [(one.frames, other.frames) for one, other in advice.pairs] == [
        (advice.sites[0].frames, advice.sites[1].frames)
    ]
    text, code = show.changes(advice)[0]
    assert "do not need each other" in text and "MPI_Waitall(2, requests" in code


@pytest.mark.parametrize(("written_ns", "free"), [(GAP + TIME - 1, False), (GAP + TIME, True)])
def test_what_the_first_has_sent_stays_until_both_are_over(written_ns, free):
    stored = in_a_row((0, 1))
    for row in [row for row in stored["event"] if (row["what"], row["site"]) == (record.AFTER, 0)]:
        began = row["began_ns"]
        first_write = {"what": record.SENT, "ended_ns": began + written_ns}
        stored["event"].append({**row, **first_write})
    assert bool(analysis.analyse(stored).pairs) == free


@pytest.mark.parametrize("sites_", [(0, 1), (0, 0, 0)])
@pytest.mark.parametrize(
    "against",
    [
        {"left_alone": GAP + TIME - 1},  # the result is used before the end of the second call
        {"written": TIME + GAP - 1},  # the sent data is written after the begin of the first call
        {"apart": 0},  # one call writes memory that the other uses
    ],
)
def test_one_reason_is_enough_that_calls_need_each_other(sites_, against):
    assert analysis.analyse(in_a_row(sites_)).pairs
    assert analysis.analyse(in_a_row(sites_, **against)).pairs == []


def test_all_calls_of_a_loop_are_held_against_each_other():
    """Each call is compared with all others in a loop, not only with the one before it: every other
    call may have the same buffer."""
    assert analysis.analyse(in_a_row((0, 0, 0), apart=1)).pairs == []
    assert analysis.analyse(in_a_row((0, 0, 0), left_alone=2 * GAP + TIME)).pairs == []
    assert analysis.analyse(in_a_row((0, 0), apart=1)).pairs == []  # two calls are too few to tell


@pytest.mark.parametrize("what", [record.AFTER, record.BEFORE])
def test_what_was_not_observed_on_each_rank_is_not_advised_on(what):
    stored = in_a_row((0, 1))
    stored.tables["event"] = [
        row for row in stored["event"] if (row["rank"], row["what"]) != (1, what)
    ]
    assert analysis.analyse(stored).pairs == []


def test_of_a_record_without_buffers_nothing_is_known():
    stored = in_a_row((0, 1))
    for row in stored["event"]:
        row["apart"] = 0  # older records have this default
    assert analysis.analyse(stored).pairs == []


@pytest.mark.parametrize("language", ["c", "c++", "fortran", "python"])
def test_calls_of_one_place_in_a_row_are_told(language):
    advice = analysis.analyse(in_a_row((0, 0, 0, 0)))
    assert advice.pairs == [(advice.sites[0], advice.sites[0])]
    advice.sites[0].frames = [places.Frame("work", f"f.{SUFFIXES[language]}", 7)]
    text, code = show.changes(advice)[0]
    assert "come in a row and do not need each other" in text
    assert "Waitall(" in code and ("Iallreduce(…" in code or "Iallgather(…" in code)


SUFFIXES = {"c": "c", "c++": "cc", "fortran": "f90", "python": "py"}


def message_wait(**more) -> dict:
    """Returns a row about waits of rank 0, which waits for two messages at a time, ten times."""
    row = {"rank": 0, "module": "m", "offset": 9, "place": "", "call": "MPI_Waitall", "binding": 0}
    row |= {"waits": 10, "messages": 20, "bytes": 20 << 20, "between_ns": 10_000_000}
    return row | {"waited_ns": 4_000_000, "tests": 0} | more


@pytest.mark.parametrize(
    ("more", "said", "code"),
    [
        ({}, "after 1.00 ms in which they could travel. Either the neighbours", False),
        ({}, "waits for 2 messages of 1 MiB: 20.0 % of the run time, 400 µs each", False),
        ({"bytes": 20 << 10}, "So short ones travel by themselves", False),
        ({"between_ns": 10_000}, "right after they are started (1.00 µs)", True),
    ],
)
def test_waits_for_messages_are_told(more, said, code):
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    stored["message_wait"].append(message_wait(**more))
    text, fragment = show.changes(analysis.analyse(stored))[-1]
    assert text.startswith("In m+0x9, ") and said in text
    assert bool(fragment) == code


def test_the_headline_names_waits_for_messages():
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    assert show.headline(analysis.analyse(stored)).endswith("little to win, whatever is changed.")
    stored["message_wait"].append(message_wait())
    assert show.headline(analysis.analyse(stored)).endswith("20.0 % waits for messages.")


def test_short_waits_for_messages_are_not_told():
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    stored["message_wait"].append(message_wait(waited_ns=900_000))
    assert show.changes(analysis.analyse(stored)) == []


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


OBJECT_CALLS = {
    # These are the two calls of one method, and the call that mpi4py makes for an allreduce of
    # objects.
    ("MPI_Allgather_c", "return comm.allgather(mine)"): "allgather",
    ("MPI_Allgatherv_c", "return comm.allgather(mine)"): "allgather",
    ("MPI_Bcast", "total = self.comm.allreduce(part, op=MPI.SUM)"): "allreduce",
    ("MPI_Gatherv", "all = comm.bcast(comm.gather(mine))"): "gather",
    ("MPI_Allreduce", "comm.Allreduce(numpy.add.reduce(part), total)"): "",
    ("MPI_Allreduce", ""): "",
    ("MPI_Barrier", "comm.barrier()"): "",
}


@pytest.mark.parametrize(("call", "source"), OBJECT_CALLS)
def test_methods_that_pickle_objects_are_told(call, source):
    site = analysis.analyse(made(call, [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.frames, site.source = [places.Frame("work", "a.py", 3)], source
    assert site.object_method == OBJECT_CALLS[call, source]
    site.frames = [places.Frame("work", "a.c", 3)]
    assert site.object_method == ""


@pytest.mark.parametrize("name", sites.OBJECT_METHODS)
def test_objects_become_arrays(name):
    site = analysis.analyse(made("MPI_Bcast", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.frames, site.source = [places.Frame("work", "a.py", 3)], f"x = comm.{name}(y)"
    site.calls, site.repeated = 20, 1.0
    text = fragments.fragment(site)
    assert "lower-case methods of collectives have no non-blocking form" in text
    assert f"request = comm.I{name}(" in text and "numpy." in text
    compile(text.replace("…", "..."), "fragment", "exec")
    assert f"comm.I{name}(…)" in fragments.together(site, site)
    assert fragments.planned(site) == ""


def test_what_pickles_is_said_where_no_change_is_proposed():
    stored = made("MPI_Bcast", [(0, 0, 1_000_000), (1, 0, 1_000_000)])
    stored["time_window"].clear()
    for row in stored["site"]:
        row["place"] = "/a/app.py:3:work"
    stored["source"].append({"file": "/a/app.py", "line": 3, "text": "x = comm.bcast(y)"})
    ((text, code),) = show.changes(analysis.analyse(stored))
    assert text.startswith("In work app.py:3, comm.bcast pickles objects")
    assert "comm.Ibcast(data)" in code and "pickles" not in code


def test_a_call_that_could_be_planned_is_named_with_its_share():
    advice = analysis.analyse(made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 0, 1_000_000)]))
    advice.sites[0].calls, advice.sites[0].repeated = 20, 1.0
    said = [text for text, _ in show.changes(advice)]
    assert any("10.0 % of the run time, always has the same arguments" in text for text in said)


def test_of_the_reasons_those_of_known_windows_come_first_and_each_place_once():
    advice = analysis.analyse(made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 0, 1_000_000)]))
    (known,) = advice.sites
    known.gain_high_us, known.why_no_gain = 0, "all cores of the node compute"
    unknown = nonblocking_site(10, 500, 0)
    unknown.call, unknown.unknown["after"] = "MPI_Bcast", {"the result is on the stack": 1}
    advice.sites = [unknown, unknown, known]
    first, *others = show.reasons(advice)
    assert first == "nothing to win by a change: all cores of the node compute (work f.c:7)"
    assert "window after unknown: the result is on the stack (work f.c:7)" in others
