"""Tests command lines that are refused inside a launcher: every rank ends before it leaves
MPI_Init, one sentence says why, and nothing is left on the machine (row 46)."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess

import pytest
from job import Job

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

# These are the subcommand and its options in front of each rank, and the text of the message.
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
    # With more ranks than cores MPICH's launcher kills the last one, and prints that.
    assert done.status != 0 and done.err.count(said) == 1, done.text


@pytest.mark.one_library
def test_nothing_is_left_however_late_ranks_are(mpi, tool):
    """The end of one rank must not kill another one that is still in MPI_Finalize."""
    job = Job(mpi, ["work"], weft=["run", "--engine", "warp"], tools=[tool(mpi, "late_finalize")])
    done = job.done()
    assert done.status == 2, done.text
    assert "rank 1 has come out of MPI_Finalize" in done.out
    assert done.left_by_library == []


def said_by_ranks(mpi: str, program: list, status: int, ranks: int = 4) -> list[str]:
    done = Job(mpi, [], ranks=ranks, program=program).done()
    assert done.status == status, done.text
    return done.sentences()


@pytest.mark.one_library
def test_the_first_rank_says_why_nothing_is_loaded_and_what_is(mpi, tmp_path):
    """If Weft's library is missing, other nodes may have it, so that the message names the node."""
    weft = installation.weft_command()
    alone = shutil.copy(weft, tmp_path / "weft")
    static = tmp_path / "static"
    source = ["-x", "c", "-", "-static", "-o", str(static)]
    subprocess.run(["cc", *source], input="int main(void) { return 0; }", text=True, check=True)
    faults = mpi_libraries.implementation(mpi).program("faults")
    (said,) = said_by_ranks(mpi, [weft, "run", "--", static], 2)
    assert "static program" in said and said.endswith("(4 ranks)")
    (said,) = said_by_ranks(mpi, [alone, "run", "--", faults], 2)
    assert f"libweft-{mpi}.so) is not in" in said
    assert said.endswith(f"(node {socket.gethostname()})")
    said = said_by_ranks(mpi, [weft, "run", "--verbose", "--", faults, "work"], 0)
    assert [line.endswith(" (4 ranks)") for line in said if "weft: loads" in line] == [True]


def test_a_rank_with_a_program_of_its_own_says_why_it_ends(mpi):
    """The first rank runs another program, and prints nothing."""
    words = ["sleep", 2, ":", "-n", 3, installation.weft_command(), "run", "--no-such-option"]
    (said,) = said_by_ranks(mpi, words, 2, ranks=1)
    assert re.search(r"unknown option .* \(rank [1-3]\)$", said)
