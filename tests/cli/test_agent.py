"""Tests engine agent with MPI: how many operations are left to the agent of a core, and the reason
why others are not.

The protocol of mailboxes is tested without MPI (tests/unit/core_agent_test.cc). Results are tested
in test_conformance.py and tests/random, ends of jobs in tests/faults."""

import json
import os
import re
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

CORE = min(os.sched_getaffinity(0))
ON_ONE_CORE = ["--placement", "list:" + ",".join([str(CORE)] * 8)]
RANKS = 3


def told(tmp_path, size, options, engine="agent", before=()):
    """Returns the numbers and the text of the summary, for a program that computes between start
    and wait. `before`: words in front of each rank's command."""
    library = mpi_libraries.implementation("mpich")
    program = library.program("overlap")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    words = ["--collective", "allgather", "--bytes", size, "--engines", engine]
    weft = [installation.weft_command(), "run", "--engine", engine, *options]
    found = []
    for summary in (f"--summary=json:{tmp_path / 'summary.json'}", "--summary"):
        command = [*library.launcher(RANKS), *before, *weft, summary, "--", program, *words]
        command += ["--repetitions", 3]
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **library.environment()},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert ", 0 wrong" in done.stdout, done.stdout
        found.append(done.stderr)
    return json.loads((tmp_path / "summary.json").read_text()), found[1]


def test_long_collectives_are_left_to_the_agent(tmp_path):
    numbers, words = told(tmp_path, "256KiB", ON_ONE_CORE)
    handled = sum(call["handled"] for call in numbers["calls"])
    assert 0 < numbers["left_to_agent"] <= handled
    # Waiting ranks may take operations back from the agent; how many depends on timing.
    assert numbers["ended_by_agent"] <= numbers["left_to_agent"]
    assert "engine agent does what engine thread does" not in words
    assert re.search(r"left to the agent of a core: \d+ collectives", words)


def test_ranks_that_share_cores_leave_operations_to_the_agent(tmp_path):
    numbers, _ = told(tmp_path, "256KiB", ON_ONE_CORE, before=["taskset", "-c", CORE])
    assert 0 < numbers["ended_by_agent"] == numbers["left_to_agent"]


@pytest.mark.parametrize(
    ("size", "options", "has_agent"),
    [
        ("256KiB", [], False),
        ("256KiB", [*ON_ONE_CORE, "--transport", "mpi"], True),
        ("16", ON_ONE_CORE, True),  # the message is too short for any thread
    ],
)
def test_what_goes_as_under_thread(size, options, has_agent, tmp_path):
    numbers, words = told(tmp_path, size, options)
    assert sum(call["handled"] for call in numbers["calls"]) > 0
    assert numbers["left_to_agent"] == numbers["ended_by_agent"] == 0
    why = (
        "engine agent does what engine thread does on rank 0: no other rank's thread is on its core"
    )
    assert (why in words) != has_agent
    assert "left to the agent of a core: 0 collectives" in words


def test_other_engines_leave_nothing(tmp_path):
    numbers, words = told(tmp_path, "256KiB", ON_ONE_CORE, engine="thread")
    assert numbers["left_to_agent"] == 0
    assert "agent of a core" not in words
