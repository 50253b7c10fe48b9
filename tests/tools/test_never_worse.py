"""tools/never-worse: looks are kept and continued, and only a point that is slower at more than one
counts. The looks are made up."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import pytest
from performance_checks import looks
from performance_checks.looks import Look, Settings

pytestmark = pytest.mark.long  # a tool of the repository, which few changes touch

SETTINGS = Settings("mpich", 2, 3)
POINT, OTHER = "alltoall blocking 262144 B", "gather blocking 16384 B"


def look(minute: int, share: float, other: float = 1.0, alone: float = 1.0) -> Look:
    ratios = {POINT: alone, OTHER: 1.0}
    return Look(f"2026-11-30T17:{minute:02}:00+00:00", {POINT: share, OTHER: other}, ratios)


@pytest.fixture
def tool(monkeypatch, tmp_path, capsys):
    """Runs it with these looks for its measurements; returns its status and what it prints."""
    file = tmp_path / "looks.json"

    def run(made, *options):
        left = iter(made)
        monkeypatch.setattr(looks, "take_look", lambda settings: next(left))
        words = ["never-worse", str(file), "--rounds=3", "--minutes=0", *options]
        monkeypatch.setattr(sys, "argv", words)
        return looks.main(), capsys.readouterr().out

    run.file = file
    return run


def test_a_point_that_is_slower_at_one_look_is_not_weft_s_fault(tool):
    status, said = tool([look(1, 1.9), look(11, 1.0), look(21, 1.0, 1.2)], "--looks=3")
    assert status == 0
    assert "above 1.05: 2 of 2 points at some look, 0 at more than one" in said


def test_a_point_that_is_slower_at_two_looks_is(tool):
    status, said = tool([look(1, 1.9), look(11, 1.0), look(21, 1.06, alone=1.5)], "--looks=3")
    assert status == 1
    assert f"1 of 2 points at some look, 1 at more than one: {POINT}" in said
    assert "itself: median 1.00; above 1.05: 1 of 2 points at some look, 0 at more" in said
    assert f"| {POINT} | 1.90 | 1.00 | 1.06 | 1.00 | 1.00 | 1.50 |" in said


def test_looks_are_continued(tool):
    tool([look(1, 1.9)], "--looks=1")
    kept = json.loads(tool.file.read_text())
    assert kept["looks"] == [asdict(look(1, 1.9))]
    status, said = tool([look(11, 1.9)], "--looks=2")
    assert (status, said.count("look 2")) == (1, 1)
    assert tool([], "--looks=0")[0] == 1


def test_looks_of_other_settings_are_refused(tool):
    tool([look(1, 1.0)], "--looks=1")
    with pytest.raises(SystemExit, match="of other settings; name another file"):
        tool([], "--looks=2", "--mpi=openmpi")
