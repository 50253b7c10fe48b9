"""Tests back-off baton with MPI: progress threads of all ranks on one core, which sleep and wake
each other. The order in which they wake each other is tested without MPI
(tests/unit/baton_test.cc)."""

import os

import pytest
from test_conformance import check, largest_count

pytestmark = pytest.mark.covering

CORE = min(os.sched_getaffinity(0))


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi", "intelmpi"])
def test_conformance_with_all_threads_on_one_core(mpi, transport, tmp_path, capsys, monkeypatch):
    variables = {
        "WEFT_BACKOFF": "baton",
        "WEFT_PLACEMENT": "list:" + ",".join([str(CORE)] * 8),
        "WEFT_TRANSPORT": transport,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    check(mpi, 4, "thread", tmp_path, capsys, largest_count(1000))
