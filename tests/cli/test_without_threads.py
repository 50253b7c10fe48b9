"""Engine auto inside one node under MPICH: it starts no thread, and the summary says so.

Two nodes are two proxies of Hydra's on this machine.
"""

import json
import os
import subprocess

import pytest

from weft import installation, mpi_libraries

MPICH = mpi_libraries.implementation("mpich")
SOURCE = installation.ROOT / "tests/cli/programs/levels.c"
TWO_NODES = ["-launcher", "fork", "-hosts", "a,b"]
REASON = "needs a thread, and inside one node engine auto starts none"
BLOCKING = "blocking, and not one that the node's memory serves; --blocking takes it all the same"
SENTENCE = "for overlap name an engine (--engine thread)"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, which any library of the family runs."""
    path = tmp_path_factory.mktemp("levels") / "levels"
    subprocess.run([MPICH.prefix / "bin/mpicc", SOURCE, "-o", path], check=True, timeout=60)
    return path


@pytest.fixture
def run(program, tmp_path, environment):
    """Runs it; returns what became of a call, and all that was said."""

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
    assert calls["passed_on"] == {REASON: 2}
    assert said.count(SENTENCE) == 1
    assert "engine auto" in said
    assert "more than asked" not in said


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
    calls, said = run(*words, nodes=TWO_NODES, call="MPI_Allreduce")
    assert calls["passed_on"] == {BLOCKING: 2}
    (line,) = (line for line in said.splitlines() if " MPI_Allreduce " in line)
    assert line.split()[4:] == ["–", "–", "–"], "what is blocking is not timed"
    calls, _ = run(*words, weft=["--blocking"], nodes=TWO_NODES, call="MPI_Allreduce")
    assert calls["handled"] == 2


def test_not_where_the_program_wants_threads_anyway(run):
    calls, _ = run("multiple", "multiple")
    assert calls["handled"] == 2


@pytest.mark.parametrize("levels", [("multiple", "funneled"), ("funneled", "multiple")])
def test_ranks_of_different_levels_agree(run, levels):
    calls, _ = run(*levels)
    assert calls["passed_on"] == {REASON: 2}


def test_hints_say_why_they_have_no_effect(run):
    calls, said = run("funneled", "funneled", "hint")
    assert calls["passed_on"] == {REASON: 2}
    assert "weft_engine has no effect on a communicator" in said


def test_other_libraries_of_the_family_keep_their_threads(run):
    intel = mpi_libraries.implementation("intelmpi")
    if not intel.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('intelmpi')}")
    calls, said = run("funneled", "funneled", mpi=intel)
    assert calls["handled"] == 2
    assert SENTENCE not in said
