"""Tests `weft run --summary` and `--trace` with a real program, whose ranks all write to one
place."""

import json
import os
import re
import socket
import subprocess
import sys
from datetime import datetime

import pytest

from weft import __version__
from weft.lab import lab_problem
from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

RANKS = 3


@pytest.fixture
def observed(call, environment, tmp_path):
    """Runs the measuring program under an engine with these options. Returns its standard error."""

    def run(engine: str, *options: object) -> str:
        library = mpi_libraries.implementation("mpich")
        program = [library.program("overlap"), "--collective", "allreduce", "--bytes", "512KiB"]
        # The computation is long, so that the thread acts in time even on a loaded machine.
        program += ["--engines", engine, "--repetitions", "2", "--pause-us", "0", "--ratio", "8"]
        done = call(
            "run", "--engine", engine, *options, "--", library.mpiexec, "-n", RANKS, *program
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def spans(file):
    events = json.loads(file.read_text())["traceEvents"]
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"
    }
    found = {}
    for event in events:
        if event["ph"] != "X":
            continue
        assert event["dur"] >= 0
        thread = threads[event["pid"], event["tid"]]
        found.setdefault((event["pid"], thread), set()).add(event["name"])
    return found


def test_trace_shows_application_and_progress_thread_of_every_rank(observed, tmp_path):
    file = tmp_path / "trace.json"
    observed("thread", "--trace", file)
    found = spans(file)
    for rank in range(RANKS):
        assert {"computing", "MPI_Iallreduce", "MPI_Wait"} <= found[rank, "application"]
        assert {"working", "polling"} & found[rank, "weft-progress"]


def test_trace_shows_the_worker(observed, tmp_path):
    file = tmp_path / "trace.json"
    observed("tcc", "--trace", file)
    for rank in range(RANKS):
        workers = [names for (pid, name), names in spans(file).items() if pid == rank]
        assert any("working" in names for names in workers)


def test_trace_that_cannot_be_written_is_named(observed, tmp_path):
    said = observed("thread", "--trace", tmp_path / "missing" / "trace.json")
    assert "cannot write the trace" in said


def test_summary_is_said_once_with_calls_and_hidden_share(observed):
    said = observed("thread", "--summary")
    assert said.count("summary of 3 ranks, MPICH, engine thread") == 1
    line = next(line for line in said.splitlines() if "MPI_Iallreduce" in line)
    cells = line.split()
    seen, handled = map(int, cells[1:3])
    assert 0 < handled <= seen
    assert cells[4] == "MiB" and float(cells[3]) == pytest.approx(handled / 2, rel=0.01)
    assert line.rstrip().endswith("%")


@pytest.mark.parametrize(
    "engine, options", [("thread", "--with '--engine thread' "), ("native", "")]
)
def test_summary_says_how_long_it_took_and_how_to_compare_it(observed, engine, options):
    said = observed(engine, "--summary")
    seconds = re.search(r"([0-9.]+) s from MPI_Init to MPI_Finalize", said)
    waited = re.search(r"these calls took ([0-9.]+) % of the ranks' time", said)
    assert seconds and waited, said
    assert float(seconds[1]) > 0
    assert 0 < float(waited[1]) < 100
    command = next(line for line in said.splitlines() if "did it help?" in line)
    library = mpi_libraries.implementation("mpich")
    assert (
        f"weft try {options}-- {library.mpiexec} -n {RANKS} {library.program('overlap')} "
        in command
    )
    assert "weft run" not in command


def test_summary_says_why_more_than_all_time_was_waited(call, compiled_for):
    library = mpi_libraries.implementation("mpich")
    program = compiled_for(library, "several_wait")
    done = call("run", "--engine", "native", "--summary", "--", *library.launcher(2), program)
    assert done.returncode == 0, done.stderr
    waited = re.search(r"took ([0-9.]+) % of the ranks' time, since several threads", done.stderr)
    assert waited and float(waited[1]) > 100, done.stderr


@pytest.mark.parametrize("engine", ["native", "auto"])
def test_a_wait_for_several_requests_is_divided_among_them(call, compiled_for, tmp_path, engine):
    library, file = mpi_libraries.implementation("mpich"), tmp_path / "summary.json"
    program = compiled_for(library, "late_for_several")
    for report in ("--summary", f"--summary=json:{file}"):
        done = call("run", "--engine", engine, report, "--", *library.launcher(2), program)
        assert done.returncode == 0, done.stderr
        assert "several threads" not in done.stderr
    found = json.loads(file.read_text())
    calls = {entry["call"]: entry for entry in found["calls"]}
    inside_us = sum(entry["waited_us"] + entry["inside_us"] for entry in calls.values())
    assert 0 < inside_us / 1e6 / 2 / found["seconds"] <= 1.01
    assert found["headline"]["calls_share"] <= 1.01
    if engine == "native":  # native operations all end at the end of the wait
        allreduces, bcasts = (calls[name]["waited_us"] for name in ("MPI_Iallreduce", "MPI_Ibcast"))
        assert allreduces == pytest.approx(bcasts, rel=0.01)


def test_polls_of_persistent_calls_count_as_waits(call, compiled_for, tmp_path):
    library, file = mpi_libraries.implementation("mpich"), tmp_path / "summary.json"
    program = compiled_for(library, "late_for_several")
    summary = f"--summary=json:{file}"
    done = call("run", summary, "--", *library.launcher(2), program, "polls")
    assert done.returncode == 0, done.stderr
    polled_us = sum(map(int, re.findall(r"polled (\d+)", done.stdout)))
    calls = {entry["call"]: entry for entry in json.loads(file.read_text())["calls"]}
    # A large part of a short poll is outside of the time that Weft measures.
    assert polled_us / 20 < calls["MPI_Allreduce_init"]["waited_us"] <= polled_us


def test_summary_in_json_has_the_seconds(observed, tmp_path):
    file = tmp_path / "summary.json"
    observed("thread", f"--summary=json:{file}")
    found = json.loads(file.read_text())
    assert found["seconds"] == found["headline"]["seconds"] > 0
    assert (found["schema"], found["weft"]) == ("weft-summary/2", __version__)
    assert (found["host"], found["ranks"]) == (socket.gethostname(), RANKS)
    assert datetime.fromisoformat(found["date"]).tzinfo and "mpiexec" in found["command"]
    assert 0 < found["headline"]["calls_share"] < 1
    inside_us = sum(call["waited_us"] + call["inside_us"] for call in found["calls"])
    share = inside_us / 1e6 / RANKS / found["seconds"]
    assert share == pytest.approx(found["headline"]["calls_share"], abs=0.001)


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_what_is_hidden_is_of_the_calls_that_weft_handled(call, tmp_path, name):
    """Waits for calls that Weft passed on are long here, and would make the hidden share
    negative."""
    library = mpi_libraries.implementation(name)
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(name)}")
    source = installation.ROOT / "tests/cli/programs/late_for_some.c"
    program = tmp_path / "late_for_some"
    compiler = str(library.prefix / "bin/mpicc")
    subprocess.run(
        [compiler, "-O1", str(source), "-o", str(program), f"-Wl,-rpath,{library.prefix}/lib"],
        check=True,
        timeout=120,
        env={**os.environ, **library.environment()},
    )
    command = [*library.launcher(2), program]
    run = ("run", "--engine", "thread", "--summary", "--", *command)
    done = call(*run, **library.environment())
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if "MPI_Iallreduce" in line)
    _, seen, handled, *_, waited, unit, hidden, _ = line.split()
    assert (int(seen), int(handled)) == (40, 20)
    assert unit == "ms" and float(waited) > 5
    assert 0 <= float(hidden) <= 100


@pytest.mark.parametrize("engine", ["auto", "native", "thread"])
def test_blocking_calls_have_their_time_and_share_whoever_carries_them_out(call, engine):
    library = mpi_libraries.implementation("mpich")
    program = [*library.launcher(2), library.program("latency"), "--forms", "blocking"]
    program += ["--bytes", "64KiB", "--collective", "allreduce"]
    # Without a budget engine auto uses its rule, and measures nothing.
    options = ("--engine", engine, "--init-budget", "0", "--summary")
    done = call("run", *options, "--", *program)
    assert done.returncode == 0, done.stderr
    seconds = float(re.search(r"([0-9.]+) s from MPI_Init", done.stderr)[1])
    line = next(line for line in done.stderr.splitlines() if "MPI_Allreduce " in line)
    found = re.match(
        r"\s+MPI_Allreduce\s+(\d+)\s+(\d+)\s+[\d.]+ \w+\s+([\d.]+) (\w+)\s+([\d.]+) %", line
    )
    calls, by_weft, time, unit, share = found.groups()
    assert int(calls) > 0 and (int(by_weft) > 0) == (engine == "auto")
    spent = float(time) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]
    # The seconds are printed with two decimals, the time and the share with three digits.
    least, most = (100 * spent / max(seconds + off, 1e-4) for off in (0.005, -0.005))
    assert 0.99 * least - 0.06 <= float(share) <= 1.01 * most + 0.06


def test_the_next_command_is_that_of_the_launcher_or_the_lab(call, tmp_path):
    """The command is printed as the user typed it, without weft run. A rank behind mpiexec finds it
    in its ancestor processes."""
    library = mpi_libraries.implementation("mpich")
    program = str(library.program("latency"))
    inside = ["--forms", "blocking", "--bytes", "8", "--collective", "allreduce"]
    weft = str(installation.weft_command())
    rank = [weft, "run", "--summary", "--", program, *inside]
    done = subprocess.run(
        [*map(str, library.launcher(2)), *rank], capture_output=True, text=True, timeout=60
    )
    typed = " ".join([*map(str, library.launcher(2)), program, *inside])
    assert f"did it help? weft try -- {typed} runs it" in done.stderr, done.stderr
    if lab_problem():
        return
    done = call("lab", "run", "--nodes", 2, "--", *rank)
    typed = " ".join(["weft lab run --nodes 2 --", program, *inside])
    assert f"did it help? weft try -- {typed} runs it" in done.stderr, done.stderr


def test_a_program_that_fails_before_mpi_has_its_own_last_word(call):
    failing = call("run", "--summary", "--", sys.executable, "-c", "raise SystemExit('gone')")
    assert failing.stderr == "gone\n"
    well = call("run", "--summary", "--", sys.executable, "-c", "pass")
    assert f"weft: no summary: {sys.executable} has not called MPI_Init" in well.stderr
