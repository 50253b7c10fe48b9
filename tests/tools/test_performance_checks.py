"""Tests tools/performance-checks: its table, verdicts and figures, with made-up jobs, and one check
with real jobs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from advise_runs import made
from performance_checks import (
    advisor,
    hiding,
    jobs,
    kernels,
    patches,
    predictions,
    table,
    windows,
)
from performance_checks.check import (
    MET,
    MISSED,
    NO_LIMIT,
    UNKNOWN,
    WITHIN,
    Check,
    Figure,
    holds,
)
from performance_checks.jobs import At, JobFailed, Session, Where, in_turn, lab, node
from reproductions import run

from weft.advise import analysis, sites
from weft.advise.record import AFTER, CALL, IN_FLIGHT, WAIT
from weft.bench.settings import SettingsError, lab_words
from weft.measurements import statistics
from weft.measurements.result import Statistic
from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

TOOL = [sys.executable, "tools/performance-checks"]


def tool(*options: object, seconds: int = 60) -> subprocess.CompletedProcess:
    words = [*TOOL, *map(str, options)]
    return subprocess.run(
        words, cwd=installation.ROOT, capture_output=True, text=True, timeout=seconds
    )


# ---- Table of checks --------------------------------------------------------------------------


def test_the_list_has_every_check_with_its_limits():
    done = tool("--list")
    assert done.returncode == 0, done.stderr
    for check in table.CHECKS:
        assert f"{check.name}: {check.measures}\n" in done.stdout
        assert callable(check.function)
        for quantity, limit in check.limits.items():
            assert f"    {limit} {quantity}\n" in done.stdout
            assert limit[0] in "≤≥" and holds(limit, float(limit.split()[1]))


def started_by_another_python(file: Path) -> subprocess.CompletedProcess:
    python = Path(sys.base_prefix) / "bin" / "python3"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [python, file, "--list"], env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("performance-checks", f"{table.CHECKS[0].name}: {table.CHECKS[0].measures}\n"),
        ("never-worse", "usage: tools/never-worse"),
    ],
)
def test_a_python_without_weft_starts_it_by_wefts(name, says):
    done = started_by_another_python(installation.ROOT / "tools" / name)
    assert says in done.stdout + done.stderr


def test_where_there_is_no_python_with_weft_it_says_what_brings_one(tmp_path):
    place = tmp_path / "tools"
    place.mkdir()
    for name in ("performance-checks", "weft_python.py"):
        shutil.copy(installation.ROOT / "tools" / name, place)
    done = started_by_another_python(place / "performance-checks")
    assert done.returncode == 1
    assert done.stderr == "performance-checks: needs Weft's Python environment: make build\n"


def test_a_pattern_that_matches_no_check_is_refused():
    done = tool("--only", "no-such")
    assert done.returncode == 2 and "no check matches 'no-such'" in done.stderr


@pytest.mark.parametrize(
    ("limit", "value", "verdict"),
    [
        ("≤ 1.0", statistics.of([0.90, 0.92, 0.94, 0.96, 0.98, 1.0]), MET),
        ("≤ 1.0", statistics.of([0.94, 0.96, 0.98, 1.01, 1.02, 1.03]), WITHIN),
        ("≤ 1.0", statistics.of([1.01, 1.02, 1.03, 1.04, 1.05, 1.06]), MISSED),
        ("≥ 0.95 s", statistics.of([0.96] * 6), MET),
        ("≥ 0.95 s", statistics.of([0.90, *[0.96] * 5]), WITHIN),
        ("≥ 0.95 s", statistics.of([0.90] * 6), MISSED),
        ("≤ 1.0", statistics.of([0.9] * 5), UNKNOWN),  # five samples are too few for an interval
        ("≤ 1.0", None, UNKNOWN),
        ("≤ 0", 0, MET),  # a number that was counted has no interval
        ("≤ 0", 1, MISSED),
        ("", 1, NO_LIMIT),
    ],
)
def test_the_verdict_is_that_of_the_whole_interval(limit, value, verdict):
    figure = Figure("quantity", value, "program", "note", "here", limit)
    assert figure.verdict == verdict
    assert str(figure).startswith(f"{verdict}: here, program, quantity: ")


def a_check(function, **limits: str) -> Check:
    return Check("name", "what", [node(2), lab(2)], function, limits, ["mpich"])


def test_a_check_runs_in_each_place_and_a_failure_leaves_its_figures_unknown():
    def function(at: At):
        yield Figure("first", 1.0)
        if at.where.nodes:
            raise JobFailed("it ended")
        yield Figure("second", 2.0)
        yield Figure("third", 3.0)

    session = Session(["mpich", "openmpi"])
    found = list(a_check(function, first="≤ 1", second="≤ 1").figures(session))
    assert [(one.at, one.quantity, one.verdict) for one in found] == [
        ("mpich, 2 ranks", "first", MET),
        ("mpich, 2 ranks", "second", MISSED),
        ("mpich, 2 ranks", "third", NO_LIMIT),
        ("mpich, 2 nodes of 1 rank", "first", MET),
        ("mpich, 2 nodes of 1 rank", "second", UNKNOWN),
    ]
    assert found[-1].note == "it ended"


def test_a_check_of_all_places_together_runs_once():
    check = replace(a_check(lambda at: iter([Figure("q", len(at.places))])), together=True)
    (found,) = check.figures(Session(["mpich"]))
    assert found.value == 2 and found.at == "mpich, 2 ranks and 2 nodes of 1 rank"


def test_ways_take_turns_forwards_and_backwards():
    seen = []
    ways = {name: lambda name=name: seen.append(name) or len(seen) for name in "ab"}
    assert in_turn(ways, 3) == {"a": [1, 4, 5], "b": [2, 3, 6]}
    assert "".join(seen) == "abbaab"


# ---- All checks, with made-up jobs --------------------------------------------------------------

SPEEDS = {
    "pipecg": "product with the matrix: 24.5 GB/s, triad 30.1 GB/s, share 0.81 [0.79-0.84]\n",
    "cpals": "product of mode 1: 33.4 GB/s, triad 37.1 GB/s, share 0.90 [0.88-0.94]\n"
    "  of these bytes 50 % must be moved: share 0.45\n",
    "atmosphere": "transform to the grid: 54.5 GFlop/s, multiply-adds alone 201.1 GFlop/s, "
    "share 0.27 [0.26-0.28]\n",
    "fft3d": "transform: 1.38 ms, FFTW's serial one 1.15 ms, ratio 1.19 [1.10-1.22]\n",
}
OUTPUTS = SPEEDS | {
    "latency": "".join(
        f"{form} 8 0.5 1.0\n"
        for form in ("blocking", "persistent", "line", "copy", "init", "nonblocking")
    ),
    "table": "allreduce blocking 8 0.5 1.0\nallreduce point 8 0.5 1.0\n",
    "steps": "1.0 100.0 10.0\n",
    "messages": json.dumps(
        {
            "bytes": 8,
            **dict.fromkeys(("hidden", "alone_s", "other_cpu_s", "other_switches"), [1.0] * 2),
        }
    ),
    "idle": "rank 0 thread weft-progress: 0 ticks, 0 wakes in 1 s\n",
}
OVERLAP = {
    "iterations": 10,
    "communication_us": 100.0,
    "computation_us": {"median": 100.0},
    "engines": [
        {
            "engine": engine,
            "total_us": {"samples": [us, us + 1.0]},
            "immediate_us": {"samples": [us, us + 1.0]},
        }
        for engine, us in (("native", 200.0), ("auto", 120.0), ("function", 105.0))
        + tuple((name, 110.0) for name in ("thread", "tcc", "assist", "agent"))
    ],
}


def a_run(share: float = 0.4, **times_us: float):
    named = {"native": 990.0, "function": 900.0, "thread": 800.0, "tcc": 850.0, "assist": 870.0}
    return replace(run(blocking=1000.0, **(named | times_us)), communication_share=share)


@pytest.fixture
def made_up(monkeypatch):
    """Replaces all jobs and commands. Returns the list of what was requested."""
    asked = []

    def job(self, program, options, weft=None, mpi="", **variables):
        asked.append((program, [str(word) for word in options], weft))
        return OUTPUTS[program]

    def measure(program, options, mpi, limit_s):
        asked.append((program, options, None))
        return a_run(auto=700.0)

    monkeypatch.setattr(At, "job", job)
    monkeypatch.setattr(At, "figures", lambda self, *words, **more: OVERLAP)
    monkeypatch.setattr(kernels.kernel_runs, "measure", measure)
    monkeypatch.setattr(hiding, "STARTS", 2)
    monkeypatch.setattr(advisor, "run_us", lambda *job: 1e6 * job[-1])
    ends = advisor.Interval(0.0, 1.0, 0.0, 0.0, [0.5], 100.0)
    monkeypatch.setattr(advisor, "interval", lambda *case: ends)
    monkeypatch.setattr(At, "command", lambda self, *words: "")
    predicted = {"low": 1.0, "expected": 2.0, "high": 3.0}
    one = predictions.Beside("a kernel", "time_us", [predicted], [2.0])
    monkeypatch.setattr(predictions, "beside", lambda *case: [one])
    monkeypatch.setattr(advisor, "is_right", lambda *case: True)
    kept = patches.Kept("loop.c", Statistic(1.2, 1.1, 1.3, 6), Statistic(1.3, 1.2, 1.4, 9), True)
    monkeypatch.setattr(patches, "applied", lambda *case: kept)
    monkeypatch.setattr(windows, "programs", lambda at: [("C", ["planted"])])
    found = windows.Found("C", "heap", 2, 2000, [3.0])
    monkeypatch.setattr(windows, "measure", lambda at, language, program, ms: [found])
    return asked


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("check", table.CHECKS, ids=lambda check: f"{check.name}: {check.measures}")
def test_each_check_finds_a_figure_for_each_of_its_limits(check, short, made_up):
    libraries = [mpi for mpi in ("mpich", "openmpi") if mpi in check.libraries] or ["intelmpi"]
    limits = {mpi: set(check.limits) for mpi in libraries}
    for figure in check.figures(Session(libraries, short=short)):
        assert figure.value is not None, figure
        limits[figure.at.split(",")[0]].discard(figure.quantity)
    assert all(left <= {"persistent / mpich's"} for left in limits.values())


# ---- Kernels ----------------------------------------------------------------------------------


def test_auto_is_set_beside_blocking_and_the_best_named_engine():
    of_blocking, of_best = kernels.compared(a_run(0.4, auto=760.0))
    assert of_blocking.value.median == pytest.approx(0.76)
    assert of_best.value.median == pytest.approx(0.95) and of_best.note == "thread"
    assert of_blocking.note == "communication 40%"


def test_communication_outside_the_wanted_share_is_said():
    for share, said in ((0.3, "30%"), (0.61, "61%, not 30% to 60%"), (0.2, "20%, not 30% to 60%")):
        first, _ = kernels.compared(a_run(share, auto=1010.0))
        assert first.note == f"communication {said}"
        assert first.value.median == pytest.approx(1.01)


def in_kernels(short: bool = False, repetitions: int = 9) -> list[Figure]:
    session = Session(["mpich", "openmpi"], repetitions, short)
    checks = [check for check in table.CHECKS if "under engine auto" in check.measures]
    checks = [check for check in checks if check.name == "kernels"]
    return [one for check in checks for one in check.figures(session)]


def test_each_kernel_is_a_run_that_the_lab_and_the_kernel_take(made_up):
    assert len(in_kernels()) == 2 * len(made_up) == 2 * 2 * 2 * len(kernels.ARGUMENTS)
    for _, options, _ in made_up:
        words = lab_words(options["lab"])
        assert words["nodes"] in (2, 4) and words["rate"] == "200mbit"
        assert "--repetitions 9" in options["arguments"]
        assert options["engines"].split(",")[-1] == "auto"
    made_up.clear()
    in_kernels(short=True)
    assert len(made_up) == 2 * len(kernels.ARGUMENTS)
    assert all("--repetitions 2" in options["arguments"] for _, options, _ in made_up)


def test_a_kernel_without_a_result_is_unknown_and_the_others_go_on(made_up, monkeypatch):
    def measure(program, options, mpi, limit_s):
        if program == "pipecg":
            raise SettingsError("no answer within 5 s")
        return a_run(0.5, auto=700.0)

    monkeypatch.setattr(kernels.kernel_runs, "measure", measure)
    found = in_kernels(short=True)
    lost = [one for one in found if one.value is None]
    assert len(found) == 2 * 2 * len(kernels.ARGUMENTS) and len(lost) == 2 * 2
    assert {one.verdict for one in lost} == {UNKNOWN}
    assert all("pipecg" in one.what and one.note == "no answer within 5 s" for one in lost)


def speeds() -> dict[str, list[Figure]]:
    checks = [check for check in table.CHECKS if check.measures.startswith("the speed of ")]
    return {
        f"{check.measures.split()[3]} {number}": list(check.figures(Session(["mpich"])))
        for number, check in enumerate(checks)
    }


def test_one_rank_s_speed_is_set_beside_the_memory_s_and_fftw_s(made_up):
    found = {name: figures[0] for name, figures in speeds().items()}
    assert all(weft is None and "speed" in options for _, options, weft in made_up)
    assert found["pipecg 0"].verdict == MET and found["pipecg 0"].value.median == 0.81
    cpals = found["cpals 1"]
    # The share refers to the bytes that must be moved.
    assert cpals.verdict == MISSED and cpals.value.median == 0.45
    assert found["fft3d 3"].verdict == MET and found["fft3d 3"].value.median == 1.19
    assert found["atmosphere 2"].what.endswith("to the grid, speed / multiply-adds alone")


def test_the_speed_of_a_program_that_fails_or_tells_none_is_unknown(made_up, monkeypatch):
    """A program may find that its results are wrong after it has printed its figure."""

    def job(self, program, options, *_, **__):
        if program == "fft3d":
            raise JobFailed(f"{SPEEDS[program]}1 wrong results")
        return ""

    monkeypatch.setattr(At, "job", job)
    found = [one for figures in speeds().values() for one in figures]
    assert len(found) == len(table.SPEEDS) and {one.verdict for one in found} == {UNKNOWN}
    assert {one.note.split()[-1] for one in found} == {"results", "speed"}


# ---- Advisor ----------------------------------------------------------------------------------


def test_the_advisors_interval_is_that_of_the_timed_steps_of_the_kernel():
    gain = {"low": 102.0, "high": 204.0}
    own = {"file": "/x/kernel.cc", "calls": 204, "gain_us": gain, "free_bounds_us": None}
    free = own | {"calls": 102, "free_bounds_us": {"least": -10.2, "most": 10.2}}
    harness = free | {"file": "/x/trials.h"}
    found = advisor.named_ends([own, free, harness, own | {"file": None}], "kernel", 100)
    assert found == pytest.approx([300, 600, -10, 10])


@pytest.mark.parametrize(
    ("verdict", "by_the_change", "best"),
    [
        ("undecided", 2.0, None),
        ("faster", 2.0, advisor.FREE),
        ("same", 1.5, advisor.CHANGE),
        ("slower", 1.01, advisor.NONE),
    ],
)
def test_the_best_choice_is_the_one_that_was_measured(verdict, by_the_change, best):
    assert advisor.best_choice(verdict, by_the_change) == best


@pytest.mark.parametrize(("unknown", "told"), [(1, True), (2, False)])
def test_first_lines_are_judged_where_most_best_choices_are_known(
    unknown, told, made_up, monkeypatch
):
    """The best choice is known for five or six programs."""
    left = [None] * unknown
    monkeypatch.setattr(advisor, "is_right", lambda *case: left.pop() if left else True)
    (check,) = [check for check in table.CHECKS if check.name == "first-line"]
    (figure,) = check.figures(Session(["mpich"]))
    assert figure.verdict == (MET if told else UNKNOWN)


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in sum(advisor.PROGRAMS, ())}))
def test_programs_of_the_first_line_take_its_words(kind, tmp_path):
    library, program = mpi_libraries.implementation("mpich"), tmp_path / "first_line"
    found_at = f"-Wl,-rpath,{library.prefix / 'lib'}"
    words = [library.mpiexec.parent / "mpicc", advisor.SOURCE, "-o", program, found_at]
    subprocess.run([str(word) for word in words], check=True, timeout=60)
    numbers = next(numbers for name, *numbers in sum(advisor.PROGRAMS, ()) if name == kind)
    for form in ("as-it-was", "changed"):
        words = [program, kind, form, 1, *numbers[1:]]
        said = subprocess.check_output([str(word) for word in words], text=True, timeout=60)
        assert float(said.removeprefix("seconds ")) > 0


@pytest.mark.parametrize(
    ("step_us", "steps"), [(1e6, 3), (1e5, 22), (40.0, 55_000)], ids=["long", "middle", "short"]
)
def test_a_job_has_so_many_steps_that_it_is_long_enough(step_us, steps):
    assert advisor.enough_steps(lambda n: n * step_us) == steps


def test_jobs_with_the_advisor_and_without_take_turns(monkeypatch):
    """With the advisor the program takes a tenth longer."""
    seen = []

    def command(self, *words):
        words = [str(word) for word in words]
        seen.append(words)
        option = dict(zip(words, words[1:]))
        assert option["--form"] == "blocking"
        samples = [2.2e5 if "advise" in words else 2e5] * int(option["--repetitions"])
        variants = [{"name": "blocking", "samples_us": samples}]
        Path(option["--json"]).write_text(json.dumps({"variants": variants}))

    monkeypatch.setattr(At, "command", command)
    session = Session(["mpich"])
    with At(session, "slow-down", "mpich", [node(2)]) as at:
        (figure,) = advisor.slow_down("fft3d", at)
    advised = ["advise" in words for words in seen]
    assert advised[:5] == [False, *(False, True), *(True, False)]
    assert not any("--overhead" in words for words in seen)
    assert session.measurements[-1]["steps"] == 11
    assert figure.value.n == 7 and figure.value.low == pytest.approx(1.1)


def event(rank: int, what: int, began_us: float, ended_us: float) -> dict:
    times = {"began_ns": round(began_us * 1e3), "ended_ns": round(ended_us * 1e3)}
    return {"rank": rank, "site": 0, "what": what, **times}


def test_windows_are_held_against_the_time_of_their_own_call():
    """Each rank makes four calls, and different calls of them are watched."""
    stored = made("MPI_Bcast", [(0, 0, 10), (1, 0, 10)])
    for rank in (0, 1):
        stored["event"].extend(event(rank, CALL, 100 * i, 100 * i + 10) for i in range(4))
    stored["event"].append(event(0, AFTER, 110.5, 135.5))
    stored["event"].append(event(0, AFTER, 310.5, 360.5))
    stored["event"].append(event(1, AFTER, 10.5, 50.5))
    site = analysis.analyse(stored).sites[0]
    site.after = sites.Windows([40.0], [40.0])
    own = {0: [40.0, 20.0, 40.0, 45.0], 1: [39.0, 25.0, 25.0, 25.0]}
    assert windows.off_us(own, site, stored) == [5.0, 5.0, 1.0]
    site.after = sites.Windows([0.0], [2000.0])  # these bounds give no single figure
    assert windows.off_us(own, site, stored) == []
    assert windows.off_us(own, None, stored) == []


def test_windows_after_waits_are_held_against_the_call_that_was_waited_for():
    stored = made("MPI_Ibcast", [(0, 0, 10), (1, 0, 10)])
    stored["event"].extend(event(0, WAIT, 100 * i, 100 * i + 10) for i in range(2))
    stored["event"].append(event(0, IN_FLIGHT, 0, 100))
    stored["event"].append(event(0, AFTER, 111, 131))
    site = analysis.analyse(stored).sites[0]
    assert list(windows.watched(stored, site)) == [(0, 1, 20.0)]


def test_windows_are_right_within_a_part_or_a_time():
    found = windows.Found("C", "heap", 0.2, 200, [21, 19, 30])
    assert not found.is_right and not found.is_missing
    assert replace(found, offs_us=[-20]).is_right
    assert replace(found, own_us=2000, offs_us=[39]).is_right
    unknown = replace(found, offs_us=[])
    assert unknown.is_missing and not replace(unknown, function="stack").is_missing
    assert not unknown.is_right


# ---- Real jobs --------------------------------------------------------------------------------


@pytest.mark.skipif(
    not mpi_libraries.implementation("mpich").mpiexec.exists(), reason="needs make build"
)
def test_the_shortest_form_gives_every_figure_and_keeps_what_was_measured(permitted_lab, tmp_path):
    path = tmp_path / "checks.json"
    done = tool("--only", "quiet", "--short", "--mpi", "mpich", "--json", path, seconds=200)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(path.read_text())
    assert found["schema"] == "weft-performance-checks/1" and found["mpi"] == "mpich"
    rows = found["checks"]
    waiting = ["processor time, more than tcc", "hidden meanwhile"]
    assert [row["quantity"] for row in rows] == waiting + 2 * ["CPU ticks", "wake-ups"]
    # Two rounds give no interval; the other figures are counted.
    assert [row["verdict"] for row in rows] == 2 * [UNKNOWN] + 4 * [MET]
    assert all(row["value"]["n"] == 2 and row["at"].startswith("mpich, 2 n") for row in rows[:2])
    assert done.stdout.splitlines()[-1].startswith(f"{UNKNOWN}: 2, {MET}: 4")
    polling = [one for one in found["measurements"] if {"sleep", "yield"} <= set(one["command"])]
    told = [json.loads(one["said"]) for one in polling]
    assert len(told) == 2 and all(one["ranks"] == 2 and min(one["other_cpu_s"]) > 0 for one in told)


def test_a_job_that_cannot_run_says_why():
    with At(Session(["mpich"]), "name", "mpich", [Where(1)]) as at, pytest.raises(JobFailed) as why:
        at.command("false")
    assert "false ended with status 1" in str(why.value)
    with pytest.raises(JobFailed):
        jobs.run(["/no/such/program"], {})
