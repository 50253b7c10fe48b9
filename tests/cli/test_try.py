"""`weft try`: where weft run goes, when it is decided, and what is said."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from weft.trying import rounds, show
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
    """Runs nothing: each way takes what it is told, and the clock goes on."""

    def __init__(self, *ways: list[float], summary: bool = True) -> None:
        self.trial = Trial([Way([f"--{number}"]) for number in range(len(ways))])
        self.times = {way.name: iter(times) for way, times in zip(self.trial.ways, ways)}
        self.summary = summary
        self.order: list[str] = []
        self.now = 0.0

    def run(self, way: Way) -> Run:
        self.order.append(way.name)
        took = next(self.times[way.name])
        self.now += 1.0
        return Run(2 * took, Summary(took, []) if self.summary else None)

    def measure(self, most: int = 12, seconds: float = 1000.0) -> Trial:
        measuring = rounds.Rounds(self.trial, self.run, most, seconds, lambda: self.now)
        measuring.measure(lambda trial: None)
        return self.trial

    def verdicts(self) -> list[str]:
        return [self.trial.verdict(way) for way in self.trial.ways[1:]]


NOISE = [1.0, 1.2, 0.9, 1.1, 0.95, 1.05] * 2


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.3, FASTER), (1.0, SAME), (0.7, SLOWER)], ids=str
)
def test_six_rounds_decide_what_is_clear_however_the_rounds_differ(factor, verdict):
    machine = Machine([factor * noise for noise in NOISE], NOISE)
    trial = machine.measure()
    assert machine.verdicts() == [verdict] and trial.rounds == 6
    assert trial.gain(trial.ways[1]).median == pytest.approx(factor)


def test_what_is_not_clear_is_measured_to_the_end():
    machine = Machine([1.0, 1.3] * 6, [1.3, 1.0] * 6)
    assert machine.measure().rounds == 12 and machine.verdicts() == [UNDECIDED]


def test_all_ways_must_be_decided():
    machine = Machine([2.0] * 12, [1.0] * 12, [1.8, 2.3] * 6)
    assert machine.measure().rounds == 12 and machine.verdicts() == [FASTER, UNDECIDED]


def test_rounds_go_forwards_and_backwards():
    machine = Machine([1.0] * 12, [1.0] * 12)
    machine.measure(most=3)
    assert machine.order == ["--0", "--1", "--1", "--0", "--0", "--1"]


def test_no_round_begins_that_would_end_too_late():
    """Each takes two seconds."""
    machine = Machine([1.0, 1.3] * 6, [1.3, 1.0] * 6)
    assert machine.measure(seconds=7.5).rounds == 3


def test_without_summaries_the_whole_command_counts():
    trial = Machine([1.0] * 6, [1.0] * 6, summary=False).measure()
    assert not trial.by_summary and trial.seconds(trial.ways[0]) == [2.0] * 6
    assert trial.to_json(["./app"])["measured"] == "the whole command"


COMMAND = ["weft", "lab", "run", "--", "./app"]


@pytest.mark.parametrize(
    ("base", "handled", "sentence"),
    [
        ([1.5] * 12, 0, "Keep it: weft lab run -- weft run --1 -- ./app"),
        ([1.0] * 12, 0, "Why, says the summary: weft lab run -- weft run --1 --summary -- ./app"),
        ([1.0] * 12, 3, "if the program were changed: weft advise -- weft lab run -- ./app"),
        (
            [0.9, 1.2] * 6,
            3,
            "12 rounds are not enough to tell. To measure longer: weft try --runs 24",
        ),
    ],
)
def test_what_to_do_next_is_said(base, handled, sentence):
    trial = Machine(base, [1.0] * 12).measure()
    last = trial.ways[1].runs[-1]
    trial.ways[1].runs[-1] = Run(last.wall_s, Summary(1.0, [rounds.Call("MPI_Bcast", handled)]))
    assert sentence in "\n".join(show.what_next(trial, COMMAND, False))


def test_a_program_is_tried(call, mpi, tmp_path):
    """Its output is shown once; its runs are told apart by the engines that they had."""
    file = tmp_path / "tried.json"
    words = [*mpi.launcher(2), mpi.program("idle"), "0"]
    options = ("--runs", 2, "--with", "", "--with", "--engine function", "--json", file)
    done = call("try", *options, "--", *words, **mpi.environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("rank 0 thread") == 1
    assert "2 rounds are not enough to tell" in done.stdout
    found = json.loads(file.read_text())
    assert (found["schema"], found["measured"]) == ("weft-try/1", "MPI_Init to MPI_Finalize")
    assert [way["options"] for way in found["ways"]] == [
        ["--engine", "native"],
        [],
        ["--engine", "function"],
    ]
    assert all(len(way["seconds"]) == 2 and min(way["seconds"]) > 0 for way in found["ways"])
    assert [way.get("verdict") for way in found["ways"]] == [None, UNDECIDED, UNDECIDED]


def test_without_a_summary_nothing_is_said_of_its_calls():
    trial = Machine([1.0] * 12, [1.0] * 12, summary=False).measure()
    assert "has left no summary" in "\n".join(show.what_next(trial, COMMAND, False))


def test_rounds_before_a_failure_are_shown(call, tmp_path):
    """Two, and the first run; the sixth fails."""
    count = "echo >> runs; test $(wc -l < runs) -ne 6 || exit 9"
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
    """It gets the interrupt with the terminal's others, and takes half a second."""
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
    assert "weft try: sh -c 'echo broken; exit 7' ended with status 7" in done.stderr


def test_each_run_reads_the_input_from_its_beginning(weft, environment, tmp_path):
    """The program fails where it is given nothing."""
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
