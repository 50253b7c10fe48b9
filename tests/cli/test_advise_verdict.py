"""Tests the first line of `weft advise`, which names the gain with the least effort, with a
measured figure if there is one. Also tests how long replays may take."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise_runs import made

from weft.advise import analysis, show, store, verify
from weft.advise.sites import FREE, Spread
from weft.advise.stretches import stretches_of
from weft.system import mpi_libraries


def advice_of(free_us: list[float], window_ns: int = 500_000, cores: int = 4) -> analysis.Advice:
    """Returns advice on a run of 10 ms with 9 ms in one call, which Weft shortens by these us in
    the replays."""
    stored = made("MPI_Allreduce", [(0, 0, 9_000_000), (1, 0, 9_000_000)])
    stored.about["command"] = ["mpiexec", "-n", "2", "./app"]
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = window_ns
    for row in stored["rank"]:
        row["cores"] = cores
    for row in stored["site"]:
        row["comm_nodes"] = 1 if cores == 1 else 2
    stored["replay"].extend({"rank": 0, "site": 0, "form": FREE, "us": us} for us in free_us)
    return analysis.analyse(stored)


def test_what_costs_nothing_comes_first():
    said = show.verdict(advice_of([]))
    assert said.startswith("90 % of the time is in MPI_Allreduce; Weft may shorten it without")
    assert said.endswith("weft try -- mpiexec -n 2 ./app")
    measured = show.verdict(advice_of([5000] * 6))
    assert "without a change, the run is 2.0 times as fast" in measured
    assert measured.endswith("weft try -- mpiexec -n 2 ./app")
    assert show.free(advice_of([5000] * 6)) == (
        "Without a change: replaying these calls, Weft took 5.00 ms less (50.0 % of the run)."
    )


def test_a_rank_does_not_know_its_launcher_which_is_named_by_the_number_of_ranks():
    advice = advice_of([])
    advice.command, advice.inside = ["./app"], True
    assert show.try_it(advice) == "weft try -- mpiexec -n 2 ./app"
    assert show.verify_it(advice) == "weft advise --verify -- mpiexec -n 2 ./app"


@pytest.mark.parametrize(
    "free_us",
    [
        [-100, 0, 50, 0, 0, 0],
        [100, 150, 199, 150, 150, 150],  # the gain is within 2 % of the run
    ],
)
def test_where_weft_alone_wins_nothing_the_change_is_named(free_us):
    said = show.verdict(advice_of(free_us))
    assert "a change of the program wins at most 5.0 % of the run" in said
    assert show.NO_FREE_GAIN in said and "weft try" not in said
    assert show.free(advice_of(free_us)).startswith("Without a change: no clear gain; replaying")


@pytest.mark.parametrize(
    "free_us",
    [
        [-1, 3000, 3000, 3000, 3000, 3500],  # one round shows no gain
        [190, 400, 400, 400, 400, 3500],  # the lower end is within 2 % of the run
        [3000, 3000, 3500],  # there are too few rounds
    ],
)
def test_what_replays_leave_open_is_said(free_us):
    advice = advice_of(free_us)
    said = show.verdict(advice)
    assert (
        "Weft may shorten it without a change, by at most 35.0 % of the run, which replays on this"
        " machine leave open" in said
    )
    assert said.endswith("weft try -- mpiexec -n 2 ./app")
    assert "whether there is a gain is open; replaying these calls" in show.free(advice)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"window_ns": 5_000}, analysis.AT_ONCE),
        ({"cores": 1}, "the data are moved by the same cores"),
    ],
)
def test_where_nothing_is_won_that_is_said_and_why(more, why):
    said = show.verdict(advice_of([0, 0, 0], **more))
    assert "nothing is known to win" in said and why in said


def test_with_little_in_collectives_little_is_won():
    stored = made("MPI_Allreduce", [(0, 0, 100_000), (1, 0, 100_000)])
    assert show.verdict(analysis.analyse(stored)).endswith("little to win, whatever is changed.")


def test_of_many_calls_none_is_named():
    advice = advice_of([])
    other = advice_of([]).sites[0]
    other.call = "MPI_Bcast"
    advice.sites.append(other)
    assert show.verdict(advice).startswith("90 % of the time is in collectives;")


def test_a_gain_of_none_is_no_figure():
    assert show.gain(advice_of([], window_ns=5_000).sites[0]) == "none"


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_no_round_begins_that_would_end_after_the_budget():
    clock = Clock()
    pace = verify.Pace(40.0, 9, clock)
    rounds = 0
    while pace.has_time():
        rounds += 1
        clock.now += 12.0
        pace.round_s.append(12.0)
    assert rounds == 3  # a fourth round would end at 48 s
    assert pace.progress() == "round 4 of 9, about 12 s left"


def test_progress_says_what_is_left():
    clock = Clock()
    pace = verify.Pace(1000.0, 9, clock)
    for _ in range(2):
        clock.now += 5.0
        pace.round_s.append(5.0)
    assert pace.progress() == "round 3 of 9, about 35 s left"


def test_debians_mpich_runs_the_program_of_mpich(tmp_path):
    debians = tmp_path / "lib" / "libmpich.so.12"
    debians.parent.mkdir()
    debians.touch()
    assert verify.program_for(debians) == verify.program_for(Path("/lib/libmpi.so.12"))
    assert verify.libraries_of(debians, tmp_path) == f"{tmp_path}:{debians.parent}"
    assert (tmp_path / "libmpi.so.12").resolve() == debians
    (debians.parent / "libmpi.so.12").touch()
    assert verify.libraries_of(debians, tmp_path) == str(debians.parent)


def test_a_replay_that_is_disturbed_wins_no_more():
    """If a replay takes twice as long as the run, half of its gain counts."""

    class OneStretch:
        recorded_ns = 1_000_000

    wins = [verify.disturbed(OneStretch(), us) for us in (1000.0, 2000.0, 500.0)]
    assert wins == [1.0, 0.5, 1.0]


def test_no_more_is_won_without_a_change_than_the_calls_take():
    """The wait for a late rank does not count. A replay with more ranks than cores may make it look
    long."""
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    (site,) = analysis.analyse(stored).sites
    found = stretches_of(stored, [site])
    ((*_, form, won),) = verify.won(found, [], {(0, 0): 90_000.0}, {(0, 0): 100.0})
    assert (form, won) == (FREE, 400)
    stored["replay"].extend({"rank": 0, "site": 0, "form": FREE, "us": us} for us in (650.0, 690.0))
    (site,) = analysis.analyse(stored).sites
    assert site.unchanged.high == pytest.approx(400)


def test_a_sample_of_the_calls_is_run_again(program, advise, tmp_path):
    """A short replay gives the first line its figure. With --no-sample there is no replay."""
    mpi = mpi_libraries.implementation("mpich")
    command = [program(mpi, "advise_ends.c"), "blocking"]
    done = advise(mpi, command, "--sample")
    assert done.returncode == 0, done.stderr
    assert "some of the calls are run again" in done.stderr
    rows = store.read(tmp_path / "weft-advise.sqlite")["replay"]
    assert {row["form"] for row in rows} == {FREE}
    samples = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite")).sites[0].unchanged
    assert isinstance(samples, Spread) and 2 <= samples.samples <= verify.SAMPLE_ROUNDS
    assert "replay" in done.stdout
    advise(mpi, command)
    assert store.read(tmp_path / "weft-advise.sqlite")["replay"] == []


def test_a_rank_of_a_job_starts_no_other_job(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "blocking"], "--sample", inside=True)
    assert done.returncode == 0, done.stderr
    assert "run again" not in done.stderr and "Weft may shorten it" in done.stdout
    assert "weft try -- mpiexec -n " in done.stdout
    assert store.read(tmp_path / "weft-advise.sqlite")["replay"] == []
