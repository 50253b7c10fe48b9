"""Tests that the fit of kernels/cpals is that of a dense computation, however rows are
exchanged."""

from __future__ import annotations

import itertools
import json
import math
import re

import pytest
from kernel_answers import QUICK, check, refused

TENSOR = ("--dimensions", "12x9x7", "--entries", 150, "--rank", 3, "--iterations", 3, *QUICK)


def fit_in(said: str) -> float:
    return float(said.split(": fit ")[1].split(",")[0])


def test_each_exchange_of_cpals_is_right_under_weft(kernel):
    said = check(kernel("cpals", *TENSOR, engines="auto,thread"))
    assert said.count(" bitwise equal") == 7 and "not bitwise" not in said
    assert "rows, auto" in said and "neighbours, thread" in said and "messages" in said


def test_the_distribution_does_not_change_the_fit(kernel):
    """The kernel runs without Weft, and so without its exchange of rows."""
    fits = []
    for ranks, blocks in ((1, "1x1x1"), (3, "3x1x1"), (4, "1x2x2")):
        said = check(kernel("cpals", *TENSOR, "--blocks", blocks, ranks=ranks))
        assert f"blocks {blocks}" in said and "rows" not in said
        fits.append(fit_in(said))
    assert 0.1 < fits[0] < 1
    assert fits == pytest.approx([fits[0]] * 3, abs=1e-10)


def test_cpals_under_open_mpi_and_with_more_modes(kernel):
    check(kernel("cpals", *TENSOR, engines="auto,tcc", mpi="openmpi"))
    five = ("--dimensions", "6x5x4x3x7", "--entries", 90, "--rank", 2, *QUICK)
    check(kernel("cpals", *five, "--blocks", "1x1x2x1x1", engines="thread"))


@pytest.mark.parametrize("components", [5, 8, 16, 32])
@pytest.mark.parametrize("dimensions", ["40x50x45", "9x11x8x10x12"])
def test_any_number_of_components_and_modes(kernel, components, dimensions):
    """Products of 8, 16 and 32 components are compiled separately. The remaining ones are computed
    one entry at a time."""
    words = ("--dimensions", dimensions, "--entries", 900, "--rank", components, *QUICK)
    said = check(kernel("cpals", *words, "--iterations", 2, engines="thread"))
    assert said.count(" bitwise equal") == 4 and "not bitwise" not in said


SKEWED = ("--tensor", "skewed", "--dimensions", "121x92x288", "--entries", 20000, *QUICK)


def test_a_skewed_tensor_has_the_fit_of_one_rank_on_any_number(kernel):
    """However rows are exchanged, and whichever ranks have drawn the entries."""
    words = (*SKEWED, "--rank", 3, "--iterations", 3)
    fit = fit_in(check(kernel("cpals", *words, ranks=1)))
    assert 0 < fit < 1
    for ranks, blocks in ((2, "1x1x2"), (3, "3x1x1"), (4, "1x2x2")):
        said = check(kernel("cpals", *words, "--blocks", blocks, ranks=ranks, engines="auto"))
        assert fit_in(said) == pytest.approx(fit, abs=1e-10)
        assert "rows, auto" in said and "skewed, 20000 entries" in said


def test_a_skewed_tensor_varies_nearly_as_the_real_one_does(kernel):
    """A standard deviation of 3.33 means, of fibres in a slice, and of 0.89, of entries in a fibre.
    Fibres that are drawn twice are one, so that the fullest slices have fewer."""
    done = kernel("cpals", "--tensor", "skewed", "--what", "pattern", ranks=1)
    entries, fibres = re.match(r"(\d+) entries in (\d+) fibres", done.stdout).groups()
    # A thousandth of the real tensor's, and a hundredth.
    assert 0.9 * 76_880 < int(entries) < 1.05 * 76_880
    assert 0.8 * 3374 < int(fibres) < 1.05 * 3374
    in_slices, in_fibres = map(float, re.findall(r": (\d\.\d\d)", done.stdout))
    assert 2.3 < in_slices < 3.4 and 0.8 < in_fibres < 1


def test_ranks_exchange_rows_with_those_that_need_them_alone(kernel):
    """Along the mode that two blocks divide, each rank has a layer of its own: nothing travels."""
    done = kernel("cpals", *SKEWED, "--blocks", "2x1x1", "--what", "pattern")
    found = re.findall(r"mode (\d), rank \d: (\d+) entries; (\d+) rows of (\d) other", done.stdout)
    assert len(found) == 3 * 2
    for mode, entries, rows, others in found:
        assert int(entries) > 0
        assert (int(rows), int(others)) == (0, 0) if mode == "1" else int(rows) > 0
    # The ranks need different numbers of rows.
    assert len({rows for mode, _, rows, _ in found if mode != "1"}) == 4


def random_at(stream: int, number: int) -> float:
    """Returns the same random number as kernels/tensor.h."""
    mask = (1 << 64) - 1
    z = ((stream + 1) * 0x9E3779B97F4A7C15 + number * 0xD1342543DE82EF95) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves a linear system by Gauss-Jordan elimination with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for k in range(len(rows)):
            if k != i:
                share = rows[k][i] / rows[i][i]
                rows[k] = [a - share * b for a, b in zip(rows[k], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def dense_fit(tensor: dict[tuple[int, ...], float], extents: tuple[int, ...], iterations: int):
    """Returns the fit of CP-ALS with two components on the whole tensor, computed from its
    definition."""
    rank = 2
    factors = [
        [[random_at(1000 + mode, row * rank + r) for r in range(rank)] for row in range(extent)]
        for mode, extent in enumerate(extents)
    ]
    places = list(itertools.product(*map(range, extents)))

    def term(place: tuple[int, ...], r: int, without: int = -1) -> float:
        others = [m for m in range(len(extents)) if m != without]
        return math.prod(factors[m][place[m]][r] for m in others)

    for _ in range(iterations):
        for mode, extent in enumerate(extents):
            normal = [[0.0] * rank for _ in range(rank)]
            for place in places:
                for r, s in itertools.product(range(rank), repeat=2):
                    if place[mode] == 0:
                        normal[r][s] += term(place, r, mode) * term(place, s, mode)
            for row in range(extent):
                right = [
                    sum(tensor.get(p, 0.0) * term(p, r, mode) for p in places if p[mode] == row)
                    for r in range(rank)
                ]
                factors[mode][row] = solved(normal, right)
    rest = sum(
        (tensor.get(place, 0.0) - sum(term(place, r) for r in range(rank))) ** 2 for place in places
    )
    return 1 - math.sqrt(rest / sum(value**2 for value in tensor.values()))


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_tensor_is_read_and_its_fit_is_that_of_the_dense_computation(kernel, tmp_path, ranks):
    extents = (4, 3, 5)
    places = [p for p in itertools.product(*map(range, extents)) if sum(p) % 3]
    tensor = {place: 1 + random_at(7, number) for number, place in enumerate(places)}
    lines = [" ".join(str(i + 1) for i in place) + f" {tensor[place]!r}" for place in places]
    # One position occurs twice; its values are added.
    lines[-1:] = [lines[-1].rsplit(" ", 1)[0] + f" {tensor[places[-1]] / 2!r}"] * 2
    file = tmp_path / "small.tns"
    file.write_text("# a comment\n" + "\n".join(lines) + "\n\n")
    words = ("--tensor", file, "--rank", 2, "--iterations", 3, *QUICK)
    said = check(kernel("cpals", *words, ranks=ranks))
    assert fit_in(said) == pytest.approx(dense_fit(tensor, extents, 3), abs=1e-10)


def test_fit_and_factors_are_those_of_tensorly(kernel, tmp_path):
    numpy = pytest.importorskip("numpy", reason="tools/requirements/references.txt has tensorly")
    tensorly = pytest.importorskip("tensorly", reason="tools/requirements/references.txt has it")
    from tensorly.cp_tensor import CPTensor
    from tensorly.decomposition import parafac

    extents, rank, iterations = (12, 9, 7), 3, 20
    whole = numpy.zeros(extents)
    for number, place in enumerate(itertools.product(*map(range, extents))):
        if random_at(8, number) < 0.4:
            whole[place] = 1 + random_at(7, number)
    lines = (
        " ".join(str(i + 1) for i in p) + f" {float(whole[p])!r}" for p in zip(*whole.nonzero())
    )
    file, kept = tmp_path / "small.tns", tmp_path / "factors"
    file.write_text("\n".join(lines) + "\n")
    words = ("--tensor", file, "--rank", rank, "--iterations", iterations, "--factors", kept)
    said = check(kernel("cpals", *words, *QUICK, ranks=1))

    start = [
        numpy.array([[random_at(1000 + mode, i * rank + r) for r in range(rank)] for i in range(n)])
        for mode, n in enumerate(extents)
    ]
    begin = CPTensor((numpy.ones(rank), start))
    theirs = parafac(tensorly.tensor(whole), rank, n_iter_max=iterations, init=begin, tol=0)
    rest = numpy.linalg.norm(whole - tensorly.cp_to_tensor(theirs)) / numpy.linalg.norm(whole)
    assert fit_in(said) == pytest.approx(1 - rest, abs=1e-10)
    factors = numpy.loadtxt(kept)
    assert factors.shape == (sum(extents), rank)
    # Columns are compared without their lengths, which may be moved from one mode to another.
    for one, other in zip(numpy.split(factors, numpy.cumsum(extents)[:-1]), theirs.factors):
        units = [values / numpy.linalg.norm(values, axis=0) for values in (one, other)]
        assert numpy.abs(units[0] - units[1]).max() < 1e-8


def test_factors_that_cannot_be_kept_are_refused(kernel):
    words = (*TENSOR, "--factors", "/nowhere/x")
    assert "cannot write /nowhere/x" in refused(kernel("cpals", *words, ranks=1), "cpals")
    assert "--factors is for one rank" in refused(kernel("cpals", *words), "cpals")


def test_dependent_components_are_a_breakdown(kernel, tmp_path):
    file = tmp_path / "one.tns"
    file.write_text("1 1 1 2.5\n2 2 2 0\n")
    done = kernel("cpals", "--tensor", file, "--rank", 4, *QUICK)
    assert done.returncode == 1
    assert "breakdown: " in done.stdout and "in iteration 1" in done.stdout
    assert "nan" not in done.stdout


def test_squares_that_grow_beyond_all_numbers_are_a_divergence(kernel, tmp_path):
    file = tmp_path / "large.tns"
    file.write_text("1 1 1 1.2e154\n10 10 10 0\n")
    done = kernel("cpals", "--tensor", file, "--rank", 1, *QUICK, ranks=1)
    assert done.returncode == 1 and "fit" not in done.stdout
    assert "iterations: diverged in iteration 1\n" in done.stdout


def test_a_greater_skew_draws_the_first_rows_more_often(kernel, tmp_path):
    """Rows of a factor that no entry names are 0."""
    extent, entries, late = 300, 300, {}
    for skew in (1, 4):
        kept = tmp_path / f"factors-{skew}"
        words = ("--dimensions", f"{extent}x5x4", "--entries", entries, "--rank", 1)
        check(kernel("cpals", *words, "--skew", skew, "--factors", kept, *QUICK, ranks=1))
        rows = kept.read_text().split()[:extent]
        named = {row for row, value in enumerate(rows) if float(value) != 0}
        assert named == {int(random_at(0, e) ** skew * extent) for e in range(entries)}
        late[skew] = len([row for row in named if row >= extent / 2])
    assert 0 < late[4] < 0.7 * late[1]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "has no entries"),
        ("1 1 1\n", "is no tensor of 3 to 8 modes"),
        ("1 1 1 1 1 1 1 1 1 1\n", "is no tensor of 3 to 8 modes"),
        ("1 1 1 1.5\n1 2 1\n", "is damaged, in line 2"),
        ("# c\n1 1 1 1.5\n1 0 1 2\n", "is damaged, in line 3"),
        ("1 1 1 nan\n", "is damaged, in line 1"),
        ("1 1 1000000000 1\n", "mode 3 of the tensor has 1000000000 rows, more than 2^27"),
        ("1 x 1 1\n", "is damaged, in line 1"),
        ("1 1 1 1 1\n1 1 1 1 1 1\n", "is damaged, in line 2"),
        ("2 2 2 0\n", "has no value but 0"),
    ],
)
def test_a_damaged_tensor_is_refused(kernel, tmp_path, body, sentence):
    file = tmp_path / "x.tns"
    file.write_text(body)
    assert sentence in refused(kernel("cpals", "--tensor", file), "cpals")


def test_a_mode_that_is_not_divided_may_have_one_row(kernel):
    words = ("--dimensions", "12x9x1", "--entries", 80, "--rank", 2, *QUICK)
    fits = [fit_in(check(kernel("cpals", *words, ranks=ranks))) for ranks in (1, 2, 4)]
    assert fits == pytest.approx([fits[0]] * 3, abs=1e-10)
    said = refused(kernel("cpals", *words, "--blocks", "1x1x2"), "cpals")
    assert "mode 3 of the tensor has 1 rows, fewer than the 2 blocks along it" in said


def test_the_exchange_of_rows_is_refused_where_weft_is_not_loaded(kernel):
    words = (*TENSOR, "--exchange", "rows")
    assert "--exchange rows needs Weft" in refused(kernel("cpals", *words), "cpals")
    assert "rows, thread" in check(kernel("cpals", *words, engines="thread"))


def test_the_result_file_holds_any_name_of_a_tensor(kernel, tmp_path):
    named = tmp_path / 'a "quoted" \\ name\t.tns'
    named.write_text("".join(f"{i} {i % 3 + 1} {i % 2 + 1} {i}.5\n" for i in range(1, 9)))
    file = tmp_path / "result.json"
    check(kernel("cpals", "--tensor", named, "--rank", 1, "--json", file, *QUICK))
    assert str(named) in json.loads(file.read_text())["problem"]
