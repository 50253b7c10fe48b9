"""Tests which calls Weft handles, and that it passes the others to the MPI library unchanged and
counts them with the reason. Also tests conformance of the library for the MPI-5 standard ABI."""

import json
import os
import subprocess

import pytest
from programs import CONFORMANCE

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

MPICH = mpi_libraries.implementation("mpich")
BIN = MPICH.mpiexec.parent
RANKS = 2


@pytest.fixture(scope="session")
def compiled(compile_once):
    def compile_program(compiler, sources, *options):
        found_at = f"-Wl,-rpath,{BIN.parent / 'lib'}"
        return compile_once("program", [BIN / compiler, *options, *sources, found_at, "-pthread"])

    return compile_program


def run(program, *weft_options, arguments=(), ranks=RANKS):
    front = [installation.weft_command(), "run", *weft_options, "--"]
    command = [MPICH.mpiexec, "-n", ranks, *front, program, *arguments]
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=200
    )


@pytest.fixture
def program(compiled):
    return compiled("mpicc", [installation.ROOT / "tests/cli/programs/passed_on.c"])


@pytest.mark.parametrize("engine", ["function", "thread", "tcc"])
def test_what_is_handled_and_why_the_rest_is_not(program, tmp_path, engine):
    summary = tmp_path / "summary.json"
    done = run(program, "--engine", engine, f"--summary=json:{summary}")
    assert done.returncode == 0, done.stderr
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    for name in ("MPI_Allreduce_init", "MPI_Iallreduce_c", "MPI_Iallreduce", "MPI_Iscan"):
        assert calls[name]["handled"] == RANKS
    reasons = calls["MPI_Iallreduce"]["passed_on"]
    assert reasons.pop("nothing to move") == RANKS
    assert list(reasons.values()) == [RANKS]  # the calls on MPI_COMM_SELF
    assert "one rank" in next(iter(reasons))
    assert calls["MPI_Iexscan"]["passed_on"] == {"engine native": RANKS}
    assert "unknown algorithm 'quick' for allreduce" in done.stderr
    assert calls["MPI_Allreduce"]["handled"] == 0
    (why,) = calls["MPI_Allreduce"]["passed_on"]
    assert why.startswith("blocking, ")


def test_one_kind_of_call_is_left_to_the_library_from_outside(program, tmp_path):
    summary = tmp_path / "summary.json"
    left = ["--engine", "thread", "--algorithm", "allreduce=native"]
    done = run(program, *left, f"--summary=json:{summary}")
    assert done.returncode == 0, done.stderr
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    names = ("MPI_Allreduce", "MPI_Iallreduce", "MPI_Iallreduce_c", "MPI_Allreduce_init")
    for name in names:
        assert calls[name]["passed_on"] == {"--algorithm allreduce=native": calls[name]["seen"]}
    assert calls["MPI_Iscan"]["handled"] == RANKS


def test_blocking_collectives_on_request(program, tmp_path):
    summary = tmp_path / "summary.json"
    done = run(program, "--engine", "function", "--blocking", f"--summary=json:{summary}")
    assert done.returncode == 0, done.stderr
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    assert calls["MPI_Allreduce"]["handled"] == RANKS


@pytest.mark.parametrize("engine", ["function", "thread"])
def test_processes_that_were_spawned_need_no_weft(compiled, engine):
    program = compiled("mpicc", [installation.ROOT / "tests/cli/programs/spawn.c"])
    done = run(program, "--engine", engine)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("4 processes") == RANKS


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_comm_idup_is_known_from_the_first_persistent_call_on(tmp_path, mpi):
    library = mpi_libraries.implementation(mpi)
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    program, summary = tmp_path / "idup", tmp_path / "summary.json"
    source = installation.ROOT / "tests/cli/programs/idup.c"
    environment = {**os.environ, **library.environment()}
    subprocess.run([library.prefix / "bin/mpicc", source, "-o", program], check=True)
    placed = ["--bind-to", "none", "--oversubscribe"] if mpi == "openmpi" else []
    launcher = [library.mpiexec, "-n", RANKS, *placed]
    front = [installation.weft_command(), "run", "--engine=thread", f"--summary=json:{summary}"]
    command = [str(word) for word in [*launcher, *front, "--", program]]
    subprocess.run(command, env=environment, check=True, timeout=60)
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    assert calls["MPI_Allreduce_init"]["handled"] == RANKS
    assert calls["MPI_Iallreduce"]["handled"] == RANKS
    assert sum(calls["MPI_Iallreduce"]["passed_on"].values()) == RANKS


@pytest.fixture
def abi_conformance(compiled):
    return compiled("mpicxx_abi", CONFORMANCE, "-std=c++20", "-O1")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("engine", ["function", "thread", "tcc", "assist"])
def test_standard_abi(abi_conformance, engine, ranks):
    words = ["--groups", "results,flight,lifetime", "--largest-count", "7", "--limit-s", "150"]
    words += ["--without", "scattered-derived"]  # MPICH writes beyond its buffers there
    done = run(abi_conformance, "--engine", engine, "--summary", arguments=words, ranks=ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout
    assert f"engine {engine}" in done.stderr
