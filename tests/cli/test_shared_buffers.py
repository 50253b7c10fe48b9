"""Tests collectives on buffers that ranks share, on private ones, and on both mixed.

The program (tests/mpi/shared_buffers.cc) compares with the library's own collectives. Weft's
summary tells that data were really used without a copy."""

import json
import os
import subprocess

import pytest
import standins
from shared_buffers import LIMIT_S, run_shared_buffers

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

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
# This library replaces the kernel module for memory that other ranks attach (tests/xpmem).
STANDIN = standins.XPMEM


def run(mpi, ranks, tmp_path, *, memory="", transport="auto", engine="function"):
    options = ["--engine", engine, "--transport", transport, "--blocking"]
    options += ["--shared-heap"] if memory == "heap" else []
    options += ["--xpmem", STANDIN] if memory == "attached" else []
    options += ["--one-copy", "off"]  # with one copy, buffers need not be shared
    summary = run_shared_buffers(mpi, ranks, tmp_path, *options, memory=memory)
    return {entry["call"]: entry for entry in summary["calls"]}


def check_without_copy(calls):
    for name in COLLECTIVES:
        for call in (f"MPI_{name}", f"MPI_I{name.lower()}", f"MPI_{name}_init"):
            assert 0 < calls[call]["without_copy"] < calls[call]["handled"], calls[call]


@pytest.mark.parametrize(
    "memory", ["", "heap", "window", "attached"], ids=["alloc_mem", "heap", "window", "attached"]
)
@pytest.mark.parametrize(
    ("mpi", "ranks"),
    [
        ("mpich", 2),
        ("mpich", 3),
        ("openmpi", 3),
        pytest.param("openmpi", 4, marks=pytest.mark.long),
    ],
)
def test_equal_and_without_copy(mpi, ranks, memory, tmp_path):
    check_without_copy(run(mpi, ranks, tmp_path, memory=memory))


@pytest.mark.parametrize(
    "memory", ["", "window", "attached"], ids=["alloc_mem", "window", "attached"]
)
@pytest.mark.parametrize("engine", ["auto", "thread"])
def test_other_engines(engine, memory, tmp_path):
    calls = run("openmpi", 2, tmp_path, engine=engine, memory=memory)
    assert calls["MPI_Allreduce"]["without_copy"] > 0
    assert calls["MPI_Iallreduce"]["without_copy"] > 0


@pytest.mark.parametrize(
    "memory", ["", "window", "attached"], ids=["alloc_mem", "window", "attached"]
)
def test_not_where_memory_is_not_to_be_shared(memory, tmp_path):
    calls = run("mpich", 2, tmp_path, transport="mpi", memory=memory)
    assert all(entry["without_copy"] == 0 for entry in calls.values())


def run_with_an_odd_rank(tmp_path, odd, *, options=(), memory=""):
    """Runs two ranks, the second one started by the words of `odd`. Returns by call how often no
    copy was made."""
    library = mpi_libraries.implementation("mpich")
    program = library.program("shared_buffers")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    summary = tmp_path / "summary.json"
    weft = [installation.weft_command(), "run", "--engine", "function", "--blocking"]
    weft += ["--one-copy", "off", *options]
    rank = [*weft, f"--summary=json:{summary}", "--", program]
    rank += ["--memory", memory] if memory else []
    command = [library.mpiexec, "-n", "1", *rank, ":", "-n", "1", *odd, *rank]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout
    calls = json.loads(summary.read_text())["calls"]
    return {entry["call"]: entry["without_copy"] for entry in calls}


def test_not_where_addresses_are_limited(tmp_path):
    # If the addresses of one rank are limited, no rank attaches memory.
    limited = ["bash", "-c", 'ulimit -v 60000000; exec "$@"', "-"]
    assert not any(run_with_an_odd_rank(tmp_path, limited).values())


def test_where_one_rank_cannot_attach_all(tmp_path):
    # Only one attachment succeeds. Collectives with more buffers use none, while bcast needs the
    # root's buffer only.
    one = ["env", "XPMEM_STANDIN_ATTACHMENTS=1"]
    calls = run_with_an_odd_rank(tmp_path, one, options=["--xpmem", STANDIN], memory="attached")
    assert not any(calls[f"MPI_{name}"] for name in ("Allreduce", "Iallreduce", "Allreduce_init"))
    assert all(calls[f"MPI_{name}"] for name in ("Bcast", "Ibcast", "Bcast_init"))


def test_where_one_rank_can_attach_nothing(tmp_path):
    none = ["env", "XPMEM_STANDIN_ATTACHMENTS=0"]
    calls = run_with_an_odd_rank(tmp_path, none, options=["--xpmem", STANDIN], memory="attached")
    assert not any(calls.values())


def test_a_library_that_is_not_there_is_named():
    library = mpi_libraries.implementation("mpich")
    probe = library.program("weft-probe")
    if not probe.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    weft = [installation.weft_command(), "run", "--xpmem", "/nowhere/libxpmem.so.0", "--", probe]
    command = [str(word) for word in [*library.launcher(2), *weft]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("XPMEM: /nowhere/libxpmem.so.0: cannot open") == 1


@pytest.mark.parametrize("refused", ["clone", "nothing"])
def test_a_persistent_call_needs_no_help_where_there_is_no_thread(refused, tmp_path):
    """Without a copy the others would wait for a second step of each rank, for which its caller may
    be late."""
    mpi = mpi_libraries.implementation("mpich")
    compiler = mpi.mpiexec.parent / "mpicc"
    program, tool = tmp_path / "late_persistent", tmp_path / "refuse.so"
    summary = tmp_path / "summary.json"
    tests = installation.ROOT / "tests"
    for words in (
        [tests / "cli/programs/late_persistent.c", "-o", program],
        ["-shared", "-fPIC", tests / "faults/programs/refuse.c", "-o", tool],
    ):
        subprocess.run([str(word) for word in [compiler, *words]], check=True)
    command = [mpi.mpiexec, "-n", 4, "env", f"FAULTS_REFUSE={refused}", f"LD_PRELOAD={tool}"]
    command += [installation.weft_command(), "run", "--init-budget=0", f"--summary=json:{summary}"]
    command += ["--", program]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **mpi.environment()},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right") == 1
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    assert calls["MPI_Allgather_init"]["handled"] == 3 * 4
