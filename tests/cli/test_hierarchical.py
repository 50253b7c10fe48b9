"""Tests several nodes with several ranks each: right results, use of each node's memory, and
exactly the bytes on the links that the leaders' algorithm needs.

With MPICH two nodes are two proxies of Hydra; with other libraries they are nodes of the lab."""

import json
import os
import subprocess

import pytest

from weft.lab import Lab, LabUnavailable
from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

PROGRAMS = installation.ROOT / "tests/cli/programs"
BY_LEVELS = ("Iallreduce", "Ibcast", "Ireduce", "Iallgather", "Ialltoall", "Ibarrier")
MIB = 1 << 20


@pytest.fixture
def lab():
    """Opens a lab of two nodes with two ranks each. Skips the test if the machine permits none."""
    opened = []

    def open_lab(mpi, **options):
        try:
            made = Lab(nodes=2, per_node=2, mpi=mpi, check=False, **options)
            opened.append(made.__enter__())
        except LabUnavailable as error:
            pytest.skip(f"this machine permits no lab: {error}")
        return made

    yield open_lab
    for made in opened:
        made.close()


def check_summary(path):
    """Checks that Weft carried out each of the collectives, and used the memory of nodes."""
    calls = {entry["call"]: entry for entry in json.loads(path.read_text())["calls"]}
    for kind in BY_LEVELS:
        entry = calls[f"MPI_{kind}"]
        assert entry["in_memory"] > 0, entry


def conformance(mpi):
    program = mpi_libraries.implementation(mpi).program("conformance")
    left_out = {"mpich": "scattered-derived", "openmpi": "negative,alltoallw-in-place"}[mpi]
    groups = ["--groups", "results", "--largest-count", 7, "--limit-s", 100]
    return [program, *groups, "--without", left_out]


def weft_run(engine, summary, *options):
    return [
        installation.weft_command(),
        "run",
        f"--engine={engine}",
        f"--summary=json:{summary}",
        *options,
        "--",
    ]


def run(command, environment):
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# Ranks are placed in order, with one rank alone on its node, and in turn (by a variable of MPICH's
# own tests).
@pytest.mark.parametrize(
    ("ranks", "hosts", "variables", "engine"),
    [
        pytest.param(4, ["-hosts", "a:2,b:2"], {}, "function", marks=pytest.mark.long),
        (3, ["-hosts", "a:2,b:1"], {}, "thread"),
        pytest.param(4, [], {"MPIR_CVAR_NUM_CLIQUES": "2"}, "thread", marks=pytest.mark.long),
    ],
)
def test_mpich_over_two_nodes(ranks, hosts, variables, engine, tmp_path, environment):
    mpi = mpi_libraries.implementation("mpich")
    summary = tmp_path / "summary.json"
    command = [mpi.mpiexec, "-launcher", "fork", *hosts, "-n", ranks]
    command += [*weft_run(engine, summary), *conformance("mpich")]
    run(command, {**environment, **variables})
    check_summary(summary)


BY_LIBRARY = ("allreduce", "reduce", "bcast", "allgather", "barrier")


@pytest.mark.parametrize(("hosts", "engine"), [("a:2,b:2", "thread"), ("a:2,b:2", "function")])
def test_leaders_by_the_library_with_many_in_flight(hosts, engine, tmp_path, environment):
    mpi = mpi_libraries.implementation("mpich")
    summary = tmp_path / "summary.json"
    named = [f"--algorithm={kind}=hierarchical-library" for kind in BY_LIBRARY]
    program = [mpi.program("conformance"), "--groups", "flight,lifetime", "--limit-s", 100]
    command = [mpi.mpiexec, "-launcher", "fork", "-hosts", hosts, "-n", 4]
    command += [*weft_run(engine, summary, *named), *program]
    run(command, environment)
    check_summary(summary)


def test_the_leader_of_a_node_with_one_rank_leaves_the_call_to_the_library(tmp_path, environment):
    mpi = mpi_libraries.implementation("mpich")
    summary = tmp_path / "summary.json"
    command = [mpi.mpiexec, "-launcher", "fork", "-hosts", "a:1,b:1", "-n", 2]
    named = "--algorithm=allreduce=hierarchical-library"
    command += [*weft_run("function", summary, named), mpi.program("reductions")]
    run(command, environment)
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    assert calls["MPI_Iallreduce"]["handled"] == 0, calls["MPI_Iallreduce"]
    assert calls["MPI_Ireduce"]["handled"] > 0, calls["MPI_Ireduce"]


def test_open_mpi_over_two_nodes(lab, tmp_path):
    summary = tmp_path / "summary.json"
    variables = {"OMPI_MCA_op": "^avx", "OMPI_MCA_mpi_yield_when_idle": "1"}
    result = lab("openmpi", rate="1gbit").run(
        [*weft_run("thread", summary), *conformance("openmpi")],
        env=variables,
        capture=True,
        timeout=110,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    check_summary(summary)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Compiles a program for an MPI library."""

    def compiled(mpi, name):
        library = mpi_libraries.implementation(mpi)
        path = tmp_path_factory.mktemp(mpi) / name
        linked = f"-Wl,-rpath,{library.prefix / 'lib'}"
        source = PROGRAMS / f"{name}.c"
        command = [library.prefix / "bin/mpicc", "-O1", source, "-o", path, linked]
        variables = {**os.environ, **library.environment()}
        subprocess.run(command, check=True, timeout=60, env=variables)
        return path

    return compiled


@pytest.fixture
def sent_by_a_call(lab, tmp_path):
    """Returns the bytes of one call that leave each node, without those that TCP adds, and the
    program's output."""

    def counted(mpi, options, program, *arguments):
        made = lab(mpi, rate="1gbit")
        sent = []
        for calls in (4, 12):
            result = made.run(
                [*weft_run("thread", tmp_path / "none", *options), program, calls, *arguments],
                capture=True,
                timeout=60,
            )
            assert result.returncode == 0, result.stdout + result.stderr
            sent.append(result.sent_bytes)
        return [(many - few) / 8 for few, many in zip(*sent)], result.stdout

    return counted


@pytest.mark.parametrize(
    ("mpi", "options"),
    [
        ("mpich", []),
        pytest.param("openmpi", [], marks=pytest.mark.long),
        ("mpich", ["--reproducible"]),
        ("mpich", ["--algorithm=allreduce=hierarchical-library"]),
    ],
)
def test_bytes_on_the_links(mpi, options, program, sent_by_a_call):
    """With two nodes, each sends a vector once."""
    compiled = program(mpi, "many_allreduces")
    for sent in sent_by_a_call(mpi, options, compiled, MIB // 8)[0]:
        assert 0.99 <= sent / MIB <= 1.03  # TCP may have sent some bytes twice in one of the runs


@pytest.mark.one_library
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_bytes_of_blocks_on_the_links(mpi, program, sent_by_a_call):
    """A block, or a node's sum of it, is sent to each node once."""
    kinds = ["reduce_scatter_block", "reduce_scatter", "allgatherv", "alltoallv"]
    compiled = program(mpi, "blocks_between_nodes")
    links, said = sent_by_a_call(mpi, [], compiled, 16 * 1024, *kinds)
    for sent in links:
        assert 0.99 <= sent / (8 * int(said)) <= 1.03
