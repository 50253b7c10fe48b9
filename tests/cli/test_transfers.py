"""Tests that the application's own messages progress while it computes. Rank 0 makes no MPI call
until rank 1 has received from it and sent to it, which never happens without Weft's thread."""

import json
import os
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

PROGRAMS = installation.ROOT / "tests/cli/programs"
CALLS = 8  # number of calls that complete messages, in both directions
PATIENCE = 60  # seconds that rank 0 waits for a message that must arrive
A_MOMENT = 0.3  # seconds that it waits for a message that does not arrive


# Engine auto has a thread that may call MPI only if there are several nodes. With MPICH, host names
# make several nodes of this machine.
TWO_NODES = ["-launcher", "fork", "-hosts", "a:1,b:1"]
JOBS = [("mpich", "thread"), ("openmpi", "thread"), ("intelmpi", "thread"), ("mpich", "auto")]


@pytest.fixture(scope="module", params=JOBS, ids="-".join)
def job(request):
    return request.param


@pytest.fixture(scope="module")
def library(job):
    library = mpi_libraries.implementation(job[0])
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(library.name)}")
    return library


@pytest.fixture(scope="module")
def built(library, compile_once):
    """Compiles a program for the library, or for another one of its ABI."""
    compiler = mpi_libraries.implementation(library.family).prefix / "bin/mpicc"
    return lambda name: compile_once(name, [compiler, "-O1", PROGRAMS / f"{name}.c"])


@pytest.fixture
def run(job, library, environment, tmp_path):
    """Runs a job of two ranks under Weft. Returns its output, and the number of its transfers."""
    engine = job[1]
    nodes = TWO_NODES if engine == "auto" else []

    def run(*command, options=()):
        summary = tmp_path / "summary.json"
        variables = {**environment, **library.environment()}
        path = [str(library.prefix / "lib"), variables.get("LD_LIBRARY_PATH", "")]
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, path))
        weft = [installation.weft_command(), "run", f"--engine={engine}", *options]
        weft += [f"--summary=json:{summary}", "--"]
        done = subprocess.run(
            [str(word) for word in [*library.launcher(2), *nodes, *weft, *command]],
            env=variables,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip(), json.loads(summary.read_text())["transfers"]

    return run


@pytest.fixture(scope="module")
def program(built):
    return built("own_transfers")


@pytest.mark.parametrize("way", ["plain", "persistent"])
def test_messages_go_on_while_the_program_computes(run, program, tmp_path, way):
    """Messages are completed by every kind of completion call."""
    said, transfers = run(program, tmp_path / "shared", PATIENCE, way)
    assert said == "helped"
    assert transfers == 2 * CALLS


def test_alone_without(run, program, tmp_path):
    """Without Weft's transfers messages do not progress, which shows that the tests above are
    valid."""
    options = ("--transfers=off",)
    said, transfers = run(program, tmp_path / "shared", A_MOMENT, "plain", options=options)
    assert said == "alone"
    assert transfers == 0


@pytest.fixture(scope="module")
def accesses(built):
    return built("own_accesses")


@pytest.mark.parametrize("what", ["rget", "file", "partitioned"])
def test_accesses_and_partitioned_messages(library, run, accesses, tmp_path, what):
    """Without Weft no library progresses partitioned messages. One-sided accesses in shared memory,
    and accesses to files, progress by themselves."""
    said, transfers = run(accesses, tmp_path / "shared", PATIENCE, what, tmp_path / "written")
    assert said == "helped"
    # Open MPI's list of file requests has no lock.
    is_left_alone = what == "file" and library.family == "openmpi"
    assert transfers == (1 if what == "rget" else 0 if is_left_alone else 2)


@pytest.mark.parametrize("what", ["put", "get", "accumulate", "get_accumulate", "posted"])
def test_accesses_without_a_request(run, accesses, tmp_path, what):
    """These accesses include those of another rank to which the program has exposed its window."""
    said, transfers = run(accesses, tmp_path / "shared", PATIENCE, what)
    assert said == "helped"
    assert transfers == 1


def test_a_window_open_after_a_fence(library, run, accesses, tmp_path):
    """Weft does not progress this window of Open MPI, since it may stay open beside accesses to
    files."""
    is_left_alone = library.family == "openmpi"
    seconds = A_MOMENT if is_left_alone else PATIENCE
    said, transfers = run(accesses, tmp_path / "shared", seconds, "fenced")
    assert said == "helped" or is_left_alone
    assert transfers == 1


@pytest.mark.parametrize("what", ["get", "posted", "fenced"])
def test_accesses_alone_without(job, library, run, accesses, tmp_path, what):
    """These accesses need help with all libraries; after a fence with MPICH and Intel MPI. Between
    nodes MPICH progresses data that other ranks put."""
    options = ("--transfers=off",)
    said, transfers = run(accesses, tmp_path / "shared", A_MOMENT, what, options=options)
    goes_on = what == "fenced" and library.family == "openmpi"
    assert said == "alone" or goes_on or (what != "get" and job == ("mpich", "auto"))
    assert transfers == 0


def test_a_long_access_takes_fewer_looks_than_parts(run, built, tmp_path):
    """A part has 8 KiB, and MPICH moves more than one part inside a node each time it is polled."""
    said, transfers = run(built("own_looks"), tmp_path / "shared")
    assert int(said) < 2 * 1024 // 8
    assert transfers == 5


# The count is that of both ranks: messages, and accesses by MPI_Win_fence, locks of one rank and of
# all, and MPI_Win_post.
ENDS = 17 + 2 * (1 + 3 + 3 + 2)


@pytest.mark.parametrize("early", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_thread_comes_to_rest_however_a_transfer_ends(run, built, early):
    """Transfers end by being freed, cancelled, erroneous or inactive, and by each end of an access.
    Errors reach the program's handler once. Short transfers, and those with MPI_PROC_NULL, do not
    wake the thread. `early`: at the end a window is freed while it has accesses."""
    said, transfers = run(built("own_ends"), *(["early"] if early else []))
    # MPICH also prints which operations have not ended.
    assert "right" in said.splitlines()
    assert transfers == ENDS + (2 if early else 0)
