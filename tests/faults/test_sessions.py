"""Tests sessions before, beside and after the world model (row 40)."""

import re

import pytest
from job import ENGINES, Job

pytestmark = pytest.mark.covering

CASE = "sessions-beside-world"


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_sessions_beside_the_world_model(mpi, engine):
    """With three ranks a communicator can be split into two groups of different sizes."""
    done = Job(mpi, [CASE], engine, ranks=3).right()
    assert "wrong" not in done.err
    assert done.sentences() == []


def test_the_summary_says_that_they_are_passed_on(mpi):
    done = Job(mpi, [CASE], "thread", ranks=3, options=["--summary"]).right()
    assert re.search(r"passed on \d+: communicator of a session", done.err), done.err
