"""`weft advise`: planted programs whose windows are known, programs that must not be disturbed, the
record, and bad input.

Why windows are held against the program's own clock only: a window is never shorter than what it
computes there, and never longer than a round; how long either is, the machine's load decides.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from weft import installation, mpi_libraries
from weft.advise import analysis, record, session, store, verify
from weft.advise.sites import FREE, WITH_CHANGE
from weft.stored import ResultError

SOURCES = Path(__file__).parent / "programs"
BUSY_MS = 3
ROUNDS = 12
HERE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Compiles programs/NAME for an MPI library, with line numbers."""
    directory = tmp_path_factory.mktemp("advise")

    def compile_for(mpi, name: str, *flags: str) -> Path:
        source = SOURCES / name
        target = directory / f"{source.stem}.{mpi.name}{''.join(flags)}"
        if not target.exists():
            flags = ("-g", "-O1", "-pthread", *flags, f"-Wl,-rpath,{mpi.prefix}/lib")
            words = [mpi.prefix / "bin/mpicc", source, "-o", target, *flags]
            environment = {**os.environ, **mpi.environment()}
            subprocess.run([str(w) for w in words], check=True, timeout=120, env=environment)
        return target

    return compile_for


@pytest.fixture
def advise(weft, environment, tmp_path):
    """Runs `weft advise OPTIONS -- mpiexec -n 2 COMMAND`; files go to tmp_path."""

    def run(
        mpi,
        command: list[object],
        *options: object,
        inside: bool = False,
        launcher: Sequence[object] = (),
    ):
        launcher = launcher or [mpi.mpiexec, "-n", "2"]
        if mpi.name == "openmpi":
            launcher += ["--oversubscribe", "--bind-to", "none"]
        own = [weft, "advise", *options, "--"]
        words = [*launcher, *own, *command] if inside else [*own, *launcher, *command]
        return subprocess.run(
            [str(word) for word in words],
            env={**environment, **mpi.environment(), **HERE},
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
        )

    return run


def sites(path: Path) -> dict[str, dict]:
    """By function and call."""
    document = json.loads(path.read_text())
    assert document["schema"] == "weft-advise/1"
    return {f"{site['function']} {site['call']}": site for site in document["sites"]}


def line_of(source: str, text: str) -> int:
    lines = (SOURCES / source).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def round_us(errors: str) -> float:
    """The longest."""
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
        site = found[name]
        assert site["calls"] == ROUNDS
        assert BUSY_MS * 1e3 <= site["window_after_us"]["median"] < round_us(done.stderr), name
        assert site["gain_us"]["low"] is None
    assert found["heap_case MPI_Allreduce"]["line"] == line_of("advise_windows.c", "heap, 40000")
    assert found["heap_case MPI_Allreduce"]["file"].endswith("advise_windows.c")
    assert found["stack_case MPI_Allreduce"]["window_after_us"] is None
    # Where the system permits no breakpoints it is unknown, and never too short.
    scalar = found["scalar_case MPI_Allreduce"]["window_after_us"]
    assert scalar is None or scalar["median"] >= BUSY_MS * 1e3
    page = (tmp_path / "weft-advise.html").read_text()
    assert "of the run time is in collectives" in page and "heap_case at" in page


def test_windows_before(mpi, program, advise, tmp_path):
    """A case's own clock says how long what it sends had been written."""
    command = [program(mpi, "advise_before.c"), BUSY_MS, ROUNDS]
    done = advise(mpi, command, "--overhead", "50%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("checksum ")
    longest = {line.split()[0]: float(line.split()[1]) for line in done.stderr.splitlines() if line}
    found = {name.split()[0]: site for name, site in sites(tmp_path / "s.json").items()}
    for name in ("heap_case", "static_case", "late_case", "read_case", "sent_case"):
        bounds = found[name]["window_before_us"]
        assert bounds["least"] <= longest[name], name
        assert bounds["most"] >= BUSY_MS * 1e3, name
    # Nobody writes it between two calls.
    constant = found["constant_case"]["window_before_us"]
    assert constant["least"] >= BUSY_MS * 1e3 and constant["most"] is None
    assert found["stack_case"]["window_before_us"] is None
    said = " ".join(done.stdout.split())
    assert "window before unknown: what is sent is on the stack" in said


PLANTED_US = {"planted_0": 0, "planted_200us": 200, "planted_10ms": 1e4, "planted_50ms": 5e4}


def test_planted_windows(mpi, program, advise, tmp_path):
    """Of each call the program knows bounds for both windows, and so for their medians."""
    command = [program(mpi, "advise_planted.c"), 8]
    # All the budget that there is, so that every call is watched.
    done = advise(mpi, command, "--overhead", "100%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    said = [line.split() for line in done.stderr.splitlines() if line.startswith("planted_")]
    own = {name: [float(us) for us in numbers] for name, *numbers in said}
    found = {name.split()[0]: site for name, site in sites(tmp_path / "s.json").items()}
    for name, planted_us in PLANTED_US.items():
        before_least, before_most, after_least, after_most = own[name]
        assert min(before_least, after_least) >= planted_us, name
        before, after = found[name]["window_before_us"], found[name]["window_after_us"]
        # Clocks are printed with three digits.
        assert after_least - 0.01 <= after["median"] <= after_most + 0.01, name
        assert before["least"] <= before_most + 0.01, name
        assert before["most"] >= before_least - 0.01, name


def test_a_busy_neighbour_leaves_bounds(mpi, program, advise, tmp_path):
    command = [program(mpi, "advise_hot.c"), BUSY_MS, ROUNDS]
    done = advise(mpi, command, "--overhead", "50%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    site = sites(tmp_path / "s.json")["hot_case MPI_Allreduce"]
    assert site["window_after_us"] is None
    bounds = site["window_after_bounds_us"]
    assert bounds["least"] < bounds["most"] and bounds["most"] >= BUSY_MS * 1e3


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


def test_the_timeline_follows_nonblocking_calls(mpi, program, advise, tmp_path):
    advise(mpi, [program(mpi, "advise_ends.c"), "nonblocking"], "--trace", "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    kinds = {e["cat"] for e in events if e["ph"] == "X" and "MPI_Iallreduce" in e["name"]}
    assert kinds == {"in flight", "wait"}


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_the_timeline_has_wefts_threads(mpi, weft, advise, tmp_path, inside):
    """The engine's thread is awake while a collective is in flight, by the clock of the calls."""
    program = [mpi.program("overlap"), "--collective", "allreduce", "--bytes", "512KiB"]
    # It computes for long, so that a thread that comes late on a loaded machine is still in time.
    program += ["--engines", "thread", "--repetitions", "8", "--pause-us", "0", "--ratio", "20"]
    command = [weft, "run", "--engine", "thread", "--", *program]
    done = advise(mpi, command, "--trace", "t.json", inside=inside)
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    for rank in (0, 1):
        mine = [
            e for e in spans if lanes[e["pid"], e["tid"]] == "weft-progress" and e["pid"] == rank
        ]
        assert {e["cat"] for e in mine} <= {
            "Weft works",
            "Weft looks for messages",
            "Weft's thread sleeps",
        }
        awake = [e for e in mine if e["cat"] != "Weft's thread sleeps"]
        flights = [e for e in spans if e["pid"] == rank and e["cat"] == "in flight"]
        assert any(
            one["ts"] < other["ts"] + other["dur"] and other["ts"] < one["ts"] + one["dur"]
            for one in awake
            for other in flights
        )
    assert "rank 1, weft-progress" in (tmp_path / "weft-advise.html").read_text()


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


CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")


def test_the_page_draws_the_timeline(kept, tmp_path):
    """In a browser without a window, which says afterwards what is on the page."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not browser:
        pytest.skip("needs Chromium: apt-get install chromium")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    address = (tmp_path / "weft-advise.html").as_uri()
    words = [browser, *flags, f"--user-data-dir={tmp_path}/browser", "--dump-dom", address]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    _, _, timeline = done.stdout.partition('id="timeline"')
    timeline = timeline.partition("All call sites")[0]
    assert "rank 0, collectives" in timeline and "rank 1, result left alone" in timeline
    assert timeline.count('class="js-line"') >= 2  # a path for each kind of span


SAFETY = {"advise_safety.c": 24, "advise_safety_rare.c": 24, "advise_safety_sent.c": 26}


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
    # All the budget that there is, so that every call is watched.
    watched = advise(mpi, [safety], "--overhead", "100%")
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout.startswith(plain.stdout)


@pytest.fixture
def kept(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    windows = program(mpi, "advise_windows.c")
    assert advise(mpi, [windows, 1, 4], "--json", "first.json").returncode == 0
    return tmp_path / "weft-advise.sqlite"


def test_a_record_says_the_same_later(kept, call, tmp_path):
    again = tmp_path / "again.json"
    out = tmp_path / "again.html"
    assert call("advise", "--from", kept, "--json", again, "-o", out).returncode == 0
    assert json.loads(again.read_text()) == json.loads((tmp_path / "first.json").read_text())


def test_two_records_are_compared(kept, call):
    said = call("advise", "--from", kept, "--before", kept).stdout
    assert "+0.0%" in said and "allreduce in heap_case" in said


def test_what_is_damaged_is_named(kept, call, tmp_path):
    with sqlite3.connect(kept) as database:
        database.execute("DROP TABLE arrival")
    done = call("advise", "--from", kept, "-o", tmp_path / "p.html")
    assert done.returncode == 0
    assert "cannot be read: arrival" in " ".join(done.stdout.split())


def test_a_killed_program_leaves_its_record(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "kill"], "--json", "s.json")
    assert done.returncode != 0
    assert "did not come to MPI_Finalize" in done.stdout
    assert "MPI_Allreduce" in {site["call"] for site in sites(tmp_path / "s.json").values()}


def test_the_exit_status_is_the_programs(mpi, program, advise):
    assert advise(mpi, [program(mpi, "advise_ends.c"), "exit"]).returncode == 3


def test_without_collectives(mpi, program, advise):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "none"])
    assert (done.returncode, done.stdout.count("called no collective")) == (0, 1)


def test_nonblocking_calls_are_followed(mpi, program, advise, tmp_path):
    advise(mpi, [program(mpi, "advise_ends.c"), "nonblocking"])
    found = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    site = next(site for site in found.sites if site.call == "MPI_Iallreduce")
    assert site.waited_us is not None and site.between_us is not None
    assert site.repeated > 0.9


@pytest.mark.parametrize("how", ["many", "persistent", "some"])
def test_requests_are_followed_however_they_are_completed(mpi, program, advise, tmp_path, how):
    """So that nothing counts as pending when the result of the blocking call is looked at."""
    command = [program(mpi, "advise_requests.c"), how]
    done = advise(mpi, command, "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    found = {s.call: s for s in analysis.analyse(store.read(tmp_path / "weft-advise.sqlite")).sites}
    blocking = found["MPI_Allreduce"]
    assert not any("pending" in why for why in blocking.unknown["after"]), blocking.unknown
    if how != "persistent":
        assert found["MPI_Iallreduce"].waited_us is not None
        # The last test of each call is the one that finds it complete.
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


def test_a_record_that_cannot_be_written_is_not_begun(program, advise):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), "exit"], "--record", "/nowhere/x")
    assert done.returncode == 2
    assert "/nowhere/x: no record can be written there" in done.stderr


def test_what_was_recorded_outlives_a_full_disk(program, advise, monkeypatch, tmp_path, capsys):
    """Ranks have recorded, then nothing can be written where the record should be."""
    mpi = mpi_libraries.implementation("mpich")
    monkeypatch.setattr(session, "run", lambda command, overhead, mpi, directory: 3)
    monkeypatch.setattr(session, "read_directory", lambda directory: ["a rank's"])

    def full(*_):
        raise ResultError("x: the record cannot be written: disk full")

    monkeypatch.setattr(store, "write", full)
    with pytest.raises(SystemExit) as ended:
        session.record(["./app"], 0.05, mpi.name, tmp_path / "x")
    assert ended.value.code == 3
    kept = Path(capsys.readouterr().err.split("weft advise --from ")[1].split()[0])
    assert kept.is_dir()
    kept.rmdir()


def test_records_have_any_name(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), "none"], "--record", "a#1?%41.sqlite")
    assert (done.returncode, done.stdout.count("called no collective")) == (0, 1), done.stderr


def test_in_a_batch_script_replays_are_not_refused(weft, program, environment, tmp_path):
    """Which has the variables of a rank."""
    mpi = mpi_libraries.implementation("mpich")
    words = [weft, "advise", "--verify", "--", mpi.mpiexec, "-n", 2]
    words += [program(mpi, "advise_ends.c"), "none"]
    done = subprocess.run(
        [str(word) for word in words],
        env={**environment, "SLURM_PROCID": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert "before the launcher" not in done.stderr
    assert done.stdout.count("called no collective") == 1


def test_the_first_word_that_is_no_option_is_the_program(weft, program, environment, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    words = [mpi.mpiexec, "-n", 2, weft, "advise", "--json", "x", "--overhead=3"]
    words += [program(mpi, "advise_ends.c"), "none"]
    done = subprocess.run(
        [str(word) for word in words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout.count("called no collective")) == (0, 1), done.stderr


@pytest.mark.parametrize("how", ["blocking", "nonblocking"])
def test_verify_replays_with_and_without_weft(program, advise, tmp_path, how):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), how], "--verify", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    rows = store.read(tmp_path / "weft-advise.sqlite")["replay"]
    # All cores compute, so that no change is proposed.
    assert {row["form"] for row in rows} == {FREE}
    assert len(rows) == verify.ROUNDS
    (site,) = sites(tmp_path / "s.json").values()
    assert isinstance(site["free_us"], float)
    said = " ".join(done.stdout.split())
    assert "by the replay of these calls" in said


def test_verify_replays_blocks_for_each_rank(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), "blocks"], "--verify")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    calls = {(row["rank"], row["site"]): row["call"] for row in stored["site"]}
    replayed = [calls[row["rank"], row["site"]] for row in stored["replay"]]
    # The root's, which has all blocks, and the others'; one in place.
    sites = {"MPI_Gather": 2, "MPI_Scatter": 2, "MPI_Reduce_scatter": 2}
    for call in (*sites, "MPI_Reduce_scatter_block"):
        assert replayed.count(call) == sites.get(call, 1) * verify.ROUNDS, call
    for row in stored["site"]:
        if row["call"].startswith("MPI_Reduce_scatter"):
            assert row["bytes"] == 8000 * row["calls"]  # the blocks of all ranks


def test_verify_in_the_lab(weft, advise, tmp_path, permitted_lab):
    """Where there is room for a gain, the change is replayed, too."""
    mpi = mpi_libraries.implementation("mpich")
    program = [mpi.program("gemv_alltoall"), "--order", 1000, "--bytes", 200_000]
    command = [*program, "--form", "blocking", "--repetitions", 6]
    lab = [weft, "lab", "run", "--mpi", "mpich", "--nodes", 2, "--"]
    done = advise(mpi, command, "--verify", "--overhead", "50%", launcher=lab)
    assert done.returncode == 0, done.stderr
    rows = store.read(tmp_path / "weft-advise.sqlite")["replay"]
    assert {row["form"] for row in rows} == {FREE, WITH_CHANGE}
    assert f"{verify.ROUNDS} replays say" in " ".join(done.stdout.split())


def test_many_communicators_one_after_the_other(mpi, program, advise, tmp_path):
    """10,000 of them, with two calls each, which are more than a rank keeps."""
    done = advise(mpi, [program(mpi, "advise_ends.c"), "communicators"], "--overhead", 0)
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    for rank in (0, 1):
        own = [row for row in stored["arrival"] if row["rank"] == rank]
        assert 1000 <= len(own) <= 8192
    assert sum(row["calls"] for row in stored["site"]) == 2 * 20_000


def test_verify_behind_a_launcher_is_refused(mpi, program, advise):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "none"], "--verify", inside=True)
    assert done.returncode != 0
    assert "put weft advise before the launcher" in done.stderr


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
    script.unlink()  # the record has its lines
    advice = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    buffers = next(site for site in advice.sites if site.function == "with_buffers")
    assert buffers.place == f"{script}:{line_of(script.name, 'comm.Allreduce')}"
    assert buffers.source == "comm.Allreduce(send, receive)"
    assert buffers.object_method == ""
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
    barriers = [s for s in sites(tmp_path / "s.json").values() if s["call"] == "MPI_Barrier"]
    lines = {line_of(source.name, f"! {which}") for which in ("one", "other")}
    assert {site["line"]: site["calls"] for site in barriers} == dict.fromkeys(lines, 100)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give a program (weft advise -- ./app) or a record (--from FILE), one of both"),
        (("--overhead", "much", "--", "ls"), "--overhead much is no percentage"),
        (("--from", "none.sqlite"), "there is no record none.sqlite"),
        (("--before", "a", "--", "ls"), "--before needs --from"),
        (("--verify", "--from", "a"), "--verify needs the program"),
    ],
)
def test_bad_input_gets_a_sentence(call, words, sentence):
    done = call("advise", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("weft advise: ") and sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_each_communicator_is_itself_however_many_there_are(mpi, program, advise, tmp_path):
    assert advise(mpi, [program(mpi, "advise_many.c"), "communicators"]).returncode == 0
    arrivals = store.read(tmp_path / "weft-advise.sqlite")["arrival"]
    assert len({one["comm"] for one in arrivals}) == 100
    assert {one["sequence"] for one in arrivals} == {1, 2, 3}


def test_sites_that_find_no_place_are_together(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_many.c"), "sites"])
    assert done.returncode == 0, done.stderr
    found = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite")).sites
    others = [site for site in found if site.function == "call sites beyond the first 1023"]
    assert [site.calls for site in others] == [1100 - 1023]
    assert {site.calls for site in found if site not in others} == {1}


def test_without_a_place_for_the_record(mpi, program, environment, tmp_path):
    """The ranks' part alone, with a directory that does not exist: the program runs as ever."""
    loaded = installation.preload_library(mpi.family)
    library = loaded.with_name(f"libweft-advise-{mpi.family}.so")
    extra = {"WEFT_ADVISE_DIRECTORY": str(tmp_path / "none"), "LD_PRELOAD": str(library)}
    words = [mpi.mpiexec, "-n", "1", program(mpi, "advise_ends.c"), "exit"]
    done = subprocess.run(
        [str(word) for word in words],
        env={**environment, **mpi.environment(), **HERE, **extra},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3
    assert done.stderr.count("advise records nothing of this job: No such file") == 1


def test_a_program_without_mpi(call, tmp_path):
    done = call("advise", "--record", tmp_path / "r", "--", "true")
    assert done.returncode == 1
    assert "nothing was recorded" in done.stderr


def test_a_record_that_was_cut_short_is_shown_as_far_as_it_goes(kept, call, tmp_path):
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) * 3 // 4])
    done = call("advise", "--from", kept, "-o", tmp_path / "p.html")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "of the run time is in collectives" in said and "cannot be read: " in said


def test_a_file_that_is_no_record(call, tmp_path):
    path = tmp_path / "text.sqlite"
    path.write_text("no database\n" * 100)
    done = call("advise", "--from", path)
    assert done.returncode == 2 and "cannot be read as a record" in done.stderr


def test_what_ranks_of_other_nodes_have_left_is_put_together(
    mpi, program, weft, call, environment, tmp_path
):
    """A node that has no such directory makes it: here each rank has one of its own."""
    (tmp_path / "0").mkdir()
    own = [program(mpi, "advise_ends.c"), "kill"]
    launcher = [mpi.mpiexec, *(["--oversubscribe"] if mpi.name == "openmpi" else [])]
    words = [*launcher, "-n", "1", weft, "advise", "--directory", tmp_path / "0", "--", *own]
    words += [":", "-n", "1", weft, "advise", "--directory", tmp_path / "1", "--", *own]
    done = subprocess.run(
        [str(word) for word in words],
        env={**environment, **mpi.environment(), **HERE},
        capture_output=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode != 0
    for file in (tmp_path / "1").glob("rank-*"):
        file.rename(tmp_path / "0" / file.name)
    target = ["--record", tmp_path / "both.sqlite", "-o", tmp_path / "p.html"]
    done = call("advise", "--from", tmp_path / "0", *target)
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "both.sqlite")
    assert [rank["rank"] for rank in stored["rank"]] == [0, 1]
    assert "did not come to MPI_Finalize" in done.stdout


def test_a_directory_without_records(call, tmp_path):
    done = call("advise", "--from", tmp_path)
    assert done.returncode == 2
    assert "it holds no rank's record" in done.stderr


def test_records_on_other_nodes_are_named(tmp_path):
    head = record.Head(rank=0, ranks=4, nodes=2, host=b"here")
    here = [record.RankRecord(head, [], [], [], [], [])] * 2
    assert session.lacks_other_nodes(here, tmp_path)
    said = session.elsewhere(here, tmp_path)
    assert "the records of 2 ranks" in said and f"weft advise --from {tmp_path}" in said
    assert not session.lacks_other_nodes(here * 2, tmp_path)
    (tmp_path / "job").touch()
    assert not session.lacks_other_nodes(here, tmp_path)


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
