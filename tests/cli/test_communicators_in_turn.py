"""Tests that a communicator's memory is reused by the next communicator of the same ranks. The
results must be right whatever was done in it before, and no further memory is allocated
(docs/inside/memory.md)."""

import shutil

import pytest

pytestmark = pytest.mark.covering

PROGRAM = "communicators_in_turn"
TWO_NODES = ["-launcher", "fork", "-hosts", "a:2,b:2"]
WAYS = {
    "auto": [],
    "auto, switching": ["--learn", "switch"],
    "function, blocking": ["--engine", "function", "--blocking"],
    "thread, blocking": ["--engine", "thread", "--blocking"],
}
# These system calls are needed for memory that processes share. The last one makes returned memory
# zero again.
OF_MEMORY = ["memfd_create", "ftruncate", "mremap", "readlink", "openat"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mpi", ["mpich", "openmpi", "intelmpi"])
def test_on_one_node(all_right, mpi, way):
    all_right(PROGRAM, 200, mpi=mpi, options=WAYS[way])


@pytest.mark.parametrize("way", ["auto", "thread, blocking"])
def test_on_two_nodes(all_right, way):
    all_right(PROGRAM, 150, ranks=4, options=WAYS[way], launcher=TWO_NODES)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize(
    ("ranks", "nodes"),
    [pytest.param(2, [], id="one"), pytest.param(4, TWO_NODES, id="two", marks=pytest.mark.long)],
)
def test_a_further_one_needs_no_memory_of_the_system(all_right, tmp_path, ranks, nodes):
    def calls(count: int) -> int:
        place = tmp_path / str(count)
        place.mkdir()
        trace = f'exec strace -f -e trace={",".join(OF_MEMORY)} -o "$0/$$" "$@"'
        tool = ["sh", "-c", trace, place]
        all_right(PROGRAM, count, "short", ranks=ranks, launcher=nodes, tool=tool)
        return sum(len(path.read_text().splitlines()) for path in place.iterdir())

    few, many = calls(20), calls(220)
    assert few > 0
    assert many - few < 50  # 200 further communicators need hardly any calls
