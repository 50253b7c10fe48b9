"""The application's own messages go on while it computes: rank 0 makes no MPI call until rank 1 has
received from it and sent to it, which without Weft's thread never happens."""

import json
import os
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

PROGRAMS = installation.ROOT / "tests/cli/programs"
CALLS = 8  # by which messages are completed, in both directions
PATIENCE = 60  # seconds that rank 0 waits for what must come
A_MOMENT = 0.3  # and for what nobody brings


# Engine auto has a thread that may call MPI over several nodes only, which names of hosts make of
# this machine under MPICH.
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
def built(library, tmp_path_factory):
    """Compiles a program for the library, or for another one of its ABI."""
    place = tmp_path_factory.mktemp("transfers")
    compiler = mpi_libraries.implementation(library.family).prefix / "bin/mpicc"

    def build(name):
        command = [compiler, "-O1", PROGRAMS / f"{name}.c", "-o", place / name]
        subprocess.run(command, check=True, timeout=60)
        return place / name

    return build


@pytest.fixture
def run(job, library, environment, tmp_path):
    """Runs a job of two ranks under Weft; returns what it said and what became of its transfers."""
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
    """By every completion call."""
    said, transfers = run(program, tmp_path / "shared", PATIENCE, way)
    assert said == "helped"
    assert transfers == 2 * CALLS


def test_alone_without(run, program, tmp_path):
    """So that the tests above show something."""
    options = ("--transfers=off",)
    said, transfers = run(program, tmp_path / "shared", A_MOMENT, "plain", options=options)
    assert said == "alone"
    assert transfers == 0


@pytest.fixture(scope="module")
def accesses(built):
    return built("own_accesses")


@pytest.mark.parametrize("what", ["rget", "file", "partitioned"])
def test_accesses_and_partitioned_messages(library, run, accesses, tmp_path, what):
    """Alone, no library goes on with partitioned messages; a one-sided access in memory that ranks
    share, and a file's, need nobody."""
    said, transfers = run(accesses, tmp_path / "shared", PATIENCE, what, tmp_path / "written")
    assert said == "helped"
    is_left_alone = what == "file" and library.family == "openmpi"  # whose list of them has no lock
    assert transfers == (1 if what == "rget" else 0 if is_left_alone else 2)


@pytest.mark.parametrize("what", ["put", "get", "accumulate", "get_accumulate", "posted"])
def test_accesses_without_a_request(run, accesses, tmp_path, what):
    """Also another rank's, for which the program has opened its window."""
    said, transfers = run(accesses, tmp_path / "shared", PATIENCE, what)
    assert said == "helped"
    assert transfers == 1


def test_a_window_open_after_a_fence(library, run, accesses, tmp_path):
    """Open MPI's is not looked after: it may stay open beside accesses to files."""
    is_left_alone = library.family == "openmpi"
    seconds = A_MOMENT if is_left_alone else PATIENCE
    said, transfers = run(accesses, tmp_path / "shared", seconds, "fenced")
    assert said == "helped" or is_left_alone
    assert transfers == 1


@pytest.mark.parametrize("what", ["get", "posted", "fenced"])
def test_accesses_alone_without(job, library, run, accesses, tmp_path, what):
    """Those that need somebody's help under all libraries; after a fence, MPICH's and Intel's.
    Between nodes MPICH brings forward what others put."""
    options = ("--transfers=off",)
    said, transfers = run(accesses, tmp_path / "shared", A_MOMENT, what, options=options)
    goes_on = what == "fenced" and library.family == "openmpi"
    assert said == "alone" or goes_on or (what != "get" and job == ("mpich", "auto"))
    assert transfers == 0


def test_a_long_access_takes_fewer_looks_than_parts(run, built, tmp_path):
    """Of 8 KiB each: as many as MPICH moves inside a node when it is asked once."""
    said, transfers = run(built("own_looks"), tmp_path / "shared")
    assert int(said) < 2 * 1024 // 8
    assert transfers == 5


# Of both ranks: messages, and accesses by MPI_Win_fence, locks of one and of all, MPI_Win_post.
ENDS = 17 + 2 * (1 + 3 + 3 + 2)


def test_the_thread_comes_to_rest_however_a_transfer_ends(run, built):
    """Freed, cancelled, in error, inactive, and by each end of an access; errors reach the
    program's handler once. Short ones and those with nobody do not wake it."""
    said, transfers = run(built("own_ends"))
    assert said == "right"
    assert transfers == ENDS


def test_a_window_that_is_freed_too_early_is_forgotten(run, built):
    """MPICH says, too, what has not ended."""
    said, transfers = run(built("own_ends"), "early")
    assert "right" in said.splitlines()
    assert transfers == ENDS + 2
