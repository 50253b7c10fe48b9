"""`weft trace`: a timeline's archive of OTF2, read back, has what the timeline has."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter

import pytest
from python_weft import weft

from weft.trace import archive, spans
from weft.trace.spans import Span

SCAN = ("--collective", "iscan", "--ranks", 6, "--bytes", "64KiB", "--engine", "thread")


@pytest.fixture
def otf2():
    return pytest.importorskip("otf2", reason="this machine's Python has no package otf2")


@pytest.fixture
def simulated(tmp_path):
    file = tmp_path / "trace.json"
    done = weft("sim", *SCAN, "--trace", file)
    assert done.returncode == 0, done.stderr
    return file


def converted(file, directory):
    done = weft("trace", file, "--otf2", directory)
    assert done.returncode == 0, done.stderr
    return done.stdout


def spans_of(events: list[dict]) -> Counter:
    """By rank and thread: each name with its begin and end in ns, from the first event on."""
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"
    }
    found = [e for e in events if e["ph"] == "X"]
    first = min(round(e["ts"] * 1e3) for e in found)
    return Counter(
        (
            f"rank {e['pid']}, {threads[e['pid'], e['tid']]}",
            e["name"],
            round(e["ts"] * 1e3) - first,
            round(e["ts"] * 1e3) - first + round(e["dur"] * 1e3),
        )
        for e in found
    )


def read_back(otf2, directory) -> Counter:
    """The same, by OTF2's own reader."""
    inside: dict[str, list] = {}
    found: Counter = Counter()
    with otf2.reader.open(str(directory / archive.ANCHOR)) as trace:
        assert trace.timer_resolution == archive.NS_PER_S
        for location, event in trace.events:
            held = inside.setdefault(location.name, [])
            if isinstance(event, otf2.events.Enter):
                held.append((event.region.name, event.time))
            else:
                name, began = held.pop()
                assert isinstance(event, otf2.events.Leave) and event.region.name == name
                found[location.name, name, began, event.time] += 1
    assert not any(inside.values())
    return found


def test_a_simulation_has_the_same_events(otf2, simulated, tmp_path):
    said = converted(simulated, tmp_path / "otf2")
    events = json.loads(simulated.read_text())["traceEvents"]
    wanted = spans_of(events)
    assert read_back(otf2, tmp_path / "otf2") == wanted
    assert said.endswith(f"traces.otf2: {sum(wanted.values())} regions of 12 locations\n")


def test_a_job_under_weft_has_the_same_events(otf2, mpi, weft_trace, tmp_path):
    file = weft_trace(mpi)
    converted(file, tmp_path / "otf2")
    found = read_back(otf2, tmp_path / "otf2")
    assert found == spans_of(json.loads(file.read_text())["traceEvents"])
    names = {(location, name) for location, name, _, _ in found}
    for rank in range(2):
        assert (f"rank {rank}, application", "MPI_Iallreduce") in names
        did = {name for location, name in names if location == f"rank {rank}, weft-progress"}
        assert did & {"working", "polling"}


@pytest.fixture
def weft_trace(weft, environment, tmp_path):
    """Runs overlap on two ranks, and returns the timeline."""

    def run(library):
        file = tmp_path / "job.json"
        program = [library.program("overlap"), "--collective", "allreduce", "--bytes", "512KiB"]
        program += ["--engines", "thread", "--repetitions", 3, "--pause-us", 0]
        command = [*library.launcher(2), weft, "run", "--engine", "thread", "--trace", file, "--"]
        done = subprocess.run(
            [str(word) for word in [*command, *program]],
            env={**environment, **library.environment()},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return file

    return run


def test_the_archive_names_ranks_hosts_and_kinds(otf2, tmp_path):
    name = {"name": "rank 3 (node1)"}
    events = [
        {"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": name},
        {"ph": "M", "name": "thread_name", "pid": 3, "tid": 0, "args": {"name": "in flight"}},
        {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1, "args": {"name": "idle"}},
        *(
            {"ph": "X", "name": name, "cat": "wait", "pid": 3, "tid": 0, "ts": ts, "dur": 2.5}
            for name, ts in (("MPI_Wait", 1e9), ("own", 1e9 + 2.5), ("working", 1e9 + 9))
        ),
    ]
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"traceEvents": events}))
    converted(file, tmp_path / "otf2")
    with otf2.reader.open(str(tmp_path / "otf2" / archive.ANCHOR)) as trace:
        known = trace.definitions
        assert {one.name: one.paradigm for one in known.regions} == {
            "MPI_Wait": otf2.Paradigm.MPI,
            "own": otf2.Paradigm.USER,
            "working": otf2.Paradigm.MEASUREMENT_SYSTEM,
        }
        assert {one.description for one in known.regions} == {"wait"}
        locations = {one.name: one for one in known.locations}
        assert set(locations) == {"rank 3, in flight", "rank 3, idle"}
        for one in locations.values():
            assert one.group.name == "rank 3 (node1)"
            assert one.group.system_tree_parent.name == "node1"


def test_otf2s_own_tool_reads_the_archive(otf2, simulated, tmp_path):
    tool = shutil.which("otf2-print")
    if tool is None:
        pytest.skip("this machine has no otf2-print (Debian: otf2-tools)")
    converted(simulated, tmp_path / "otf2")
    shown = subprocess.run(
        [tool, tmp_path / "otf2" / archive.ANCHOR], capture_output=True, text=True, timeout=60
    )
    assert shown.returncode == 0, shown.stderr
    wanted = spans_of(json.loads(simulated.read_text())["traceEvents"])
    events = sum(wanted.values())
    assert shown.stdout.count("\nENTER ") == shown.stdout.count("\nLEAVE ") == events


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([(0, 5), (5, 9)], [[(0, 5), (5, 9)]]),
        ([(2, 3), (0, 5), (3, 5)], [[(0, 5), (2, 3), (3, 5)]]),
        ([(0, 5), (3, 8), (6, 7), (8, 9)], [[(0, 5), (6, 7), (8, 9)], [(3, 8)]]),
        ([(0, 5), (5, 5), (5, 5)], [[(0, 5), (5, 5), (5, 5)]]),
        ([], []),
    ],
)
def test_spans_that_overlap_have_rows_of_their_own(given, rows):
    found = spans.nested([Span("x", "", *one) for one in given])
    assert [[(one.began_ns, one.ended_ns) for one in row] for row in found] == rows


@pytest.mark.parametrize("text", ["", "[]", '{"traceEvents": 3}', '{"traceEvents": [{"ph": "X"}]}'])
def test_what_is_no_timeline_is_refused(tmp_path, text):
    file = tmp_path / "t.json"
    file.write_text(text)
    done = weft("trace", file, "--otf2", tmp_path / "otf2")
    assert done.returncode == 2 and not (tmp_path / "otf2").exists()
    assert done.stderr.startswith(f"weft trace: {file} is no timeline; give a file of 'weft run")
    assert done.stderr.count("\n") == 1


def test_a_directory_that_is_there_stays(otf2, simulated, tmp_path):
    done = weft("trace", simulated, "--otf2", tmp_path)
    assert done.returncode == 2 and "is there already; name a new directory" in done.stderr
    assert simulated.exists()


def test_the_package_that_is_missing_is_named(monkeypatch, tmp_path):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(archive.importlib, "import_module", missing)
    with pytest.raises(archive.NoWriter, match=r"needs the Python package otf2: pip install"):
        archive.write(tmp_path / "otf2", [])
    assert not (tmp_path / "otf2").exists()
