"""Tests the programs of kernels/: the result of each variant is right, with and without Weft, and
unusable input is refused by one sentence before anything is computed.

cpals and atmosphere have most to check, and have their own test files."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from kernel_answers import QUICK, SMALL, check, refused

from weft.reproduce import precision

METHODS = ("classic", "chronopoulos-gear", "gropp", "pipelined")


def huge_pages() -> bool:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[never]" not in setting.read_text()


@pytest.mark.parametrize(
    ("method", "ranks"), [("classic", 1), ("chronopoulos-gear", 2), ("gropp", 3), ("pipelined", 5)]
)
def test_each_method_of_pipecg_is_right_under_weft(kernel, method, ranks):
    words = ("--method", method, "--coefficients", "anisotropic", "--contrast", 50)
    said = check(kernel("pipecg", *words, *SMALL, ranks=ranks, engines="auto,thread"))
    assert ", converged" in said and "overlapped, auto" in said and "halo only" in said


@pytest.mark.parametrize("method", METHODS)
def test_replacement_and_refinement_lead_to_the_true_residual(kernel, method):
    """The kernel runs without Weft. Single precision alone does not reach 1e-9, but does with
    refinement."""
    words = ("--method", method, "--tolerance", 1e-9, *SMALL)
    alone = kernel("pipecg", *words, "--precision", "single", ranks=1)
    assert alone.returncode == 1
    assert "true residual" in alone.stdout and ", converged" not in alone.stdout
    refined = ("--precision", "single", "--stabilise", "refinement")
    assert ", converged" in check(kernel("pipecg", *words, *refined, ranks=2))
    replaced = ("--precision", "mixed", "--stabilise", "replacement", "--coefficients")
    said = check(kernel("pipecg", *words, *replaced, "heterogeneous", "--contrast", 10, ranks=2))
    assert ", converged" in said and " 0 replacements" not in said


@pytest.mark.parametrize(
    ("number", "by", "tolerance"),
    [
        ("double", "refinement", 1e-9),
        ("double", "both", 1e-9),
        ("mixed", "refinement", 1e-9),
        ("mixed", "both", 1e-9),
        ("mixed-vectors", "none", 1e-5),
        ("mixed-vectors", "replacement", 1e-9),
        ("mixed-vectors", "refinement", 1e-9),
        ("mixed-vectors", "both", 1e-9),
        ("single", "replacement", 1e-9),
        ("single", "both", 1e-9),
    ],
)
def test_each_precision_finds_the_known_solution_however_stabilised(kernel, number, by, tolerance):
    """Single precision cannot represent the matrix's entries exactly. The correction in double
    precision is short and needs no replacement."""
    words = ("--coefficients", "heterogeneous", "--contrast", 10, "--tolerance", tolerance)
    said = check(kernel("pipecg", *words, "--precision", number, "--stabilise", by, *SMALL))
    assert f"{number}, {by}: " in said and ", converged" in said
    replaces = by in ("replacement", "both") and number != "double"
    assert (" 0 replacements" in said) != replaces
    assert (" 0 refinements" in said) == (by in ("none", "replacement"))
    assert float(said.split("error ")[1].split(",")[0]) < 100 * tolerance


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_study_is_a_table_of_all_precisions_and_stabilisations(kernel, ranks):
    """weft reproduce reads this table."""
    words = ("--coefficients", "heterogeneous", "--contrast", 10, "--iterations", 200, *SMALL)
    done = kernel("pipecg", "--what", "study", *words, ranks=ranks)
    assert done.returncode == 0, done.stderr
    found = precision.table([done.stdout])
    numbers = ("double", "mixed", "mixed-vectors", "single")
    stabilised = ("none", "replacement", "refinement", "both")
    assert list(found) == list(itertools.product(numbers, stabilised)), done.stdout
    assert found[precision.DOUBLE].time.median == 1
    short = {row for row, outcome in found.items() if not outcome.converged}
    assert short == {(number, "none") for number in numbers if number != "double"}, done.stdout


@pytest.mark.parametrize("method", METHODS)
def test_replacement_needs_the_iterations_of_double_and_reaches_its_residual(kernel, method):
    """Each precision is compared with double precision. The estimated drift requests few
    replacements, and early enough. Without replacement each precision ends at a larger residual, or
    breaks down."""
    words = ("--coefficients", "heterogeneous", "--contrast", 1e4, "--grid", "24x24x24", *QUICK)
    done = kernel("pipecg", "--what", "study", "--method", method, *words, ranks=1)
    found = precision.table([done.stdout])
    double = found[precision.DOUBLE]
    for number in ("mixed", "mixed-vectors", "single"):
        assert found[number, "none"].residual > 2 * double.residual
        replaced = found[number, "replacement"]
        assert replaced.converged, done.stdout
        assert abs(replaced.iterations - double.iterations) <= 0.02 * double.iterations
        assert replaced.residual < 1.1 * double.residual
        assert 1 <= replaced.replacements <= (4 if number == "mixed" else 30)
        assert found[number, "none"].replacements == found[number, "refinement"].replacements == 0


def test_rows_of_the_study_are_chosen_and_stand_beside_double_precision(kernel):
    done = kernel("pipecg", "--what", "study", "--rows", "single/both,mixed/none", *SMALL, ranks=1)
    rows = [precision.DOUBLE, ("single", "both"), ("mixed", "none")]
    assert list(precision.table([done.stdout])) == rows, done.stdout + done.stderr
    wrong = kernel("pipecg", "--what", "study", "--rows", "single/all", *SMALL, ranks=1)
    assert "double/none, double/replacement" in refused(wrong, "pipecg")


@pytest.mark.parametrize("method", METHODS)
def test_overlap_of_two_ranks_changes_no_bit(kernel, method):
    said = check(kernel("pipecg", "--method", method, *SMALL, "--threads", 2))
    lines = [line for line in said.splitlines() if " us " in line][1:]
    assert len(lines) == 3, said
    assert all(line.endswith(" bitwise equal") for line in lines), said
    assert "master thread" in said


BLOCKING = {
    "pipecg": ("--grid", "7x5x6"),
    "fft3d": ("--grid", "8x8x8"),
    "stencil": ("--grid", "8x8x8", "--steps", 4),
    "cpals": ("--dimensions", "9x8x7", "--entries", 100, "--rank", 2),
    "atmosphere": ("--truncation", 10, "--steps", 1),
}


@pytest.mark.parametrize("name", BLOCKING)
def test_the_blocking_form_alone(kernel, name):
    said = check(kernel(name, *BLOCKING[name], "--form", "blocking", *QUICK))
    assert [line.split()[0] for line in said.splitlines() if " us" in line] == ["blocking"]


def test_pipecg_under_open_mpi(kernel):
    check(kernel("pipecg", *SMALL, engines="auto,tcc", mpi="openmpi"))


def matrix(path: Path, body: str, banner: str = "real symmetric") -> Path:
    path.write_text(f"%%MatrixMarket matrix coordinate {banner}\n% a comment\n{body}\n")
    return path


def test_capitals_in_the_banner_of_a_matrix_do_not_matter(kernel, tmp_path):
    file = tmp_path / "capitals.mtx"
    file.write_text("%%matrixmarket MATRIX Coordinate Real Symmetric\n2 2 2\n1 1 2\n2 2 3\n")
    assert ", converged" in check(kernel("pipecg", "--matrix", file, *QUICK, ranks=1))


def test_a_refinement_that_reaches_its_target_has_gained_enough(kernel, tmp_path):
    """One step reduces the residual to 0.93 of its value, which is enough for a target of 0.99."""
    entries = [f"{i} {i} 2.03" for i in range(1, 5)] + [f"{i + 1} {i} -1" for i in range(1, 4)]
    file = matrix(tmp_path / "little.mtx", "4 4 7\n" + "\n".join(entries))
    words = ("--precision", "single", "--stabilise", "refinement", "--method", "classic")
    words += ("--tolerance", 0.99, "--inner-tolerance", 0.98, *QUICK)
    said = check(kernel("pipecg", "--matrix", file, *words, ranks=1))
    assert 0.9 < float(said.split("true residual ")[1].split(",")[0]) < 0.99
    assert " 1 refinements" in said and ", converged" in said


def test_a_matrix_is_read_from_a_file(kernel, tmp_path):
    n = 40
    entries = [f"{i} {i} 2.5" for i in range(1, n + 1)]
    entries += [f"{i + 1} {i} -1" for i in range(1, n)] + [f"{n} 1 -0.25"]
    file = matrix(tmp_path / "ring.mtx", f"{n} {n} {len(entries)}\n" + "\n".join(entries))
    said = check(kernel("pipecg", "--matrix", file, *QUICK, ranks=3))
    assert ", converged" in said and "ring.mtx" in said
    error = float(said.split("error ")[1].split(",")[0])
    assert error < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_a_matrix_that_is_not_positive_definite_is_a_breakdown(kernel, tmp_path, method):
    file = matrix(tmp_path / "x.mtx", "3 3 4\n1 1 1\n2 2 1\n3 3 1\n2 1 3")
    done = kernel("pipecg", "--matrix", file, "--method", method, ranks=1)
    assert done.returncode == 1
    assert "breakdown in iteration" in done.stdout and "nan" not in done.stdout


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("--iterations", 3), "not converged in 3 iterations"),
        (
            ("--iterations", 3, "--stabilise", "refinement", "--inner-tolerance", 0.5),
            "not converged in 3 iterations",
        ),
        (
            ("--tolerance", 1e-30, "--stabilise", "refinement"),
            "refinement gains nothing any more",
        ),
    ],
)
def test_why_there_is_no_solution_is_said(kernel, words, end):
    done = kernel("pipecg", *words, *SMALL)
    assert done.returncode == 1 and f", {end}\n" in done.stdout, done.stdout + done.stderr


def test_an_exact_solution_is_no_breakdown_where_residuals_are_replaced(kernel, tmp_path):
    file = matrix(tmp_path / "x.mtx", "3 3 3\n1 1 1\n2 2 1\n3 3 1")
    for method in ("classic", "pipelined"):
        words = ("--matrix", file, "--method", method, "--stabilise", "replacement", *QUICK)
        assert "breakdown" not in check(kernel("pipecg", *words, ranks=1))


@pytest.mark.parametrize(
    ("body", "banner", "sentence"),
    [
        ("2 3 0", "real symmetric", "is not square"),
        ("2 2 2\n1 1 1\n2 2 x", "real symmetric", "is damaged, at entry 2 of 2"),
        ("2 2 1\n3 1 1", "real symmetric", "has an entry outside the matrix"),
        ("2 2 2\n1 1 1\n2 2 -1", "real symmetric", "is not positive definite"),
        ("2 2 3\n1 1 1\n2 2 1\n1 2 1", "real general", "is not symmetric in row 1"),
        ("2 2 1\n1 1", "pattern symmetric", "does not begin with"),
        ("2 2 3\n1 1 1\n2 2 1\n1 1 1", "real symmetric", "has an entry twice in row 1"),
        ("2 2 4\n1 1 4\n2 2 4\n1 2 1\n2 1 1", "real symmetric", "has an entry twice in row 1"),
        ("2 2 2\n1 1 1\n2 2 1\n1 2 1", "real general", "more entries than the 2 that it names"),
        ("2 2 9999999999", "real symmetric", "has more entries than fit"),
        ("two two", "real symmetric", "has no line with its numbers"),
        ("1 1 1\n1 1 1", "real symmetric", "does not divide among 2 ranks"),
    ],
)
def test_a_damaged_matrix_is_refused(kernel, tmp_path, body, banner, sentence):
    file = matrix(tmp_path / "x.mtx", body, banner)
    assert sentence in refused(kernel("pipecg", "--matrix", file), "pipecg")


# ---- fft3d ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "ranks", "columns", "blocks"),
    [("6x7x8", 1, 1, 2), ("9x8x5", 4, 1, 3), ("8x9x11", 4, 2, 3), ("5x7x6", 5, 5, 9)],
)
def test_slabs_and_pencils_are_right_under_weft(kernel, grid, ranks, columns, blocks):
    words = ("--grid", grid, "--columns", columns, "--blocks", blocks, *QUICK)
    said = check(kernel("fft3d", *words, ranks=ranks, engines="auto,thread"))
    assert said.count(" bitwise equal") == 2 and "not bitwise" not in said
    assert ("slabs" if columns == 1 else "pencils") in said


def test_fft3d_under_open_mpi_and_without_weft(kernel):
    check(kernel("fft3d", "--grid", "8x8x8", *QUICK, engines="auto,thread", mpi="openmpi"))
    check(kernel("fft3d", "--grid", "8x8x8", *QUICK, ranks=3))


# ---- gemv_alltoall ----------------------------------------------------------------------------

GEMV = ("--order", 60, "--bytes", 2000, *QUICK)


@pytest.mark.parametrize(
    ("ranks", "in_flight", "order"), [(1, 1, 60), (2, 8, 1100), (3, 2, 60), (5, 1, 60)]
)
def test_each_case_of_gemv_alltoall_is_right(kernel, ranks, in_flight, order):
    """The program compares the product with its definition."""
    words = ("--in-flight", in_flight, *GEMV, "--order", order)
    said = check(kernel("gemv_alltoall", *words, ranks=ranks, engines="function,thread,tcc,auto"))
    for case in ("call per row, function", "inner calls, function", "waited for, function"):
        assert case in said
    assert said.count(" bitwise equal") == 9


def test_gemv_alltoall_under_open_mpi_and_with_threads(kernel):
    check(kernel("gemv_alltoall", *GEMV, engines="auto,thread", mpi="openmpi"))
    check(kernel("gemv_alltoall", *GEMV, "--threads", 3))


# ---- gemm_allgather ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (1, ("--bytes", 1, "--order", 1, "--products", 1)),
        (2, ("--bytes", 16, "--products", 3)),
        (3, ("--bytes", 5000, "--order", 13, "--products", 7)),
        (5, ("--bytes", 100000, "--order", 9, "--products", 2)),
    ],
)
def test_products_and_blocks_of_gemm_allgather_are_right(kernel, ranks, words):
    """The program compares the products with their definition."""
    engines = "native,function,thread,tcc,auto"
    said = check(kernel("gemm_allgather", *words, *QUICK, ranks=ranks, engines=engines))
    for variant in ("by hand, native", "by hand, function", "overlapped, tcc", "overlapped, auto"):
        assert variant in said


def test_gemm_allgather_chooses_its_products_and_says_how_many(kernel, tmp_path):
    """With hardly any computation the program chooses one product, with much computation more than
    one, however fast the machine is. It runs with Open MPI."""
    chosen = []
    for ratio in (1e-9, 200):
        file = tmp_path / f"{ratio}.json"
        words = ("--bytes", 1000, "--ratio", ratio, "--json", file, *QUICK)
        check(kernel("gemm_allgather", *words, engines="thread", mpi="openmpi"))
        chosen.append(json.loads(file.read_text())["amount"])
    assert chosen[0] == 1 < chosen[1]


# ---- stencil ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        (("--grid", "9x8x7"), 1),
        (("--grid", "1x9x8"), 4),
        (("--grid", "3x7x5", "--blocks", "3x1x1"), 3),
        (("--grid", "8x8x8", "--diffusion", "0.16", "--steps", "7"), 8),
    ],
)
def test_each_exchange_of_stencil_is_right_under_weft(kernel, words, ranks):
    said = check(kernel("stencil", *words, *QUICK, ranks=ranks, engines="auto,thread"))
    assert said.count(" bitwise equal") == 6 and "not bitwise" not in said
    assert "persistent, auto" in said and "messages" in said
    assert float(said.split("error ")[1].split()[0]) < 1e-14


def test_many_small_steps_of_stencil_are_right(kernel):
    words = ("--grid", "1x32x32", "--steps", 100000, "--diffusion", 5e-4)
    check(kernel("stencil", *words, *QUICK, ranks=1))


def test_stencil_under_open_mpi_and_without_weft(kernel):
    check(kernel("stencil", "--grid", "8x6x4", *QUICK, engines="auto,thread", mpi="openmpi"))
    check(kernel("stencil", "--grid", "8x6x4", *QUICK, ranks=3))


# ---- cpals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "lines"),
    [
        ("pipecg", ("--grid", "9x8x7"), 1),
        ("cpals", ("--dimensions", "9x8x7", "--rank", 3), 3),
    ],
)
def test_products_are_set_beside_the_memory_s_bandwidth(kernel, name, words, lines):
    done = kernel(name, "--what", "speed", *words, "--repetitions", 3, ranks=1)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"product .*: (\S+) GB/s, triad (\S+) GB/s, share (\S+) \[", done.stdout)
    assert len(said) == lines and "wrong" not in done.stdout
    assert all(float(figure) > 0 for one in said for figure in one[:2])
    assert "--what speed is for one rank" in refused(kernel(name, "--what", "speed"), name)


def test_the_sphere_s_transforms_are_set_beside_multiply_adds_alone(kernel):
    done = kernel("atmosphere", "--what", "speed", "--truncation", 42, *QUICK, ranks=1)
    assert done.returncode == 0, done.stderr
    said = re.findall(
        r"^transform .*: (\S+) GFlop/s, multiply-adds alone (\S+) GFlop/s, share (\S+) \[",
        done.stdout,
        re.M,
    )
    assert len(said) == 3 and all(float(rate) > 0 for one in said for rate in one[:2])
    assert all(float(share) < 1 for _, _, share in said)
    said = refused(kernel("atmosphere", "--what", "speed"), "atmosphere")
    assert "--what speed is for one rank" in said


def test_one_rank_s_transform_is_set_beside_fftw_s_serial_one(kernel):
    words = ("--grid", "9x8x7", "--repetitions", 3)
    said = check(kernel("fft3d", "--what", "speed", *words, ranks=1))
    assert re.search(r"transform: \S+ ms, FFTW's serial one \S+ ms, ratio \S+ \[", said)
    assert "--what speed is for one rank" in refused(kernel("fft3d", "--what", "speed"), "fft3d")


def test_the_ratio_up_to_which_overlap_pays_is_said(kernel):
    words = ("--what", "ratios", "--grid", "8x8x8", *QUICK)
    done = kernel("fft3d", *words, engines="thread")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ +(\d+) +(\S+) +\S+ +\S+ +\S+%$", done.stdout, re.M)
    assert [int(work) for work, _ in rows] == [1, 2, 4, 8, 16, 32, 64]
    assert re.search(r"^overlap (pays|does not pay) \(more than 2 %\)", done.stdout, re.M)
    said = refused(kernel("fft3d", *words, "--columns", 2), "fft3d")
    assert "--what ratios is for slabs" in said


def test_of_factors_in_the_cache_each_row_must_be_moved_once(kernel):
    words = ("--dimensions", "30x20x10", "--entries", 5000, "--rank", 8)
    done = kernel("cpals", "--what", "speed", *words, "--repetitions", 1, ranks=1)
    shares = re.findall(r"of these bytes (\d+) % must be moved: share (\S+)", done.stdout)
    assert len(shares) == 3 and all(0 < int(part) < 50 for part, _ in shares), done.stdout


@pytest.mark.skipif(not huge_pages(), reason="this machine gives no pages of 2 MiB")
def test_factors_that_no_cache_holds_are_read_at_the_memory_s_pace(kernel):
    """The kernel reads with about 0.5 of the triad's bandwidth. A kernel that waited for each row
    had 0.08."""
    words = ("--dimensions", "400000x300000x200000", "--entries", 500000)
    done = kernel("cpals", "--what", "speed", *words, "--repetitions", 3, ranks=1)
    shares = [float(share) for share in re.findall(r"share (\S+) \[", done.stdout)]
    assert len(shares) == 3 and min(shares) > 0.25, done.stdout


# ---- Options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("pipecg", ("--grid", "8x8"), "--grid takes three numbers from 1 to 4096"),
        ("pipecg", ("--method", "cg"), "--method takes one of classic, chronopoulos-gear"),
        ("pipecg", ("--contrast", "-1"), "--contrast takes a number greater than 0, not -1"),
        ("pipecg", ("--speed", "1"), "there is no option --speed; there are --grid"),
        ("pipecg", ("--matrix", "/nowhere.mtx"), "cannot read /nowhere.mtx"),
        ("fft3d", ("--grid", "4x1x4"), "has too few points for 2 x 1 ranks"),
        ("fft3d", ("--columns", "3"), "--columns 3 does not divide 2 ranks"),
        ("fft3d", ("--grid", "512x512x512"), "more than 2^26 points"),
        ("gemv_alltoall", ("--order", "1"), "has fewer rows than there are ranks"),
        ("gemm_allgather", ("--ratio", "0"), "--ratio takes a number greater than 0, not 0"),
        ("gemm_allgather", ("--bytes", "1000000000"), "are more than 2^30: choose fewer"),
        ("stencil", ("--grid", "1x1x1"), "has fewer points than there are ranks"),
        ("stencil", ("--blocks", "2x2x1"), "--blocks 2x2x1 is for another number than 2 ranks"),
        ("stencil", ("--grid", "1x8x8", "--blocks", "2x1x1"), "has too few points for blocks"),
        ("stencil", ("--diffusion", "0.2"), "values grow without bound: choose at most 0.166"),
        ("cpals", ("--tensor", "/nowhere.tns"), "cannot read /nowhere.tns"),
        ("cpals", ("--dimensions", "8x8"), "--dimensions takes 3 to 8 numbers"),
        ("cpals", ("--blocks", "2x2x1"), "--blocks is for another number than 2 ranks"),
        ("cpals", ("--blocks", "2x1"), "--blocks needs 3 numbers"),
        ("atmosphere", ("--case", "3"), "--case takes one of 2, 5, jet, galewsky"),
        ("atmosphere", ("--every", "2"), "--every needs --output FILE"),
        ("atmosphere", ("--output", "/x"), "--output needs --every STEPS"),
        ("atmosphere", ("--every", "2", "--output", "/nowhere/x"), "cannot write /nowhere/x: "),
        ("atmosphere", ("--every", "2", "--output", "/tmp"), "cannot write /tmp: choose a file"),
        ("iallreduce_kernel", ("--elements", "many"), "--elements takes a whole number"),
    ],
)
def test_bad_input_is_one_sentence(kernel, name, words, sentence):
    assert sentence in refused(kernel(name, *words), name)


def test_an_unwritable_file_is_said(kernel):
    done = kernel("gemv_alltoall", *GEMV, "--json", "/nowhere/x.json")
    # The file is refused before anything is measured.
    assert "cannot write /nowhere/x.json" in refused(done, "gemv_alltoall")
    for name, what in (
        ("pipecg", "study"),
        ("pipecg", "speed"),
        ("cpals", "speed"),
        ("fft3d", "speed"),
        ("atmosphere", "flow"),
    ):
        done = kernel(name, "--what", what, "--json", "/tmp/x.json", ranks=1)
        assert f"--what {what} writes no file; leave out --json" in refused(done, name)
