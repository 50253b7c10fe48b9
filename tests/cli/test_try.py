"""Tests `weft try`: where it inserts weft run, when a trial is decided, and its output."""

from __future__ import annotations

import io
import json
import math
import random
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from weft.measurements import statistics
from weft.system import linked, mpi_libraries
from weft.system.mpi_libraries import Implementation
from weft.trying import MOST_ROUNDS, rounds, show
from weft.trying.rounds import FASTER, SAME, SLOWER, UNDECIDED, Run, Summary, Trial, Way

FRONT = ["weft", "run", "--"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./app 3", "weft run -- ./app 3"),
        ("mpiexec -n 2 ./app", "weft run -- mpiexec -n 2 ./app"),
        ("srun -n 2 {} ./app {}", "srun -n 2 weft run -- ./app {}"),
        ("bin/weft lab run --nodes 2 -- ./app", "bin/weft lab run --nodes 2 -- weft run -- ./app"),
    ],
)
def test_weft_goes_where_it_belongs(command, expected):
    assert rounds.with_weft(command.split(), FRONT) == expected.split()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("mpiexec -n 2 weft run -- ./app", "leave weft run out of the command"),
        ("weft lab run ./app", "write -- in front of the program"),
    ],
)
def test_a_command_that_has_weft_in_it_is_refused(call, command, sentence):
    done = call("try", "--", *command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("it's", "--with it's: No closing quotation"), ("--engine foo", "unknown engine 'foo'")],
)
def test_options_that_weft_run_does_not_know_are_refused_before_the_first_run(
    call, words, sentence
):
    done = call("try", "--with", words, "--", "echo", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr and done.stderr.count("\n") == 1


class Machine:
    """Runs nothing: each way takes the given times, and advances the clock."""

    def __init__(
        self, *ways: Iterable[float], summary: bool = True, handled: int = 1, most: int = 12
    ) -> None:
        self.trial = Trial([Way([f"--{number}"]) for number in range(len(ways))], most)
        self.times = {way.name: iter(times) for way, times in zip(self.trial.ways, ways)}
        self.summary = summary
        self.calls = [rounds.Call("MPI_Bcast", handled)]
        self.order: list[str] = []
        self.now = 0.0

    def run(self, way: Way) -> Run:
        self.order.append(way.name)
        took = next(self.times[way.name])
        self.now += 1.0
        return Run(2 * took, Summary(took, self.calls) if self.summary else None)

    def measure(self, seconds: float = 1000.0) -> Trial:
        self.trial.budget_s = seconds
        measuring = rounds.Rounds(self.trial, self.run, lambda: self.now)
        measuring.measure(lambda trial: None)
        return self.trial

    def verdicts(self) -> list[str]:
        return [self.trial.verdict(way) for way in self.trial.ways[1:]]

    def said(self, trial: Trial) -> str:
        """Returns everything that is printed about the trial."""
        console = Console(width=100, record=True, file=io.StringIO())
        show.result(trial, COMMAND, console)
        return console.export_text()


COMMAND = ["weft", "lab", "run", "--", "./app"]
NOISE = [1.0, 1.2, 0.9, 1.1, 0.95, 1.05] * 2


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.3, FASTER), (1.0, SAME), (0.7, SLOWER)], ids=str
)
def test_seven_rounds_decide_what_is_clear_however_the_rounds_differ(factor, verdict):
    machine = Machine([factor * noise for noise in NOISE], NOISE)
    trial = machine.measure()
    assert machine.verdicts() == [verdict] and trial.rounds == 7
    assert trial.gain(trial.ways[1]).median == pytest.approx(factor)


def test_what_is_not_clear_is_measured_to_the_end():
    machine = Machine([1.0, 1.3] * 6, [1.3, 1.0] * 6)
    assert machine.measure().rounds == 12 and machine.verdicts() == [UNDECIDED]


def test_all_ways_must_be_decided():
    machine = Machine([2.0] * 12, [1.0] * 12, [1.8, 2.3] * 6)
    assert machine.measure().rounds == 12 and machine.verdicts() == [FASTER, UNDECIDED]


def test_rounds_go_forwards_and_backwards():
    machine = Machine([1.0] * 12, [1.0] * 12, most=3)
    machine.measure()
    assert machine.order == ["--0", "--1", "--1", "--0", "--0", "--1"]


def test_no_round_begins_that_would_end_too_late():
    """Each round takes two seconds."""
    machine = Machine([1.0, 1.3] * 6, [1.3, 1.0] * 6)
    assert machine.measure(seconds=7.5).rounds == 3


def test_without_summaries_the_whole_command_counts():
    trial = Machine([1.0] * 7, [1.0] * 7, summary=False).measure()
    assert not trial.by_summary and trial.seconds(trial.ways[0]) == [2.0] * 7
    assert trial.to_json(["./app"])["measured"] == "the whole command"


class Noise:
    """Makes times of equal ways. Rounds differ, and some runs are delayed by other load."""

    def __init__(self, seed: int, spread: float) -> None:
        self.draw = random.Random(seed)
        self.spread = spread

    def times(self, factor: float = 1.0) -> Iterator[float]:
        while True:
            hit = 1.5 if self.draw.random() < 0.05 else 1.0
            yield factor * hit * math.exp(self.draw.gauss(0, self.spread))


def verdicts(spread: float, trials: int, most: int = 12, ways: int = 1, factor: float = 1.0):
    """Returns the share of each verdict among trials that compare one way, or several."""
    noise, found = Noise(1, spread), Counter()
    for _ in range(trials):
        times = [noise.times(factor), *(noise.times() for _ in range(ways))]
        machine = Machine(*times, most=most)
        machine.measure(seconds=math.inf)
        wrong = {FASTER, SLOWER} & set(machine.verdicts())
        found[next(iter(sorted(wrong)), machine.verdicts()[0])] += 1
    return {word: count / trials for word, count in found.items()}


@pytest.mark.parametrize(
    ("spread", "most", "ways"), [(0.01, 12, 1), (0.3, 12, 1), (0.3, 24, 1), (0.3, 12, 3)]
)
def test_equal_sides_are_called_different_in_few_of_many_trials(spread, most, ways):
    """At most 2.5 % may be wrong. With 4,000 random trials half a per cent more may be measured."""
    found = verdicts(spread, 4000, most, ways)
    assert found.get(FASTER, 0) + found.get(SLOWER, 0) <= rounds.WRONG + 0.005


def test_a_difference_of_a_fifth_is_found_in_nearly_all_trials():
    found = verdicts(0.03, 500, factor=1.2)
    assert found.get(SLOWER, 0) == 0 and found[FASTER] > 0.9


@pytest.mark.parametrize("looks", [7, 12, 24, 100])
def test_all_looks_together_keep_the_promise(looks):
    """The permitted probability of an error is hardly less than used up."""
    level = statistics.level_of_a_look(looks, rounds.WRONG)
    assert statistics.ever_missed(looks, level) <= rounds.WRONG
    assert looks < 24 or statistics.ever_missed(looks, level) > 0.9 * rounds.WRONG


def test_a_lead_within_what_nobody_notices_is_not_called_one():
    """The lead is 1 % and 6 % in turn. The interval excludes 1, but not 1.02."""
    machine = Machine([1.01, 1.06] * 6, [1.0] * 12)
    assert machine.measure().gain(machine.trial.ways[1]).low > 1
    assert machine.verdicts() == [UNDECIDED]


@pytest.mark.parametrize(
    ("base", "handled", "sentence"),
    [
        ([1.5] * 12, 3, "Keep it: weft lab run -- weft run --1 -- ./app"),
        ([1.0] * 12, 3, "if the program were changed: weft advise -- weft lab run -- ./app"),
        (
            [0.9, 1.2] * 6,
            3,
            "12 rounds are not enough to tell: --0 alone varied from 0.9 to 1.2 s. Try when the"
            " machine is quieter, or measure longer: weft try --with --1 --runs 24 --time-budget"
            " 34min -- weft lab run -- ./app",
        ),
        *(
            (base, 0, "says the summary: weft lab run -- weft run --1 --summary -- ./app")
            for base in ([1.5] * 12, [1.0] * 12, [0.9, 1.2] * 6)
        ),
    ],
)
def test_what_to_do_next_is_said(base, handled, sentence):
    trial = Machine(base, [1.0] * 12, handled=handled).measure()
    assert sentence in "\n".join(show.what_next(trial, COMMAND))


def test_too_few_rounds_are_named_with_the_time_that_enough_take():
    """Each round takes two seconds."""
    machine = Machine([1.0, 1.3] * 6, [1.3, 1.0] * 6)
    trial = machine.measure(seconds=5.0)
    said = "\n".join(show.what_next(trial, COMMAND))
    assert said.startswith("2 rounds are too few: 7 are needed, about 20 s. To measure longer: ")
    assert "weft try --with --1 --runs 24 --time-budget 1min -- weft lab run" in said
    assert "too few rounds (7 needed)" in machine.said(trial)


@pytest.mark.parametrize(
    ("rounds_most", "budget_s", "more"),
    [(12, 1000.0, "--runs 24 --time-budget 34min"), (12, 5.0, "--runs 24 --time-budget 1min")]
    + [(1, 5.0, "--runs 16 --time-budget 1min"), (600, 1000.0, "--runs 1000 --time-budget 34min")],
)
def test_the_command_that_measures_longer_is_the_whole_one(rounds_most, budget_s, more):
    """The printed command has all ways and the place of weft run, and larger values of both
    limits."""
    machine = Machine([1.0, 1.3] * 300, [1.3, 1.0] * 300, [1.0, 1.3] * 300, most=rounds_most)
    trial = machine.measure(budget_s)
    trial.ways[1].options, trial.ways[2].options = [], ["--engine", "thread"]
    (said,) = show.what_next(trial, ["srun", "{}", "./my app"], Path("f.json"))
    ways = "--with '' --with '--engine thread'"
    assert said.endswith(f"weft try {ways} {more} --json f.json -- srun '{{}}' './my app'")


def test_of_a_thousand_rounds_no_more_are_proposed():
    machine = Machine([1.0, 1.3] * 500, [1.3, 1.0] * 500, most=MOST_ROUNDS)
    (said,) = show.what_next(machine.measure(1e6), COMMAND)
    assert said.endswith("and more cannot be measured.") and "weft try" not in said


def test_times_are_said_in_steps_of_ten_seconds():
    assert [show.time_in_words(s) for s in (9, 141, 180)] == ["10 s", "2 min 30 s", "3 min"]


def test_a_program_that_is_too_short_is_told_so_behind_one_round():
    machine = Machine([0.04] * 12, [0.001] * 12)
    trial = machine.measure()
    said = machine.said(trial)
    assert trial.rounds == 1 and machine.verdicts() == [UNDECIDED]
    assert "too short" in said and "40.00" not in said
    assert "The program runs for less than 0.1 s; give it more steps." in said


@pytest.mark.parametrize(
    ("command", "launched"),
    [("./app 3", False), ("mpiexec.hydra -n 2 ./app", True), ("weft lab run -- ./app", True)],
)
def test_a_launcher_is_known(command, launched):
    assert rounds.is_launched(command.split()) == launched


@pytest.mark.one_library
def test_one_rank_without_a_launcher_is_no_trial(call, mpi):
    done = call("try", "--", mpi.program("idle"), "0", **mpi.environment())
    assert done.returncode == 2 and "round 1" not in done.stderr
    assert "weft try: 1 rank: did you forget mpiexec -n 4?" in done.stderr


@pytest.mark.long
def test_a_script_counts_all_of_its_jobs(call, tmp_path):
    """The last job has only one rank."""
    mpi = mpi_libraries.implementation("mpich")
    file, program = tmp_path / "tried.json", mpi.program("idle")
    script = f"{shlex.join(map(str, [*mpi.launcher(2), program, 0]))} && {program} 0"
    words = ("--runs", 1, "--json", file, "--", "sh", "-c", script)
    done = call("try", *words, **mpi.environment())
    assert done.returncode == 0, done.stderr
    assert json.loads(file.read_text())["ranks"] == 2


def test_the_summary_of_each_job_is_read_once(tmp_path):
    """Each summary replaces the previous one."""
    summaries = rounds.SummaryFile(tmp_path / "summary.json")
    for ranks, seconds in ((4, 1.5), (1, 0.25)):
        summaries.look()
        new = tmp_path / "new"
        call = '{"call": "MPI_Bcast", "handled": 3}'
        head = f'"schema": "{rounds.SUMMARY[0]}", "ranks": {ranks}, "seconds": {seconds}'
        new.write_text(f'{{{head}, "calls": [{call}]}}')
        new.replace(summaries.path)
        summaries.look()
    found = summaries.summary()
    assert (found.ranks, found.seconds, len(found.calls)) == (4, 1.75, 2)


def test_a_library_that_the_loader_does_not_find_is_named(monkeypatch, tmp_path):
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    mpi = Implementation("mpich", tmp_path, launcher, tmp_path / "libmpi.so.12", "embedded")
    monkeypatch.setattr(mpi_libraries, "search", lambda: iter([mpi]))
    monkeypatch.setattr(linked, "path_for_loader", lambda mpi: "export X=1")
    command = [str(launcher), "python3", "app.py"]
    said = show.libraries_not_found(command, "RuntimeError: cannot load MPI library")
    assert said == ["the loader finds no libmpi.so.12, which mpi4py needs; try: export X=1"]
    assert show.libraries_not_found(command, "ValueError: 3") == []
    assert show.libraries_not_found(["python3"], "cannot load MPI library") == []


def test_a_program_in_which_weft_did_nothing_is_not_called_faster():
    machine = Machine([1.5] * 12, [1.0] * 12, handled=0)
    said = machine.said(machine.measure())
    assert said.startswith("Weft carried out nothing of this program: a difference")
    assert "faster" not in said and "Keep it" not in said


def test_what_weft_does_for_messages_is_something():
    trial = Machine([1.5] * 12, [1.0] * 12, handled=0).measure()
    trial.ways[1].runs[0] = Run(2.0, Summary(1.0, [], transfers=4))
    assert show.first_of_all(trial) == "" and "Keep it" in show.what_next(trial, COMMAND)[0]


def test_the_simplest_of_equal_ways_is_kept():
    """The second way is faster in the median, but not beyond the intervals."""
    machine = Machine([1.5] * 12, [1.0, 1.05] * 6, [1.0, 1.02] * 6)
    trial = machine.measure()
    trial.ways[2].options += ["--engine", "thread"]
    assert show.choice(trial, trial.ways[1:]) is trial.ways[1]


@pytest.mark.one_library
def test_a_program_is_tried(call, mpi, tmp_path):
    """The program's output is shown once. Its runs are distinguished by their engines."""
    file = tmp_path / "tried.json"
    words = [*mpi.launcher(2), mpi.program("idle"), "0"]
    options = ("--runs", 1, "--with", "", "--with", "--engine function", "--json", file)
    done = call("try", *options, "--", *words, **mpi.environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rank 0 thread") == 1
    assert "1 round is too few: 8 are needed, about " in done.stdout
    assert "too few rounds (8 needed)" in done.stdout
    found = json.loads(file.read_text())
    assert (found["schema"], found["measured"]) == ("weft-try/2", "MPI_Init to MPI_Finalize")
    assert found["ranks"] == 2 and found["mpi"]
    assert found["program"] == list(map(str, words))
    assert [way["options"] for way in found["ways"]] == [
        ["--engine", "native"],
        [],
        ["--engine", "function"],
    ]
    assert all(len(way["seconds"]) == 1 and min(way["seconds"]) > 0 for way in found["ways"])
    assert [way.get("verdict") for way in found["ways"]] == [None, UNDECIDED, UNDECIDED]


@pytest.mark.parametrize("base", [1.0, 1.5])
def test_without_a_summary_that_is_said_first_and_nothing_is_kept(base):
    machine = Machine([base] * 12, [1.0] * 12, summary=False)
    said = machine.said(machine.measure())
    assert said.startswith("No MPI program has left a summary") and "Keep it" not in said


def test_a_command_without_mpi_is_told_so_first(call, tmp_path):
    done = call("try", "--runs", 1, "--", "ls", tmp_path)
    assert done.returncode == 0 and done.stdout.count("No MPI program has left a summary") == 1
    before_rounds, _, _ = done.stderr.partition("round 1")
    assert "no MPI program has left a summary" in before_rounds


def test_rounds_before_a_failure_are_shown(call, tmp_path):
    """The first run and two rounds succeed; the sixth run fails."""
    count = "sleep 0.1; echo >> runs; test $(wc -l < runs) -ne 6 || exit 9"
    done = call("try", "--json", tmp_path / "f", "--", "sh", "-c", f"cd {tmp_path}; {count}")
    assert done.returncode == 9
    assert "2 rounds" in done.stdout and len(json.loads((tmp_path / "f").read_text())["ways"]) == 2


LAUNCHER = """
import signal, sys, time
def end(number, frame):
    time.sleep(0.5)
    open(sys.argv[1], "w").close()
    sys.exit(1)
signal.signal(signal.SIGINT, end)  # also where interrupts are ignored, as behind a shell's "&"
print(flush=True)
time.sleep(60)
"""


def test_an_interrupted_launcher_has_time_to_end_its_ranks(tmp_path):
    """The launcher gets the interrupt with the other processes of the terminal, and takes half a
    second."""
    ended = tmp_path / "ended"
    process = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(ended)], stdout=subprocess.PIPE)
    process.stdout.readline()
    wait = process.wait

    def interrupted(timeout=None):
        if timeout is None and not ended.exists():
            process.send_signal(signal.SIGINT)
            raise KeyboardInterrupt
        return wait(timeout)

    process.wait = interrupted
    with process, pytest.raises(KeyboardInterrupt):
        rounds.status_of(process)
    assert ended.exists() and process.returncode == 1


def test_a_program_that_fails_ends_it_with_its_status(call):
    done = call("try", "--", "sh", "-c", "echo broken; exit 7")
    assert done.returncode == 7 and "broken" in done.stdout
    sentence = "ended with status 7 under weft run --engine native"
    assert f"weft try: sh -c 'echo broken; exit 7' {sentence}" in done.stderr


def test_a_failure_in_one_way_only_names_that_way(call):
    command = ["sh", "-c", 'test "$WEFT_ENGINE" != thread || exit 9']
    done = call("try", "--with", "--engine thread", "--", *command)
    assert done.returncode == 9
    sentence = "under weft run --engine thread; under weft run --engine native it ended well"
    assert done.stderr.splitlines()[-1].endswith(sentence)


def test_each_run_reads_the_input_from_its_beginning(weft, environment, tmp_path):
    """The program fails with an empty input."""
    given = tmp_path / "input"
    given.write_text("some input\n")
    command = [weft, "try", "--runs", "2", "--", "grep", "input"]
    for source, status in ((given, 0), (Path("/dev/null"), 1)):
        with source.open() as stdin:
            done = subprocess.run(
                command, env=environment, stdin=stdin, capture_output=True, text=True, timeout=100
            )
        assert done.returncode == status, done.stderr
        assert done.stdout.count("some input") == 1 - status
