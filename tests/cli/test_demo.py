"""Tests the demo: its figures, when it stops, its output if nothing is certain, and its page."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import result

from weft.data.stored import ResultError
from weft.demo import rounds, show, typed
from weft.demo.place import SharedMemory
from weft.measurements import effect
from weft.measurements.result import Statistic
from weft.report import overlap, page
from weft.system import mpi_libraries

COMMUNICATION_US = COMPUTATION_US = 80000.0


def times(median: float, spread: float = 0.002, n: int = 9) -> dict:
    """Returns samples that are evenly spread around the median."""
    half = n // 2
    return {"samples": [median * (1 + spread * (i - half) / max(1, half)) for i in range(n)]}


def job(totals_us: dict[str, float], weft: bool = True, spread: float = 0.002, n: int = 9) -> dict:
    """Returns data as bench/overlap writes it."""
    engines = [
        {
            "engine": name,
            "immediate_us": times(COMMUNICATION_US, spread, n),
            "total_us": times(total, spread, n),
        }
        for name, total in totals_us.items()
    ]
    return {
        "schema": "weft-overlap/1",
        "collective": "allreduce",
        "bytes": 2 << 20,
        "ranks": 2,
        "mpi": "MPICH Version:      5.0.2",
        "weft": "0.1.0" if weft else None,
        "iterations": 100,
        "wrong": 0,
        "computation_us": times(COMPUTATION_US, spread, n),
        "blocking_us": times(COMMUNICATION_US, spread, n),
        "engines": engines,
    }


def read(figures: dict) -> overlap.Job:
    return overlap.stored.parse(overlap.Job, json.dumps(figures), "x.json", overlap.SCHEMA)


def compared(without_us: float, spread: float = 0.002, n: int = 9, **engines_us: float):
    without = job({"native": without_us}, weft=False, spread=spread, n=n)
    return overlap.compare([read(without)], [read(job(engines_us, spread=spread, n=n))])


@pytest.fixture
def gain() -> overlap.Comparison:
    return compared(112000.0, native=110000.0, thread=82000.0)


def test_a_gain_is_an_interval_against_the_program_without_weft(gain):
    assert [row.name for row in gain.rows] == ["without Weft", "native", "thread"]
    thread = gain.rows[2]
    assert thread.gain.median == pytest.approx(112 / 82)
    assert thread.gain.low == pytest.approx(thread.gain.median, rel=0.005)
    assert thread.gain.low < thread.gain.median < thread.gain.high
    assert thread.hidden == pytest.approx(78 / 80)
    assert (gain.ideal_ms, gain.sum_ms) == (80.0, 160.0)
    assert gain.best is thread and gain.decided
    assert "1.36 to 1.37 times as fast with Weft" in gain.sentence


def test_the_interval_holds_what_both_medians_permit():
    pooled = compared(100000.0, spread=0.1, native=100000.0, thread=50000.0)
    without, thread = pooled.without.total, pooled.shown.total
    assert pooled.shown.gain.low == pytest.approx(without.low / thread.high)
    assert pooled.shown.gain.high == pytest.approx(without.high / thread.low)


def test_a_wide_gain_says_what_is_certain_and_asks_for_more():
    wide = compared(120000.0, spread=0.2, native=120000.0, thread=60000.0)
    assert wide.finding == overlap.GAIN and not wide.decided
    assert re.search(r"at least 1\.\d\d \(in the median 2.00\) times as fast", wide.sentence)


def test_native_is_right_where_no_engine_can_be_faster():
    same = compared(81000.0, native=81000.0, thread=80500.0)
    assert same.best.name == "native" and same.decided
    assert "nothing to add" in same.sentence and "at most 1.01 times" in same.sentence


def test_what_cannot_be_told_is_an_interval_and_no_engine_is_green():
    noisy = compared(90000.0, spread=0.3, native=90000.0, thread=84000.0)
    assert noisy.best is None and not noisy.decided
    found = re.search(r"between (0\.\d\d) and (1\.\d\d) times as fast with Weft", noisy.sentence)
    assert found and "cannot tell on this machine now" in noisy.sentence
    assert "nothing to add" not in noisy.sentence


def test_an_engine_that_is_ahead_beyond_the_spread_goes_before_a_lower_median(gain):
    rows = [replace(row, name="tcc") if row.name == "thread" else row for row in gain.rows]
    wide = Statistic(
        80.0, 79.0, 125.0, 9
    )  # its median is the lowest, but its interval overlaps with the others'
    rows.append(replace(rows[2], name="function", total=wide))
    both = replace(gain, rows=tuple(rows))
    assert min(both.engines, key=lambda row: row.total.median).name == "function"
    assert both.finding == overlap.GAIN and both.best.name == "tcc"


def test_a_tie_with_native_is_said_and_native_is_advised():
    """native is the simpler of the two, and both are faster than the program without Weft."""
    tie = compared(112000.0, native=82500.0, thread=82000.0)
    assert tie.finding == overlap.GAIN and tie.best.name == "native" and tie.decided
    assert "Engine native hides" in tie.sentence
    assert tie.sentence.endswith("As fast within the intervals: thread.")


@pytest.mark.parametrize("thread", [50.0, 81.9, 85.0, 140.0])
def test_the_demo_advises_what_the_benchmark_s_report_does(thread):
    """The same times are also given as a benchmark result with one amount of computation."""
    found = compared(112000.0, native=82000.0, thread=1000 * thread)
    lines = {row.name: lambda _, row=row: 1000 * row.total.median for row in found.engines}
    case = effect.cases(result({"blocking": lambda _: 112000.0, **lines}, spread=0.002))[0]
    assert case.standings[0].leader.name == found.best.name
    assert effect.recommended(case).name == found.best.name


def test_few_samples_tell_nothing():
    few = compared(112000.0, n=5, native=112000.0, thread=60000.0)
    assert few.finding == overlap.CANNOT_TELL and "fewer than 6" in few.sentence
    assert overlap.interval(few.shown.gain) == ""


def test_samples_of_all_jobs_count():
    without = [read(job({"native": us}, weft=False, n=3)) for us in (110000.0, 114000.0)]
    weft = [read(job({"native": us, "thread": us - 3e4}, n=3)) for us in (110000.0, 114000.0)]
    found = overlap.compare(without, weft)
    assert found.samples == 6
    assert found.without.total.median == pytest.approx(112.0, rel=1e-3)


def test_hidden_share_may_be_negative():
    slow = compared(248000.0, native=248000.0, thread=85000.0)
    assert slow.without.hidden == pytest.approx(-1.1)
    assert overlap.percent(slow.without.hidden) == "−110 %"
    assert "hides nothing" in slow.sentence


def test_figures_of_a_machine_that_was_busy_are_left_out(gain):
    """Most samples of the communication alone took 5 ms, and some took 77 ms."""
    row = replace(gain.without, communication=Statistic(5.0, 4.0, 77.0, 9))
    assert row.hidden < -5 and not row.is_clear
    found = replace(gain, rows=(row, *gain.rows[1:]))
    assert "without Weft the same program takes 112 ms" in found.sentence
    assert show.cells(row)[1] == "" and show.cells(row)[5] == ""
    assert show.cells(found.shown)[1] == "80.0" and show.cells(found.shown)[5] == "98 %"
    assert overlap.remarks(found.rows).startswith("Empty: not decided")
    assert overlap.remarks(gain.rows) == ""
    always = replace(gain.without, communication=Statistic(5.0, 4.9, 5.1, 9))
    assert show.cells(always)[1] == "5.0" and show.cells(always)[5] == ""


def test_more_than_all_hidden_is_called_impossible(gain):
    assert "cannot hide" not in gain.sentence
    sentence = compared(112000.0, native=110000.0, thread=70000.0).sentence
    assert "thread cannot hide 112 %" in sentence


def calls_compared(without_us: float, weft_us: float, spread: float = 0.002):
    def call_job(us: float) -> overlap.CallJob:
        figures = {**job({}), "blocking_us": times(us, spread)}
        text = json.dumps(figures)
        return overlap.stored.parse(overlap.CallJob, text, "x.json", overlap.SCHEMA)

    return overlap.compare_calls([call_job(without_us)], [call_job(weft_us)])


def test_blocking_calls_in_shared_memory():
    found = calls_compared(14.0, 3.5)
    assert found.decided and found.gain.median == pytest.approx(4.0)
    assert "MPI_Allreduce of 2 MiB, blocking: 3.98 to 4.02 times as fast" in found.sentence
    assert calls_compared(14.0, 14.0).finding == overlap.NO_GAIN
    assert calls_compared(14.0, 13.0, 0.2).finding == overlap.CANNOT_TELL


# ---- Rounds -----------------------------------------------------------------------------------


class Machine:
    """Replaces the clock and the place of jobs. Each job takes `job_s` seconds and measures the
    same times."""

    size = "2MiB"
    is_lab = True

    def __init__(self, job_s: float, spread: float) -> None:
        self.job_s = job_s
        self.spread = spread
        self.now_s = 0.0
        self.commands: list[list[str]] = []

    def clock(self) -> float:
        return self.now_s

    def run(self, words: list[str], limit_s: float) -> tuple[int, str]:
        self.commands.append(words)
        self.now_s += self.job_s
        if self.job_s > limit_s:
            raise subprocess.TimeoutExpired(words, limit_s)
        option = dict(zip(words, words[1:]))
        engines = option["--engines"].split(",")
        loaded = len(engines) > 1
        loaded |= "run" in words
        totals = {name: 82000.0 if name == "thread" else 112000.0 for name in engines}
        figures = job(totals, weft=loaded, spread=self.spread, n=int(option["--repetitions"]))
        figures["collective"] = option["--collective"]
        figures["blocking_us"] = times(20.0 if loaded else 80.0, self.spread)
        Path(option["--json"]).write_text(json.dumps(figures))
        return 0, ""


def measured(machine: Machine, seconds: float = 180.0) -> rounds.Rounds:
    mpi = mpi_libraries.implementation("mpich")
    found = rounds.Rounds(machine, mpi, seconds, clock=machine.clock)
    for _ in found.measure():
        pass
    return found


def test_a_quiet_machine_is_left_as_soon_as_all_is_decided():
    machine = Machine(job_s=5.0, spread=0.001)
    found = measured(machine)
    assert [subject.rounds for subject in found.subjects] == [2, 2, 2]
    assert all(subject.decided for subject in found.subjects)


def test_a_noisy_machine_is_measured_until_the_time_is_up():
    machine = Machine(job_s=5.0, spread=0.5)
    found = measured(machine)
    assert not any(subject.decided for subject in found.subjects)
    assert 170.0 <= machine.now_s <= 180.0
    assert max(s.rounds for s in found.subjects) - min(s.rounds for s in found.subjects) <= 1


def test_jobs_with_and_without_weft_take_turns_and_have_the_same_work():
    machine = Machine(job_s=5.0, spread=0.5)
    measured(machine, 130.0)
    first = [words for words in machine.commands if "allreduce" in words]
    loaded = ["run" in words for words in first]
    assert loaded[:8] == [False, True, True, False, False, True, True, False]
    assert "--iterations" not in first[0]
    for words in first[1:]:
        assert words[words.index("--iterations") + 1] == "100"


def test_without_a_lab_blocking_calls_are_measured_first():
    class Memory(Machine):
        is_lab = False

    machine = Memory(job_s=5.0, spread=0.001)
    found = measured(machine)
    assert [s.name for s in found.subjects[:2]] == [
        "MPI_Allreduce of 64 KiB",
        "MPI_Allreduce of 1 MiB",
    ]
    assert all(subject.decided for subject in found.subjects)
    (first, second, *_) = machine.commands
    assert "--latency" in first and "auto" in second[: second.index("--")]


def test_a_slow_machine_still_measures_each_once():
    found = measured(Machine(job_s=29.0, spread=0.001))
    assert [subject.rounds for subject in found.subjects] == [1, 1, 1]


def test_a_job_that_does_not_end_names_the_command():
    with pytest.raises(rounds.DemoError, match=r"overlap .*did not end within 180 s"):
        measured(Machine(job_s=200.0, spread=0.001))


# ---- Text and files ---------------------------------------------------------------------------


def test_the_advice_names_three_commands(gain):
    mpi = mpi_libraries.implementation("mpich")
    text = show.advice([gain], mpi, True)
    commands = [line for line in text.splitlines() if line.startswith("    ")]
    assert len(commands) == 3
    assert commands[0].endswith("run --summary -- ./app")
    assert re.search(r"weft try -- \S+ -n 2 \./app$", commands[1])
    assert "lab run --nodes 2 -- " in commands[2] and "weft run --summary -- ./app" in commands[2]
    assert "doctor" in show.advice([gain], mpi, False)
    assert "still wide" not in text


def test_what_is_uncertain_is_named_with_the_command_that_measures_longer(gain):
    mpi = mpi_libraries.implementation("mpich")
    undecided = calls_compared(14.0, 13.0, 0.2)
    first = show.advice([gain, undecided], mpi, True).splitlines()[0]
    assert first.startswith(f"The intervals are still wide: {undecided.call}. ")
    assert "demo --time-budget" in first
    wide = compared(120000.0, spread=0.2, native=120000.0, thread=60000.0)
    assert "at least 1." in wide.sentence and "still wide" not in show.advice([wide], mpi, True)


def test_programs_are_named_as_the_user_would_type_them(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "weft"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert typed.program(program) == "bin/weft"
    monkeypatch.setenv("PATH", str(program.parent))
    assert typed.program(program) == "weft"
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert typed.program(program) == str(program)


def test_page_needs_nothing_from_outside(gain, tmp_path):
    path = tmp_path / "demo.html"
    page.write(path, [gain], "a link of 200 Mbit/s")
    text = path.read_text()
    assert not re.search(r"<(?:script|img|link|iframe)", text) and len(text) < 150_000
    assert gain.sentence in text and "a link of 200 Mbit/s" in text
    assert overlap.interval(gain.shown.gain) in text
    assert "prefers-color-scheme: dark" in text
    assert "<title>thread: 82.0 ms, 81.9 to 82.1</title>" in text


def test_charts_side_by_side_have_one_scale_and_the_best_is_green(gain):
    longer = compared(300000.0, native=290000.0, thread=85000.0)
    charts = page.charts([gain, longer])
    assert [chart.last for chart in charts] == [pytest.approx(300.6, abs=1)] * 2
    colours = {bar.name: bar.parts[0][1] for bar in charts[0].bars}
    assert colours == {"without Weft": "plain", "native": "bar", "thread": "best"}
    assert [bar.parts[0][0] for bar in charts[0].bars] == pytest.approx([112.0, 110.0, 82.0])


def test_lines_to_hold_bars_against_need_times_that_are_decided(gain):
    assert [name for _, name, _ in page.charts([gain])[0].levels] == ["ideal, 80 ms", "sum, 160 ms"]
    rows = [replace(row, computation=Statistic(80.0, 50.0, 200.0, 9)) for row in gain.rows]
    assert page.charts([replace(gain, rows=tuple(rows))])[0].levels == []


def test_a_chart_with_short_bars_says_why(gain):
    longer = compared(600000.0, native=590000.0, thread=585000.0)
    longer = replace(longer, collective="bcast")
    said = page.why_short([gain, longer])
    assert said.startswith(f"MPI_Ibcast takes more than 3 times as long as {gain.call}, whose bars")
    assert page.why_short([gain]) == page.why_short([]) == ""
    assert said in page.render([gain, longer], "a link")


def test_the_page_says_first_where_it_ran(gain):
    text = page.render([gain], "a link", "on two nodes of the lab at 200 Mbit/s")
    assert "under each engine, on two nodes of the lab at 200 Mbit/s.</p>" in text
    assert "under <em>native</em> Weft is loaded" in text


def test_a_page_where_nothing_can_be_told(tmp_path):
    noisy = compared(90000.0, spread=0.3, native=90000.0, thread=84000.0)
    page.write(tmp_path / "x.html", [noisy], "a link")
    assert noisy.sentence in (tmp_path / "x.html").read_text()


def test_a_page_of_blocking_calls_only(tmp_path):
    found = calls_compared(14.0, 3.5)
    page.write(tmp_path / "x.html", [found], "shared memory")
    text = (tmp_path / "x.html").read_text()
    assert found.sentence in text and overlap.interval(found.gain) in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "something/1"}, r"schema weft-overlap/1 is needed, .* 'something/1'"),
        ({"engines": [{"engine": "thread"}]}, r"engines\[0\]\.immediate_us is missing"),
        ({"ranks": "two"}, r"ranks should be a valid integer, not 'two'"),
    ],
)
def test_other_files_are_refused_by_file_and_field(tmp_path, change, said):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**job({"native": 1.0}), **change}))
    with pytest.raises(ResultError, match=said) as error:
        overlap.read(path)
    assert str(error.value).startswith(str(path))


def test_unknown_mpi_names_the_choices(capsys, tmp_path):
    assert show.run("lam", "180s", tmp_path / "demo.html") == 2
    assert "mpich, openmpi, intelmpi" in " ".join(capsys.readouterr().err.split())


@pytest.mark.skipif(
    not mpi_libraries.implementation("mpich").program("overlap").exists(), reason="needs a build"
)
def test_one_round_from_end_to_end():
    """Runs one round with a tiny message in shared memory, to test that all parts fit together."""
    mpi = mpi_libraries.implementation("mpich")
    place = SharedMemory(mpi, size="64KiB")
    one = rounds.Rounds(place, mpi, 60.0)
    subject = rounds.Subject("bcast", place.size)
    one.round(subject)
    without, weft = subject.without[0], subject.weft[0]
    assert without.weft is None and weft.weft
    assert without.wrong == weft.wrong == 0
    assert weft.iterations == without.iterations
    assert [row.name for row in subject.comparison.engines] == list(rounds.ENGINES)
