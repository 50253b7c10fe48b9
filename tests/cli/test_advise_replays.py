"""Tests `weft advise --verify`: what is replayed, where, and when it is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from advise_runs import FEW_ROUNDS, LEAST_ROUNDS, MOST_ROUNDS, made, sites

from weft.advise import analysis, store, stretches, verify
from weft.advise.patch import diff, promise, wish
from weft.advise.sites import FREE, WITH_CHANGE
from weft.system import mpi_libraries

SOURCES = Path(__file__).parent / "programs"


def test_in_a_batch_script_replays_are_not_refused(program, advise):
    """A batch script has the environment variables of a rank."""
    mpi = mpi_libraries.implementation("mpich")
    command = [program(mpi, "advise_ends.c"), "none"]
    done = advise(mpi, command, "--verify", variables={"SLURM_PROCID": "0"})
    assert "before the launcher" not in done.stderr
    assert done.stdout.count("called no collective") == 1


@pytest.mark.parametrize("how", ["blocking", "nonblocking"])
def test_verify_replays_with_and_without_weft(program, advise, tmp_path, how):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), how], "--verify", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    rows = store.read(tmp_path / "weft-advise.sqlite")["replay"]
    # All cores compute, so that no change is proposed.
    assert {row["form"] for row in rows} == {FREE}
    assert len(rows) == LEAST_ROUNDS  # without a change no further rounds are run
    (site,) = sites(tmp_path / "s.json").values()
    assert isinstance(site["free_us"], float)
    said = " ".join(done.stdout.split())
    assert "replaying these calls, Weft took" in said


def test_verify_replays_blocks_for_each_rank(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), "blocks"], "--verify")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    calls = {(row["rank"], row["site"]): row["call"] for row in stored["site"]}
    replayed = [calls[row["rank"], row["site"]] for row in stored["replay"]]
    # The root's site has all blocks, and differs from that of the other ranks. One collective is in
    # place.
    sites = {"MPI_Gather": 2, "MPI_Scatter": 2, "MPI_Reduce_scatter": 2}
    for call in (*sites, "MPI_Reduce_scatter_block"):
        assert replayed.count(call) == sites.get(call, 1) * LEAST_ROUNDS, call
    for row in stored["site"]:
        if row["call"].startswith("MPI_Reduce_scatter"):
            assert row["bytes"] == 8000 * row["calls"]  # the bytes are those of all ranks' blocks


@pytest.mark.one_library
def test_calls_belong_together_whatever_the_order_of_communicators_and_starts(
    mpi, program, advise, tmp_path
):
    done = advise(mpi, [program(mpi, "advise_orders.c")])
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    calls = {(row["rank"], row["site"]): row["call"] for row in stored["site"]}
    together = defaultdict(list)
    for row in stored["arrival"]:
        together[row["comm"], row["sequence"]].append(calls[row["rank"], row["site"]])
    made = Counter(tuple(both) for both in together.values())
    names = ("Iallreduce", "Ibcast", "Ireduce", "Allreduce_init", "Bcast_init")
    assert made == {(f"MPI_{name}",) * 2: 6 for name in names}
    replayed = stretches.calls_of(stored, analysis.analyse(stored).sites)
    assert Counter(call.site.call for call in replayed) == {f"MPI_{name}": 6 for name in names}


def kept_in(seen: list):
    """Returns what keeps the times of a round and makes all of them equal, since times of a busy
    machine say nothing."""

    def of_round(times: tuple[verify.Times, verify.Times]):
        seen.append(times)
        return tuple(dict.fromkeys(one, 1000.0) for one in times)

    return of_round


@pytest.mark.one_library
def test_what_a_patch_makes_is_replayed(mpi, program, advise, tmp_path, monkeypatch):
    """Here the call is planned."""
    pytest.importorskip("tree_sitter_c")
    shutil.copy(SOURCES / "patch" / "live.c", tmp_path)
    app = program(mpi, tmp_path / "live.c")
    done = advise(mpi, [app], "--overhead", "50%", "--no-sample")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    advice = analysis.analyse(stored)
    [site] = advice.sites
    own = wish.wish_of(site, [site], str(app))
    own.plan = "MPI_Allreduce_init"
    [made] = diff.make([own]).changes
    assert made.is_planned
    for name, value in mpi.environment().items():
        monkeypatch.setenv(name, value)
    command = [str(word) for word in [*mpi.launcher(2), app]]
    rounds, seen = verify.rounds, []
    monkeypatch.setattr(verify, "rounds", lambda *words: map(kept_in(seen), rounds(*words)))
    found = promise.replayed(command, mpi.name, stored, advice, [made], 0.0)
    assert found.changed == found.with_weft == [1.0, 1.0]
    assert all(us > 0 for one in seen for times in one for us in times.values())
    # The first run of each form is timed, too: without Weft there is one form.
    forms = [{form for stretch, form in one if stretch == verify.FIRST_RUN} for one in seen[0]]
    assert forms == [{0}, {0, 1}]
    own.call = "MPI_Alltoallw"
    site.call = own.call
    with pytest.raises(promise.NotReplayed, match="MPI_Alltoallw is not among the calls"):
        promise.replayed(command, mpi.name, stored, advice, [made], 0.0)


def test_verify_in_the_lab(weft, environment, tmp_path, permitted_lab):
    """If the changed site may gain, its change is replayed, too."""
    mpi = mpi_libraries.implementation("mpich")
    program = [mpi.program("gemv_alltoall"), "--order", 1000, "--bytes", 200_000]
    command = [*program, "--form", "blocking", "--repetitions", 6]
    lab = [weft, "lab", "run", "--mpi", "mpich", "--nodes", 2, "--"]
    advise = [sys.executable, "-c", FEW_ROUNDS, "advise", "--verify", "--overhead", "50%"]
    done = subprocess.run(
        [str(word) for word in (*advise, "--", *lab, *command)],
        env={**environment, **mpi.environment()},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = store.read(tmp_path / "weft-advise.sqlite")["replay"]
    assert {row["form"] for row in rows} == {FREE, WITH_CHANGE}
    of_sites = Counter((r["rank"], r["site"]) for r in rows if r["form"] == WITH_CHANGE)
    (rounds,) = set(of_sites.values())
    assert LEAST_ROUNDS <= rounds <= MOST_ROUNDS
    if analysis.analyse(store.read(tmp_path / "weft-advise.sqlite")).best:
        assert f"{rounds} replays say" in " ".join(done.stdout.split())


@pytest.mark.one_library
def test_verify_behind_a_launcher_is_refused(mpi, program, advise):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "none"], "--verify", inside=True)
    assert done.returncode != 0
    assert "put weft advise before the launcher" in done.stderr


def test_what_failed_is_not_replayed_and_that_is_said(program, advise):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), "exit"], "--verify")
    assert done.returncode == 3
    assert "nothing was replayed: the command ended with 3" in done.stderr


@pytest.mark.parametrize(
    ("samples", "elapsed_us", "narrow"),
    [
        # The interval is narrower than 2 % of the run, which are 200 us.
        (range(0, 180, 20), 10_000, True),
        (range(0, 270, 30), 10_000, False),
        (range(300, 390, 10), 0, True),  # the interval is narrower than a third of its upper end
        (range(100, 370, 30), 0, False),
    ],
)
def test_more_rounds_are_run_until_the_figures_are_narrow(samples, elapsed_us, narrow):
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    (site,) = analysis.analyse(stored).sites
    rows = [(0, 0, WITH_CHANGE, float(us)) for us in samples]
    assert verify.is_narrow(rows, [site], elapsed_us) == narrow
