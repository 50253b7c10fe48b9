"""Tests collectives on buffers in a device's memory, on all ranks, on some, and on one side only.

The stand-ins for CUDA's driver and for HIP's runtime (tests/device) have memory that the processor
cannot access: an access ends the process by a signal. The program (tests/mpi/device_memory.cc)
compares with the library's own collectives on ordinary memory."""

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
    library = mpi_libraries.implementation(mpi)
    program = library.program("device_memory")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    summary = tmp_path / "summary.json"
    weft = [installation.weft_command(), "run", *options, "--blocking", f"--summary=json:{summary}"]
    driver = standins.FOLDER / standin
    command = [*library.launcher(ranks), *weft, "--", program, driver]
    done = subprocess.run(
        [str(word) for word in command],
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
    assert "cases equal" in done.stdout
    return {call["call"]: call for call in json.loads(summary.read_text())["calls"]}


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
