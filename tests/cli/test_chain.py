"""Tests Weft before and behind another PMPI tool, and with an MPI library that grants no thread
level."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from weft.system import mpi_libraries

pytestmark = pytest.mark.covering

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
    """The groups include legal programs that block while a collective is outstanding. Without a
    thread they end only if blocking calls progress the collective."""
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


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def both_names(request, tmp_path_factory):
    """Runs programs/both_names.c with the tool programs/count_calls.c. Returns the tool's counts
    and Weft's."""
    mpi = mpi_libraries.implementation(request.param)
    if not mpi.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi.name)}")
    place = tmp_path_factory.mktemp(mpi.name)
    sources = ROOT / "tests/cli/programs"
    compile_with = [mpi.prefix / "bin/mpicc", "-O1", f"-Wl,-rpath,{mpi.prefix}/lib"]
    tool, program = place / "count_calls.so", place / "both_names"
    subprocess.run(
        [*compile_with, "-shared", "-fPIC", sources / "count_calls.c", "-o", tool], check=True
    )
    subprocess.run([*compile_with, sources / "both_names.c", "-o", program], check=True)
    launcher = mpi.launcher(2)

    def run(order, engine):
        weft = BUILD / f"lib/libweft-{mpi.family}.so"
        preload = " ".join(str({"weft": weft, "tool": tool}[name]) for name in order)
        summary = place / "summary.json"
        settings = {"LD_PRELOAD": preload, "WEFT_ENGINE": engine, "WEFT_SUMMARY": f"json:{summary}"}
        done = subprocess.run(
            [*launcher, "env", *(f"{name}={value}" for name, value in settings.items()), program],
            env={**os.environ, **mpi.environment()},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        counted = re.search(r"tool: Iallreduce (\d+) Wait (\d+)", done.stdout)
        calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
        entry = calls["MPI_Iallreduce"]
        return (int(counted[1]), int(counted[2])), (entry["seen"], entry["handled"])

    return run


# On each of the two ranks the program makes three calls by MPI_ names and two by PMPI_ names.


def test_a_tool_before_weft_passes_its_calls_to_weft(both_names):
    assert both_names(["tool", "weft"], "thread") == ((3, 3), (10, 10))


def test_a_tool_after_weft_sees_what_goes_on_by_the_name_that_it_wraps(both_names):
    assert both_names(["weft", "tool"], "thread") == ((0, 3), (10, 10))
    assert both_names(["weft", "tool"], "native") == ((3, 3), (10, 0))
