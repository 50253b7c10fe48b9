"""Tests which cases `make test` runs, by the names of cases that are a product of axes
(tests/covering.py)."""

from collections import Counter
from itertools import product

import pytest
from covering import covering_set


def cases(*axes):
    return [[(name, (str(one),)) for name, one in zip("abc", row)] for row in product(*axes)]


@pytest.mark.parametrize(
    ("axes", "least"),
    [
        ((["mpich", "openmpi"],), 2),
        ((["mpich", "openmpi"], ["auto", "function", "thread"]), 3),
        ((["mpich", "openmpi"], ["auto", "thread"], [1, 2, 3, 4, 5]), 5),
    ],
)
def test_each_value_comes_in_as_few_cases_as_the_longest_axis_has(axes, least):
    all_cases = cases(*axes)
    chosen = covering_set(all_cases)
    assert len(chosen) == least
    assert {value for number in chosen for value in all_cases[number]} == {
        value for case in all_cases for value in case
    }


def test_values_of_short_axes_come_equally_often():
    all_cases = cases(["auto", "function", "thread", "tcc"], [2, 3])
    ranks = [dict(all_cases[number])["b"] for number in covering_set(all_cases)]
    assert sorted(ranks) == [("2",), ("2",), ("3",), ("3",)]


def test_the_slow_library_comes_once_with_each_of_wefts_engines_in_turn():
    all_cases = cases(["mpich", "openmpi"], [None, "auto", "thread"])
    engines = set()
    for first in range(len(all_cases)):
        chosen = [dict(all_cases[number]) for number in covering_set(all_cases, first)]
        assert sorted(case["a"] for case in chosen) == [("mpich",), ("mpich",), ("openmpi",)]
        engines |= {case["b"] for case in chosen if case["a"] == ("openmpi",)}
    assert engines == {("auto",), ("thread",)}


TESTS = """
import pytest

@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request):
    return request.param

@pytest.mark.covering
@pytest.mark.parametrize("engine", ["auto", "thread"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_product(mpi, engine, ranks): pass

@pytest.mark.covering("mpi", "engine")
@pytest.mark.parametrize("engine", ["auto", "thread"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_pairs(mpi, engine, ranks): pass

@pytest.mark.covering
@pytest.mark.parametrize(("left", "right"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_table(left, right): pass

@pytest.mark.covering
def test_alone(): pass

@pytest.mark.one_library
@pytest.mark.parametrize("ranks", [2, 3])
def test_in_one_library(mpi, ranks): pass
"""


def test_marks_of_tests(pytester):
    """The rows of a table are one axis. Of a product each value occurs, and each pair of named
    axes. In one library all cases occur."""
    pytester.makepyfile(TESTS)
    pytester.makeconftest(
        "from covering import mark_what_is_long\n"
        "def pytest_collection_modifyitems(items): mark_what_is_long(items)\n"
    )
    items, _ = pytester.inline_genitems("-p", "no:cacheprovider")
    short = [item.name.split("[")[0] for item in items if not item.get_closest_marker("long")]
    assert Counter(short) == {
        "test_product": 2,
        "test_pairs": 4,
        "test_table": 4,
        "test_alone": 1,
        "test_in_one_library": 2,
    }
