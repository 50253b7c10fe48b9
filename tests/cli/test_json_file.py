"""Tests `--json` of the commands: where the JSON goes, what else is printed, and how every result
begins."""

from __future__ import annotations

import json
import socket
from datetime import datetime, timezone

import pytest
from test_results import bench_result

from weft import __version__
from weft.data import json_file
from weft.demo import show
from weft.measurements.result import Statistic, save_json
from weft.report.overlap import CallComparison
from weft.reproduce.findings import Finding, Reproduction, Reproductions

HEAD = ["schema", "weft", "date", "host", "mpi", "ranks", "command", "headline"]


def head_of(found: dict) -> dict:
    assert list(found)[: len(HEAD)] == HEAD
    assert (found["weft"], found["host"]) == (__version__, socket.gethostname())
    age = datetime.now(timezone.utc) - datetime.fromisoformat(found["date"])
    assert 0 <= age.total_seconds() < 100
    return found["headline"]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("sim --json", "sim --json -"),
        ("sim --json --ranks 4", "sim --json - --ranks 4"),
        ("sim --json file --ranks 4", "sim --json file --ranks 4"),
        ("learned --json", "learned --json"),
        ("run -- app --json", "run -- app --json"),
    ],
)
def test_an_option_that_may_stand_alone_means_standard_output(words, read):
    assert json_file.with_values(words.split()) == read.split()


def test_commands_that_compute_write_json_alone_or_beside_their_words(call, tmp_path):
    file = tmp_path / "sim.json"
    words = ("sim", "--collective", "bcast", "--ranks", 4)
    alone, named, beside = (call(*words, "--json", *to) for to in ((), ("-",), (file,)))
    found = json.loads(file.read_text())
    head = head_of(found)
    assert found["command"] == f"weft sim --collective bcast --ranks 4 --json {file}"
    assert (found["schema"], found["ranks"]) == ("weft-sim/1", 4)
    assert head["total_us"] == found["runs"][0]["total_us"]
    assert json.loads(alone.stdout)["runs"] == json.loads(named.stdout)["runs"] == found["runs"]
    assert "µs" in beside.stdout
    call("info", "--json", file)
    found = json.loads(file.read_text())
    assert head_of(found)["usable_cores"] == len(found["machine"]["usable_cores"])
    assert (found["schema"], found["command"]) == ("weft-info/2", f"weft info --json {file}")


def test_nothing_stands_beside_json_on_standard_output(call):
    """The output of the command, and of the program that it runs, is on standard error."""
    done = call("try", "--runs", 1, "--json", "-", "--", "echo", "the program's")
    found = json.loads(done.stdout)
    assert head_of(found)["weft run"]["verdict"] == "undecided"
    assert found["program"] == ["echo", "the program's"] and found["command"].startswith("weft try")
    assert "the program's\n" in done.stderr and "1 round, all ways in turn" in done.stderr
    done = call("learned", "--plan-cache", "none", "--json", "-")
    assert head_of(json.loads(done.stdout)) == {"sites": 0, "programs": 0} and done.stderr


def test_a_report_and_a_comparison(call, tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    for path in (old, new):
        save_json(bench_result(), path)
    done = call("report", old, "-o", tmp_path / "page.html", "--json", "-")
    found = json.loads(done.stdout)
    assert head_of(found) == {"cases": 1} and found["cases"][0]["advice"] in " ".join(
        done.stderr.split()
    )
    found = json.loads(call("compare", old, new, "--json", "-").stdout)
    assert head_of(found)["same"] == len(found["points"]) > 0
    assert {point["times"] for point in found["points"]} == {1.0}


def test_reproductions_and_the_demo_begin_alike():
    finding = Finding("1", "p", "measured", "o", "h", "holds")
    one = Reproduction("name", "title", "paper", [finding], [], [])
    for found in (one, Reproductions({}, [one])):
        assert head_of(found.to_json()) == {
            "holds": 1,
            "does not hold": 0,
            "cannot be tested here": 0,
        }
    half, whole = (Statistic(value, value, value, 9) for value in (1.0, 2.0))
    calls = [CallComparison("allreduce", 1 << 20, 2, "MPICH", whole, half)]
    found = show.to_json(calls, "memory", False)
    assert head_of(found) == {"MPI_Allreduce of 1 MiB": {"times_as_fast": 2.0, "finding": "gain"}}
    (call,) = json.loads(json.dumps(found))["calls"]
    assert (call["weft"]["median"], found["mpi"], found["ranks"]) == (1.0, "MPICH", 2)


def test_findings_of_the_doctor(call, tmp_path):
    done = call("doctor", "--json", "-", WEFT_MPI_DIR=str(tmp_path), PATH=str(tmp_path))
    found = json.loads(done.stdout)
    head = head_of(found)
    assert found["schema"] == "weft-doctor/2" and sum(head.values()) == len(found["findings"])
    assert {"what": "mpich", "state": "missing", "note": "not here", "fix": "make build"} in found[
        "findings"
    ]
