"""Compares kernels with other libraries that do the same: PETSc's conjugate gradients, FFTW over
MPI and mpi4py-fft. Of the atmosphere, the transforms are compared with SHTns's, and the output by
HDF5 with that by MPI itself."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.system import installation

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

TOOL = installation.ROOT / "tools" / "compare-kernels"
LIMIT_S = 1200
METHODS = {
    "cg": "classic",
    "cg-single-reduction": "chronopoulos-gear",
    "groppcg": "gropp",
    "pipecg": "pipelined",
}


@pytest.fixture(scope="module")
def compared(tmp_path_factory, testrun_uid) -> dict:
    if not (installation.ROOT / ".deps" / "references" / "unpacked").exists():
        pytest.skip(
            "Debian's PETSc and FFTW-MPI are not in .deps: tools/setup-references fetches them"
        )
    # The comparison runs only once, even if several processes run the tests of this file.
    file = tmp_path_factory.getbasetemp().parent / f"compared-{testrun_uid}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            compare(file)
    return json.loads(file.read_text())


def compare(file: Path) -> None:
    matrix = ring(file.with_name("ring.mtx"))
    words = ["--grid", "9x8x7", "--matrix", matrix, "--transform", "9x10x8", "--truncation", "11"]
    words += ["--ranks", "2", "--repetitions", "3"]
    done = subprocess.run(
        [sys.executable, str(TOOL), *words, "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def ring(file: Path) -> str:
    n = 60
    lines = [f"{i} {i} {2.2 + i / n}" for i in range(1, n + 1)] + [f"{n} 1 -0.25"]
    lines += [f"{i + 1} {i} -1" for i in range(1, n)]
    head = "%%MatrixMarket matrix coordinate real symmetric\n"
    file.write_text(f"{head}{n} {n} {len(lines)}\n" + "\n".join(lines) + "\n")
    return str(file)


@pytest.mark.long
def test_our_methods_need_as_many_iterations_as_petsc_s_and_end_as_near(compared):
    rows = compared["solvers"]
    problems = {row["problem"] for row in rows}
    assert {"poisson", "anisotropic", "heterogeneous", "ring.mtx"} < problems
    assert "tetrahedra in blocks" in problems and len(rows) == 4 * len(problems)
    for row in rows:
        (theirs,) = (row[name] for name in METHODS if name in row)
        (ours,) = (row[name] for name in METHODS.values() if name in row)
        assert theirs["end"] == ours["end"] == "converged"
        assert ours["iterations"] == pytest.approx(theirs["iterations"], abs=1)
        for one in (theirs, ours):
            assert 0 < one["residual"] <= 1.1e-8
        if ours["iterations"] == theirs["iterations"]:
            assert ours["residual"] == pytest.approx(theirs["residual"], rel=0.1)
            assert ours["error"] == pytest.approx(theirs["error"], rel=0.2)


@pytest.mark.long
def test_our_transform_is_that_of_fftw_over_mpi(compared):
    assert [row["way"] for row in compared["transforms"]] == ["forward", "backward"]
    for row in compared["transforms"]:
        assert row["ranks"] == 2 and len(row["errors"]) == 2
        assert max(row["errors"]) < 1e-14


@pytest.mark.long
def test_our_transform_is_that_of_mpi4py_fft(compared):
    if not compared["mpi4py-fft"]:
        pytest.skip("Debian's mpi4py-fft is not in .deps: tools/setup-references fetches it")
    kinds = [(row["way"], row["columns"]) for row in compared["mpi4py-fft"]]
    assert kinds == [("forward", 1), ("forward", 2), ("backward", 1), ("backward", 2)]
    for row in compared["mpi4py-fft"]:
        assert row["ranks"] == 2 and max(row["errors"]) < 1e-14
        assert len(row["theirs_us"]) == len(row["blocking"]) > 0


@pytest.mark.long
def test_the_sphere_s_transforms_are_those_of_shtns(compared):
    if not compared["harmonics"]:
        pytest.skip("SHTns is not in .venv: tools/setup-references fetches and builds it")
    (row,) = compared["harmonics"]
    ours, theirs = row["ours"], row["theirs"]
    assert (ours["latitudes"], ours["longitudes"]) == (32, 64)
    assert max(theirs["grid_differs"], theirs["waves_differs"]) < 1e-13
    assert max(theirs["ours_from_input"], theirs["theirs_from_input"]) < 1e-14
    assert (
        min(
            figure
            for one in row.values()
            if isinstance(one, dict)
            for name, figure in one.items()
            if name.endswith("_ms")
        )
        > 0
    )


def test_without_shtns_one_line_says_what_brings_it(tmp_path):
    """Neither SHTns nor a Python for it is installed in this copy of the tool."""
    tool = tmp_path / "tools" / "compare-kernels"
    shutil.copytree(TOOL.parent, tool.parent, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, str(tool), "--only", "harmonics"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\nSHTns is not here: tools/setup-references fetches and builds it\n"


@pytest.mark.long
def test_a_file_of_hdf5_holds_the_bits_of_that_by_mpi(compared):
    """The file is read by a separate program. Each variant's file was compared when it was
    written."""
    if not compared["output"]:
        pytest.skip("Debian's parallel HDF5 is not in .deps: tools/setup-references fetches it")
    by_mpi, by_hdf5 = compared["output"]
    assert (by_mpi["by"], by_hdf5["by"]) == ("MPI", "HDF5") and by_hdf5["same"]
    records, fields, latitudes, longitudes = 2, 3, 32, 64
    assert by_hdf5["bytes"] == by_mpi["bytes"] == records * fields * latitudes * longitudes * 8
    assert {"blocking", "rank 0 writes", "rank 0 behind steps"} < set(by_hdf5["samples_us"])
