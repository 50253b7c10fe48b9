"""Tests neighbourhood collectives over several nodes, with and without joined messages, on a ring,
and on a graph with edges to the same rank and repeated edges.

Nodes are proxies of Hydra in MPICH. tests/unit/levels_cost_test.cc counts the messages of each
form."""

import json
import os
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

KINDS = (
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
)
# These are equal nodes, one rank alone on its node, and three nodes.
HOSTS = {"a:2,b:2": 4, "a:3,b:1": 4, "a:2,b:2,c:1": 5}
JOINED = ("joined", "partly-joined")


def on_nodes(hosts, options, *program, summary=None, engine="thread", part="plans"):
    """Runs a program with MPICH on these nodes, and returns this part of its summary."""
    mpi = mpi_libraries.implementation("mpich")
    if not mpi.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    weft = [installation.weft_command(), "run", f"--engine={engine}", *options]
    weft += [f"--summary=json:{summary}"] if summary else []
    command = [mpi.mpiexec, "-launcher", "fork", "-hosts", hosts, "-n", HOSTS[hosts]]
    done = subprocess.run(
        [str(word) for word in [*command, *weft, "--", *program]],
        env={**os.environ, **mpi.environment()},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(summary.read_text())[part] if summary else []


def named(algorithm):
    return [f"--algorithm={kind}={algorithm}" for kind in KINDS]


def conformance():
    program = mpi_libraries.implementation("mpich").program("conformance")
    left_out = "blocking,nonblocking,alltoallw-in-place"
    options = ["--groups", "results", "--largest-count", 7, "--limit-s", 100]
    return [program, *options, "--only", ",".join(KINDS), "--without", left_out]


@pytest.mark.parametrize("hosts", HOSTS)
@pytest.mark.parametrize("algorithm", JOINED)
def test_joined_messages_arrive(hosts, algorithm, tmp_path):
    plans = on_nodes(hosts, named(algorithm), *conformance(), summary=tmp_path / "summary.json")
    assert {plan["call"].lower() for plan in plans} >= {f"mpi_{kind}_init" for kind in KINDS}
    assert {plan["algorithm"] for plan in plans if "eighbor" in plan["call"]} == {algorithm}


def test_the_faster_form_is_found_by_measurement(tmp_path):
    options = ["--init-budget=500ms", "--plan-cache=none"]
    program = mpi_libraries.implementation("mpich").program("exchange_rows")
    plans = on_nodes("a:2,b:2", options, program, summary=tmp_path / "summary.json")
    measured = [plan for plan in plans if plan["source"] == "measured"]
    assert all(plan["bytes"] == plan["trial_bytes"] > 0 for plan in measured)
    # On a busy machine the time budget may end before all candidates were tried.
    tried = {candidate["algorithm"] for plan in measured for candidate in plan["candidates"]}
    assert tried == {"linear", "by-size", "combined", *JOINED}


@pytest.mark.parametrize("hosts", HOSTS)
@pytest.mark.parametrize("algorithm", JOINED)
def test_rows_arrive_joined(hosts, algorithm, tmp_path):
    options = [f"--algorithm=neighbor_alltoallw={algorithm}"]
    program = mpi_libraries.implementation("mpich").program("exchange_rows")
    plans = on_nodes(hosts, options, program, summary=tmp_path / "summary.json")
    assert {plan["algorithm"] for plan in plans} == {algorithm}


@pytest.mark.parametrize("algorithm", JOINED)
def test_ranks_that_disagree_fail_as_without_joined_messages(algorithm, compiled_for, tmp_path):
    library = mpi_libraries.implementation("mpich")
    program = compiled_for(library, "neighbor_disagrees")
    plans = on_nodes("a:2,b:2", named(algorithm), program, summary=tmp_path / "summary.json")
    assert {plan["algorithm"] for plan in plans} == {"by-size"}


@pytest.mark.parametrize("hosts", HOSTS)
def test_joined_messages_are_a_way_of_repeated_calls(hosts, compiled_for, tmp_path):
    """Results are right, whichever way a call takes, and whether or not its blocks have the lengths
    of the first call. A rank that is alone on its node joins no messages."""
    program = compiled_for(mpi_libraries.implementation("mpich"), "neighbors_again")
    summary, options = tmp_path / "summary.json", ["--learning-budget=100", "--plan-cache=none"]
    learnt = on_nodes(hosts, options, program, summary=summary, engine="auto", part="learnt")
    ways = {}
    for entry in learnt:
        ways.setdefault(entry["site"], {}).update(
            {way["way"]: way["period_us"] for way in entry["ways"]}
        )
    joins = "1" not in hosts
    for kind in KINDS:
        for site, way in ((f"blocking {kind}", "function"), (kind, "thread")):
            assert (ways[site][f"{way} joined"] > 0) == joins, (site, ways[site])


def test_ranks_that_disagree_at_a_later_call_do_not_hang(compiled_for):
    program = compiled_for(mpi_libraries.implementation("mpich"), "neighbor_disagrees")
    options = ["--learning-budget=100", "--plan-cache=none"]
    on_nodes("a:2,b:2", options, program, "again", engine="auto")
