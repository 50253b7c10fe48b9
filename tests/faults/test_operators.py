"""Tests the program's own functions in reductions, rounding, and errors in such functions (rows 22,
25 and 37)."""

import platform

import pytest
from job import ENGINES, Job

pytestmark = pytest.mark.covering


@pytest.mark.parametrize(
    "case", ["operator-beside", "persistent-operator-beside", "operator-while-blocked"]
)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", [[], ["--transport", "mpi"]], ids=["memory", "messages"])
def test_an_operator_is_not_run_beside_a_program_of_one_thread(mpi, engine, case, options):
    """The operator may keep data for which it expects no other thread."""
    Job(mpi, [case], engine, options=options).right()


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_sums_are_rounded_as_their_caller_says(mpi, engine):
    Job(mpi, ["rounding"], engine).right()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its handler knows x86-64's registers")
@pytest.mark.parametrize("engine", [None, *ENGINES])
@pytest.mark.parametrize("options", [[], ["--transport", "mpi"]], ids=["memory", "messages"])
def test_errors_raise_the_callers_signals(mpi, engine, options):
    if engine or not options:
        Job(mpi, ["floating-point-errors"], engine, options=options).right()
