"""Tests `weft advise` on programs that plant windows of known length, on programs that must not be
disturbed, and on bad input.

Windows are compared only with the program's own clock. A window is never shorter than the
computation in it, and never longer than a round. The load of the machine decides how long both
are."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from advise_runs import HERE, sites

from weft.advise import analysis, record, store
from weft.system import mpi_libraries

pytestmark = pytest.mark.covering

SOURCES = Path(__file__).parent / "programs"
BUSY_MS = 3
ROUNDS = 12


def line_of(source: str, text: str) -> int:
    lines = (SOURCES / source).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def round_us(errors: str) -> float:
    """Returns the longest time of a round in us."""
    return float(errors.split("round ")[1].split()[0]) * 1e3


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_windows(mpi, program, advise, tmp_path, inside):
    windows = program(mpi, "advise_windows.c")
    command = [windows, BUSY_MS, ROUNDS]
    done = advise(mpi, command, "--overhead", "50%", "--json", "s.json", inside=inside)
    assert done.returncode == 0, done.stderr
    assert "checksum 1919920.000 20.000\n" in done.stdout
    assert "of the run time is in collectives" in done.stdout
    found = sites(tmp_path / "s.json")
    for name in ("heap_case MPI_Allreduce", "write_case MPI_Allreduce", "mpi_case MPI_Bcast"):
        assert found[name]["window_after_us"], name
        site = found[name]
        assert site["calls"] == ROUNDS
        assert BUSY_MS * 1e3 <= site["window_after_us"]["median"] < round_us(done.stderr), name
        assert site["gain_us"]["low"] is None
    assert found["heap_case MPI_Allreduce"]["line"] == line_of("advise_windows.c", "heap, 40000")
    assert found["heap_case MPI_Allreduce"]["file"].endswith("advise_windows.c")
    stored = store.read(tmp_path / "weft-advise.sqlite")
    # Memory beside a thread's stack is not part of it. In this case nothing is beside the first
    # thread's data.
    whys = {record.UNKNOWNS[row["why"]] for row in stored["unknown"]}
    assert mpi.name != "mpich" or "the result is in memory that cannot be guarded" not in whys
    advice = analysis.analyse(stored)
    heap = next(site for site in advice.sites if site.function == "heap_case")
    assert heap.arguments.words[:3] == ["in", "heap", "40000"]
    # The static buffer shares pages with other data that is used.
    static = found["static_case MPI_Allreduce"]
    window = static["window_after_us"] or static["window_after_bounds_us"]
    assert window and max(window.values()) >= BUSY_MS * 1e3
    assert found["stack_case MPI_Allreduce"]["window_after_us"] is None
    # If the system permits no hardware breakpoints, the window is unknown. It is never too short.
    scalar = found["scalar_case MPI_Allreduce"]["window_after_us"]
    assert scalar is None or scalar["median"] >= BUSY_MS * 1e3
    page = (tmp_path / "weft-advise.html").read_text()
    assert "of the run time is in collectives" in page and "heap_case at" in page


@pytest.mark.one_library
def test_windows_before(mpi, program, advise, tmp_path):
    """The program's own clock tells for each case how long ago the sent data was written."""
    command = [program(mpi, "advise_before.c"), BUSY_MS, ROUNDS]
    # With the whole budget every call is observed.
    done = advise(mpi, command, "--overhead", "100%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("checksum ")
    longest = {line.split()[0]: float(line.split()[1]) for line in done.stderr.splitlines() if line}
    found = {name.split()[0]: site for name, site in sites(tmp_path / "s.json").items()}
    for name in ("heap_case", "static_case", "late_case", "read_case", "sent_case"):
        bounds = found[name]["window_before_us"]
        assert bounds["least"] <= longest[name], name
        assert bounds["most"] >= BUSY_MS * 1e3, name
    # The constant case does not write its send buffer between two calls.
    constant = found["constant_case"]["window_before_us"]
    assert constant["least"] >= BUSY_MS * 1e3 and constant["most"] is None
    assert found["stack_case"]["window_before_us"] is None
    said = " ".join(done.stdout.split())
    assert "window before unknown: what is sent is on the stack" in said


PLANTED_US = {"planted_0": 0, "planted_200us": 200, "planted_10ms": 1e4, "planted_50ms": 5e4}


def test_planted_windows(mpi, program, advise, tmp_path):
    """The program knows bounds of both windows of each call, and so of their medians."""
    command = [program(mpi, "advise_planted.c"), 8]
    # With the whole budget every call is observed.
    done = advise(mpi, command, "--overhead", "100%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    said = [line.split() for line in done.stderr.splitlines() if line.startswith("planted_")]
    own = {name: [float(us) for us in numbers] for name, *numbers in said}
    found = {name.split()[0]: site for name, site in sites(tmp_path / "s.json").items()}
    for name, planted_us in PLANTED_US.items():
        before_least, before_most, after_least, after_most = own[name]
        assert min(before_least, after_least) >= planted_us, name
        before, after = found[name]["window_before_us"], found[name]["window_after_us"]
        # The program prints times with three digits.
        assert after_least - 0.01 <= after["median"] <= after_most + 0.01, name
        assert before["least"] <= before_most + 0.01, name
        assert before["most"] >= before_least - 0.01, name


@pytest.mark.one_library
def test_a_busy_neighbour_leaves_bounds(mpi, program, advise, tmp_path):
    command = [program(mpi, "advise_hot.c"), BUSY_MS, ROUNDS]
    done = advise(mpi, command, "--overhead", "50%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    site = sites(tmp_path / "s.json")["hot_case MPI_Allreduce"]
    assert site["window_after_us"] is None
    bounds = site["window_after_bounds_us"]
    assert bounds["least"] < bounds["most"] and bounds["most"] >= BUSY_MS * 1e3


@pytest.mark.one_library
def test_the_timeline_has_calls_and_windows(mpi, program, advise, tmp_path):
    command = [program(mpi, "advise_windows.c"), 1, ROUNDS]
    done = advise(mpi, command, "--overhead", "50%", "--trace", "t.json")
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert [names[rank].split()[:2] for rank in (0, 1)] == [["rank", "0"], ["rank", "1"]]
    spans = [e for e in events if e["ph"] == "X"]
    for rank in (0, 1):
        calls = [e for e in spans if e["pid"] == rank and e["cat"] == "call"]
        assert len(calls) == 7 * ROUNDS + 1
        assert sum("heap_case advise_windows.c:" in e["name"] for e in calls) == ROUNDS
        for lane in {e["tid"] for e in spans if e["pid"] == rank}:
            mine = [e for e in spans if (e["pid"], e["tid"]) == (rank, lane)]
            row = sorted((e["ts"], e["ts"] + e["dur"]) for e in mine)
            assert all(one[1] <= other[0] + 0.01 for one, other in zip(row, row[1:]))
    assert any(e["cat"] == "result left alone" and e["dur"] >= 1000 for e in spans)


@pytest.mark.one_library
def test_the_timeline_follows_nonblocking_calls(mpi, program, advise, tmp_path):
    advise(mpi, [program(mpi, "advise_ends.c"), "nonblocking"], "--trace", "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    kinds = {e["cat"] for e in events if e["ph"] == "X" and "MPI_Iallreduce" in e["name"]}
    assert kinds - {"result left alone"} == {"in flight", "wait"}


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_the_timeline_has_wefts_threads(mpi, weft, advise, tmp_path, inside):
    """The engine's thread is awake while a collective is in flight, by the clock of the calls."""
    program = [mpi.program("overlap"), "--collective", "allreduce", "--bytes", "512KiB"]
    # The computation is long, so that the thread acts in time even on a loaded machine.
    program += ["--engines", "thread", "--repetitions", "8", "--pause-us", "0", "--ratio", "20"]
    command = [weft, "run", "--engine", "thread", "--", *program]
    done = advise(mpi, command, "--trace", "t.json", inside=inside)
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    mine = [e for e in spans if lanes[e["pid"], e["tid"]] == "weft-progress"]
    assert {e["pid"] for e in mine} == {0, 1}
    assert {e["cat"] for e in mine} <= {
        "Weft works",
        "Weft looks for messages",
        "Weft's thread sleeps",
    }
    awake = [e for e in mine if e["cat"] != "Weft's thread sleeps"]
    flights = [e for e in spans if e["cat"] == "in flight"]
    # A rank that always arrives last has no collective in flight.
    assert any(
        one["pid"] == other["pid"]
        and one["ts"] < other["ts"] + other["dur"]
        and other["ts"] < one["ts"] + one["dur"]
        for one in awake
        for other in flights
    )
    assert "rank 1, weft-progress" in (tmp_path / "weft-advise.html").read_text()


@pytest.mark.one_library
def test_a_long_run_keeps_its_first_and_latest_events(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_many.c"), "calls"], "--trace", "t.json")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    assert {row["events"] for row in stored["rank"]} == {10_000}
    assert len(stored["event"]) == 2 * 8192
    document = json.loads((tmp_path / "t.json").read_text())
    assert document["otherData"] == {"events": 20_000, "kept": 2 * 8192}
    holes = [e for e in document["traceEvents"] if e.get("cat") == "not kept"]
    assert sorted(e["pid"] for e in holes) == [0, 1]
    assert "of 20000 events 4000" in (tmp_path / "weft-advise.html").read_text()


def test_the_page_draws_the_timeline(kept, tmp_path):
    _, _, shown = (tmp_path / "weft-advise.html").read_text().partition('id="timeline"')
    shown = shown.partition("All call sites")[0]
    assert "rank 0, collectives" in shown and "rank 1, result left alone" in shown
    # Kinds of spans have different colours.
    assert len(set(re.findall(r'fill="(var\(--\w+\))"><path', shown))) >= 2
    assert "since MPI_Init" in shown and "<script" not in shown


SAFETY = {"advise_safety.c": 24, "advise_safety_rare.c": 24, "advise_safety_sent.c": 27}


@pytest.mark.parametrize("name", SAFETY)
def test_nothing_is_disturbed(mpi, program, advise, environment, name):
    safety = program(mpi, name, "-w", "-fopenmp")
    launcher = [str(mpi.mpiexec), "-n", "2"]
    if mpi.name == "openmpi":
        launcher += ["--oversubscribe", "--bind-to", "none"]
    plain = subprocess.run(
        [*launcher, str(safety)],
        env={**environment, **mpi.environment(), **HERE},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert plain.returncode == 0 and plain.stdout.count("\n") == SAFETY[name]
    # With the whole budget every call is observed.
    watched = advise(mpi, [safety], "--overhead", "100%")
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout.splitlines()[: SAFETY[name]] == plain.stdout.splitlines()


@pytest.mark.one_library
def test_without_a_budget_no_result_is_observed(mpi, program, advise, tmp_path):
    command = [program(mpi, "advise_windows.c"), 0, ROUNDS]
    done = advise(mpi, command, "--overhead", 0, "--json", "s.json")
    assert "No windows: windows were not asked for" in " ".join(done.stdout.split())
    found = sites(tmp_path / "s.json").values()
    assert all(site["window_after_us"] is None and site["time_us"] > 0 for site in found)


def test_the_exit_status_is_the_programs(mpi, program, advise):
    assert advise(mpi, [program(mpi, "advise_ends.c"), "exit"]).returncode == 3


@pytest.mark.one_library
def test_without_collectives(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "none"])
    assert (done.returncode, done.stdout.count("called no collective")) == (0, 1)
    assert "called no collective" in (tmp_path / "weft-advise.html").read_text()


@pytest.mark.one_library
def test_what_a_child_calls_is_not_its_parents(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "fork"])
    assert done.returncode == 0, done.stderr
    calls = store.read(tmp_path / "weft-advise.sqlite")["call"]
    assert [row["calls"] for row in calls if row["name"] == "MPI_Type_free"] == [20, 20]


def test_nonblocking_calls_are_followed(mpi, program, advise, tmp_path):
    advise(mpi, [program(mpi, "advise_ends.c"), "nonblocking"])
    found = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    site = next(site for site in found.sites if site.call == "MPI_Iallreduce")
    assert site.waited_us is not None and site.between_us is not None
    assert site.repeated > 0.9


@pytest.mark.parametrize("how", ["many", "persistent", "some"])
def test_requests_are_followed_however_they_are_completed(mpi, program, advise, tmp_path, how):
    """All requests must be complete for the advisor when it observes the blocking call's result."""
    command = [program(mpi, "advise_requests.c"), how]
    done = advise(mpi, command, "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    found = {s.call: s for s in analysis.analyse(store.read(tmp_path / "weft-advise.sqlite")).sites}
    blocking = found["MPI_Allreduce"]
    assert not any("pending" in why for why in blocking.unknown["after"]), blocking.unknown
    if how != "persistent":
        assert found["MPI_Iallreduce"].waited_us is not None
        # The test that finds a call complete is not counted among the call's tests.
        assert (found["MPI_Iallreduce"].tests > 0) == (how == "some")


def test_communicators_of_other_ranks_are_told_apart(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    launcher = [mpi.mpiexec, "-n", 3]
    done = advise(mpi, [program(mpi, "advise_ends.c"), "groups"], launcher=launcher)
    assert done.returncode == 0, done.stderr
    seen = [
        (row["comm"], row["sequence"], row["comm_rank"])
        for row in store.read(tmp_path / "weft-advise.sqlite")["arrival"]
    ]
    assert seen and len(seen) == len(set(seen))


def test_the_first_word_that_is_no_option_is_the_program(program, advise):
    mpi = mpi_libraries.implementation("mpich")
    command = [program(mpi, "advise_ends.c"), "none"]
    done = advise(mpi, command, "--json", "x", "--overhead=3", inside=True, before=())
    assert (done.returncode, done.stdout.count("called no collective")) == (0, 1), done.stderr


@pytest.mark.one_library
def test_many_communicators_one_after_the_other(mpi, program, advise, tmp_path):
    """The program makes 10,000 communicators with two calls each, which is more than a rank
    records."""
    done = advise(mpi, [program(mpi, "advise_ends.c"), "communicators"], "--overhead", 0)
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    for rank in (0, 1):
        own = [row for row in stored["arrival"] if row["rank"] == rank]
        assert 1000 <= len(own) <= 8192
    assert sum(row["calls"] for row in stored["site"]) == 2 * 20_000


@pytest.mark.one_library
def test_without_symbols(mpi, program, advise, tmp_path):
    stripped = program(mpi, "advise_ends.c", "-s")
    done = advise(mpi, [stripped, "exit"], "--json", "s.json")
    assert f"{stripped.name}+0x" in next(iter(sites(tmp_path / "s.json")))
    assert "compile with -g" in done.stdout


@pytest.mark.skipif(
    not importlib.util.find_spec("mpi4py"),
    reason=f"needs mpi4py: {sys.executable} -m pip install mpi4py",
)
def test_python(mpi, advise, tmp_path):
    directory = tmp_path / ("a-long-name-" * 10)
    directory.mkdir()
    script = Path(shutil.copy(SOURCES / "advise_python.py", directory))
    words = ["env", f"MPI4PY_LIBMPI={mpi.library}", sys.executable, script, BUSY_MS, ROUNDS]
    done = advise(mpi, words, "--mpi", mpi.name, "--overhead", "50%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    script.unlink()  # the record contains the lines of the source
    advice = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    buffers = next(site for site in advice.sites if site.function == "with_buffers")
    assert buffers.place == f"{script}:{line_of(script.name, 'comm.Allreduce')}"
    assert buffers.source == "comm.Allreduce(send, receive)"
    assert buffers.object_method == ""
    assert (buffers.arguments.comm, buffers.arguments.words) == ("comm", ["send", "receive"])
    assert buffers.window_us is None or buffers.window_us >= BUSY_MS * 1e3
    objects = {site.object_method for site in advice.sites if site.function == "with_objects"}
    assert objects == {"allgather"}


@pytest.mark.skipif(
    not importlib.util.find_spec("mpi4py"),
    reason=f"needs mpi4py: {sys.executable} -m pip install mpi4py",
)
def test_python_in_a_directory_whose_name_is_no_text(advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    directory = tmp_path / os.fsdecode(b"d\xff")
    directory.mkdir()
    script = shutil.copy(SOURCES / "advise_python.py", directory)
    words = ["env", f"MPI4PY_LIBMPI={mpi.library}", sys.executable, script, 0, 3]
    done = advise(mpi, words, "--mpi", mpi.name)
    assert done.returncode == 0, done.stderr


@pytest.mark.one_library
@pytest.mark.skipif(
    not (importlib.util.find_spec("mpi4py") and importlib.util.find_spec("numpy")),
    reason=f"needs mpi4py and numpy: {sys.executable} -m pip install mpi4py numpy",
)
def test_nothing_is_disturbed_in_python(mpi, advise, environment):
    script = SOURCES / "advise_safety.py"
    words = ["env", f"MPI4PY_LIBMPI={mpi.library}", sys.executable, script]
    plain = subprocess.run(
        [str(word) for word in (*mpi.launcher(2), *words)],
        env={**environment, **mpi.environment(), **HERE},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.count("\n") == 32
    watched = advise(mpi, words, "--mpi", mpi.name, "--overhead", "100%")
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout.startswith(plain.stdout)


@pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran")
def test_fortran(advise, tmp_path):
    mpi = mpi_libraries.implementation("intelmpi")
    if not (mpi.prefix / "include" / "mpif.h").exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi.name)}")
    target = tmp_path / "advise_fortran"
    source = SOURCES / "advise_fortran.F90"
    library = mpi.prefix / "lib"
    words = ["gfortran", "-g", "-fallow-argument-mismatch", f"-I{mpi.prefix}/include", source]
    words += ["-o", target, f"-L{library}", "-lmpifort", "-lmpi", f"-Wl,-rpath,{library}"]
    subprocess.run([str(word) for word in words], check=True, timeout=120)
    done = advise(mpi, [target], "--overhead", "50%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    site = next(s for s in sites(tmp_path / "s.json").values() if s["call"] == "MPI_Allreduce")
    assert site["file"].endswith(source.name)
    assert site["line"] == line_of(source.name, "call MPI_Allreduce")
    assert site["window_after_us"]["median"] >= 3000
    advice = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    read = next(one.arguments for one in advice.sites if one.call == "MPI_Allreduce")
    assert (read.words[:2], read.error) == (["field", "total"], "error")
    barriers = [s for s in sites(tmp_path / "s.json").values() if s["call"] == "MPI_Barrier"]
    lines = {line_of(source.name, f"! {which}") for which in ("one", "other")}
    assert {site["line"]: site["calls"] for site in barriers} == dict.fromkeys(lines, 100)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give either a program (weft advise -- ./app) or a record (--from FILE)"),
        (("--overhead", "much", "--", "ls"), "--overhead much is no percentage"),
        (("--from", "none.sqlite"), "there is no record none.sqlite"),
        (("--before", "a", "--", "ls"), "--before needs --from"),
        (("--before", "a", "--from", "b", "--trace", "t"), "--trace is the timeline of one run"),
        (("--verify", "--from", "a"), "--verify needs the program"),
    ],
)
def test_bad_input_gets_a_sentence(call, words, sentence):
    done = call("advise", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("weft advise: ") and sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.one_library
def test_each_communicator_is_itself_however_many_there_are(mpi, program, advise, tmp_path):
    assert advise(mpi, [program(mpi, "advise_many.c"), "communicators"]).returncode == 0
    arrivals = store.read(tmp_path / "weft-advise.sqlite")["arrival"]
    assert len({one["comm"] for one in arrivals}) == 100
    assert {one["sequence"] for one in arrivals} == {1, 2, 3}


@pytest.mark.one_library
def test_sites_that_find_no_place_are_together(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_many.c"), "sites"])
    assert done.returncode == 0, done.stderr
    found = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite")).sites
    others = [site for site in found if site.function == "call sites beyond the first 1023"]
    assert [site.calls for site in others] == [1100 - 1023]
    assert {site.calls for site in found if site not in others} == {1}


def test_a_program_without_mpi(call, tmp_path):
    done = call("advise", "--record", tmp_path / "r", "--", "true")
    assert done.returncode == 1
    assert "nothing was recorded" in done.stderr


@pytest.mark.one_library
def test_calls_that_never_wait_are_counted_and_sampled(mpi, program, advise, tmp_path):
    advise(mpi, [program(mpi, "advise_polls.c")], "--json", "s.json")
    calls = store.read(tmp_path / "weft-advise.sqlite")["call"]
    polls = [call for call in calls if call["name"] == "MPI_Iprobe"]
    assert [call["calls"] for call in polls] == [20000, 20000]
    assert all(64 <= call["timed"] <= 20000 for call in polls)
    waits = [call for call in calls if call["name"] == "MPI_Allreduce"]
    assert waits and all(call["timed"] == call["calls"] for call in waits)
    sampled = any(call["timed"] < call["calls"] for call in polls)
    assert (json.loads((tmp_path / "s.json").read_text())["mpi_error_us"] > 0) == sampled


def test_the_labs_program_must_be_told_from_its_options(call):
    done = call("advise", "--", "weft", "lab", "run", "--nodes", "2", "./app")
    assert done.returncode == 2
    assert "weft advise -- weft lab run --nodes 2 -- ./app" in " ".join(done.stderr.split())


def test_without_dispatch_of_system_calls_windows_are_unknown(program, advise, tmp_path):
    """Kernels before 5.11 have no dispatch of system calls. Everything except windows works."""
    mpi = mpi_libraries.implementation("mpich")
    tool = tmp_path / "refuse.so"
    source = SOURCES.parents[1] / "faults" / "programs" / "refuse.c"
    words = [mpi.prefix / "bin/mpicc", "-shared", "-fPIC", source, "-o", tool]
    environment = {**os.environ, **mpi.environment()}
    subprocess.run([str(word) for word in words], check=True, timeout=60, env=environment)
    behind = ["env", f"LD_PRELOAD={tool}", "FAULTS_REFUSE=prctl"]
    command = [program(mpi, "advise_windows.c"), 0, ROUNDS]
    launcher = [mpi.mpiexec, "-n", "2", *behind]
    done = advise(mpi, command, "--json", "s.json", launcher=launcher, inside=True)
    assert done.returncode == 0, done.stderr
    assert "checksum 1919920.000 20.000\n" in done.stdout
    assert "No windows: this processor or kernel has no Syscall User Dispatch" in " ".join(
        done.stdout.split()
    )
    found = sites(tmp_path / "s.json").values()
    assert all(site["window_after_us"] is None and site["time_us"] > 0 for site in found)
