"""Runs a program of Debian's with and without Weft, and compares the numbers that it prints to the
last bit.

LAMMPS runs some steps. The tool that this test uses also runs other programs, and for longer."""

import json
import subprocess
import sys

import pytest

from weft.system import installation

TOOL = installation.ROOT / "tools" / "real-programs"
WITH_WEFT = ("auto", "auto --blocking", "thread --blocking", "tcc --blocking")
WAYS = (*WITH_WEFT, "advise", "check")
JOB_SECONDS = 90
SECONDS = 600  # time limit of all jobs together


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs the tool once. Returns the run of each way."""
    file = tmp_path_factory.mktemp("real-programs") / "figures.json"
    options = ["--short", "--no-fetch", "--no-lab", "--no-reproducible", "--rounds", "1"]
    options += ["--limit", str(JOB_SECONDS)]
    words = [sys.executable, TOOL, "lammps", *options, "--json", file]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    if "left out" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert file.exists(), done.stdout + done.stderr
    (found,) = json.loads(file.read_text())
    return {way: runs[0] for way, runs in found["runs"].items()}


def test_the_program_itself_says_what_it_computed(runs):
    assert runs["alone"]["status"] == 0
    assert len(runs["alone"]["results"]) > 100
    assert runs["alone"]["results"]["KinEng of step 40"] > 0


@pytest.mark.parametrize("way", WAYS)
def test_its_numbers_are_the_same(runs, way):
    assert runs[way]["status"] == 0, runs[way]["said"][-3000:]
    assert runs[way]["results"] == runs["alone"]["results"]


@pytest.mark.parametrize("way", WITH_WEFT)
def test_weft_took_part(runs, way):
    assert runs[way]["handled"] > 100


def test_weft_check_finds_no_mistake(runs):
    assert "no mistake was found in 2 ranks" in runs["check"]["said"]
    assert runs["check"]["mistakes"] == []
