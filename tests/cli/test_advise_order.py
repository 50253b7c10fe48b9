"""Tests that `weft advise` tells which consecutive calls depend on each other, and that it
distinguishes calls in a wrapper by the wrapper's callers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from weft.advise import analysis, fragments, show, store
from weft.system import mpi_libraries

ROUNDS = 20
SOURCES = Path(__file__).parent / "programs"


@pytest.mark.one_library
def test_what_may_be_in_flight_together_and_what_not(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_order.c"), ROUNDS], "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    advice = analysis.analyse(stored)
    assert all(rank["observing_ns"] > 0 for rank in stored["rank"])
    found = {tuple(map(planted_in, pair)) for pair in advice.pairs}
    free = ("free_of_each_other", "free_rows", "free_kinds", "free_in_a_wrapper")
    assert found == {(name, name) for name in free}

    (wrapped,) = [pair for pair in advice.pairs if {site.function for site in pair} == {"wrapped"}]
    for site in wrapped:
        place = show.short_place(site)
        assert " from wrapped_twice " in place and " from free_in_a_wrapper " in place
    assert "MPI_Iallreduce(…" in fragments.together(*wrapped)
    # The buffers of a wrapper do not exist any more when it returns.
    numbers = [site for site in advice.sites if site.function == "sum_of"]
    assert len(numbers) == 2 and not any(map(fragments.persistent, numbers))
    # Another call in the same wrapper must not change the result.
    needs = [site for site in advice.sites if planted_in(site) == "needs_in_a_wrapper"]
    assert [site.calls for site in needs] == [ROUNDS, ROUNDS]


def planted_in(site) -> str:
    """Returns the name of the function in the program that contains the case."""
    names = [site.function, *(one.frame.function for one in site.outer)]
    return next(name for name in names if name.startswith(("free", "needs")))


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
def test_callers_in_python_are_told_apart(advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    source = SOURCES / "advise_order.py"
    words = ["env", f"MPI4PY_LIBMPI={mpi.library}", sys.executable, source, ROUNDS]
    done = advise(mpi, words, "--mpi", mpi.name, "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    advice = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    lines = source.read_text().splitlines()

    def case(site) -> str:
        line = site.outer[0].frame.line if site.function == "total" else site.frames[0].line
        before = (text for text in reversed(lines[:line]) if text.startswith("def "))
        return next(before).removeprefix("def ").partition("(")[0]

    assert {tuple(map(case, pair)) for pair in advice.pairs} == {("free_of_each_other",) * 2}
    totals = [site for site in advice.sites if site.function == "total"]
    assert len(totals) == 8 and all(site.calls == ROUNDS for site in totals)
