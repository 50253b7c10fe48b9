"""Tests that findings of `weft reproduce` which are judged without the benchmark's judges can come
out false."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from reproductions import run, verdicts
from synthetic import blocking, hides, result, statistic

from weft.bench import kernel_runs, places
from weft.cores.native import Model, Placement, Split
from weft.measurements import effect, presets
from weft.measurements.kernels import KernelResult
from weft.measurements.result import Statistic
from weft.reproduce import (
    measured,
    model,
    placement,
    precision,
    published,
    shm_allreduce,
    split_tree,
    split_tree_measured,
    two_levels,
)
from weft.reproduce.findings import CANNOT, DOES_NOT_HOLD, HOLDS
from weft.reproduce.measured import Bench, NotMeasured
from weft.reproduce.split_tree_measured import Job, Measured

TIGHT, WIDE = 0.005, 0.5
ALL = [HOLDS, DOES_NOT_HOLD, CANNOT]


# ---- Measured findings ------------------------------------------------------------------------


def job(total_us: float, native_us: float = 100.0, spread: float = TIGHT, wrong: int = 0) -> Job:
    totals = {"thread": statistic(total_us, spread), "native": statistic(native_us, spread)}
    return Job(statistic(50.0, spread), statistic(60.0, spread), totals, 1000, wrong)


def split_trees(few: list[float], many: list[float], **more: float) -> Measured:
    """Returns totals by number of levels: with several cores free, and with one."""
    by_ranks = {
        ranks: {levels: job(time, **more) for levels, time in enumerate(times)}
        for ranks, times in ((12, few), (15, many))
    }
    return Measured(16, job(0, **more), by_ranks, {12: 0, 15: 2})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (split_trees([50, 60, 70, 80], [200, 90, 70, 80]), [HOLDS] * 4),
        (split_trees([150, 140, 130, 120], [120, 130, 140, 150]), [DOES_NOT_HOLD] * 4),
        (split_trees([50, 60, 70, 80], [200, 90, 70, 80], spread=WIDE), [CANNOT] * 4),
        (split_trees([50, 60, 70, 80], [70, 80, 90, 99]), [DOES_NOT_HOLD] + [HOLDS] * 3),
    ],
)
def test_split_trees_of_this_machine_are_judged_by_intervals(found, expected):
    said = split_tree_measured.findings_of("mpich", found)
    assert verdicts(said) == expected
    assert said[0].here.startswith("12 ranks: S = ")
    assert split_tree_measured.figure("mpich", found).lines[-1].y == [110.0, 110.0]


def test_ranks_leave_a_core_or_more_to_the_threads():
    ranks = split_tree_measured.ranks_of
    assert [ranks(n) for n in (3, 4, 16, 64)] == [[2], [2, 3], [12, 14, 15], [48, 56, 62, 63]]


def test_a_split_tree_in_any_library_needs_two_of_them_with_right_results():
    right, wrong = split_trees([1] * 4, [1] * 4), split_trees([1] * 4, [1] * 4, wrong=1)
    claim = published.named("split-tree").claims[-1]
    found = [
        split_tree_measured.of_libraries(claim, by_library)
        for by_library in ({"a": right, "b": right}, {"a": right, "b": wrong}, {"a": right})
    ]
    assert verdicts(found) == ALL


def test_split_trees_need_cores_and_the_variables_of_intel_mpi_need_that_library(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(split_tree_measured, "libraries", lambda bench: ["mpich"])
    part = split_tree_measured.part(Bench(tmp_path, 2))
    assert set(verdicts(part.findings)) == {CANNOT} and len(part.findings) == 6
    assert part.findings[0].why == "needs 4 cores, two of ranks and two of threads"
    assert part.findings[-1].why == "needs Intel MPI"


def test_a_library_that_fails_leaves_the_others_trees(tmp_path, monkeypatch):
    def measure(mpi, cores):
        if mpi == "openmpi":
            raise NotMeasured("overlap under openmpi ended with status 1")
        return split_trees([50, 60, 70, 80], [200, 90, 70, 80])

    monkeypatch.setattr(split_tree_measured, "libraries", lambda bench: ["mpich", "openmpi"])
    monkeypatch.setattr(split_tree_measured, "measure", measure)
    part = split_tree_measured.part(Bench(tmp_path, 16))
    assert verdicts(part.findings) == [HOLDS] * 4 + [CANNOT] * 6
    assert "ended with status 1" in part.findings[4].why and len(part.figures) == 1


@pytest.mark.parametrize(
    ("flagged_us", "verdict"), [((200,), HOLDS), ((50,), DOES_NOT_HOLD), ((10, 500), CANNOT)]
)
def test_jobs_are_bound_and_the_variables_of_intel_mpi_are_judged(
    tmp_path, monkeypatch, flagged_us, verdict
):
    """Stand-ins replace the program and its launcher."""
    started = []

    class Started:
        def __init__(self, words, variables):
            times = flagged_us if variables else (100,)
            samples = {"samples": [times[i % len(times)] for i in range(9)]}
            about = {"blocking_us": samples, "computation_us": samples, "iterations": 7, "wrong": 0}
            engines = [{"engine": "native", "total_us": samples}]
            file = Path(words[words.index("--json") + 1])
            file.write_text(json.dumps({**about, "engines": engines}))

        def status(self):
            return 0

    def start(self, mpi, ranks, words, variables):
        started.append((ranks, words[:2], variables))
        return Started(words, variables)

    program = tmp_path / "overlap"
    program.touch()
    monkeypatch.setattr("weft.system.mpi_libraries.Implementation.program", lambda *_: program)
    monkeypatch.setattr(places.LauncherPlace, "start", start)
    placed = Placement("bind", [0, 1, 2], [0, 0, 0], [0, 1, 2], [0, 1, 2])
    monkeypatch.setattr(split_tree_measured.native, "ask", lambda kind, words: (placed, ""))
    claim = published.named("split-tree").claims[-2]
    assert split_tree_measured.of_flags(claim, "intelmpi", 2).verdict == verdict
    assert [variables for *_, variables in started] == [{}, {}, {"I_MPI_ASYNC_PROGRESS": "1"}]
    assert {(ranks, *words) for ranks, words, _ in started} == {(2, "sh", "-c")}
    assert kernel_runs.bound_to([0, 1])[2].startswith("exec taskset")


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ({"bind": 90.0, "numa": 80.0, "odd-even": 50.0}, HOLDS),
        ({"bind": 90.0, "numa": 40.0, "odd-even": 50.0}, DOES_NOT_HOLD),
        ({"bind": 90.0, "odd-even": 50.0}, CANNOT),
    ],
)
def test_a_placement_is_the_fastest_in_each_case(times, verdict):
    case = {name: statistic(time_us) for name, time_us in times.items()}
    claim = published.named("placement").claims[-1]
    assert measured.first_of(claim, "x", "odd-even", [case, case]).verdict == verdict
    wide = {name: statistic(time_us, WIDE) for name, time_us in times.items()}
    assert measured.first_of(claim, "x", "odd-even", [case, wide]).verdict != HOLDS
    assert measured.first_of(claim, "x", "odd-even", []).verdict == CANNOT


def test_amounts_of_computation_must_show_all_candidates():
    claim = published.named("nbc-eff").claims[4]
    found = result({"native": hides(0.9)})
    (case,) = effect.cases(found)
    slow = replace(found, alone=[*found.alone, blocking(communication_us=9e6)])
    none = replace(found, alone=[])
    said = [measured.amounts_found(claim, one, case) for one in (found, slow, none)]
    assert verdicts(said) == ALL
    few = replace(case, computation_us=case.computation_us[:9])
    assert measured.amounts_found(claim, found, few).verdict == DOES_NOT_HOLD


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ({"thread": 1000.0, "tcc": 1200.0}, HOLDS),
        ({"thread": 1000.0, "tcc": 700.0}, DOES_NOT_HOLD),
        ({"native": 700.0}, CANNOT),
    ],
)
def test_threads_gain_nothing_where_all_cores_are_in_use(tmp_path, times, verdict):
    """Of the runs in shared memory those with most ranks are judged."""
    here = run("shared memory of this machine", blocking=1e3, **times)
    runs = [here, replace(here, ranks=8), run(blocking=1e3, thread=700.0)]
    bench = Bench(tmp_path, 2, known={"iallreduce-kernel": KernelResult("x", {}, runs)})
    found = measured.part(published.named("iallreduce-kernel"), bench).findings
    assert [one.verdict for one in found if "in use" in one.published] == [verdict]
    lab = presets.presets(16)["iallreduce-kernel"].runs
    assert [one.get("ranks") for one in lab] == [12, 16, None]


def test_several_collectives_in_flight_are_a_statement_of_their_own(tmp_path):
    several = replace(run(blocking=1e3, thread=700.0, tcc=900.0), problem="order 9, 4 in flight")
    alone = run(blocking=1e3, thread=700.0, tcc=900.0)
    known = {"tcc": KernelResult("tcc", {}, [alone, several])}
    part = measured.part(published.named("tcc"), Bench(tmp_path, 2, known=known))
    # The first figure has a published line and a measured one, the second a measured one only.
    assert [len(figure.lines) for figure in part.figures] == [2, 1]
    found = part.findings
    last = [one for one in found if "in flight the progress" in one.published]
    assert verdicts(last) == [HOLDS]
    judge = presets.presets(2)["tcc"].judge
    slow = {**several.times_us, "thread": statistic(1000.0)}
    wide = {**several.times_us, "thread": statistic(850.0, WIDE)}
    others = [judge(replace(several, times_us=times)).verdict for times in (slow, wide)]
    assert others == ["does not hold", "open"]


def residuals(*values: float) -> precision.Table:
    time = statistic(1.0)
    rows = zip(precision.REDUCED, values)
    return {row: precision.Outcome(9, time, value, "converged") for row, value in rows}


def test_rounding_is_judged_by_true_residuals():
    small, large = residuals(1e-8, 1e-6, 1e-6), residuals(1e-7, 1e-3, 1e-2)
    pairs = ((large, small), (small, large), (small, {}))
    assert verdicts([precision.of_rounding(*pair) for pair in pairs]) == ALL
    part = precision.of_rounding(residuals(1e-7, 1e-6, 1e-6), small)
    assert part.verdict == DOES_NOT_HOLD and part.why == "So in 1 of 3 precisions."


# ---- Simulated and computed findings ----------------------------------------------------------


def placed(ranks: list[int], threads: list[int]) -> Placement:
    return Placement("x", [*range(8)], [0] * 4 + [1] * 4, ranks, threads)


def test_drawn_placements_can_be_wrong():
    four = placed([0, 2, 4, 6], [0, 2, 4, 6])
    six = placed([0, 1, 2, 4, 5, 6], [0, 1, 2, 4, 5, 6])
    numa = replace(six, threads=[3, 3, 3, 7, 7, 7])
    assert verdicts(placement.of_cores(four, six, numa)) == [HOLDS] * 3
    close = placed([0, 1, 4, 6], [0, 1, 4, 6])
    other = replace(six, threads=[3, 3, 3, 3, 7, 7])
    assert verdicts(placement.of_cores(close, other, other)) == [DOES_NOT_HOLD] * 3


def test_work_is_counted_by_cores():
    found = placement.work([(3, 0.0, 4.0), (3, 4.0, 5.0), (7, 3.0, 6.0)], 10.0)
    assert found.each == pytest.approx([0.5, 0.3]) and found.at_once == pytest.approx(0.2)


def test_traced_placements_can_be_wrong():
    often, seldom = placement.Work([0.9, 0.9], 0.8), placement.Work([0.5, 0.5], 0.05)
    assert verdicts(placement.of_work(often, seldom, often)) == [HOLDS] * 3
    assert verdicts(placement.of_work(seldom, often, often)) == [DOES_NOT_HOLD] * 3
    assert placement.hidden(1, 100.0, 100.0, 195.0).verdict == HOLDS
    assert placement.hidden(1, 100.0, 100.0, 150.0).verdict == DOES_NOT_HOLD


def modelled(totals: list[float], blocking_total: float) -> Model:
    splits = [Split(s, 0.0, float(s), total, 0.0) for s, total in enumerate(totals)]
    about = (16, 0, 0.0, 0.0, 0.0, 0.0, blocking_total, 0.0, splits)
    return Model(*about, 18, "reduce", [])


def test_the_model_s_trees_can_be_wrong():
    right, wrong = modelled([8, 4, 2, 1], 4), modelled([4, 4, 4, 4], 4)
    assert verdicts(model.of_sixteen([8, 4, 2, 1], right)) == [HOLDS] * 3
    assert verdicts(model.of_sixteen([8, 4, 3], wrong)) == [DOES_NOT_HOLD] * 3
    assert model.of_levels({23: [11, 6, 3, 1, 1]}).verdict == HOLDS
    assert model.of_levels({23: [11, 7, 3, 1, 1]}).verdict == DOES_NOT_HOLD
    assert model.of_costs(modelled([62, 31, 15, 7], 6)).verdict == HOLDS
    assert model.of_costs(modelled([62, 31, 15, 70], 6)).verdict == DOES_NOT_HOLD
    assert model.of_growing({"gather": [0, 0, 2]}).verdict == HOLDS
    assert model.of_growing({"gather": [0, 0, 2], "scatter": [0, 0]}).verdict == DOES_NOT_HOLD


def test_the_shape_of_simulated_split_trees_can_be_wrong():
    rising = {0: [1.0, 9.0], 1: [2.0, 8.0], 2: [3.0, 7.0], 3: [4.0, 6.0]}
    assert verdicts(split_tree.of_shape("x", rising, 7.0, 5.0)) == [HOLDS] * 3
    falling = {levels: times[::-1] for levels, times in rising.items()}
    assert verdicts(split_tree.of_shape("x", falling, 0.5, 0.5)) == [DOES_NOT_HOLD] * 3


def test_two_levels_chunks_and_trees_can_be_slower():
    assert two_levels.finding("bcast", 8, 20.0, 10.0).verdict == HOLDS
    slower = two_levels.finding("bcast", 8, 10.0, 10.0)
    assert slower.verdict == DOES_NOT_HOLD and slower.why

    def judged(tree: float, ring: float) -> list[str]:
        by_one = {"node-flat": 3.0}
        short, long = {"node-tree": tree, **by_one}, {"node-ring": ring, **by_one}
        return verdicts(shm_allreduce.of_algorithms(short, long))

    assert judged(1.0, 1.0) == [HOLDS] * 2 and judged(3.0, 3.0) == [DOES_NOT_HOLD] * 2


@pytest.mark.parametrize(
    ("one", "each", "spread", "verdict"),
    [
        ((1, 9), (2, 5), TIGHT, HOLDS),
        ((1, 9), (2, 9), TIGHT, DOES_NOT_HOLD),
        ((1, 9), (2, 5), WIDE, CANNOT),
    ],
)
def test_segments_by_socket_are_measured_on_several_sockets(
    monkeypatch, one, each, spread, verdict
):
    sizes = (shm_allreduce.SHORT, shm_allreduce.LONG)
    names = zip((one, each), (shm_allreduce.ONE_SEGMENT, shm_allreduce.EACH_SOCKET))
    times = {
        (algorithm[bytes_], bytes_): statistic(time_us, spread)
        for values, algorithm in names
        for bytes_, time_us in zip(sizes, values)
    }
    monkeypatch.setattr(shm_allreduce, "segments", lambda mpi, ranks: times)
    monkeypatch.setattr(shm_allreduce, "domains", lambda: 2)
    assert shm_allreduce.by_sockets("mpich", 8).verdict == verdict
    monkeypatch.setattr(shm_allreduce, "domains", lambda: 1)
    assert shm_allreduce.by_sockets("mpich", 8).why == "needs 4 cores, 2 NUMA domains"


def test_statistics_add_up_to_the_blocking_program():
    assert job(1.0).in_turn == Statistic(110.0, pytest.approx(109.45), pytest.approx(110.55), 9)
