"""Tests collectives that are called wrongly or unusually (rows 15 to 17, 19 to 22)."""

import pytest
from job import ENGINES, Job, natively

pytestmark = pytest.mark.covering

UNUSUAL = [
    "neighbourhoods",
    "nothing-to-move",
    "large-count-calls",
    "slow-operator",
    "asking-operator",
]
OF_WEFT = ("function", "thread")  # engines in which Weft sends the messages


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_unusual_calls_are_right(mpi, engine):
    Job(mpi, UNUSUAL, engine, ranks=3).right()


COMPLETIONS = 3  # one each by MPI_Wait, MPI_Test and MPI_Waitall


def times(done, line):
    return done.out.splitlines().count(line)


@pytest.mark.parametrize("engine", OF_WEFT)
def test_counts_that_differ_end_in_an_error_and_touch_nothing_else(mpi, engine):
    done = Job(mpi, ["counts-differ"], engine, options=["--transport", "mpi"]).right()
    for kind in ("bcast", "allreduce", "allgather", "alltoall", "alltoallv"):
        assert times(done, f"{kind}: rank 1, 10 elements: truncated") == COMPLETIONS
        assert times(done, f"{kind}: rank 1, 20 elements: no error") == COMPLETIONS
    for kind in ("reduce", "gatherv"):
        assert times(done, f"{kind}: rank 0, 10 elements: truncated") == COMPLETIONS


@pytest.mark.parametrize("engine", OF_WEFT)
def test_counts_that_differ_in_shared_memory_show_wherever_a_rank_waits(mpi, engine):
    done = Job(mpi, ["counts-differ"], engine).right()
    for count in (10, 20):
        for kind in ("bcast", "allreduce", "allgather", "alltoall", "alltoallv"):
            assert times(done, f"{kind}: rank 1, {count} elements: truncated") == COMPLETIONS
        for kind in ("allreduce", "allgather", "alltoall", "reduce", "gatherv", "alltoallv"):
            assert times(done, f"{kind}: rank 0, {count} elements: truncated") == COMPLETIONS
        assert times(done, f"bcast: rank 0, {count} elements: no error") == COMPLETIONS
        assert times(done, f"gatherv: rank 1, {count} elements: no error") == COMPLETIONS


def test_persistent_calls_whose_counts_differ_are_not_measured_and_end_in_an_error(mpi):
    """Engine auto would otherwise compare them with the library's when they are initialised."""
    done = Job(mpi, ["persistent-counts-differ"], "auto").right()
    for count in (10, 20):
        assert times(done, f"alltoallv: rank 0, {count} elements: truncated") == 1
        assert times(done, f"alltoallv: rank 1, {count} elements: truncated") == 1
        assert times(done, f"gatherv: rank 0, {count} elements: truncated") == 1
        assert times(done, f"gatherv: rank 1, {count} elements: no error") == 1


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_an_error_is_returned_where_the_communicator_says_so(mpi, engine):
    done = Job(mpi, ["error-returns"], engine).done()
    if engine in OF_WEFT:
        assert done.status == 0
        assert done.out.count("bcast: returned an error") == 1
        assert done.out.count("bcast: no error") == 1


@pytest.mark.parametrize("engine", [None, *OF_WEFT])
def test_an_error_is_fatal_where_the_communicator_says_so(mpi, engine):
    done = Job(mpi, ["error-is-fatal"], engine).done()
    assert done.status != 0
    assert "returned an error" not in done.out


@pytest.mark.parametrize("engine", [None, "function", "thread", "tcc"])
@pytest.mark.parametrize("mpi", ["openmpi", "intelmpi"])
def test_a_bad_communicator_is_the_librarys_error(mpi, engine):
    """MPICH's wheel does not check handles and crashes."""
    Job(mpi, ["bad-communicator"], engine).right()


@pytest.mark.parametrize("engine", ENGINES)
def test_aliased_buffers_are_what_the_library_makes_of_them(mpi, engine):
    alone, under_weft = natively(mpi, "aliased"), Job(mpi, ["aliased"], engine).done()
    assert under_weft.out == alone.out
    assert (under_weft.status == 0) == (alone.status == 0)


@pytest.mark.parametrize("options", [[], ["--blocking"], ["--blocking", "--transport", "mpi"]])
@pytest.mark.parametrize("engine", [None, "auto", "function", "thread"])
def test_what_the_root_alone_knows_changes_no_way(engine, options):
    """Open MPI accepts such buffers. MPICH refuses them at the root."""
    if engine or not options:
        Job("openmpi", ["aliased-at-the-root"], engine, ranks=3, options=options).right()


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("engine", ["function", "thread"])
def test_a_reduction_onto_an_operand_is_what_is_meant(engine, transport):
    """Without parameter checks Open MPI accepts such buffers, and some of its results are wrong."""
    options = ["--blocking", "--transport", transport]
    unchecked = {"OMPI_MCA_mpi_param_check": "0"}
    case = "reduced-onto-operands"
    Job("openmpi", [case], engine, ranks=3, options=options, variables=unchecked).right()


@pytest.mark.parametrize("options", [[], ["--blocking"], ["--blocking", "--transport", "mpi"]])
@pytest.mark.parametrize("engine", ["auto", "function", "thread"])
def test_an_empty_block_of_one_rank_changes_no_way(mpi, engine, options):
    """Open MPI accepts one buffer for send and receive. MPICH refuses it on every rank."""
    case = "aliased-but-for-an-empty-block"
    alone = natively(mpi, case, ranks=3)
    under_weft = Job(mpi, [case], engine, ranks=3, options=options).right()
    assert alone.status == 0
    assert sorted(under_weft.out.split("\n")) == sorted(alone.out.split("\n"))


@pytest.mark.parametrize("options", [[], ["--blocking"]])
@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_profiling_may_be_controlled_on_one_rank(mpi, engine, options):
    if engine or not options:
        Job(mpi, ["profiling-controlled-on-one-rank"], engine, options=options).right()
