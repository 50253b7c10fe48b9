"""Tests collectives on buffers in a device's memory, on all ranks, on some, and on one side only.

The stand-ins for CUDA's driver and for HIP's runtime (tests/device) have memory that the processor
cannot access: an access ends the process by a signal. The programs (tests/mpi/device_memory.cc and
device_staging.cc) compare with the library's own collectives on ordinary memory."""

import json
import os
import subprocess

import pytest
import standins

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

# Weft finds the drivers by these names.
CUDA = "libcuda.so.1"
HIP = "libamdhip64.so.6"


def summary_of(mpi, ranks, standin, tmp_path, *options, **variables) -> dict:
    """Returns the calls in the summary of a run, in which all cases must be equal."""
    summary = tmp_path / "summary.json"
    options = (*options, "--blocking", f"--summary=json:{summary}")
    done = run("device_memory", mpi, ranks, options, (standins.FOLDER / standin,), **variables)
    assert "cases equal" in done.stdout
    return {call["call"]: call for call in json.loads(summary.read_text())["calls"]}


def run(program, mpi, ranks, options, words, **variables) -> subprocess.CompletedProcess:
    """Runs a program under Weft, in which all cases must be equal."""
    library = mpi_libraries.implementation(mpi)
    path = library.program(program)
    if not path.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    weft = [installation.weft_command(), "run", *options, "--"]
    done = subprocess.run(
        [str(word) for word in [*library.launcher(ranks), *weft, path, *words]],
        env={
            **os.environ,
            **library.environment(),
            "OMPI_MCA_mpi_yield_when_idle": "1",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def assert_handled(calls: dict) -> None:
    for name in ("MPI_Iallreduce", "MPI_Ialltoallv", "MPI_Bcast_init", "MPI_Gather"):
        assert calls[name]["handled"] > 0, calls[name]


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("engine", ["function", "thread", "tcc", "assist"])
@pytest.mark.parametrize(("mpi", "ranks"), [("mpich", 3), ("openmpi", 2)])
def test_equal(mpi, ranks, engine, transport, tmp_path):
    options = ("--engine", engine, "--transport", transport)
    assert_handled(summary_of(mpi, ranks, CUDA, tmp_path, *options))


@pytest.mark.parametrize("version", ["5", "6"])
@pytest.mark.parametrize("engine", ["function", "thread"])
@pytest.mark.parametrize(("mpi", "ranks"), [("mpich", 3), ("openmpi", 2)])
def test_equal_with_hip(mpi, ranks, engine, version, tmp_path):
    """Errors that Weft's queries cause must not be visible to the application, which the program
    checks."""
    calls = summary_of(mpi, ranks, HIP, tmp_path, "--engine", engine, STANDIN_HIP_VERSION=version)
    assert_handled(calls)


def staging(case, mpi="mpich", engine="thread", ranks=3, **variables) -> str:
    """Runs a case of long collectives, and returns what Weft says. The stand-in refuses copies for
    which their caller waits, unless they are short: only copies of pinned memory are possible."""
    words = (standins.CUDA, case)
    variables = {"WEFT_STANDIN_MOST_AT_ONCE": "4096", **variables}
    options = ("--engine", engine, *(() if engine == "auto" else ("--blocking",)))
    done = run("device_staging", mpi, ranks, options, words, **variables)
    assert "cases equal" in done.stdout
    return done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["auto", "thread", "function", "tcc", "agent"])
@pytest.mark.parametrize(("mpi", "ranks"), [("mpich", 3), ("openmpi", 2)])
def test_long_data_move_through_pinned_memory(mpi, ranks, engine):
    """Under engine auto the MPI library, which does not accept a device's memory, carries out some
    of the calls on copies. Memory is pinned once, and none is left after MPI_Finalize."""
    assert "weft: " not in staging("equal", mpi, engine, ranks)


@pytest.mark.parametrize("engine", ["thread", "function"])
def test_long_data_move_by_messages(engine):
    staging("equal", engine=engine, WEFT_TRANSPORT="mpi")


KINDS = ["allreduce", "reduce", "bcast", "allgather", "alltoall", "reduce_scatter_block"]
LEFT = {f"WEFT_ALGORITHM_{kind.upper()}": "native" for kind in KINDS}


@pytest.mark.parametrize("engine", ["auto", "thread", "function"])
@pytest.mark.parametrize(("mpi", "ranks"), [("mpich", 3), ("openmpi", 2)])
def test_calls_that_are_left_to_the_library_work_on_copies(mpi, ranks, engine):
    said = staging("left", mpi, engine, ranks, **LEFT)
    assert said.count("weft: the MPI library accepts no GPU memory in MPI_Bcast_init") == ranks


def test_calls_on_one_rank_work_on_copies():
    staging("alone")


@pytest.fixture
def tool(tmp_path):
    """Returns a PMPI tool with which the MPI library looks like one that accepts device memory."""
    library = mpi_libraries.implementation("mpich")
    made = tmp_path / "takes_device_memory.so"
    source = installation.ROOT / "tests/cli/programs/takes_device_memory.c"
    compiler = library.prefix / "bin/mpicc"
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", made, "-ldl"], check=True)
    return made


@pytest.mark.parametrize("engine", ["auto", "thread"])
def test_a_library_that_accepts_device_memory_gets_it(tool, engine):
    """Of four blocking calls on rank 0, and of four non-blocking ones, half are in place."""
    out = staging("accepted", engine=engine, LD_PRELOAD=str(tool), **LEFT)
    assert "tool: 12 addresses of the device" in out


@pytest.mark.parametrize("engine", ["auto", "function", "thread"])
def test_unpinned(engine):
    """Where no more memory can be pinned, data go through ordinary memory, and Weft says so."""
    limits = {"WEFT_STANDIN_MOST_PINNED": "1000000", "WEFT_STANDIN_MOST_AT_ONCE": "1000000000"}
    said = staging("managed", engine=engine, **limits)
    assert said.count("weft: the GPU's driver pins no more host memory") == 3


@pytest.mark.parametrize("engine", ["auto", "thread"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_managed_memory_that_the_processor_may_not_access(mpi, engine):
    staging("managed", mpi, engine)


@pytest.mark.parametrize("engine", ["auto", "thread"])
def test_buffers_of_several_devices(engine):
    staging("devices", engine=engine, WEFT_STANDIN_DEVICES="3")


@pytest.mark.parametrize("engine", ["thread", "function"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_refused_copy_is_an_error_of_one_rank(mpi, engine):
    said = staging("refused", mpi, engine)
    assert said.count("weft: CUDA refuses to copy the data of a collective in GPU memory") == 1
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said


@pytest.mark.parametrize("engine", ["thread", "function"])
def test_a_reset_device_is_an_error_of_one_rank(engine):
    said = staging("reset", engine=engine)
    assert said.count("(CUDA_ERROR_CONTEXT_IS_DESTROYED): the call returns an error") == 1


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_start_does_not_wait_for_copies(mpi):
    staging("held", mpi)
