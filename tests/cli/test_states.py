"""A machine has states: its host moves the cores, and what was the faster side of a call, Weft or
the MPI library, is the slower one from then on. Calls in a node's memory follow that. The states
are planted: a tool tells Weft how long copies and the library take."""

import json

import pytest

from weft.system import mpi_libraries

pytestmark = pytest.mark.covering

# Microseconds of a copy of Weft's and of a bcast of the library's.
WEFT_IS_FASTER, COPIES_ARE_SLOW, LIBRARY_IS_SLOW = "1000:1800", "3000:1800", "1000:5400"
FOLLOWED = 300  # calls
# Trials may take any share of the time, since these programs are short.
OPTIONS = ["--init-budget=2s", "--learning-budget=100"]


@pytest.fixture
def planted(compiled_for):
    """Returns the words that stand in front of a program to plant a state."""

    def words(mpi):
        library = mpi_libraries.implementation(mpi)
        tool = compiled_for(library, "planted_state", "-shared", "-fPIC", "-ldl")
        return ["env", f"LD_PRELOAD={tool}"]

    return words


@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_calls_follow_the_states_of_the_machine(all_right, planted, mpi, ranks, form):
    states = [WEFT_IS_FASTER, COPIES_ARE_SLOW, LIBRARY_IS_SLOW, COPIES_ARE_SLOW]
    tool = planted(mpi)
    all_right("states", form, FOLLOWED, *states, mpi=mpi, ranks=ranks, options=OPTIONS, tool=tool)


@pytest.mark.parametrize("form", ["blocking", "nonblocking", "persistent"])
@pytest.mark.parametrize("ranks", [3, 4])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_short_and_longer_calls_of_unknown_size_are_learnt_about_separately(
    all_right, planted, mpi, ranks, form
):
    tool = planted(mpi)
    all_right("lengths", form, FOLLOWED, 6, mpi=mpi, ranks=ranks, options=OPTIONS, tool=tool)


@pytest.mark.parametrize(
    ("form", "site"), [("blocking", "blocking alltoallv"), ("nonblocking", "alltoallv")]
)
def test_the_summary_tells_short_from_longer_calls(all_right, planted, tmp_path, form, site):
    tool, summary = planted("mpich"), tmp_path / "summary.json"
    options = [*OPTIONS, f"--summary=json:{summary}"]
    all_right("lengths", form, FOLLOWED, 6, options=options, tool=tool)
    learnt = json.loads(summary.read_text())["learnt"]
    ways = {entry["site"]: entry["way"].split()[0] for entry in learnt}
    assert ways == {f"{site}, below 8 KiB": "native", f"{site}, below 256 KiB": "function"}


def test_a_state_that_stays_is_no_reason_to_compare(all_right, planted):
    tool = planted("mpich")
    all_right("states", "blocking", 2500, "300:2000", ranks=2, options=OPTIONS, tool=tool)
