"""Tests stretches of recorded collectives, and their steps in a replay."""

import subprocess
from pathlib import Path

import pytest

from weft.advise import sites, store, stretches, verify
from weft.advise.places import Frame
from weft.system import mpi_libraries

MS = 1_000_000  # one millisecond in ns


def site(number: int, call: str = "MPI_Allreduce", window_us: float = 0.0, **more) -> sites.Site:
    """Returns the site of two ranks, both of which have it under this number."""
    after = sites.Windows(least=[window_us], most=[window_us])
    nothing = sites.Windows(least=[], most=[])
    values = {
        "frames": [Frame("main", "app.c", number)],
        "call": call,
        "communicator": "MPI_COMM_WORLD",
        "comm_size": 2,
        "nodes": 2,
        "bytes": 1024.0,
        "calls": 10,
        "time_us": 10_000.0,
        "share": 0.5,
        "waiting": 0.0,
        "arrivals": 10,
        "after": after,
        "before": nothing,
        "unknown": {},
        "gain_high_us": 1.0,
        "why_no_gain": "",
        "members": {(0, number), (1, number)},
    }
    return sites.Site(**(values | more))


def stored(calls: list[tuple[int, list[tuple[float, float]]]], root: int = 0) -> store.Stored:
    """Returns a record of calls. `calls` has for each the number of its site, and for each rank the
    times in ms at which it came and left."""
    rows = [
        {"rank": rank, "site": number, "comm": "1", "sequence": sequence, "comm_rank": rank}
        | {"root": root, "arrived_ns": int(came * MS), "left_ns": int(left * MS)}
        for sequence, (number, ranks) in enumerate(calls)
        for rank, (came, left) in enumerate(ranks)
    ]
    return store.Stored(Path("made"), {}, {"arrival": rows, "rank": [{"ranks": 2}] * 2}, [])


def steps(rank: int, made: store.Stored, all_sites: list, changed=None) -> list[str]:
    (stretch,) = stretches.stretches_of(made, all_sites)
    numbers = {call.operation: i for i, call in enumerate(stretch.calls)}
    form = [stretches.Changed(changed)] if changed else []
    return stretches.Steps(rank, stretch, numbers, form).words


THREE = [(0, [(0, 2), (1, 2)]), (0, [(5, 6), (5, 6)]), (0, [(9, 10), (8, 10)])]


def test_ranks_come_as_late_as_they_came():
    made = stored(THREE)
    assert steps(0, made, [site(0)]) == ["b 2", "c 3000.0", "b 2", "c 3000.0", "b 2"]
    assert steps(1, made, [site(0)]) == ["c 1000.0", "b 2", "c 3000.0", "b 2", "c 2000.0", "b 2"]


def test_a_changed_call_is_waited_for_when_its_result_was_touched():
    one = site(0, window_us=1000)
    assert steps(0, stored(THREE), [one], one) == [
        *("s 2 0", "c 1000.0", "w 0", "c 2000.0"),
        *("s 2 1", "c 1000.0", "w 1", "c 2000.0"),
        *("s 2 2", "c 1000.0", "w 2"),
    ]


def test_a_window_may_go_beyond_another_call():
    first, second = site(0, window_us=2500), site(1, bytes=64.0)
    made = stored([(0, [(0, 1)] * 2), (1, [(1, 2)] * 2), (1, [(4, 5)] * 2)])
    assert steps(0, made, [first, second], first) == [
        *("s 0 0", "b 2", "c 1500.0", "w 0", "c 500.0", "b 2")
    ]


def test_a_call_that_uses_the_same_buffers_is_waited_for_first():
    one = site(0, window_us=50_000)
    assert steps(0, stored(THREE), [one], one) == [
        *("s 2 0", "c 3000.0", "w 0", "s 2 1", "c 3000.0", "w 1", "s 2 2"),
        *("c 50000.0", "w 2"),
    ]


def test_the_change_may_start_a_call_earlier():
    one = site(0, window_us=1000, earlier_us=1.0, before=sites.Windows(least=[2000], most=[2000]))
    assert steps(0, stored(THREE), [one], one)[:7] == [
        *("s 2 0", "c 1000.0", "w 0", "s 2 1", "c 2000.0", "c 1000.0", "w 1")
    ]


def test_what_is_non_blocking_already_stays_so():
    one = site(0, "MPI_Iallreduce", between_us=1000, waited_us=500)
    # Of the three milliseconds between two calls the record spent half a millisecond waiting.
    assert steps(0, stored(THREE), [one])[:5] == [
        *("s 2 0", "c 1000.0", "w 0", "c 1500.0", "s 2 1")
    ]


def test_what_is_in_flight_together_has_buffers_of_its_own():
    """There are three non-blocking calls of one kind. Each is waited for after the next one has
    begun."""
    one = site(0, "MPI_Iallreduce", between_us=4000, waited_us=0)
    made = stored([(0, [(ms, ms)] * 2) for ms in (0, 3, 6)])
    plan = stretches.plan(made, stretches.stretches_of(made, [one]), []).splitlines()
    assert plan[2:5] == ["2", "allreduce 1024 0 sum", "allreduce 1024 0 sum"]
    assert plan[6] == "9 s 0 0 c 3000.0 s 1 1 c 1000.0 w 0 c 2000.0 s 0 2 w 1 w 2"


def test_no_more_are_in_flight_together_than_there_are_buffers_for():
    one = site(0, "MPI_Iallreduce", between_us=100_000, waited_us=0)
    made = stored([(0, [(ms, ms)] * 2) for ms in range(20)])
    plan = stretches.plan(made, stretches.stretches_of(made, [one]), []).splitlines()
    assert plan[2] == str(stretches.MOST_IN_FLIGHT)
    *_, steps_of_rank = plan
    before, _, _ = steps_of_rank.partition(f" {stretches.MOST_IN_FLIGHT} c")
    assert before.split()[-4:-2] == ["w", "0"] and before.count("w") == 1


def test_a_window_after_a_wait_is_no_computation_after_the_start():
    one = site(0, "MPI_Iallreduce", window_us=700, between_us=1000, waited_us=500)
    assert steps(0, stored(THREE), [one])[-2:] == ["s 2 2", "w 2"]


def test_calls_that_not_all_ranks_kept_are_computation():
    made = stored([*THREE, (0, [(15, 16), (15, 16)])])
    made["arrival"][2:3] = []
    found = stretches.calls_of(made, [site(0)])
    assert [call.sequence for call in found] == [0, 2, 3]


def test_a_stretch_ends_where_calls_were_not_kept():
    made = stored([(0, [(i, i + 0.5)] * 2) for i in range(40)])
    rows = made["arrival"]
    rows[:] = [row for row in rows if row["sequence"] not in range(10, 20)]
    found = stretches.stretches_of(made, [site(0)])
    assert [[call.sequence for call in one.calls] for one in found] == [
        list(range(10)),
        list(range(20, 40)),
    ]


def test_calls_that_cannot_be_replayed_are_no_gap():
    calls = [(i % 2, [(i, i + 0.5)] * 2) for i in range(20)]
    made, known = stored(calls), [site(0), site(1, "MPI_Exscan")]
    (stretch,) = stretches.stretches_of(made, known)
    assert [call.sequence for call in stretch.calls] == list(range(0, 20, 2))


def test_each_ranks_own_order_is_kept_across_communicators():
    """The communicators are a row and a column of a grid. One rank of the row arrives late."""
    rows = [("row", 0, 0, 10, 11), ("row", 1, 0, 0, 11), ("column", 0, 0, 11, 12)]
    rows += [("column", 2, 0, 1, 12)]
    row, column = site(0), site(1)
    row.members, column.members = {(0, 0), (1, 0)}, {(0, 1), (2, 1)}
    arrivals = [
        {"rank": rank, "site": int(comm == "column"), "comm": comm, "sequence": sequence}
        | {"comm_rank": 0, "root": 0, "arrived_ns": int(came * MS), "left_ns": int(left * MS)}
        for comm, rank, sequence, came, left in rows
    ]
    arrivals[0]["arrived_ns"], arrivals[1]["arrived_ns"] = 10 * MS, 10 * MS
    made = store.Stored(Path("made"), {}, {"arrival": arrivals, "rank": [{"ranks": 3}]}, [])
    # The first rank of the column arrived first, at 1 ms.
    assert [call.comm for call in stretches.calls_of(made, [row, column])] == ["row", "column"]


def test_after_orders_that_contradict_each_other_each_ranks_own_order_is_kept():
    """Both ranks of the column call "row" before it, although the column began first."""
    calls = [
        stretches.Call("a", 0, {0: {"arrived_ns": 1}, 1: {"arrived_ns": 4}}, {}),
        stretches.Call("b", 0, {0: {"arrived_ns": 2}, 1: {"arrived_ns": 3}}, {}),
        stretches.Call("column", 0, {0: {"arrived_ns": 21}, 2: {"arrived_ns": 11}}, {}),
        stretches.Call("row", 0, {0: {"arrived_ns": 20}, 1: {"arrived_ns": 19}}, {}),
    ]
    order = [call.comm for call in stretches.in_order(calls)]
    assert order == ["a", "b", "row", "column"]


def test_orders_that_contradict_each_other_end():
    calls = [
        stretches.Call("a", 0, {0: {"arrived_ns": 1}, 1: {"arrived_ns": 4}}, {}),
        stretches.Call("b", 0, {0: {"arrived_ns": 2}, 1: {"arrived_ns": 3}}, {}),
    ]
    assert [call.comm for call in stretches.in_order(calls)] == ["a", "b"]


def test_calls_are_counted_as_one_rank_makes_them():
    """One place in the program calls the collective on two communicators at the same time."""
    one = site(0)
    calls = [
        stretches.Call(comm, n, {rank: {} for rank in ranks}, dict.fromkeys(ranks, one))
        for n in range(3)
        for comm, ranks in (("left", (0, 1)), ("right", (2, 3)))
    ]
    assert stretches.Stretch(calls).calls_at(one) == 3


def test_a_site_that_is_changed_is_in_some_stretch():
    """The changed site has few calls, at the end of a long run."""
    calls = [(0, [(10 * i, 10 * i + 5)] * 2) for i in range(2000)]
    for i in range(1940, 1950):
        calls[i] = (1, calls[i][1])
    common, rare = site(0), site(1)
    found = stretches.stretches_of(stored(calls), [common, rare], [rare])
    assert any(one.calls_at(rare) for one in found)


def test_what_others_than_the_root_change_all_ranks_start():
    at_root, others = site(0, "MPI_Scatter", bytes=4096.0), site(1, "MPI_Scatter", window_us=100)
    at_root.members, others.members = {(0, 0)}, {(1, 1)}
    made = stored([(0, [(i, i + 0.5)] * 2) for i in range(3)])
    for row in made["arrival"]:
        row["site"] = row["rank"]
    (stretch,) = stretches.stretches_of(made, [at_root, others])
    assert stretch.calls_at(others) == 3
    numbers = {call.operation: 0 for call in stretch.calls}
    for rank in (0, 1):
        form = [stretches.Changed(others)]
        words = stretches.Steps(rank, stretch, numbers, form).words
        assert [word[0] for word in words if word[0] in "bs"] == ["s"] * 3


def test_a_long_run_is_replayed_in_a_few_stretches():
    made = stored([(0, [(10 * i, 10 * i + 5)] * 2) for i in range(2000)])
    found = stretches.stretches_of(made, [site(0)])
    assert 2 <= len(found) <= stretches.MOST
    assert all(stretches.LONG_NS <= one.length_ns <= 1.2 * stretches.LONG_NS for one in found)
    assert found[0].calls[0].sequence > 0 and found[-1].calls[-1].sequence < 1999


def test_the_root_tells_the_bytes_of_a_scatter():
    at_root, others = site(0, "MPI_Scatter", bytes=4096.0), site(1, "MPI_Scatter", bytes=2048.0)
    at_root.members, others.members = {(1, 0)}, {(0, 1)}
    made = stored([(0, [(0, 1), (0, 1)])] * 3, root=1)
    for row in made["arrival"]:
        row["site"] = 0 if row["rank"] == 1 else 1
    (call, *_) = stretches.calls_of(made, [at_root, others])
    assert call.operation == ("scatter", 2048, (0, 1), "sum")


def test_calls_beyond_the_sites_that_a_rank_keeps_are_not_replayed():
    """Such calls are of many kinds, and differ between ranks."""
    others = site(0, frames=[Frame("call sites beyond the first 1023", "", 0)])
    assert stretches.calls_of(stored(THREE), [others]) == []


def test_operators_are_told_apart():
    made = stored(THREE)
    for op, replayed in (("min", "min"), ("other", "sum"), ("sum", "sum")):
        (call, *_) = stretches.calls_of(made, [site(0, op=op)])
        assert call.operation == ("allreduce", 1024, (0, 1), replayed)


def test_what_was_won_belongs_to_the_sites_of_a_stretch():
    first, second = site(0), site(1, bytes=64.0)
    made = stored([(0, [(0, 3)] * 2), (1, [(4, 5)] * 2), (0, [(6, 9)] * 2), (1, [(10, 11)] * 2)])
    (stretch,) = stretches.stretches_of(made, [first, second])
    library, auto = {(0, 0): 1000.0}, {(0, 0): 900.0, (0, 1): 700.0}
    rows = verify.won([stretch], [first], library, auto)
    # Of the calls' eight milliseconds six belong to the first site.
    assert rows == [
        (0, 0, sites.FREE, pytest.approx(100 * 6 / 8 / 2)),
        (0, 1, sites.FREE, pytest.approx(100 * 2 / 8 / 2)),
        (0, 0, sites.WITH_CHANGE, 100.0),
    ]
    # There are two stretches, one of which lost 300 us.
    library, auto = library | {(1, 0): 600.0}, auto | {(1, 0): 900.0, (1, 1): 900.0}
    rows = verify.won([stretch, stretch], [first], library, auto)
    assert rows[0] == (0, 0, sites.FREE, pytest.approx(-200 * 6 / 8 / 4))
    assert rows[-1] == (0, 0, sites.WITH_CHANGE, 50.0)


def test_what_is_won_at_calls_of_several_sites_is_won_at_each():
    """The root of a gather and the other ranks have different sites. Each rank gains at its own
    site."""
    at_root = site(0, "MPI_Gather", members={(0, 0)}, bytes=4096.0)
    others = site(1, "MPI_Gather", members={(1, 1)})
    made = stored([(0, [(0, 3)] * 2), (0, [(4, 7)] * 2)])
    for row in made["arrival"]:
        row["site"] = row["rank"]
    (stretch,) = stretches.stretches_of(made, [at_root, others])
    rows = verify.won([stretch], [], {(0, 0): 1000.0}, {(0, 0): 900.0})
    assert sorted(rows) == [(0, 0, sites.FREE, 50.0), (1, 1, sites.FREE, 50.0)]


@pytest.mark.parametrize("name", [verify.LIBRARY, verify.AUTO])
def test_the_replay_program_takes_all_steps(tmp_path, name):
    """There are three ranks, the last two of which also have a communicator."""
    mpi = mpi_libraries.implementation("mpich")
    calls = [
        f"{call} 64 {i % 2} max" for i, call in enumerate((*stretches.KNOWN, *stretches.ROOTED))
    ]
    blocking = [f"b {i}" for i in range(len(calls))]
    started = [f"s {i} {i}" for i in range(len(calls))] + [f"w {i}" for i in range(len(calls))]
    lines = ["2", "3 0 1 2", "2 1 2", str(len(calls)), *calls, "1 2"]
    for steps in (blocking, started):
        for rank in range(3):
            # Calls of the second communicator have odd numbers. Waits have the numbers of their
            # slots.
            own = [one for one in steps if rank > 0 or int(one.split()[1]) % 2 == 0]
            lines.append(" ".join([str(1 + len(own)), "c 20.0", *own]))
    plan, written = tmp_path / "plan", tmp_path / "times"
    plan.write_text("\n".join(lines) + "\n")
    words = [*mpi.launcher(3), mpi.program("replay"), name, plan, written]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = verify.read_times(written)
    forms = {0} if name == verify.LIBRARY else {0, 1}
    assert set(found) == {(run, form) for run in (verify.FIRST_RUN, 0) for form in forms}
    assert all(us >= 20 for us in found.values())
    rates = [float(rate) for rate in Path(f"{plan}.rates").read_text().split()]
    assert len(rates) == 3 and all(rate > 0 for rate in rates)


def test_all_jobs_of_a_replay_compute_the_same(tmp_path):
    """The second job uses the first one's rates of computation, although it could measure
    others."""
    mpi = mpi_libraries.implementation("mpich")
    plan, written = tmp_path / "plan", tmp_path / "times"
    plan.write_text("1\n2 0 1\n1\nbarrier 8 0 sum\n1 1\n1 c 10000.0\n1 c 10000.0\n")
    words = [*mpi.launcher(2), mpi.program("replay"), verify.LIBRARY, plan, written]

    def us_at(rates: str) -> float:
        Path(f"{plan}.rates").write_text(rates)
        written.unlink(missing_ok=True)
        subprocess.run([str(word) for word in words], check=True, timeout=60)
        return verify.read_times(written)[0, 0]

    slow, fast = us_at("1\n1\n"), us_at("1000\n1000\n")
    assert fast > 20 * slow


@pytest.mark.parametrize(
    ("won_us", "narrow"),
    [([100.0] * 9, True), ([*range(0, 900, 100)], False), ([0.001 * i for i in range(9)], True)],
)
def test_rounds_go_on_until_a_gain_is_narrow(won_us, narrow):
    """There are ten calls in a run of 10 ms. The middle case has gains between 100 and 700 us per
    call."""
    one = site(0, gain_high_us=10_000.0)
    rows = [(0, 0, sites.WITH_CHANGE, us) for us in won_us]
    assert verify.is_narrow(rows, [one], 10_000.0) == narrow
