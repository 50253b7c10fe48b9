"""Tests that engine auto keeps the thread level that a program requests if the job is inside one
node: its thread calls no MPI, and operations that need MPI are left to the library.

Two nodes are two proxies of Hydra on this machine."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

MPICH = mpi_libraries.implementation("mpich")
SOURCE = installation.ROOT / "tests/cli/programs/levels.c"
TWO_NODES = ["-launcher", "fork", "-hosts", "a,b"]
REASON = "needs MPI calls on a thread, which engine auto does without inside one node"
BLOCKING = "blocking, and not one that the node's memory serves; --blocking takes it all the same"
RULE = "the rule takes native here"
SENTENCE = "for other calls name an engine (--engine thread)"
LIBRARIES = ("mpich", "openmpi", "intelmpi")
PROGRAMS = installation.ROOT / "tests/cli/programs"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Compiles the program, which runs with any library of the ABI family."""
    path = tmp_path_factory.mktemp("levels") / "levels"
    subprocess.run([MPICH.prefix / "bin/mpicc", SOURCE, "-o", path], check=True, timeout=60)
    return path


@pytest.fixture
def run(program, tmp_path, environment):
    """Runs the program. Returns what happened to a call, and all output."""

    def job(*words, weft=(), nodes=(), mpi=MPICH, call="MPI_Iallreduce"):
        summary = tmp_path / "summary.json"
        front = [installation.weft_command(), "run", *weft]
        command = [mpi.mpiexec, *nodes, "-n", "2"]
        variables = {**environment, **mpi.environment()}
        path = [str(mpi.prefix / "lib"), variables.get("LD_LIBRARY_PATH", "")]
        said = ""
        for report in ("--summary", f"--summary=json:{summary}"):
            done = subprocess.run(
                [str(word) for word in [*command, *front, report, "--", program, *words]],
                env={**variables, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, path))},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert "sum wrong" not in done.stdout
            said += done.stdout + done.stderr
        calls = json.loads(summary.read_text())["calls"]
        return next(entry for entry in calls if entry["call"] == call), said

    return job


def test_said(run):
    calls, said = run("funneled", "funneled")
    assert calls["handled"] == 2
    assert said.count(SENTENCE) == 1
    assert "engine auto" in said


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request):
    library = mpi_libraries.implementation(request.param)
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(request.param)}")
    return library


def built(library, source, place, *options):
    """Compiles a program for the library, or for another one of its ABI."""
    compiler = mpi_libraries.implementation(library.family).prefix / "bin/mpicc"
    target = place / Path(source).stem
    subprocess.run([compiler, *options, PROGRAMS / source, "-o", target], check=True, timeout=60)
    return target


def job(library, environment, *command, preload=""):
    variables = {**environment, **library.environment()}
    path = [str(library.prefix / "lib"), variables.get("LD_LIBRARY_PATH", "")]
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, path))
    front = ["env", f"LD_PRELOAD={preload}"] if preload else []
    words = [*library.launcher(2), *front, installation.weft_command(), "run", *command]
    return subprocess.run(
        [str(word) for word in words], env=variables, capture_output=True, text=True, timeout=100
    )


def test_level_is_the_one_asked_for(library, environment, tmp_path):
    """Open MPI and Intel MPI are tested, too, whose short calls take up to twice as long at a
    higher level."""
    program = built(library, "levels.c", tmp_path)
    done = job(library, environment, "--", program, "funneled", "funneled")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("granted as asked, sum right") == 2


def test_a_thread_takes_over_while_a_rank_blocks_and_calls_no_mpi(library, environment, tmp_path):
    """At the level of MPI_Init only the application's thread may call the library."""
    program = built(library, "late_sender.c", tmp_path)
    tool = built(library, "main_thread_only.c", tmp_path, "-shared", "-fPIC")
    summary = tmp_path / "summary.json"
    options = ["--init-budget=0", f"--summary=json:{summary}"]
    done = job(library, environment, *options, "--", program, preload=tool)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right") == 1
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    for call, times in (("MPI_Iallreduce", 6), ("MPI_Ireduce", 6), ("MPI_Allreduce_init", 1)):
        assert calls[call]["handled"] == 2 * times


@pytest.mark.parametrize("weft", [["--engine", "thread"], ["--engine", "function"], ["--blocking"]])
def test_not_where_something_is_asked_for(run, weft):
    calls, said = run("funneled", "funneled", weft=weft)
    assert calls["handled"] == 2
    assert SENTENCE not in said


def test_not_over_two_nodes(run):
    calls, said = run("funneled", "funneled", nodes=TWO_NODES)
    assert calls["handled"] == 2
    assert SENTENCE not in said


def test_blocking_over_two_nodes_has_a_reason_of_its_own(run):
    words = ("funneled", "funneled", "blocking")
    goes_by_rule = ["--learn", "off"]
    calls, said = run(*words, weft=goes_by_rule, nodes=TWO_NODES, call="MPI_Allreduce")
    assert calls["passed_on"] == {BLOCKING: 2}
    (line,) = (line for line in said.splitlines() if " MPI_Allreduce " in line)
    assert line.split()[-3:] == ["–", "–", "–"], "a blocking call has no wait of its own"
    assert line.split()[-4] == "%", "it has its share of the run"
    calls, _ = run(*words, weft=["--blocking"], nodes=TWO_NODES, call="MPI_Allreduce")
    assert calls["handled"] == 2
    calls, _ = run(*words, nodes=TWO_NODES, call="MPI_Allreduce")
    assert calls["passed_on"] == {RULE: 2}, "two calls are not enough to try another way"


def test_not_where_the_program_wants_threads_anyway(run):
    calls, _ = run("multiple", "multiple")
    assert calls["handled"] == 2


@pytest.mark.parametrize("levels", [("multiple", "funneled"), ("funneled", "multiple")])
def test_ranks_of_different_levels_agree(run, levels):
    calls, _ = run(*levels)
    assert calls["passed_on"] == {REASON: 2}


def test_hints_say_why_they_have_no_effect(run):
    calls, said = run("funneled", "funneled", "hint")
    assert calls["handled"] == 2
    assert said.count("weft_engine has no effect on a communicator") == 2, "once in each job"
