"""Tests that programs of kernels/ refuse unusable input by one sentence before they compute, and
that no result is lost without a message."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from kernel_answers import QUICK, check, refused

from weft.system import mpi_libraries

MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("pipecg", ("--grid", "4294967300x4x4"), "--grid takes three numbers from 1 to 4096"),
        ("pipecg", ("--grid", "4x4x4x"), "--grid takes three numbers from 1 to 4096"),
        ("cpals", ("--dimensions", "9x8x7x"), "--dimensions takes numbers from 1 to 2^30"),
        ("stencil", ("--engines", "thread,,auto"), "--engines takes native, assist, function"),
        ("stencil", ("--engines", "thread,atuo"), "separated by commas, not thread,atuo"),
        ("fft3d", ("--engines", ""), "--engines takes native, assist, function"),
        ("gemm_allgather", ("--ratio", "1e300"), "--ratio asks for more than 2^30 products"),
        ("pipecg", ("--matrix", "/tmp"), "cannot read /tmp"),
        ("cpals", ("--tensor", "/tmp"), "cannot read /tmp"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(kernel, name, words, sentence):
    assert sentence in refused(kernel(name, *words), name)


@pytest.mark.skipif(MEMORY > 64e9, reason="this machine has memory enough for it")
@pytest.mark.parametrize(
    ("name", "words", "choose"),
    [
        ("iallreduce_kernel", ("--elements", 1 << 30), "choose fewer --elements"),
        ("gemv_alltoall", ("--order", 1 << 17), "choose fewer --bytes, or a smaller --order"),
        ("gemv_alltoall", ("--bytes", 1 << 30, "--in-flight", 64), "choose fewer --bytes"),
        ("pipecg", ("--grid", "1024x512x512"), "choose a smaller --grid"),
        ("cpals", ("--dimensions", "20000000x3x3", "--rank", 256), "choose a smaller --rank"),
    ],
)
def test_more_than_the_memory_holds_is_refused(kernel, name, words, choose):
    """Otherwise the system would kill some process."""
    said = refused(kernel(name, *words), name)
    assert f" GB of memory, more than it has: {choose}" in said


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("1e200", "have no sum: scale the values down"),
        ("1e-300", "or the squares of all are 0"),
    ],
)
def test_values_without_a_square_are_refused(kernel, tmp_path, values, sentence):
    file = tmp_path / "x.tns"
    file.write_text("".join(f"{i} {i} {i} {values}\n" for i in range(1, 4)))
    assert sentence in refused(kernel("cpals", "--tensor", file), "cpals")


@pytest.mark.parametrize("banner", ["complex hermitian", "real skew-symmetric", "pattern general"])
def test_matrices_of_other_kinds_are_refused(kernel, tmp_path, banner):
    file = tmp_path / "x.mtx"
    file.write_text(f"%%MatrixMarket matrix coordinate {banner}\n2 2 2\n1 1 1\n2 2 1\n")
    assert "does not begin with" in refused(kernel("pipecg", "--matrix", file), "pipecg")


def test_a_divergence_is_told_without_numbers_that_are_none(kernel, tmp_path):
    file = tmp_path / "x.mtx"
    head = "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n"
    file.write_text(head + "1 1 2\n2 2 2\n3 3 1e200\n2 1 -1\n")
    done = kernel("pipecg", "--matrix", file, *QUICK, ranks=1)
    assert done.returncode == 1 and "nan" not in done.stdout
    assert "true residual inf" in done.stdout and ", diverged\n" in done.stdout


def test_a_breakdown_has_no_fit(kernel, tmp_path):
    file = tmp_path / "x.tns"
    file.write_text("1 1 1 2.5\n2 2 2 0\n")
    done = kernel("cpals", "--tensor", file, "--rank", 4, *QUICK)
    assert done.returncode == 1 and "fit" not in done.stdout
    assert "iterations: breakdown: the components" in done.stdout


@pytest.mark.parametrize("ranks", [1, 3, 5])
def test_the_kernel_of_three_arrays_says_whether_its_bits_are_equal(kernel, ranks):
    """The kernel runs without and with Weft. It compares each element with the result of one rank
    alone."""
    words = ("iallreduce_kernel", "--elements", 50, *QUICK)
    assert check(kernel(*words, ranks=ranks)).count(" bitwise equal") == 1
    said = check(kernel(*words, ranks=ranks, engines="auto,function,thread"))
    assert said.count(" bitwise equal") == 3 and "overlapped, function" in said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stencil", ("--grid", "4x4x4", "--json", "/dev/full")),
        ("cpals", ("--dimensions", "5x4x3", "--rank", 1, "--factors", "/dev/full")),
        ("atmosphere", ("--truncation", 5, "--every", 2, "--output", "/dev/full")),
    ],
)
def test_a_file_that_cannot_be_filled_is_said(kernel, name, words):
    done = kernel(name, *words, *QUICK, ranks=1)
    assert done.returncode != 0 and f"{name}: cannot write /dev/full" in done.stderr


def test_a_report_that_cannot_be_written_is_said(environment):
    library = mpi_libraries.implementation("mpich")
    program = library.program("stencil")
    if not program.exists():
        pytest.skip("needs stencil, built for mpich")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(program), "--grid", "4x4x4", "--repetitions", "1"],
            env={**environment, **library.environment()},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=100,
        )
    assert done.returncode == 1
    assert done.stderr == "stencil: cannot write what was found to the standard output\n"


@pytest.mark.parametrize("ranks", [1, 3, pytest.param(5, marks=pytest.mark.long)])
def test_as_few_points_as_ranks_are_enough(kernel, ranks):
    """This is the smallest problem that each kernel accepts. Some ranks of cpals have no entry."""
    least = max(ranks, 1)
    check(kernel("pipecg", "--grid", f"{least}x1x1", *QUICK, ranks=ranks, engines="thread"))
    check(kernel("fft3d", "--grid", f"{least}x{least}x1", *QUICK, ranks=ranks, engines="thread"))
    check(kernel("stencil", "--grid", f"1x1x{least}", *QUICK, ranks=ranks, engines="thread"))
    words = ("--dimensions", f"{least}x1x1", "--entries", 1, "--rank", 1, "--iterations", 1)
    check(kernel("cpals", *words, *QUICK, ranks=ranks, engines="thread"))
    words = ("--truncation", max(2, ranks - 1), "--steps", 1, *QUICK)
    check(kernel("atmosphere", *words, ranks=ranks, engines="thread"))
    check(kernel("gemv_alltoall", "--order", least, "--bytes", 1, *QUICK, ranks=ranks))
    check(kernel("gemm_allgather", "--bytes", 1, "--products", 1, *QUICK, ranks=ranks))
    check(kernel("iallreduce_kernel", "--elements", 1, *QUICK, ranks=ranks))
