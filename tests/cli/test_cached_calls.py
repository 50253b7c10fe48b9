"""Tests that a cached call is only recognised if all its significant arguments are the same
(docs/inside/choices.md). Communicators whose handles are reused are tested in
test_communicators_in_turn.py."""

import pytest

pytestmark = pytest.mark.covering

PROGRAM = "cached_calls"
TWO_NODES = ["-launcher", "fork", "-hosts", "a:2,b:2"]
WAYS = {
    "auto": [],
    "auto, switching": ["--learn", "switch"],
    "auto, blocking": ["--blocking"],
    "function": ["--engine", "function", "--blocking"],
    "thread": ["--engine", "thread"],
    "native": ["--engine", "native"],
    "watched": ["--summary"],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_on_one_node(all_right, mpi, way):
    all_right(PROGRAM, mpi=mpi, options=WAYS[way])


@pytest.mark.parametrize("way", ["auto", "auto, switching", "auto, blocking", "thread"])
def test_on_two_nodes(all_right, way):
    all_right(PROGRAM, ranks=4, options=WAYS[way], launcher=TWO_NODES)
