"""Selects the cases of a test that `make test` runs; `make test-long` runs the others.

A test that is marked `covering` has several axes, such as libraries, engines and numbers of
ranks, and its cases are their product. `make test` runs a few of the cases in which each value
of each axis occurs. The other cases get the mark `long`. An axis is one `parametrize`, or a
fixture with values. Axes that the mark names are treated as one, so that all combinations of
their values occur.

A job of Open MPI takes several times as long to start and end as one of MPICH. Therefore one case
of each product runs under Open MPI, and under Weft. Which engine it has differs between tests. A
test that is marked `one_library` proves under MPICH what it is for. Its cases under another library
get the mark `long`."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

Value = tuple[str, tuple[str, ...]]  # names of an axis, and a value of each
SLOW = "openmpi"
WITHOUT_WEFT = "None"  # an engine


def values(item: pytest.Function, together: Sequence[str] = ()) -> list[Value]:
    """Returns the values of the test's axes. The axes named by `together` are one."""
    given = {name: str(value) for name, value in item.callspec.params.items()}
    axes = [names_of(mark) for mark in item.iter_markers("parametrize")]
    inside = {name for axis in axes for name in axis}
    axes += [(name,) for name in given if name not in inside]
    merged = tuple(name for axis in axes if set(axis) & set(together) for name in axis)
    axes = [axis for axis in axes if not set(axis) & set(together)] + ([merged] if merged else [])
    return [(",".join(axis), tuple(given.get(name, "") for name in axis)) for axis in axes]


def names_of(mark: pytest.Mark) -> tuple[str, ...]:
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    names = names.split(",") if isinstance(names, str) else names
    return tuple(name.strip() for name in names)


def has(case: list[Value], word: str) -> bool:
    return any(word in value for _, value in case)


def covering_set(cases: list[list[Value]], first: int = 0) -> set[int]:
    """Returns the numbers of a few cases in which each value occurs. The next case is one with most
    values that have not occurred yet, and among these one whose values have occurred least. The
    slow library comes first, in a case that `first` tells, and not again without need."""
    missing = {value for case in cases for value in case}
    came: Counter[Value] = Counter()
    chosen: set[int] = set()

    def order(number: int) -> tuple[int, ...]:
        case = cases[number]
        if not has(case, SLOW):
            turn, place = 1, number
        else:
            again = any(has(cases[one], SLOW) for one in chosen)
            turn = 2 if again or has(case, WITHOUT_WEFT) else 0
            place = (number - first) % len(cases)
        return -len(missing & set(case)), turn, sum(came[value] for value in case), place

    while missing:
        best = min((number for number in range(len(cases)) if number not in chosen), key=order)
        chosen.add(best)
        came.update(cases[best])
        missing -= set(cases[best])
    return chosen


def mark_what_is_long(items: list[pytest.Item]) -> None:
    products: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("one_library") and item.callspec.params["mpi"] != "mpich":
            item.add_marker(pytest.mark.long)
        mark = item.get_closest_marker("covering")
        if mark and hasattr(item, "callspec") and not item.get_closest_marker("long"):
            products[item.nodeid.split("[")[0]].append(item)
    for name, cases in products.items():
        together = cases[0].get_closest_marker("covering").args
        first = zlib.crc32(name.encode()) % len(cases)
        chosen = covering_set([values(case, together) for case in cases], first)
        for number, case in enumerate(cases):
            if number not in chosen:
                case.add_marker(pytest.mark.long)
