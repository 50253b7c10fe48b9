"""`weft advise`: planted programs whose windows are known, programs that must not be disturbed, the
record, and bad input.

Why windows are held against the program's own round only: a window is never shorter than what it
computes there, and never longer than a round; how long either is, the machine's load decides.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from weft import installation, mpi_libraries
from weft.advise import analysis, fragments, places, record, show, store, timeline, verify

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

    def run(mpi, command: list[object], *options: object, inside: bool = False):
        launcher = [mpi.mpiexec, "-n", "2"]
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
    own = {line.split()[0]: float(line.split()[1]) for line in done.stderr.splitlines() if line}
    found = {name.split()[0]: site for name, site in sites(tmp_path / "s.json").items()}
    for name in ("heap_case", "static_case", "late_case", "read_case"):
        bounds = found[name]["window_before_us"]
        # Of different calls, so that their medians differ a little.
        assert bounds["least"] < 2 * own[name], name
        assert bounds["most"] >= BUSY_MS * 1e3, name
    # Nobody writes it between two calls.
    constant = found["constant_case"]["window_before_us"]
    assert constant["least"] >= BUSY_MS * 1e3 and constant["most"] is None
    assert found["stack_case"]["window_before_us"] is None
    said = " ".join(done.stdout.split())
    assert "window before unknown: what is sent is on the stack" in said


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


def test_another_version_is_refused(kept, call):
    with sqlite3.connect(kept) as database:
        database.execute(
            "UPDATE about SET value = '\"weft-advise-record/9\"' WHERE name = 'schema'"
        )
    done = call("advise", "--from", kept)
    assert done.returncode == 2
    assert "it has schema weft-advise-record/9" in done.stderr


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


@pytest.mark.parametrize(("how", "forms"), [("blocking", 2), ("nonblocking", 1)])
def test_verify_replays_with_and_without_weft(program, advise, tmp_path, how, forms):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), how], "--verify", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    rows = store.read(tmp_path / "weft-advise.sqlite")["replay"]
    names = {"library", "auto", "library-nonblocking", "auto-nonblocking"}
    assert {row["form"] for row in rows} == (names if forms == 2 else {"library", "auto"})
    assert len(rows) == verify.ROUNDS * verify.SAMPLES * 2 * forms
    assert all(row["us"] > 0 for row in rows)
    (site,) = sites(tmp_path / "s.json").values()
    assert isinstance(site["free_us"], float)
    said = " ".join(done.stdout.split())
    assert "by the replay of these calls" in said


def test_verify_behind_a_launcher_is_refused(mpi, program, advise):
    done = advise(mpi, [program(mpi, "advise_ends.c"), "none"], "--verify", inside=True)
    assert done.returncode != 0
    assert "put weft advise before the launcher" in done.stderr


def test_without_symbols(mpi, program, advise, tmp_path):
    stripped = program(mpi, "advise_ends.c", "-s")
    done = advise(mpi, [stripped, "exit"], "--json", "s.json")
    assert f"{stripped.name}+0x" in next(iter(sites(tmp_path / "s.json")))
    assert "compile with -g" in done.stdout


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


# What is made of a record ------------------------------------------------------------------------


def made(call: str, arrivals: list[tuple[int, int, int]], root: int = 0) -> store.Stored:
    """A record in which each rank made one call: (rank, arrived, left) in ns."""
    ranks = len(arrivals)
    shared = {"module": "m", "offset": 1, "place": "f.c:7:work", "call": call, "comm_kind": 0}
    site = {**shared, "site": 0, "comm_size": ranks, "comm_nodes": 2, "size_class": 4, "bytes": 8}
    zero = dict.fromkeys(
        ("after", "before", "completed", "between_ns", "waited_ns", "tests", "repeated"), 0
    )
    machine = {"cores": 4, "node_ranks": 1, "copy_bytes_per_ms": 10_000_000, "ranks": ranks}
    zeros = dict.fromkeys(("windows_off", "guarding_ns", "clock_error_ns", "began_ns", "events"), 0)
    window = {"site": 0, "side": "after", "least_ns": 500_000, "most_ns": 500_000}
    tables = {
        "rank": [
            {**machine, **zeros, "rank": r, "host": str(r), "elapsed_ns": 10_000_000}
            | {"mpi_ns": left - came, "finalized": 1}
            for r, came, left in arrivals
        ],
        "call": [],
        "site": [
            {**site, **zero, "rank": r, "calls": 1, "ns": left - came} for r, came, left in arrivals
        ],
        "time_window": [{**window, "rank": r} for r, _, _ in arrivals],
        "unknown": [],
        "arrival": [
            {"rank": r, "site": 0, "comm": "1", "sequence": 1, "arrived_ns": came, "left_ns": left}
            | {"comm_rank": r, "root": root}
            for r, came, left in arrivals
        ],
        "event": [],
        "frame": [],
        "replay": [],
    }
    return store.Stored(Path("made"), {}, tables, [])


def test_waiting_is_told_from_transferring():
    advice = analysis.analyse(made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)]))
    site = advice.sites[0]
    assert site.waiting == pytest.approx(600_000 / 1_400_000)
    # min(window of 500, transfer of 400), and a core is free for it.
    assert site.gain_high_us == pytest.approx(400)


def test_nobody_waits_for_others_than_the_root_of_a_bcast():
    arrivals = [(0, 0, 100_000), (1, 50_000, 300_000), (2, 900_000, 950_000)]
    site = analysis.analyse(made("MPI_Bcast", arrivals)).sites[0]
    assert site.waiting == 0


def test_without_all_ranks_nothing_is_split():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["arrival"].pop()
    site = analysis.analyse(stored).sites[0]
    assert (site.waiting, site.gain_high_us) == (None, None)


def test_no_gain_where_all_cores_of_a_node_compute():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for rank in stored["rank"]:
        rank["cores"] = rank["node_ranks"]
    for row in stored["site"]:
        row["comm_nodes"] = 1
    assert analysis.analyse(stored).sites[0].gain_high_us == 0


def test_windows_that_mostly_broke_off_are_unknown():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["site"]:
        row["after"] = 1
    neighbours = record.UNKNOWNS.index("too many accesses right beside the result")
    why = {"rank": 0, "site": 0, "side": "after", "why": neighbours, "count": 2}
    stored["unknown"].append(why)
    assert analysis.analyse(stored).sites[0].window_us == 500
    stored["unknown"][0]["count"] = 3
    site = analysis.analyse(stored).sites[0]
    assert site.window_us is None and "beside the result" in site.why_unknown("after")


def replayed(form: str, times: list[float]) -> list[dict]:
    return [{"rank": 0, "site": 0, "form": form, "us": us} for us in times]


def test_a_replay_gives_the_gain_a_lower_end():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["replay"].extend(replayed("library", [900, 900, 900, 900, 900]))
    stored["replay"].extend(replayed("auto", [890, 890, 890, 890, 890]))
    stored["replay"].extend(replayed("auto-nonblocking", [700, 750, 600, 650, 900]))
    advice = analysis.analyse(stored)
    site = advice.sites[0]
    # Won: 200, 150, 300, 250, 0.
    assert (site.gain_low_us, site.changed.median) == (150, 200)
    assert site.gain_high_us == pytest.approx(400)
    assert advice.free_us == 10
    assert show.gain(site) == "150.0 µs – 400.0 µs"
    assert "5 replayed calls say 200.0 µs, half of them 150.0 µs to 250.0 µs" in show.worth(
        site, advice
    )
    assert "weft run wins 10.0 µs" in show.free(advice)


def test_a_replay_wins_no_more_than_the_call_takes_and_may_lose():
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    stored["replay"].extend(replayed("library", [90_000, 800, 800]))
    stored["replay"].extend(replayed("auto", [900, 900, 900]))
    stored["replay"].extend(replayed("auto-nonblocking", [100, 900, 900]))
    site = analysis.analyse(stored).sites[0]
    assert site.gain_low_us == 0 and site.changed.median == -100
    assert site.changed.high <= site.time_us
    assert "would lose 100.0 µs" in show.free(analysis.analyse(stored))


def test_the_plan_has_windows_and_how_late_each_rank_came():
    stored = made("MPI_Alltoall", [(0, 5_000, 90_000), (1, 2_000, 90_000)])
    advice = analysis.analyse(stored)
    text, chosen = verify.plan(stored, advice, 0)
    assert chosen == advice.sites
    first, *samples = text.splitlines()
    # Its bytes are blocks for two ranks.
    assert first == f"alltoall 8 0 {verify.SAMPLES}"
    assert samples == ["500.0 3.0 0.0"] * verify.SAMPLES


def before(least_us: float, most_us: float | None, stored: store.Stored) -> store.Stored:
    for row in list(stored["site"]):
        row["before"] = 1
        most = record.NO_END if most_us is None else most_us * 1e3
        bounds = {"side": "before", "least_ns": least_us * 1e3, "most_ns": most}
        stored["time_window"].append({"rank": row["rank"], "site": 0, **bounds})
    return stored


def short_result() -> store.Stored:
    """Touched after 100 us; its transfer takes 400."""
    stored = made("MPI_Allreduce", [(0, 0, 1_000_000), (1, 600_000, 1_000_000)])
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = 100_000
    return stored


def test_a_call_may_start_earlier():
    site = analysis.analyse(before(140, 150, short_result())).sites[0]
    assert site.gain_high_us == pytest.approx(250) and site.earlier_us == pytest.approx(150)
    assert show.window(site, "before") == "150.0 µs"
    assert fragments.fragment(site).startswith("/* where what it sends is written last, now 140.0")
    assert verify.proposed_windows(site) == [240, 240]
    assert "150.0 µs of it by starting earlier" in show.worth(
        site, analysis.analyse(short_result())
    )


@pytest.mark.parametrize("bounds", [(0, 150), (140, None), (5, 6)])
def test_a_call_stays_where_an_earlier_start_wins_little_or_is_not_known(bounds):
    site = analysis.analyse(before(*bounds, short_result())).sites[0]
    assert site.gain_high_us == pytest.approx(100) and site.earlier_us == 0
    assert "written last" not in fragments.fragment(site)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ([(1000, 1010)], "1.01 ms"),
        ([(1000, 2000)], "1.00 ms – 2.00 ms"),
        ([(1000, None)], "≥ 1.00 ms"),
        ([(0, 2000)], "≤ 2.00 ms"),
        # The half that is known best.
        ([(0, 2000), (990, 1000), (0, 5000), (980, 1000)], "1.00 ms"),
        ([], "unknown"),
    ],
)
def test_what_is_said_of_windows(bounds, said):
    site = analysis.analyse(made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.before = analysis.Windows([low for low, _ in bounds], [high for _, high in bounds])
    assert show.window(site, "before") == said


def with_events(spans: list[tuple[int, int, int]], recorded: int) -> analysis.Advice:
    """Of rank 0: (kind, begin, end) in us."""
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    stored["rank"][0]["events"] = recorded
    for what, began, ended in spans:
        times = {"began_ns": began * 1000, "ended_ns": ended * 1000}
        stored["event"].append({"rank": 0, "site": 0, "what": what, **times})
    return analysis.analyse(stored)


def test_spans_that_overlap_get_rows_of_their_own():
    flights = [(record.IN_FLIGHT, 0, 10), (record.IN_FLIGHT, 5, 20), (record.IN_FLIGHT, 10, 30)]
    line = with_events([(record.CALL, 0, 4), *flights], 4).timeline
    picture = timeline.picture(line)
    assert picture["rows"] == ["rank 0, collectives", "rank 0, in flight", "rank 0, in flight"]
    rows = [(row, began, ended) for row, began, ended, _, _ in picture["spans"]]
    assert rows == [(0, 0, 0.004), (1, 0, 0.01), (1, 0.01, 0.03), (2, 0.005, 0.02)]
    assert picture["names"] == ["MPI_Allreduce, work f.c:7"]


def test_what_was_not_kept_is_shown_as_a_gap():
    line = with_events([(record.CALL, 0, 4), (record.CALL, 90, 95)], 12).timeline
    holes = [span for span in line.spans if span.kind == timeline.GAP]
    assert [(hole.began_us, hole.ended_us) for hole in holes] == [(4, 90)]
    assert (line.kept, line.recorded) == (2, 12)
    assert "of 12 events 2" in timeline.left_out(line, 2)


def nonblocking_site(between_us: float, waited_us: float, tests: float) -> analysis.Site:
    site = analysis.analyse(made("MPI_Iallreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.between_us, site.waited_us, site.tests = between_us, waited_us, tests
    return site


@pytest.mark.parametrize(
    ("between_us", "waited_us", "tests", "said"),
    [
        (10, 500, 0, "wait later, right before"),
        (300, 500, 0, "the window is too short"),
        (900, 500, 0, "since nobody tested"),
        (900, 500, 3, "one every 300.0 µs: that is too seldom"),
        (900, 500, 900, "every 1.0 µs: that takes the time"),
        (900, 10, 0, ""),
    ],
)
def test_what_is_said_of_nonblocking_calls(between_us, waited_us, tests, said):
    text = fragments.of_nonblocking(nonblocking_site(between_us, waited_us, tests))
    assert said in text and bool(said) == bool(text)


def two_in_a_row(window_ns: int) -> store.Stored:
    """Site 1 is called right behind site 0, four times on each rank; 100 us each."""
    stored = made("MPI_Allreduce", [(0, 0, 400_000), (1, 0, 400_000)])
    second = [{**row, "site": 1, "offset": 2, "calls": 4, "ns": 400_000} for row in stored["site"]]
    stored["site"].extend(second)
    for row in stored["time_window"]:
        row["least_ns"] = row["most_ns"] = window_ns
    stored["arrival"].clear()
    for rank, number, site in [(r, n, s) for r in (0, 1) for n in range(4) for s in (0, 1)]:
        came = number * 1_000_000 + site * 101_000
        one = {"rank": rank, "site": site, "comm": "1", "sequence": 2 * number + site}
        one |= {"arrived_ns": came, "left_ns": came + 100_000, "comm_rank": rank, "root": 0}
        stored["arrival"].append(one)
    return stored


def test_calls_that_do_not_need_each_other_are_told():
    advice = analysis.analyse(two_in_a_row(500_000))
    assert [(one.frames, other.frames) for one, other in advice.pairs] == [
        (advice.sites[0].frames, advice.sites[1].frames)
    ]
    text, code = show.changes(advice)[0]
    assert "do not need each other" in text and "MPI_Waitall(2, requests" in code
    # The second call took the first's result.
    assert analysis.analyse(two_in_a_row(1_000)).pairs == []


def test_waits_for_messages_are_told_from_those_for_collectives():
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    names = {"MPI_Waitall": 2_000_000, "MPI_Irecv": 1_000}
    stored["call"].extend(
        {"rank": r, "name": name, "calls": 5, "ns": ns}
        for r in (0, 1)
        for name, ns in names.items()
    )
    advice = analysis.analyse(stored)
    assert advice.messages_share == pytest.approx(0.2)
    assert "20.0 % of the run time waits for messages" in show.changes(advice)[-1][0]


@pytest.mark.parametrize("language", ["c", "c++", "fortran", "python"])
def test_fragments_are_in_the_programs_language(language):
    site = analysis.analyse(made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])).sites[0]
    suffix = {"c": "c", "c++": "cc", "fortran": "f90", "python": "py"}[language]
    site.frames = [places.Frame("work", f"a.{suffix}", 3)]
    site.calls, site.repeated = 20, 1.0
    call = {"fortran": "call MPI_Iallreduce(", "python": "comm.Iallreduce("}
    plan = {"fortran": "call MPI_Allreduce_init(", "python": "comm.Allreduce_init("}
    assert call.get(language, "MPI_Iallreduce(") in fragments.fragment(site)
    assert call.get(language, "MPI_Iallreduce(") in fragments.together(site, site)
    assert plan.get(language, "MPI_Allreduce_init(") in fragments.planned(site)


def test_inlined_frames_come_first():
    lines = ["inner", "/a/x.c:5", "outer", "/a/x.c:9 (discriminator 2)"]
    frames = places.parse_frames(lines, "m", 1)
    assert frames == [places.Frame("inner", "/a/x.c", 5), places.Frame("outer", "/a/x.c", 9)]
    assert places.parse_frames(["??", "??:0"], "/b/app", 16) == [places.Frame("app+0x10", "", 0)]


def test_no_neighbour_is_named_for_a_function_of_a_stripped_file(tmp_path):
    """Of shown() the file keeps name and size, of the function behind it nothing."""
    source, library = tmp_path / "a.c", tmp_path / "liba.so"
    source.write_text(
        "int shown(int x) { return x + 1; }\n"
        "__attribute__((noinline, used)) static int hidden(int x) { return x * x; }\n"
    )
    words = ["cc", "-shared", "-fPIC", "-O0", "-fno-toplevel-reorder", source, "-o", library]
    subprocess.run(words, check=True, timeout=60)
    listed = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    begins = {name: int(begin, 16) for begin, _, name in re.findall(r"(\w+) (\w) (\w+)", listed)}
    subprocess.run(["strip", library], check=True, timeout=60)
    assert begins["hidden"] > begins["shown"]
    inside = {name: begins[name] + 4 for name in ("shown", "hidden")}
    found = places.resolve([(str(library), offset) for offset in inside.values()])
    assert found[str(library), inside["shown"]] == [places.Frame("shown", "", 0)]
    unnamed = places.Frame(f"liba.so+{inside['hidden']:#x}", "", 0)
    assert found[str(library), inside["hidden"]] == [unnamed]
