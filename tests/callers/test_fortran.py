"""Tests Fortran programs with mpif.h, `use mpi` and `use mpi_f08`, with and without Weft.

One program compares each collective with the blocking one. The other compares the results of
messages and one-sided accesses with what was sent. The summary tells what Weft did."""

import re

import pytest

pytestmark = pytest.mark.covering

CALLERS = [
    *(("mpich-debian", interface) for interface in ("MPIF_H", "MPI", "MPI_F08")),
    *(("openmpi-debian", interface) for interface in ("MPIF_H", "MPI", "MPI_F08")),
    ("intelmpi", "MPIF_H"),
]
# These have each library and each interface once. The blocking calls and the transfers of the other
# callers go through the same functions of Weft.
FEW = {("mpich-debian", "MPI_F08"), ("openmpi-debian", "MPI"), ("intelmpi", "MPIF_H")}
FEW_SHORT = [
    pytest.param(*caller, marks=() if caller in FEW else pytest.mark.long) for caller in CALLERS
]
# A run without Weft only tests the program itself.
WITHOUT_WEFT = pytest.mark.long
COLLECTIVES = ("Iallgather", "Iallreduce", "Ialltoall", "Ibarrier", "Ibcast", "Ireduce", "Iscan")


def equal_cases(output: str) -> int:
    return int(re.search(r": (\d+) cases equal", output)[1])


def check_all_handled(summary: dict) -> None:
    calls = {entry["call"]: entry for entry in summary["calls"]}
    for name in COLLECTIVES:
        entry = calls[f"MPI_{name}"]
        assert entry["seen"] == entry["handled"] > 0, entry


@WITHOUT_WEFT
@pytest.mark.parametrize(("name", "interface"), CALLERS)
def test_the_program_itself_passes_without_weft(built, run, name, interface):
    library, program = built["fortran"](name, interface)
    output, _ = run(library, program, 3, None)
    assert equal_cases(output) > 400


@pytest.mark.parametrize("engine", ["function", "thread", "tcc", "assist"])
@pytest.mark.parametrize(("name", "interface"), CALLERS)
def test_every_engine(built, run, name, interface, engine):
    library, program = built["fortran"](name, interface)
    output, summary = run(library, program, 3, engine)
    assert equal_cases(output) > 400
    check_all_handled(summary)


@pytest.mark.parametrize("engine", ["auto", "thread --blocking"])
@pytest.mark.parametrize(("name", "interface"), FEW_SHORT)
def test_what_may_take_blocking_calls(built, run, name, interface, engine):
    """Tests engines that also take the program's blocking calls, so that both forms are Weft's and
    are compared with each other. The test above compares them with the library's."""
    library, program = built["fortran"](name, interface)
    output, summary = run(library, program, 3, engine)
    assert equal_cases(output) > 400
    assert sum(entry["handled"] for entry in summary["calls"]) > 0


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    ("name", "interface"), [caller for caller in CALLERS if "F08" in caller[1]]
)
def test_other_numbers_of_ranks(built, run, name, interface, ranks):
    library, program = built["fortran"](name, interface)
    output, summary = run(library, program, ranks, "thread")
    assert equal_cases(output) > 400
    check_all_handled(summary)


STEPS, RANKS = 5, 3  # constants of programs/transfers.F90
# The transfers are MPI_Irecv, MPI_Isend, both as persistent requests, MPI_Put and MPI_Get.
TRANSFERS = RANKS * STEPS * (2 + 2 + 2 + 2)
CASES_OF_TRANSFERS = STEPS * (3 + 2 + 3)  # includes one case for each computation


@pytest.mark.parametrize("options", ["thread", "thread --transfers off", "assist"])
@pytest.mark.parametrize(("name", "interface"), FEW_SHORT)
def test_messages_and_accesses(built, run, name, interface, options):
    library, program = built["fortran"](name, interface, "transfers")
    output, summary = run(library, program, RANKS, options)
    assert equal_cases(output) == CASES_OF_TRANSFERS
    assert summary["transfers"] == (0 if "off" in options else TRANSFERS)


@WITHOUT_WEFT
@pytest.mark.parametrize(("name", "interface"), CALLERS)
def test_messages_and_accesses_without_weft(built, run, name, interface):
    library, program = built["fortran"](name, interface, "transfers")
    output, _ = run(library, program, RANKS, None)
    assert equal_cases(output) == CASES_OF_TRANSFERS
