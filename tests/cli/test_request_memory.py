"""Tests the memory of persistent requests: parts of the communicator's segment, and then further
segments."""

import re
import shutil
import subprocess

import pytest

from weft.system import installation

pytestmark = pytest.mark.covering

# Hydra can treat one machine as several nodes.
ONLY_HYDRA = pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
# This is more requests than fit into a communicator's first segment.
KEPT = 40


@pytest.fixture
def program(mpi, compiled_for):
    return compiled_for(mpi, "many_requests")


@pytest.fixture
def job(mpi, program, environment):
    """Returns a function that runs the program and returns its standard error."""

    def run(*arguments, ranks=2, front=(), hosts=()):
        weft = ["run", "--engine", "function", "--init-budget", "0"]
        rank = [installation.weft_command(), *weft, "--", program, *arguments]
        command = [*front, *mpi.launcher(ranks), *hosts, *rank]
        done = subprocess.run(
            [str(word) for word in command],
            env={**environment, **mpi.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    return run


@pytest.mark.one_library
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_requests_share_segments(job, tmp_path):
    """A few requests need no more segments than none, and many requests need a few."""

    def segments(kept):
        calls = tmp_path / f"{kept}.calls"
        job(kept, 1, front=["strace", "-f", "-o", calls, "-e", "trace=memfd_create"])
        return len(re.findall(r'memfd_create\("weft-\d+"', calls.read_text()))

    of_the_job = segments(0)
    assert segments(4) == of_the_job
    assert of_the_job < segments(KEPT) < of_the_job + KEPT / 4


@pytest.mark.one_library
def test_requests_of_three_ranks_made_anew(job):
    assert "cannot share memory" not in job(KEPT, 3, ranks=3)


@pytest.fixture
def several_nodes():
    """One of the nodes has a single rank, and therefore no node memory."""
    return {"ranks": 5, "hosts": ["-launcher", "fork", "-hosts", "a:2,b:1,c:2"]}


@ONLY_HYDRA
def test_requests_on_several_nodes(several_nodes, job):
    assert "cannot share memory" not in job(KEPT, 2, **several_nodes)


@ONLY_HYDRA
# On the first node the second rank cannot map the segment. On the last node the first rank cannot
# create it.
@pytest.mark.parametrize(("rank", "refused"), [(1, "nofile"), (3, "fsize")])
def test_where_one_node_has_none_all_go_by_messages(several_nodes, job, rank, refused):
    said = job(KEPT, 1, rank, refused, **several_nodes)
    assert said.count("cannot share memory with the other ranks") == 1


@pytest.mark.parametrize(("rank", "refused"), [(0, "fsize"), (1, "nofile")])
def test_without_a_further_segment_the_rest_goes_by_messages(job, rank, refused):
    said = job(KEPT, 1, rank, refused)
    assert said.count("cannot share memory with the other ranks") == 1
