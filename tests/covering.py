"""Which cases of a test `make test` goes through; `make test-long` goes through the others.

A test that is marked `covering` and has several axes, such as libraries, engines and numbers of
ranks, is a product of them. `make test` has time for as many of its cases as it takes for each
value of each axis to come once; the others get the marker `long`. An axis is one `parametrize`, or
a fixture that has values. Axes that the mark names are one, so that all their pairs come.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

import pytest

Value = tuple[str, Hashable]  # of an axis


def values(item: pytest.Function, together: Sequence[str] = ()) -> list[Value]:
    """One for each axis of the test."""
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


def covering_set(cases: list[list[Value]]) -> set[int]:
    """Few of the cases, in which each value comes: next is one with most that have not come yet,
    and of these one whose values have come least."""
    missing = {value for case in cases for value in case}
    came: Counter[Value] = Counter()
    chosen: set[int] = set()
    while missing:
        left = [number for number in range(len(cases)) if number not in chosen]
        best = min(
            left,
            key=lambda n: (
                -len(missing & set(cases[n])),
                sum(came[value] for value in cases[n]),
                n,
            ),
        )
        chosen.add(best)
        came.update(cases[best])
        missing -= set(cases[best])
    return chosen


def mark_what_is_long(items: list[pytest.Item]) -> None:
    products: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("covering")
        if mark and hasattr(item, "callspec") and not item.get_closest_marker("long"):
            products[item.nodeid.split("[")[0]].append(item)
    for cases in products.values():
        together = cases[0].get_closest_marker("covering").args
        chosen = covering_set([values(case, together) for case in cases])
        for number, case in enumerate(cases):
            if number not in chosen:
                case.add_marker(pytest.mark.long)
