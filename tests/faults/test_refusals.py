"""What is refused of a command line inside a launcher: every rank ends before the program has come
out of MPI_Init, one sentence says why, and nothing is left on the machine (row 46)."""

from __future__ import annotations

import pytest
from job import Job

# In front of each rank: the verb with its options, and what is said.
REFUSED = {
    "run, unknown option": (["run", "--no-such-option"], "unknown option '--no-such-option'"),
    "run, wrong value": (["run", "--engine", "warp\x1b"], "unknown engine 'warp\\x1b'"),
    "run, too large": (["run", "--watchdog", "9" * 30], "at most 2147483647, not '999"),
    "run, no file of plans": (["run", "--plan-cache", __file__], "is nothing of Weft's, and stays"),
    "advise, unknown option": (["advise", "--no-such-option"], "No such option"),
    "advise, wrong value": (["advise", "--overhead", "much"], "is no percentage"),
    "advise, no program's option": (["advise", "--before", "a"], "--before needs --from"),
    "advise, no file": (["advise", "--record", "/nowhere/record"], "no record can be written"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_every_rank_ends(mpi, words):
    weft, said = REFUSED[words]
    done = Job(mpi, ["work"], weft=weft).done()
    assert done.status == 2, done.text
    assert "works" not in done.out
    assert said in done.err
    assert done.left_by_library == []


@pytest.mark.parametrize("words", ["run, wrong value", "advise, no file"])
def test_one_rank_says_it(mpi, words):
    weft, said = REFUSED[words]
    done = Job(mpi, ["work"], weft=weft, ranks=4).done()
    # MPICH's launcher kills the last of more ranks than cores, and says so.
    assert done.status != 0 and done.err.count(said) == 1, done.text


def test_nothing_is_left_however_late_ranks_are(mpi, tool):
    """A rank that is still in MPI_Finalize is not ended by the end of another."""
    job = Job(mpi, ["work"], weft=["run", "--engine", "warp"], tools=[tool(mpi, "late_finalize")])
    done = job.done()
    assert done.status == 2, done.text
    assert "rank 1 has come out of MPI_Finalize" in done.out
    assert done.left_by_library == []
