"""Tests short non-blocking collectives that their caller carries out inline
(src/runtime/request/inline_call.h).

Their cost is counted in instructions, which do not depend on the machine's load. Other calls must
find them."""

import re

import pytest
from test_start_cost import CALLS, needs_valgrind, outside_the_library, profile, program
from under_weft import library_at_hand, printed_under_weft

pytestmark = pytest.mark.covering

__all__ = ["program"]  # the name is imported as a fixture
LIMIT_S = 110
# This is the cost of start and wait together, inside Weft, without the MPI library's functions.
# Five instructions in each of the two calls find out whether it is passed on.
MOST_INSTRUCTIONS = 750
MOST_AT_A_SITE = 80  # additional instructions of a call class about which engine auto has decided


@needs_valgrind
@pytest.mark.parametrize("role", ["root", "reader"])
@pytest.mark.parametrize("learn", ["off", "use"])
def test_start_and_wait_are_short(program, tmp_path, role, learn, capsys):
    counted = []
    for calls in CALLS:
        file = tmp_path / f"{calls}.out"
        text = profile(program, calls, file, f"--learn={learn}", role, 1, "counted_*", "auto")
        counted.append(outside_the_library(text))
    instructions = (counted[1] - counted[0]) / (CALLS[1] - CALLS[0])
    with capsys.disabled():
        print(f"  --learn={learn}, {role}: {instructions:.0f} instructions")
    assert instructions <= MOST_INSTRUCTIONS + (MOST_AT_A_SITE if learn == "use" else 0)


@needs_valgrind
@pytest.mark.parametrize(
    ("doubles", "end"),
    [
        (1, "wait"),
        (1, "test"),
        pytest.param(512, "wait", marks=pytest.mark.long),
        pytest.param(1, "waitall", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("role", ["root", "reader"])
def test_no_list_and_no_new_request_and_the_library_is_asked_now_and_then(
    program, tmp_path, role, doubles, end
):
    """Without calls of MPI_Iprobe the library's own messages would not progress if the program
    makes no other calls."""
    calls = 200
    words = (role, f"{doubles} {end}", "counted_*", "auto")
    text = profile(program, calls, tmp_path / "out", "--learn=off", *words)
    asked = re.findall(r"^cfn=PMPI_Iprobe\ncalls=(\d+)", text, re.MULTILINE)
    assert sum(map(int, asked)) >= calls // 64
    assert "weft::SharedMemoryCall::progress" in text
    assert "weft::Progress::submit" not in text
    assert "weft::Requests::find" not in text
    made = re.findall(r"^cfn=PMPI_Grequest_start\ncalls=(\d+)", text, re.MULTILINE)
    assert [int(calls) for calls in made] == [1]
    assert not re.search("PMPI_(Wait|Test)", text)


@pytest.fixture
def run(compiled_for):
    """Returns the output of a program under Weft."""

    def carry_out(mpi, ranks, engine, name, *arguments):
        library = library_at_hand(mpi)
        command = [compiled_for(library, name), *arguments]
        return printed_under_weft(library, ranks, [f"--engine={engine}"], command, LIMIT_S)

    return carry_out


@pytest.mark.parametrize("engine", ["function", "thread", "auto"])
@pytest.mark.parametrize(
    ("mpi", "ranks"), [("mpich", 2), ("openmpi", 2), ("intelmpi", 2), ("mpich", 3)]
)
def test_whatever_comes_meanwhile(run, mpi, ranks, engine):
    words = [40, *(["statuses"] if engine != "auto" else [])]
    assert "right" in run(mpi, ranks, engine, "inline_calls", *words)


@pytest.mark.parametrize("engine", ["auto", "function"])
@pytest.mark.parametrize("what", ["message", "reduction"])
@pytest.mark.parametrize("form", ["blocking", "request", "test"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi", "intelmpi"])
def test_others_go_on_meanwhile(run, mpi, form, what, engine):
    assert "right" in run(mpi, 2, engine, "inline_messages", form, what)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi", "intelmpi"])
def test_a_program_may_go_by_the_level_of_threads(run, mpi):
    assert "right, several" in run(mpi, 2, "function", "inline_threads", 3000)
