"""Collectives on buffers in a device's memory, on all ranks, on some, and on one side only.

A stand-in for CUDA's driver (tests/device) has memory that the processor cannot touch: whoever
does ends by a signal. The program (tests/mpi/device_memory.cc) compares with the library's own
collectives on ordinary memory.
"""

import json
import os
import subprocess

import pytest

from weft import installation, mpi_libraries

STANDIN = installation.BUILD / "lib/libweft-device-standin.so"


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("engine", ["function", "thread", "tcc", "assist"])
@pytest.mark.parametrize(("mpi", "ranks"), [("mpich", 3), ("openmpi", 2)])
def test_equal(mpi, ranks, engine, transport, tmp_path):
    library = mpi_libraries.implementation(mpi)
    program = library.program("device_memory")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    summary = tmp_path / "summary.json"
    weft = [installation.weft_command(), "run", "--engine", engine, "--transport", transport]
    weft += ["--blocking", f"--summary=json:{summary}"]
    command = [*library.launcher(ranks), *weft, "--", program, STANDIN]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **library.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout
    calls = {call["call"]: call for call in json.loads(summary.read_text())["calls"]}
    for name in ("MPI_Iallreduce", "MPI_Ialltoallv", "MPI_Bcast_init", "MPI_Gather"):
        assert calls[name]["handled"] > 0, calls[name]
