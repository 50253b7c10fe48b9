"""Tests `import weft`: results as columns and pictures, and the text of help(weft)."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from test_help import HEAVY

import weft
from weft.measurements import result, store
from weft.measurements.result import Candidate, Point, Statistic
from weft.system import mpi_libraries

CANDIDATE = {"mpi": "MPICH", "engine": "thread", "placement": "bind", "backoff": "quiet"}


@pytest.fixture
def written(tmp_path):
    def write(document: dict) -> str:
        path = tmp_path / "result.json"
        path.write_text(json.dumps(document))
        return str(path)

    return write


def is_equally_long(columns: dict[str, list]) -> bool:
    return len({len(values) for values in columns.values()}) == 1


def test_import_is_quick_and_help_says_what_there_is():
    program = "import sys, weft; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not {*HEAVY, "typer", "weft.results", "weft.lab"} & set(done.stdout.split())
    done = subprocess.run(
        [sys.executable, "-c", "import weft; help(weft)"], capture_output=True, text=True
    )
    for words in ("weft.load(", "columns()", "figure()", "class Lab", "microseconds", "load(path"):
        assert words in done.stdout, words
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        weft.lode  # noqa: B018


@pytest.mark.parametrize("number", [1, 2])
def test_a_trial_has_its_ways_and_its_runs(written, number):
    document = {
        "schema": f"weft-try/{number}",
        "measured": "MPI_Init to MPI_Finalize",
        "ways": [
            {"options": ["--engine", "native"], "seconds": [2.0, 2.2]},
            {
                "options": [],
                "seconds": [1.0, 1.1],
                "times_as_fast": {"median": 2.0, "low": 1.9, "high": 2.1, "rounds": 2},
                "verdict": "undecided",
                "weft_did_nothing": False,
            },
        ],
    }
    found = weft.load(written(document))
    assert (found.kind, found.tables) == ("try", ["ways", "runs"])
    assert found.facts["measured"] == "MPI_Init to MPI_Finalize"
    ways = found.columns()
    assert (ways["gain"], ways["gain_low"]) == ([None, 2.0], [None, 1.9])
    assert ways["rounds"] == [2, 2] and is_equally_long(ways)
    assert found.columns("runs")["seconds"] == [2.0, 2.2, 1.0, 1.1]
    drawn = found.figure()
    assert drawn._repr_svg_() == drawn.svg and ElementTree.fromstring(drawn.svg) is not None
    assert "weft run: 1.1 s" in drawn.svg
    with pytest.raises(weft.ResultError, match="no table sites"):
        found.columns("sites")


def bench_result() -> result.Result:
    points = [
        Point(
            **CANDIDATE,
            algorithm="selected",
            collective="allreduce",
            bytes=8,
            ranks=2,
            nodes=2,
            computation_us=amount * 100.0,
            communication_us=100.0,
            total_us=Statistic(150.0 * amount, 140.0 * amount, 160.0 * amount, 9),
            hidden=0.5,
            slowdown_of_computation=1.0,
            amount=amount,
            kernel="gemm",
        )
        for amount in (1, 2)
    ]
    return result.Result({"cpu": "x"}, points, [Candidate(**CANDIDATE, algorithm="selected")])


def test_a_benchmark_as_json_of_both_numbers(tmp_path):
    path = tmp_path / "bench.json"
    result.save_json(bench_result(), path)
    found = weft.load(path)
    assert (found.facts["mpi"], found.facts["ranks"]) == ("MPICH", [2])
    assert found.columns()["total_us_low"] == [140.0, 280.0]
    found.figure().save(tmp_path / "bench.svg")
    assert ElementTree.parse(tmp_path / "bench.svg").getroot().tag.endswith("svg")
    path.write_text(path.read_text().replace("weft-bench/2", "weft-bench/1"))
    assert weft.load(path).columns() == found.columns()


def test_a_benchmark_s_samples(tmp_path):
    path = tmp_path / "bench.sqlite"
    with store.Store(path) as file:
        file.new_run({"cpu": "x"}, {})
    found = weft.load(path)
    assert (found.kind, found.facts["machine"], found.columns()) == ("bench", {"cpu": "x"}, {})
    with pytest.raises(weft.ResultError, match="nothing was measured"):
        found.figure()


def test_what_the_commands_write_is_read(call, tmp_path):
    """The test reads a summary, a record of the advisor and its JSON, all of one program."""
    library = mpi_libraries.implementation("mpich")
    program = [*library.launcher(2), library.program("latency"), "--forms", "blocking"]
    program += ["--bytes", "8", "--collective", "allreduce", "--samples", "3"]
    summary, record, advice = (tmp_path / name for name in ("s.json", "a.sqlite", "a.json"))
    call("run", f"--summary=json:{summary}", "--", *program)
    found = weft.load(summary)
    calls = found.columns()
    assert found.kind == "summary" and "MPI_Allreduce" in calls["call"]
    assert is_equally_long(calls) and min(calls["inside_us"]) >= 0
    with pytest.raises(weft.ResultError, match="no picture"):
        found.figure()
    to = ("--record", record, "--json", advice, "-o", tmp_path / "page.html")
    assert call("advise", *to, "--", *program).returncode == 0
    both = [weft.load(path) for path in (advice, record)]
    assert both[0].columns() == both[1].columns() and both[0].columns()["call"]
    assert both[0].facts["headline"] == both[1].facts["headline"]
    assert both[0].facts["ranks"] == 2 and "libmpi" in both[0].facts["mpi"]
    call("sim", "--json", summary)
    assert weft.load(summary).columns()["engine"] == ["blocking", "thread"]
    call("learned", "--plan-cache", "none", "--json", summary)
    assert weft.load(summary).tables == ["sites", "tried"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "neither JSON nor SQLite"),
        ("[]", "no result that weft.load reads: bench, try"),
        ('{"schema": "weft-info/1"}', "no result that weft.load reads"),
        ('{"schema": "weft-try/9"}', r"written by a newer Weft \(weft-try/9\)"),
        ('{"schema": "weft-try/2"}', "a damaged result of weft try: KeyError"),
        ("SQLite format 3\0 and no more", "a damaged SQLite file"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(weft.ResultError, match=sentence) as refused:
        weft.load(path)
    assert str(refused.value).startswith(str(path)) and "\n" not in str(refused.value)
    with pytest.raises(weft.ResultError, match="No such file"):
        weft.load(tmp_path / "none")
