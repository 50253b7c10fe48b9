"""Tests the measured findings of `weft reproduce`, from judgements to verdicts. The results are
made up."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from reproductions import LARGE, run, verdicts
from synthetic import hides, points, result, statistic

from weft.bench import command as bench_command
from weft.bench import kernel_runs, places
from weft.bench.settings import SettingsError
from weft.measurements import judgements, presets, store
from weft.measurements.kernels import KernelResult
from weft.measurements.result import Alone, Candidate, Result, Statistic
from weft.reproduce import (
    carry_out,
    findings,
    measured,
    precision,
    published,
    shm_allreduce,
)
from weft.reproduce.findings import CANNOT, DOES_NOT_HOLD, HOLDS, MEASURED
from weft.reproduce.measured import Bench, Points

# ---- Verdicts from judgements -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "verdict", "why"),
    [
        ("holds", HOLDS, ""),
        ("holds in direction", HOLDS, "in direction"),
        ("holds in part", DOES_NOT_HOLD, "in part"),
        ("does not hold", DOES_NOT_HOLD, ""),
        ("open", CANNOT, "text"),
    ],
)
def test_a_judgement_becomes_a_verdict(words, verdict, why):
    judgement = judgements.Judgement(words, "The text of it.")
    found = measured.judged(published.named("fft3d").claims[0], "x", judgement)
    assert found.verdict == verdict and why in found.why
    assert judgement in ((found.why,) if verdict == CANNOT else (found.here,))


SECTIONS = {"behind pressure, auto": 900.0, "behind transform, auto": 900.0}
OUTPUT = {"behind steps, auto": 700.0, "rank 0 writes": 1000.0}
OUTPUT |= {"rank 0 behind steps, auto": 700.0, "nothing written": 600.0}


@pytest.mark.parametrize(
    ("name", "times", "verdict"),
    [
        ("stencil", {"thread": 800.0}, HOLDS),
        ("stencil", {"thread": 1100.0}, DOES_NOT_HOLD),
        ("fft3d", {"thread": 900.0}, CANNOT),  # its communication was not counted
        ("cpals", {"thread": 700.0, "messages": 600.0}, HOLDS),
        ("cpals", {"thread": 700.0, "messages": 900.0}, DOES_NOT_HOLD),
        ("iallreduce-kernel", {"thread": 500.0}, HOLDS),
        ("iallreduce-kernel", {"thread": 1500.0}, DOES_NOT_HOLD),
        ("gpu-stencil", {"notify": 60.0, "graphs": 40.0}, HOLDS),
        ("gpu-stencil", {"notify": 30.0, "graphs": 40.0}, DOES_NOT_HOLD),
        ("gpu-stencil", {"notify": 30.0}, CANNOT),
        ("gpu-stencil", {"notify": 40.0, "graphs": 40.0}, CANNOT),
        ("gpu-stencil", {"acx": 30.0, "nccl": 20.0, "graphs": 40.0}, HOLDS),
        ("atmosphere", {"auto": 800.0, **SECTIONS}, HOLDS),
        ("atmosphere", {"auto": 800.0, **OUTPUT}, HOLDS),
        ("atmosphere", {"auto": 800.0, **dict.fromkeys(SECTIONS, 1001.0)}, DOES_NOT_HOLD),
    ],
)
def test_runs_are_judged_as_the_benchmark_judges_them(tmp_path, name, times, verdict):
    """Every form of the benchmark's own sentences must lead to one of the three verdicts."""
    one = published.named(name)
    bench = Bench(tmp_path, 4, known={name: KernelResult(name, {}, [run(blocking=1e3, **times)])})
    part = measured.part(one, bench)
    (found,) = [finding for finding in part.findings if finding.on]  # other findings have no run
    judgement = bench.preset(name).judge(run(blocking=1e3, **times))
    assert found.verdict == verdict
    assert judgement in (found.here, found.why)
    (figure,) = part.figures
    assert figure.names[0] == "blocking" and figure.lines[0].y[0] == 1.0
    assert part.conditions.startswith(f"Measured: weft bench --preset {name};")
    told = findings.Reproduction(name, "", "", part.findings, part.figures, [])
    assert judgement in json.dumps(told.to_json(), ensure_ascii=False)


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ({"halo only": 900.0, "thread": 700.0}, HOLDS),
        ({"halo only": 700.0, "thread": 900.0}, DOES_NOT_HOLD),
        ({"halo only": 990.0, "thread": 1000.0}, DOES_NOT_HOLD),
    ],
)
def test_pipecg_on_the_master_thread_is_a_statement_of_its_own(tmp_path, times, verdict):
    """Without runs with threads the statement says what they need. With such runs their master
    thread is judged."""
    plain = run(blocking=1e3, **times)
    slow = run(blocking=1e3, thread=500.0, **{"halo only": 900.0, "master thread": 950.0})
    needs = "needs 4 cores, two threads for each of two ranks"
    lost = "no run with threads came to a result"
    for cores, runs, why in ((2, [plain], needs), (4, [plain], lost), (4, [plain, slow], "")):
        bench = Bench(tmp_path, cores, known={"pipecg": KernelResult("pipecg", {}, runs)})
        part = measured.part(published.named("pipecg"), bench)
        assert verdicts(part.findings) == [verdict, CANNOT if why else DOES_NOT_HOLD]
        last = part.findings[1]
        if why:
            assert last.why == why
        else:
            assert "overlapped, master thread, it is 1.05 times as fast" in last.here
        assert len(part.figures) == len(runs)


def test_output_and_sections_of_the_atmosphere_are_two_statements(tmp_path):
    runs = [run(blocking=1e3, auto=800.0, **SECTIONS), run(blocking=1e3, auto=800.0, **OUTPUT)]
    bench = Bench(tmp_path, 2, known={"atmosphere": KernelResult("atmosphere", {}, runs)})
    found = measured.part(published.named("atmosphere"), bench).findings
    assert ["sphere" in one.where for one in found] == [True, True]
    assert "Allgather" in found[0].published and "output" in found[1].published


TCC = {
    "overlapped, call per row, function": 700.0,
    "overlapped, inner calls, function": 900.0,
    "overlapped, no calls, function": 990.0,
    "thread": 850.0,
    "tcc": 800.0,
    "assist": 900.0,
    "linear, tcc": 820.0,
    "linear, thread": 850.0,
}


def test_tcc_and_the_calls_of_the_progress_function_share_their_runs(tmp_path):
    bench = Bench(tmp_path, 2, known={"tcc": KernelResult("tcc", {}, [run(blocking=1e3, **TCC)])})
    found = carry_out.reproduce(published.named("tcc"), bench, LARGE, MEASURED)
    # 32 nodes are only simulated, and no collectives were in flight together.
    assert verdicts(found.findings) == [HOLDS, HOLDS, HOLDS, CANNOT, HOLDS, HOLDS]
    assert not any("32 nodes" in one.published for one in found.findings)
    (figure,) = found.figures
    by_name = dict(zip(figure.names, figure.lines[1].y))
    assert figure.lines[1].name == "published" and by_name["tcc"] == 1.166
    assert by_name["blocking"] is None
    found = carry_out.reproduce(published.named("progress-calls"), bench, LARGE, MEASURED)
    assert verdicts(found.findings) == [HOLDS, HOLDS]
    assert "call per row, function 0.7 ms" in found.findings[0].here


@pytest.mark.parametrize(
    ("of_worker", "of_thread", "verdict"),
    [
        (statistic(800.0), statistic(900.0), HOLDS),
        (statistic(900.0), statistic(900.0), DOES_NOT_HOLD),
        (statistic(950.0), statistic(900.0), DOES_NOT_HOLD),
        (statistic(850.0, 0.1), statistic(900.0, 0.1), CANNOT),
    ],
)
@pytest.mark.parametrize("by", range(len(measured.BY_ONE_ALGORITHM)))
def test_carriers_of_one_algorithm_are_judged_whatever_the_other_algorithm_shows(
    tmp_path, of_worker, of_thread, verdict, by
):
    names = measured.BY_ONE_ALGORITHM
    times = {name: statistic(850.0) for pair in names for name in pair}
    times |= dict(zip(names[by], (of_worker, of_thread)))
    one = replace(run(blocking=1e3, thread=850.0), times_us={"blocking": statistic(1e3), **times})
    bench = Bench(tmp_path, 2, known={"tcc": KernelResult("tcc", {}, [one])})
    found = measured.part(published.named("tcc"), bench).findings
    told = [each for each in found if "one algorithm" in each.published]
    assert told[by].verdict == verdict and told[1 - by].verdict == DOES_NOT_HOLD
    assert names[by][0] in told[by].here or verdict == CANNOT


def test_calls_that_make_no_difference_do_not_hold(tmp_path):
    times = {**TCC, "overlapped, no calls, function": 700.0}
    del times["overlapped, inner calls, function"]
    bench = Bench(tmp_path, 2, known={"tcc": KernelResult("tcc", {}, [run(blocking=1e3, **times)])})
    found = measured.part(published.named("progress-calls"), bench).findings
    assert verdicts(found) == [DOES_NOT_HOLD, CANNOT]
    assert "inner calls, function was not" in found[1].why


def test_threads_per_core_has_a_verdict_for_each_figure_and_library(tmp_path):
    def case(name, series, library, time_us):
        normal = name == "Normal"
        one = run(blocking=time_us if normal else 9e6, thread=9e6 if normal else time_us)
        return replace(one, case=name, series=series, mpi=library)

    half, twice = (f"16 B, computation {ratio} of communication" for ratio in ("1/2", "2"))
    times = {"Normal": 30.0, "Prog1": 25.0, "Prog2": 20.0, "Prog4": 40.0}
    runs = [
        case(name, series, library, time)
        for library in ("MPICH 5.0.2", "Open MPI 5")
        for series in (half, twice)
        for name, time in times.items()
    ]
    known = {"threads-per-core": KernelResult("threads-per-core", {}, runs)}
    part = measured.part(published.named("threads-per-core"), Bench(tmp_path, 5, known=known))
    assert [(one.where, one.verdict) for one in part.findings] == [
        ("topic 1, figure 1", HOLDS),
        ("topic 1, figure 1", HOLDS),
        ("topic 1, figure 2", DOES_NOT_HOLD),
        ("topic 1, figure 2", DOES_NOT_HOLD),
        ("topic 1, figure 1; section 6", HOLDS),
        ("topic 1, figure 1; section 6", HOLDS),
        ("abstract; topic 1, figure 3", CANNOT),  # there is no run of it
        ("abstract; topic 1, figure 4", CANNOT),
    ]
    assert len(part.figures) == 4 and part.figures[0].lines[0].y == [0.03, 0.025, 0.02, 0.04]


def test_nbc_eff_tells_the_libraries_apart_by_ranks_per_node(tmp_path):
    found = result({"native": hides(0.9)})
    found.points += points("native", hides(0.3), mpi="openmpi 5.0.10")
    bench = Bench(tmp_path, 2, known={"nbc-eff": Points([found], ["intelmpi: not here"])})
    one = published.named("nbc-eff")
    part = measured.part(one, bench)
    assert verdicts(part.findings) == [DOES_NOT_HOLD, CANNOT, HOLDS]
    assert "needs 4 cores" in part.findings[1].why
    assert part.findings[2].here.startswith("10 amounts of 0.2 ms to 2 ms")
    assert "Could not run: intelmpi: not here." in part.conditions
    assert len(part.figures) == 1 and part.figures[0].x == "computation, ms"

    told = measured.nbc_eff(one, presets.presets(16)["nbc-eff"], [found])
    assert "only one was measured" in told[1].why

    def more_ranks(mpi_ahead: str, mpi_behind: str) -> Result:
        there = {"ranks": 8, "nodes": 2}
        ahead = points("native", hides(0.9), mpi=mpi_ahead, **there)
        behind = points("native", hides(0.3), mpi=mpi_behind, **there)
        return Result(machine={}, points=ahead + behind)

    for mpis, verdict in (
        (("openmpi 5.0.10", "mpich 5.0.2"), HOLDS),
        (("mpich 5.0.2", "openmpi 5.0.10"), DOES_NOT_HOLD),
    ):
        results = [found, more_ranks(*mpis)]
        told = measured.nbc_eff(one, bench.preset("nbc-eff"), results)
        (last,) = [one for one in told if one.where == "topic 2, figures 6 and 7"]
        assert last.verdict == verdict
        assert last.here.startswith("1 per node: mpich 5.0.2; 4 per node: ")


def test_the_measured_placement_has_two_statements(tmp_path):
    def alone(policy: str, time_us: float) -> Alone:
        where = ("mpich 5.0.2", "thread", policy, "quiet", "selected", "scan", 1000000, 2, 2)
        return Alone(*where, statistic(900.0), statistic(time_us))

    found = result({"thread": hides(0.5)})
    found.alone = [alone("bind", 1000.0), alone("numa", 3000.0), alone("odd-even", 3000.0)]
    bench = Bench(tmp_path, 4, known={"placement": Points([found])})
    part = measured.part(published.named("placement"), bench)
    assert verdicts(part.findings) == [HOLDS, DOES_NOT_HOLD, HOLDS, CANNOT]
    assert "3.00 times as long as bind" in part.findings[0].here
    # The second statement is about odd-even and numa only.
    found.alone = [alone("bind", 3000.0), alone("numa", 3000.0), alone("odd-even", 1500.0)]
    bench = Bench(tmp_path, 4, known={"placement": Points([found])})
    part = measured.part(published.named("placement"), bench)
    assert verdicts(part.findings) == [DOES_NOT_HOLD, HOLDS, DOES_NOT_HOLD, CANNOT]


# ---- Runs of presets --------------------------------------------------------------------------


def test_a_preset_with_a_program_is_run_as_weft_bench_runs_it(tmp_path, monkeypatch, capsys):
    asked = []

    def measure(program, options, mpi):
        asked.append((program, mpi))
        if mpi == "openmpi":
            raise SettingsError("fft3d under openmpi ended with status 1: no output")
        return replace(run(blocking=1e3, thread=900.0), communication_share=0.9)

    monkeypatch.setattr(kernel_runs, "measure", measure)
    monkeypatch.setattr(places, "lab_problem", lambda: "")
    bench = Bench(tmp_path / "samples", 2, mpi="mpich,openmpi")
    found = carry_out.reproduce(published.named("fft3d"), bench, LARGE)
    assert asked == [("fft3d", "mpich"), ("fft3d", "openmpi")]
    assert verdicts(found.findings) == [HOLDS, CANNOT]
    assert found.findings[1].why == "fft3d under openmpi ended with status 1: no output"
    assert sorted(path.name for path in bench.folder.iterdir()) == ["fft3d.html", "fft3d.json"]
    assert capsys.readouterr().out == ""


def test_a_preset_of_which_nothing_runs_is_named_with_its_reason_and_not_tried_again(
    tmp_path, monkeypatch
):
    tries, folder = [], "/a/long/way" * 20
    monkeypatch.setenv("COLUMNS", "70")

    def measure(program, options, mpi):
        tries.append(program)
        raise SettingsError(f"{folder}/{program} is missing; build it with: make build")

    monkeypatch.setattr(kernel_runs, "measure", measure)
    monkeypatch.setattr(places, "lab_problem", lambda: "")
    bench = Bench(tmp_path, 2, mpi="mpich")
    for name, count in (("tcc", 5), ("progress-calls", 2)):
        found = carry_out.reproduce(published.named(name), bench, LARGE, MEASURED)
        assert verdicts(found.findings) == [CANNOT] * count
        why = f"it failed: {folder}/gemv_alltoall is missing; build it with: make build"
        assert found.findings[0].why == why
    assert len(tries) == len(presets.presets(2)["tcc"].runs) and os.environ["COLUMNS"] == "70"


def test_a_preset_of_the_benchmark_leaves_its_runs_in_a_file(tmp_path, monkeypatch):
    budgets = []

    def start(wanted, out, *files):
        budgets.append(wanted.time_budget_s)
        with store.Store(out) as file:
            number = file.new_run({"cpu": "x"}, wanted.to_json())
            case = file.case(number, ("scan", 1000000, 2, 2), "gemm", [100])
            job = file.job(number, case, "mpich 5.0.2", False, 1)
            rows = [(None, "blocking", None, 900.0, None), (None, "computation", 0, 500.0, None)]
            for policy, time_us in (("bind", 1000.0), ("numa", 3000.0), ("odd-even", 1500.0)):
                candidate = Candidate("mpich 5.0.2", "thread", policy, "quiet", "selected")
                identity = file.candidate(number, candidate)
                rows.append((identity, "immediate", None, time_us, None))
                rows.append((identity, "overlapped", 0, time_us, 500.0))
            file.samples(job, [row for row in rows for _ in range(9)])
            file.complete(number)
        return 0

    monkeypatch.setattr(bench_command, "start", start)
    monkeypatch.setattr(places, "lab_problem", lambda: "")
    bench = Bench(tmp_path, 4, mpi="mpich", time_budget="7s")
    one = published.named("placement")
    assert verdicts(measured.part(one, bench).findings) == [HOLDS, HOLDS, HOLDS, DOES_NOT_HOLD]
    assert (tmp_path / "placement.sqlite").exists() and budgets == [7.0]
    # A later command adds a run, and only this run counts.
    again = Bench(tmp_path, 4, mpi="mpich")
    assert len(again.points("placement").results) == 1 and budgets == [7.0, 120.0]


def test_a_benchmark_without_a_point_says_which_candidates_could_not_run(tmp_path, monkeypatch):
    def start(wanted, out, *files):
        with store.Store(out) as file:
            number = file.new_run({"cpu": "x"}, {})
            lost = Candidate("mpich", "thread", status="cannot run", reason="mpich is not here")
            file.candidate(number, lost)
        return 1

    monkeypatch.setattr(bench_command, "start", start)
    monkeypatch.setattr(places, "lab_problem", lambda: "")
    bench = Bench(tmp_path, 4, mpi="mpich")
    found = carry_out.reproduce(published.named("placement"), bench, LARGE, only=MEASURED)
    assert verdicts(found.findings) == [CANNOT] * 4
    assert found.findings[0].why == "it failed: mpich thread: mpich is not here"


# ---- Programs without a preset ----------------------------------------------------------------

TABLE = """pipelined, poisson 40x40x40, 1 ranks
| precision | stabilised by | iterations | replacements | time of one | true residual | end |
| --- | --- | --- | --- | --- | --- | --- |
| double | none | 90 | 0 | 1.000 | 9.3e-09 | converged |
| mixed | replacement | {mixed} | 3 | 0.750 | 7.7e-09 | converged |
| mixed-vectors | replacement | 92 | 18 | 1.680 | 2.8e-05 | breakdown in iteration 93: x |
| single | refinement | {refined} | 0 | {time} | 4.6e-09 | converged |
| single | both | {both} | 9 | 0.600 | 4.8e-09 | converged |
processor time of one iteration, in that of double precision: 1234 us
"""


def rounds(text: str, count: int = precision.ROUNDS) -> precision.Table:
    """Returns the results of several jobs with the same output."""
    return precision.table([text] * count)


def test_the_table_of_precisions_is_read():
    text = TABLE.format(mixed=91, refined=125, time="{time}", both=100)
    found = precision.table([text.format(time=0.5 + 0.01 * i) for i in range(7)])
    assert len(found) == 5
    single = found["single", "refinement"]
    assert (single.iterations, single.end) == (125, "converged")
    assert single.time == Statistic(0.53, 0.50, 0.56, 7)
    assert single.whole.median == pytest.approx(66.25)
    assert not found["mixed-vectors", "replacement"].converged
    assert found["mixed", "replacement"].replacements == 3


def test_grids_of_the_precisions_are_larger_than_the_last_cache():
    megabytes = (0, 32, 96, 4096)
    assert [precision.edge(2**20 * size) for size in megabytes] == [96, 96, 128, 192]


@pytest.mark.parametrize(
    ("well", "ill", "expected"),
    [
        ((91, 125, 0.5, 90), (100, 300, 0.5, 400), [HOLDS, HOLDS, HOLDS]),
        ((99, 125, 0.9, 200), (100, 300, 0.5, 200), [DOES_NOT_HOLD] * 3),
        ((91, 125, 0.5, 200), (400, 300, 0.5, 100), [HOLDS, DOES_NOT_HOLD, DOES_NOT_HOLD]),
    ],
)
def test_precisions_are_judged_by_time_and_iterations(well, ill, expected):
    names = ("mixed", "refined", "time", "both")
    tables = [rounds(TABLE.format(**dict(zip(names, row)))) for row in (well, ill)]
    found = precision.findings(*tables)
    assert verdicts(found) == expected
    assert "mixed 9" in found[0].here and "breakdown in iteration 93" in found[0].here
    figure = precision.figure(dict(zip((precision.WELL, precision.ILL), tables)))
    assert [line.name for line in figure.lines][-1] == "published"


def test_times_of_precisions_that_scatter_decide_nothing():
    """By the medians alone all statements would hold."""
    text = TABLE.format(mixed=91, refined=125, time="{time}", both=90)
    wide = precision.table([text.format(time=0.2 + 0.1 * i) for i in range(7)])
    found = precision.findings(wide, wide)
    assert verdicts(found) == [HOLDS, CANNOT, CANNOT]
    assert all("within the spread" in one.why for one in found[1:])
    few = rounds(TABLE.format(mixed=91, refined=125, time=0.5, both=90), 3)
    assert verdicts(precision.findings(few, few))[1] == CANNOT


def test_precisions_that_do_not_converge_decide_nothing_in_their_favour():
    good = TABLE.format(mixed=91, refined=125, time=0.5, both=90)
    failing = good.replace("4.6e-09 | converged", "4.6e-02 | diverged")
    failing = failing.replace("4.8e-09 | converged", "4.8e-02 | diverged")
    lost = failing.replace("7.7e-09 | converged", "7.7e-02 | diverged")
    well, ill, none = map(rounds, (good, failing, lost))
    # In the ill-conditioned problem neither precision converges, so that neither is worse.
    found = precision.findings(well, none)
    assert verdicts(found) == [HOLDS, CANNOT, CANNOT] and "neither converges" in found[1].why
    # Mixed precision converges, but single precision does not, nor either with replacement.
    assert verdicts(precision.findings(well, ill)) == [HOLDS, HOLDS, CANNOT]
    # However efficient a precision is, it must converge in the well-conditioned problem.
    found = precision.findings(ill, ill)
    assert verdicts(found) == [HOLDS, DOES_NOT_HOLD, CANNOT]
    assert "per iteration (diverged)" in found[1].here


def test_precisions_that_the_program_left_out_are_not_judged():
    found = precision.findings({}, {})
    assert verdicts(found) == [CANNOT] * 3
    assert "single with refinement" in found[1].why and "is missing" in found[1].why


def test_ranks_of_the_allreduce_are_powers_of_two_and_prime_numbers_below():
    assert [shm_allreduce.counts(n) for n in (2, 3, 4, 16, 24, 200)] == [
        [2],
        [2],
        [4, 3],
        [16, 13],
        [16, 13],
        [128, 127],
    ]


def test_what_latency_prints_is_read():
    text = "blocking 8 0.4010 0.4230\nblocking 1048576 250.1 260.2\nweft: a remark\n"
    assert shm_allreduce.times_of(text) == {("blocking", 8): 0.423, ("blocking", 1048576): 260.2}


def test_allreduces_are_judged_beyond_the_spread():
    short, long = shm_allreduce.SHORT, shm_allreduce.LONG
    library, own = shm_allreduce.LIBRARY, shm_allreduce.WEFT
    times = {
        (4, library, short): statistic(1.0),
        (4, own, short): statistic(0.5),
        (4, library, long): statistic(100.0),
        (4, own, long): statistic(100.1),
        (3, own, short): statistic(0.6),
        (3, own, long): statistic(90.0),
        (3, library, short): statistic(1.0),
        (3, library, long): statistic(100.0),
        (4, shm_allreduce.WEFT_BLOCKING, short): statistic(0.6),
        (4, shm_allreduce.WEFT_BLOCKING, long): statistic(100.0),
    }
    found = shm_allreduce.findings_of("mpich", [4, 3], times)
    assert verdicts(found) == [HOLDS, DOES_NOT_HOLD] * 3
    as_before = {key: time.median for key, time in times.items()}
    times = {key: statistic(median, spread=0.5) for key, median in as_before.items()}
    found = shm_allreduce.findings_of("mpich", [4, 3], times)
    assert verdicts(found) == [CANNOT] * 6 and found[1].why == measured.WITHIN_THE_SPREAD
    times = {key: statistic(time) for key, time in as_before.items()}
    two = {(2, who, size): times[4, who, size] for _, who, size in times}
    found = shm_allreduce.findings_of("mpich", [2], two)
    assert verdicts(found) == [HOLDS, DOES_NOT_HOLD] * 2 + [CANNOT]
    assert "needs 4 cores" in found[4].why
    assert shm_allreduce.figure("mpich", 4, times).lines[1].y[0] == 0.5


def test_programs_run_in_turn_with_and_without_weft(tmp_path, monkeypatch):
    """Stand-ins replace the program and its launcher."""
    started = []

    class Job:
        def __init__(self, words):
            self.forms = words[words.index("--forms") + 1].split(",")

        def status(self):
            return 0

        def said(self):
            return "".join(f"{one} 8 1.0 1.0\n{one} {1 << 20} 9.0 9.0\n" for one in self.forms)

    def start(self, mpi, ranks, words, environment):
        started.append((ranks, "run" in words))
        return Job(words)

    monkeypatch.setattr(places.LauncherPlace, "start", start)
    monkeypatch.setattr(shm_allreduce, "ROUNDS", 2)
    program = tmp_path / "latency"
    program.touch()
    monkeypatch.setattr("weft.system.mpi_libraries.Implementation.program", lambda *_: program)
    monkeypatch.setattr(shm_allreduce, "domains", lambda: 1)
    part = shm_allreduce.measured(Bench(tmp_path, 4, mpi="mpich"))
    assert started == [(4, False), (4, True), (3, False), (3, True)] * 2
    assert verdicts(part.findings)[:2] == [CANNOT, CANNOT]  # two jobs are too few for an interval


def test_one_library_that_fails_leaves_the_others_results(tmp_path, monkeypatch):
    sizes = (shm_allreduce.SHORT, shm_allreduce.LONG)

    def measure(mpi, ranks):
        if mpi == "mpich":
            raise measured.NotMeasured("latency under mpich ended with status 1")
        whos = (shm_allreduce.LIBRARY, shm_allreduce.WEFT, shm_allreduce.WEFT_BLOCKING)
        return {(n, who, s): statistic(1.0) for n in ranks for who in whos for s in sizes}

    monkeypatch.setattr(shm_allreduce, "measure", measure)
    monkeypatch.setattr(shm_allreduce, "domains", lambda: 1)
    monkeypatch.setattr(Bench, "mpis", ["mpich", "openmpi"])
    part = shm_allreduce.measured(Bench(tmp_path, 2))
    of_library = [("mpich" in one.on, "ended with status" in one.why) for one in part.findings]
    assert of_library == [(True, True)] * 5 + [(False, False)] * 6
    assert part.figures


def test_a_statement_without_a_run_says_why(tmp_path):
    """Only the second statement has no run."""
    one, runs = published.named("atmosphere"), [run(blocking=1e3, auto=800.0, **SECTIONS)]
    for failed in ([], ["openmpi: the file was not written"]):
        bench = Bench(
            tmp_path, 2, known={"atmosphere": KernelResult("atmosphere", {}, runs, failed)}
        )
        part = measured.part(one, bench)
        assert len(part.findings) == 2 and "output" in part.findings[1].published
        assert part.findings[0].verdict != CANNOT
        assert part.findings[1].why == (failed or ["no run says anything about it"])[0]
        assert ("Could not run: " in part.conditions) == bool(failed)


def test_a_program_that_is_missing_is_named(tmp_path, monkeypatch):
    missing = tmp_path / "nothing"
    monkeypatch.setattr("weft.system.mpi_libraries.Implementation.program", lambda *_: missing)
    for name in ("precision", "shm-allreduce"):
        bench = Bench(tmp_path, 4, mpi="mpich")
        found = carry_out.reproduce(published.named(name), bench, LARGE, only=MEASURED)
        assert set(verdicts(found.findings)) == {CANNOT}
        assert f"it failed: {missing} is missing; " in found.findings[0].why
