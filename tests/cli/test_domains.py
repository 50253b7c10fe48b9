"""Tests several NUMA domains in a node: hwloc finds them from the cores to which ranks are
bound, all ranks find the same, and algorithms of two levels use them. test_conformance checks
the results."""

import json
import subprocess

import pytest
from domains import in_two_domains

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

# These expressions give the domains of four ranks: in order, in turn, and with one rank alone.
PLACINGS = ("rank / 2", "rank % 2", "rank / 3")


@pytest.fixture(params=["mpich", "openmpi"])
def plans(request, tmp_path, environment):
    """Returns the measured plans of a persistent collective on four ranks, each of which is started
    by `front`."""
    mpi = mpi_libraries.implementation(request.param)
    program = mpi.program("plan")
    if not mpi.mpiexec.exists() or not program.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(request.param)}")

    def run(collective, size, front=(), options=(), nodes=""):
        hosts = ["-launcher", "fork", "-hosts", nodes] if nodes else []
        summary = tmp_path / "summary.json"
        weft = [installation.weft_command(), "run", "--engine", "function", *options]
        weft += ["--plan-cache", "none", f"--summary=json:{summary}", "--"]
        command = [*mpi.launcher(4), *hosts, *front, *weft, program]
        command += ["--collective", collective, "--bytes", size]
        done = subprocess.run(
            [str(word) for word in command],
            env={
                **environment,
                **mpi.environment(),
                "OMPI_MCA_mpi_yield_when_idle": "1",
                "WEFT_INIT_BUDGET": "100s",  # enough time for all measurements on a loaded machine
            },
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (plan,) = json.loads(summary.read_text())["plans"]
        return plan

    return run


def tried(plan):
    return {candidate["algorithm"] for candidate in plan["candidates"]}


@pytest.mark.parametrize("domain", PLACINGS)
def test_one_and_two_levels_are_tried(plans, tmp_path, domain):
    front = [in_two_domains(tmp_path, domain)]
    assert {"node-ring", "domain-ring"} <= tried(plans("allreduce", "256KiB", front))
    assert {"node-tree", "domain-tree"} <= tried(plans("barrier", "0", front))


def test_two_levels_can_be_named(plans, tmp_path):
    front = [in_two_domains(tmp_path, PLACINGS[0])]
    plan = plans("allreduce", "8", front, ["--algorithm", "allreduce=domain-tree"])
    assert (plan["algorithm"], plan["why"]) == ("domain-tree", "the algorithm is named")


def test_two_levels_are_the_rule_for_long_vectors(plans, tmp_path):
    front = [in_two_domains(tmp_path, PLACINGS[0])]
    plan = plans("allreduce", "1MiB", front, ["--init-budget", "0"])
    assert plan["algorithm"] == "domain-ring"


def test_ranks_in_one_domain_have_one_level(plans, tmp_path):
    found = tried(plans("allreduce", "8", [in_two_domains(tmp_path, "0")]))
    assert "node-tree" in found
    assert not any(name.startswith("domain-") for name in found)


def test_ranks_that_are_not_bound_have_one_level(plans):
    found = tried(plans("allreduce", "8"))
    assert "node-tree" in found
    assert not any(name.startswith("domain-") for name in found)


# Hydra is the only launcher that can treat one machine as several nodes.
@pytest.mark.parametrize("plans", ["mpich"], indirect=True)
def test_over_several_nodes_places_go_by_domain(plans, tmp_path):
    """Blocks are then not in the order of the ranks, which reproducible reductions must keep."""
    front = [in_two_domains(tmp_path, "rank % 2")]
    in_order = ["--algorithm", "allreduce=hierarchical-in-order", "--init-budget", "0"]
    assert plans("allreduce", "8MiB", front, in_order, "a:3,b:1")["algorithm"] == "hierarchical"
    assert (
        plans("allreduce", "8MiB", (), in_order, "a:3,b:1")["algorithm"] == "hierarchical-in-order"
    )
    plan = plans("allreduce", "8MiB", front, ["--reproducible"], "a:3,b:1")
    assert plan["algorithm"] == "hierarchical-in-order"
