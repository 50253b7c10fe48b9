"""Tests that engine auto inside one node takes a call only if Weft was measured to be faster than
the MPI library's own collective. This is measured once per machine, and all ranks decide alike."""

import json
import os
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

MPICH = mpi_libraries.implementation("mpich")
REASON = "the MPI library's own call was measured, and is as fast here"
ALLREDUCE = ("funneled", "funneled", "blocking")
BLOCKING = "or the library's blocking call"


@pytest.fixture
def program(compiled_for):
    return compiled_for(MPICH, "levels")


@pytest.fixture
def tool(compiled_for):
    """Compiles a tool that is preloaded behind Weft. How long its loops take must not depend on
    what a compiler makes of them."""
    return lambda name: compiled_for(MPICH, name, "-O0", "-shared", "-fPIC")


@pytest.fixture
def run(program, tmp_path, environment):
    """Runs the program with the cache of plans. Returns what happened to its MPI_Allreduce."""

    def job(*options, preload="", command=(program, *ALLREDUCE)):
        summary = tmp_path / "summary.json"
        front = ["env", f"LD_PRELOAD={preload}"] if preload else []
        weft = [installation.weft_command(), "run", f"--plan-cache={tmp_path / 'plans'}"]
        weft += [*options, f"--summary=json:{summary}"]
        command = [MPICH.mpiexec, "-n", "2", *front, *weft, "--", *command]
        done = subprocess.run(
            [str(word) for word in command],
            env={**environment, "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        calls = json.loads(summary.read_text())["calls"]
        entry = next(entry for entry in calls if entry["call"] == "MPI_Allreduce")
        return entry | {"said": done.stderr}

    return job


PATIENT = "--init-budget=10s"


def verdict(cache):
    """Returns the columns of the call's line in the cache."""
    (line,) = (
        line
        for line in cache.read_text().splitlines()
        if "allreduce|<= 4 bytes" in line and BLOCKING in line
    )
    return line.split("\t")


def test_a_library_that_is_slower_loses_and_that_is_kept(run, tool, tmp_path):
    slow = tool("slow_allreduce")
    for doubts in ("1", "0"):
        assert run(PATIENT, preload=slow)["handled"] == 2
        _, winner, doubts_left, times = verdict(tmp_path / "plans")
        assert winner.startswith("node-flat/")
        assert doubts_left == doubts, times
    assert run("--init-budget=1us")["handled"] == 2


def test_what_the_other_side_leaves_in_the_caches_is_no_part_of_a_long_call(run, tool):
    preload = tool("fast_at_first")
    # This budget suffices for the measurement on a loaded machine.
    calls = run("--init-budget=100s", preload=preload)
    assert calls["handled"] == 2


def settle(cache, winner):
    """Changes the cache so that the call's comparison has this winner, without doubts."""
    key, plan, doubts, times = verdict(cache)
    settled = "\t".join([key, winner + plan[plan.index("/") :], "0", times])
    cache.write_text(cache.read_text().replace("\t".join([key, plan, doubts, times]), settled))
    return settled


def test_what_the_library_has_won_stays_the_librarys(run, tool, tmp_path):
    slow = tool("slow_allreduce")
    run(PATIENT)
    settle(tmp_path / "plans", "library")
    assert run(PATIENT, preload=slow)["passed_on"] == {REASON: 2}


def test_what_was_decided_in_an_earlier_way_is_held_again(run, tool, tmp_path):
    """The key of such a line does not end with the variant with which the library was compared."""
    slow = tool("slow_allreduce")
    run(PATIENT)
    settled, cache = settle(tmp_path / "plans", "library"), tmp_path / "plans"
    key = settled.split("\t")[0]
    earlier = key[: key.index(BLOCKING) + len(BLOCKING)]
    cache.write_text(cache.read_text().replace(key, earlier))
    assert run(PATIENT, preload=slow)["handled"] == 2


@pytest.mark.parametrize("library", ["slow", "fast"])
def test_what_weft_has_won_is_looked_at_again_and_kept(run, tool, tmp_path, library):
    """The cores of a virtual machine may have moved since. The new result holds for this run
    only."""
    preload = tool(f"{library}_allreduce")
    run(PATIENT)
    settled = settle(tmp_path / "plans", "node-flat")
    calls = run(PATIENT, preload=preload)
    if library == "slow":
        assert calls["handled"] == 2
    else:
        assert calls["passed_on"] == {REASON: 2}
    assert "\t".join(verdict(tmp_path / "plans")) == settled


def test_a_look_is_taken_once_in_a_run(run, compiled_for, tool, tmp_path):
    """The comparison is repeated once per run, and not on each communicator. It calls the library
    at most 300 times."""
    preload = tool("fast_allreduce")
    many, communicators = compiled_for(MPICH, "allreduces"), 20
    run(PATIENT)
    settle(tmp_path / "plans", "node-flat")
    calls = run(PATIENT, preload=preload, command=(many, communicators))
    assert calls["passed_on"] == {REASON: 2 * communicators}
    made = [int(line.split()[1]) for line in calls["said"].splitlines() if "fast:" in line]
    assert len(made) == 2 and max(made) <= 1 + 3 * 100 + communicators


def test_nothing_is_measured_without_a_budget_or_where_the_user_has_chosen(run, tmp_path):
    for option in ("--init-budget=0", "--algorithm=allreduce=node-ring", "--blocking"):
        assert run(option)["handled"] == 2
        cache = tmp_path / "plans"
        assert not cache.exists() or "or the library's" not in cache.read_text()
