"""Tests the output of `weft bench` for an engine in virtual time that hides exactly half
(tests/unit/planted_test.cc).

The times come from the simulator, and the hidden share from the code that reads samples."""

from __future__ import annotations

import json
import subprocess

import pytest

from weft.measurements import store
from weft.measurements.result import Candidate
from weft.system import installation

UNIT = installation.BUILD / "tests" / "unit" / "weft_unit"
HALF = Candidate("simulated 1.0", "half")


def simulated(directory) -> list[dict[str, float]]:
    """Returns the times that the simulator's runs recorded, one entry for each amount of
    computation."""
    figures = directory / "figures.json"
    words = [UNIT, "--gtest_filter=*PlantedHalf.*", f"--gtest_output=json:{figures}"]
    subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=120)
    suites = json.loads(figures.read_text())["testsuites"]
    names = ("communication_us", "computation_us", "total_us")
    return [{n: float(t[n]) for n in names} for suite in suites for t in suite["testsuite"]]


def fill(path, times: list[dict[str, float]]) -> None:
    with store.Store(path) as file:
        run = file.new_run({}, {})
        who = file.candidate(run, HALF)
        case = file.case(run, ("allreduce", 132000, 33, 33), "", list(range(len(times))))
        job = file.job(run, case, HALF.mpi, False, 1)
        rows = [(None, "blocking", None, times[0]["communication_us"], None)]
        for amount, t in enumerate(times):
            rows.append((None, "computation", amount, t["computation_us"], None))
            rows.append((who, "overlapped", amount, t["total_us"], t["computation_us"]))
        file.samples(job, rows)
        file.complete(run)


@pytest.mark.skipif(not UNIT.exists(), reason="needs a build with the unit tests")
def test_half_hidden_in_virtual_time_is_reported_as_half(tmp_path):
    times = simulated(tmp_path)
    assert len(times) == 4
    fill(tmp_path / "x.sqlite", times)
    found = store.load(tmp_path / "x.sqlite")
    assert [p.hidden for p in found.points] == pytest.approx([0.5] * 4, abs=0.02)
