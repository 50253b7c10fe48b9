"""tools/bars --only messages and quiet: their shortest form gives every bar, met or not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.skipif(
    not mpi_libraries.implementation("mpich").mpiexec.exists(), reason="needs make build"
)

BARS = {
    "messages": [
        ("halo of 2 MiB, hidden in every round", 0.95, True),
        ("put of 2 MiB, hidden in every round", 0.95, True),
        ("get of 2 MiB, hidden in every round", 0.95, True),
        ("halo of 8 B, of the program alone", 1.03, False),
    ],
    "quiet": [
        ("processor time for a second of communication, more than tcc", 0.05, False),
        ("hidden meanwhile", 0.95, True),
        *(
            (f"{backoff}, nothing outstanding, {what} in 1 s", 0, False)
            for backoff in ("quiet", "yield", "baton")
            for what in ("CPU ticks", "wake-ups")
        ),
    ],
}


@pytest.mark.parametrize("group", BARS)
def test_the_shortest_form_gives_every_bar(permitted_lab, group, tmp_path):
    path = tmp_path / "bars.json"
    command = [sys.executable, "tools/bars", "--only", group, "--short", "--mpi", "mpich"]
    done = subprocess.run(
        [*command, "--json", path],
        cwd=installation.ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(path.read_text())
    rows = found["bars"]
    for row, (what, limit, at_least) in zip(rows, BARS[group], strict=True):
        assert row["what"].startswith("mpich, ") and row["what"].endswith(what)
        assert (row["limit"], row["at_least"]) == (limit, at_least)
        assert row["figure"] is not None
    assert done.returncode == (0 if all(row["met"] for row in rows) else 1)
    assert ("missed" in done.stdout) == (done.returncode == 1)
    for case in found["measurements"]:
        for jobs in case["jobs"].values():
            assert jobs[0]["ranks"] == 2 and jobs[0]["bytes"] == case["size"]
    if group == "quiet":  # what is counted, not how long it took
        idle = [row for row in rows if "nothing outstanding" in row["what"]]
        assert all(row["met"] for row in idle), idle
        taken = found["measurements"][0]["jobs"]["yield"][0]
        assert min(taken["other_cpu_s"]) > 0
