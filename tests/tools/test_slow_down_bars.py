"""The bars of what the advisor costs: whose time is set beside whose. No program runs."""

import json
import sys
from pathlib import Path

import pytest

from weft.system import installation

sys.path.append(str(installation.ROOT / "tools"))

import slow_down_bars


@pytest.mark.parametrize(
    ("step_us", "steps"), [(1e6, 3), (1e5, 22), (40.0, 55_000)], ids=["long", "middle", "short"]
)
def test_a_job_has_so_many_steps_that_it_is_long_enough(step_us, steps):
    assert slow_down_bars.enough_steps(lambda n: n * step_us) == steps


@pytest.fixture
def jobs(monkeypatch):
    """Stands for the launcher: with the advisor all but the first kernel take a tenth longer."""
    seen = []

    def run(words, mpi, limit_s):
        words = [str(word) for word in words]
        seen.append(words)
        option = dict(zip(words, words[1:]))
        step_us = 2e5 if "advise" not in words or "--elements" in words else 2.2e5
        samples = [step_us] * int(option["--repetitions"])
        assert option["--form"] == "blocking"
        variants = [{"name": "blocking", "samples_us": samples}]
        Path(option["--json"]).write_text(json.dumps({"variants": variants}))

    monkeypatch.setattr(slow_down_bars, "run_command", run)
    return seen


def test_jobs_with_the_advisor_and_without_take_turns(jobs):
    found = next(slow_down_bars.measure("mpich", rounds=3))
    advised = ["advise" in words for words in jobs]
    assert advised == [False, *(False, True), *(True, False), *(False, True)]
    assert not any("--overhead" in words for words in jobs)
    assert found.steps == 11 and found.shares == [1.0, 1.0, 1.0]


def test_each_round_has_a_ratio(jobs):
    found = list(slow_down_bars.measure("mpich", rounds=2))
    assert [one.shares for one in found[1:]] == [[pytest.approx(1.1)] * 2] * (len(found) - 1)
    assert {one.program for one in found} <= set(slow_down_bars.CASES)
