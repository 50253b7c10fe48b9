"""Tests ranks that are started with different options (row 32): each ends in MPI_Init, and one
sentence says why. Different hints on one communicator are reported and ignored."""

import time

import pytest
from job import Job, end_launcher
from printed import into_files

from weft.system import installation

pytestmark = pytest.mark.covering

# These are the options of rank 0 and rank 1, and the words of the message.
DIFFERENT = [
    (["--engine", "thread"], ["--engine", "tcc"], "--engine is thread on rank 0 and tcc on rank 1"),
    (["--engine", "native"], ["--engine", "auto"], "--engine is native on rank 0 and auto on"),
    (["--engine", "auto"], ["--engine", "native"], "--engine is auto on rank 0 and native on"),
    ([], ["--transport", "mpi"], "--transport is auto on rank 0 and mpi on rank 1"),
    ([], ["--blocking"], "--blocking is by the rule of engine auto on rank 0 and on on rank 1"),
    ([], ["--reproducible"], "--reproducible is off on rank 0 and on on rank 1"),
    ([], ["--init-budget", "0"], "--init-budget is 10000us on rank 0 and 0us on rank 1"),
    ([], ["--summary"], "--summary is off on rank 0 and on on rank 1"),
    (
        ["--algorithm", "allreduce=ring"],
        [],
        "--algorithm allreduce is ring on rank 0 and not given on rank 1",
    ),
    (
        ["--engine", "thread", "--placement", "pack:2"],
        ["--engine", "thread"],
        "--placement is pack:2 on rank 0 and bind on rank 1",
    ),
]
# These options may differ between ranks.
COMPATIBLE = [
    (["--engine", "thread"], ["--engine", "function"]),
    (["--backoff", "spin"], ["--watchdog", "30"]),
    (["--plan-cache", "none"], ["--xpmem", "off"]),
    (["--one-copy", "on"], ["--one-copy", "off"]),
    (["--one-copy", "auto"], ["--one-copy", "on"]),
]


def of_both(mpi, first, second, case="work", **more) -> Job:
    """Returns a job whose two ranks are started with different options of weft run. `more` are
    fields of Job."""
    job = Job(mpi, [case], **more)
    plain = job.command()
    launcher, program = str(job.library.mpiexec), plain.index(str(job.library.program("faults")))
    at = plain.index(launcher) + 1
    bind = ["--bind-to", "none", "--oversubscribe"] if mpi == "openmpi" else []

    def rank(options):
        weft = [str(installation.weft_command()), "run", *options, "--"]
        return ["-n", "1", *into_files(job.directory), *weft, *plain[program:]]

    job.command = lambda: [*plain[:at], *bind, *rank(first), ":", *rank(second)]
    return job


@pytest.mark.parametrize(("first", "second", "words"), DIFFERENT)
def test_ranks_with_different_options_end_with_one_sentence(mpi, first, second, words):
    done = of_both(mpi, first, second).done()
    assert done.status == 2, done.text
    assert "works" not in done.out  # the program has not returned from MPI_Init
    assert len(done.sentences()) == 1, done.text
    assert words in done.sentences()[0]


@pytest.mark.parametrize(("first", "second"), COMPATIBLE)
def test_what_is_each_ranks_own_affair_may_differ(mpi, first, second):
    done = of_both(mpi, first, second).right()
    assert done.out.count("works") == 2
    assert done.sentences() == []


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        ("list:0", "placement list names 1 core for 2 ranks of a node: name one for each (cores "),
        ("list:0,4095", "placement list names core 4095, which this machine or its batch system"),
    ],
)
def test_a_placement_that_does_not_fit_is_refused_by_one_rank(mpi, placement, words):
    done = of_both(mpi, *[["--engine", "thread", "--placement", placement]] * 2).done()
    assert done.status == 2, done.text
    assert "works" not in done.out
    assert len(done.sentences()) == 1, done.text
    assert words in done.sentences()[0]


def test_ranks_without_weft_are_missed(mpi, tool):
    """Weft cannot end ranks in which it is not loaded. It says for what the other ranks wait. Its
    clock goes twenty times as fast."""
    job = of_both(mpi, [], [], "waits-for-rank-0", limit_s=25)
    command = job.command()
    first, last = (at for at, word in enumerate(command) if word == "run")
    clock = ["env", f"LD_PRELOAD={tool(mpi, 'fast_clock')}"]
    of_rank_0 = [*command[: first - 1], *clock, *command[first - 1 : last - 1]]
    job.command = lambda: of_rank_0 + command[command.index("--", last) + 1 :]
    process = job.start()
    while "has waited for 10 s in MPI_Init" not in job.printed("err"):
        assert process.poll() is None, job.printed("err")
        time.sleep(0.05)
    end_launcher(process)
    assert "start all ranks of the job by 'weft run', or none" in job.printed("err")
    job.finish(process)


@pytest.mark.parametrize("engine", ["auto", "thread", "function"])
def test_hints_that_differ_are_said_and_ignored(mpi, engine):
    done = Job(mpi, ["different-hints"], engine).right()
    assert len(done.sentences()) == 2, done.text
    assert "weft_engine is tcc on rank 0 and native on rank 1" in done.sentences()[0]
    assert "weft_algorithm for allreduce is not given on rank 0 and ring on" in done.sentences()[1]
