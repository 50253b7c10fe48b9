"""Tests unusual uses of persistent and other requests (rows 6 to 14), which must behave as without
Weft."""

import pytest
from job import ENGINES, Job, natively

pytestmark = pytest.mark.covering

CASES = [
    "persistent-freed-while-inactive",
    "persistent-started-together",
    "every-completion",
    "asked-for-status",
    "persistent-never-freed",
]
# MPICH's own completion of arrays fails if persistent collectives are among the requests.
ARRAYS = {"mpich": {"FAULTS_NO_PERSISTENT_IN_ARRAYS": "1"}}


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_requests_live_and_complete_as_the_standard_says(mpi, engine):
    # Open MPI's own communicators are gone after MPI_Comm_free, whatever is pending on them.
    pending = ["persistent-comm-freed-while-active"] if mpi == "mpich" else []
    # Libraries may permit freeing an active collective, while Weft refuses it. Engine auto leaves
    # some collectives to the library.
    refused = ["freed-or-cancelled-while-active"] if engine not in (None, "auto") else []
    Job(mpi, refused + pending + CASES, engine, variables=ARRAYS.get(mpi, {})).right()


@pytest.mark.parametrize(
    "case", ["persistent-comm-freed-before-start", "persistent-started-while-active"]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_what_only_some_libraries_allow(mpi, engine, case):
    """If the library succeeds, so must Weft, with the same result or with an error."""
    alone, under_weft = natively(mpi, case), Job(mpi, [case], engine).done()
    if alone.status == 0:
        assert under_weft.status == 0, under_weft.text
        assert under_weft.out in (alone.out, "second start: refused\n")
