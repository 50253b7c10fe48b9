"""Functions of the program's that reductions run, and how numbers are rounded (rows 36 and 37)."""

import pytest
from job import ENGINES, Job

OF_WEFT = ENGINES


@pytest.mark.parametrize(
    "case", ["operator-beside", "persistent-operator-beside", "operator-while-blocked"]
)
@pytest.mark.parametrize("engine", OF_WEFT)
@pytest.mark.parametrize("options", [[], ["--transport", "mpi"]], ids=["memory", "messages"])
def test_an_operator_is_not_run_beside_a_program_of_one_thread(mpi, engine, case, options):
    """It may keep what it needs where no other thread is expected."""
    Job(mpi, [case], engine, options=options).right()


@pytest.mark.parametrize("engine", [None, *OF_WEFT])
def test_sums_are_rounded_as_their_caller_says(mpi, engine):
    Job(mpi, ["rounding"], engine).right()
