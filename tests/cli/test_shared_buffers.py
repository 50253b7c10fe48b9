"""Collectives on buffers that the ranks see of each other, on private ones, and on both mixed.

The program (tests/mpi/shared_buffers.cc) compares with the library's own collectives; that copies
were really done without is read from Weft's summary.
"""

import json
import os
import subprocess

import pytest

from weft import installation

COLLECTIVES = (
    "Allreduce",
    "Reduce",
    "Reduce_scatter_block",
    "Bcast",
    "Gather",
    "Scatter",
    "Allgather",
    "Alltoall",
)
LIMIT_S = 180


def run(mpi, ranks, tmp_path, *, memory="", transport="auto", engine="function"):
    library = installation.implementation(mpi)
    program = library.program("shared_buffers")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {installation.make_target(mpi)}")
    launcher = library.launcher(ranks)
    summary = tmp_path / "summary.json"
    weft = [installation.weft_command(), "run", "--engine", engine, "--transport", transport]
    weft += ["--blocking", f"--summary=json:{summary}"]
    weft += ["--shared-heap"] if memory == "heap" else []
    done = subprocess.run(
        [str(word) for word in [*launcher, *weft, "--", program]]
        + (["--memory", memory] if memory else []),
        env={**os.environ, **library.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout
    return {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}


def check_without_copy(calls):
    for name in COLLECTIVES:
        for call in (f"MPI_{name}", f"MPI_I{name.lower()}", f"MPI_{name}_init"):
            assert 0 < calls[call]["without_copy"] < calls[call]["handled"], calls[call]


@pytest.mark.parametrize("memory", ["", "heap", "window"], ids=["alloc_mem", "heap", "window"])
@pytest.mark.parametrize(("mpi", "ranks"), [("mpich", 2), ("mpich", 3), ("openmpi", 4)])
def test_equal_and_without_copy(mpi, ranks, memory, tmp_path):
    check_without_copy(run(mpi, ranks, tmp_path, memory=memory))


@pytest.mark.parametrize("memory", ["", "window"], ids=["alloc_mem", "window"])
@pytest.mark.parametrize("engine", ["thread", "auto"])
def test_other_engines(engine, memory, tmp_path):
    calls = run("openmpi", 2, tmp_path, engine=engine, memory=memory)
    assert calls["MPI_Allreduce"]["without_copy"] > 0
    assert calls["MPI_Iallreduce"]["without_copy"] > 0


@pytest.mark.parametrize("memory", ["", "window"], ids=["alloc_mem", "window"])
def test_not_where_memory_is_not_to_be_shared(memory, tmp_path):
    calls = run("mpich", 2, tmp_path, transport="mpi", memory=memory)
    assert all(entry["without_copy"] == 0 for entry in calls.values())


def test_not_where_addresses_are_limited(tmp_path):
    # Of one rank only: all do without.
    library = installation.implementation("mpich")
    program = library.program("shared_buffers")
    summary = tmp_path / "summary.json"
    weft = [installation.weft_command(), "run", "--engine", "function", "--blocking"]
    rank = [*weft, f"--summary=json:{summary}", "--", program]
    limited = ["bash", "-c", 'ulimit -v 60000000; exec "$@"', "-", *rank]
    command = [library.mpiexec, "-n", "1", *rank, ":", "-n", "1", *limited]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = json.loads(summary.read_text())["calls"]
    assert all(entry["without_copy"] == 0 for entry in calls)
