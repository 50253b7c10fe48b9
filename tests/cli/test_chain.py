"""Weft before another PMPI tool, and under an MPI library that grants no threads."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WEFT_BUILD_DIR", ROOT / "build"))
MPI = Path(os.environ.get("WEFT_MPI_DIR", ROOT / ".mpi"))


@pytest.fixture(scope="module")
def limit_threads(tmp_path_factory):
    tool = tmp_path_factory.mktemp("tool") / "limit_threads.so"
    source = ROOT / "tests/cli/programs/limit_threads.c"
    subprocess.run([MPI / "mpich/bin/mpicc", "-shared", "-fPIC", source, "-o", tool], check=True)
    return tool


@pytest.mark.parametrize("engine", ["thread", "tcc"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_without_thread_support_function_stands_in(limit_threads, engine, ranks):
    """The groups include legal programs that block while a collective is outstanding: without a
    thread they end only if blocking calls go on helping."""
    preload = f"{BUILD}/lib/libweft-mpich.so {limit_threads}"
    command = [
        MPI / "mpich/bin/mpiexec",
        "-n",
        str(ranks),
        "-genv",
        "LD_PRELOAD",
        preload,
        "-genv",
        "WEFT_ENGINE",
        engine,
        BUILD / "bin/mpich/conformance",
        "--groups",
        "flight,lifetime",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout
    sentence = f"engine function is used in place of {engine}"
    assert done.stderr.count(sentence) == 1
