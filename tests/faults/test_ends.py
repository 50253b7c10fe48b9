"""Tests programs that end during collectives, and the messages about it (rows 1 to 5, 18, 26,
27)."""

import json
import os
import random
import re
import signal
import time

import pytest
from job import (
    ENGINES,
    HUNG,
    Done,
    Job,
    end_launcher,
    launcher_of,
    natively,
    stop_and_continue,
)

pytestmark = pytest.mark.covering

SOME = (None, "auto", "thread", "tcc", "agent")
SEED = int(os.environ.get("FAULTS_SEED", random.randrange(1 << 30)))


def killed(mpi, engine, moment, victim_of):
    """Kills a process of a job at a random moment: the whole job must end, and leave nothing."""
    job = Job(mpi, ["endless"], engine, ranks=3)
    killed_in(job, f"{SEED} {mpi} {engine} {moment}", victim_of)


def killed_in(job, seed, victim_of):
    source = random.Random(seed)
    process, pids = job.started()
    delay = source.uniform(0, 0.3)
    print(f"seed {SEED}: killed after {delay:.3f} s")
    time.sleep(delay)
    os.kill(victim_of(source, pids), signal.SIGKILL)
    began = time.monotonic()
    done = job.finish(process)
    assert time.monotonic() - began < 30
    assert done.left == []
    assert done.status != 0


@pytest.mark.parametrize("moment", range(2))
@pytest.mark.parametrize("engine", SOME)
def test_killed_rank(mpi, engine, moment):
    killed(mpi, engine, moment, lambda source, pids: source.choice(list(pids.values())))


# The victim is either the rank that serves the others, which is the lowest, or another one.
@pytest.mark.parametrize("victim", [0, 1])
def test_killed_while_served(mpi, victim):
    killed(mpi, "agent", f"served {victim}", lambda source, pids: pids[victim])


CORE = min(os.sched_getaffinity(0))
TWO_NODES = ["-launcher", "fork", "-hosts", "a:2,b:2"]  # Hydra's hosts, both on this machine


# The leader of a node, whose thread is the agent, and a rank that it serves. On one core, ranks
# that wait sleep while the agent works for them.
@pytest.mark.parametrize("binding", [[], ["-bind-to", f"user:{CORE}"]])
@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_killed_while_a_node_is_served(victim, binding):
    options = [*TWO_NODES, *binding]
    job = Job("mpich", ["endless"], "agent", ranks=4, launcher_options=options)
    killed_in(job, f"{SEED} node {victim}", lambda source, pids: pids[victim])


def test_exit_without_finalize_while_a_node_is_served():
    done = Job("mpich", ["exits"], "agent", ranks=4, limit_s=30, launcher_options=TWO_NODES).done()
    assert done.status == 0
    assert not re.search(r"Signal:|EXIT CODE|Segmentation", done.text)


@pytest.mark.parametrize("moment", range(2))
@pytest.mark.parametrize("engine", SOME)
def test_killed_launcher(mpi, engine, moment):
    killed(mpi, engine, moment, lambda source, pids: launcher_of(pids[0]))


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_abort_ends_the_job_with_its_code(mpi, engine):
    assert Job(mpi, ["aborts"], engine, ranks=3, limit_s=30).done().status == 42


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_exit_without_finalize(mpi, engine):
    done = Job(mpi, ["exits"], engine, limit_s=30).done()
    # Open MPI's launcher reports it as a failure of its own.
    assert done.status == (0 if mpi == "mpich" else 1)
    assert not re.search(r"Signal:|EXIT CODE|Segmentation", done.text)


# Engine auto does not name calls that it leaves to the library.
NAMED = [engine for engine in ENGINES if engine != "auto"]


@pytest.mark.parametrize("engine", NAMED)
def test_finalize_names_what_is_incomplete(mpi, engine):
    done = Job(mpi, ["finalizes-incomplete"], engine, limit_s=30).right()
    assert len(done.sentences()) == 2  # each rank prints one sentence for 1001 collectives
    for sentence in done.sentences():
        assert "MPI_Iallreduce (1000), MPI_Ibarrier (1)" in sentence


@pytest.mark.parametrize("case", ["finalizes-incomplete", "finalizes-alone"])
def test_finalize_under_auto_does_not_hang_where_the_library_does_not(mpi, case):
    def ended(engine, limit_s):
        # The program's last sum is a blocking one, which must not match the collective that one
        # rank has left.
        job = Job(mpi, [case], engine, limit_s=limit_s, options=["--blocking=0"])
        done = job.finish(job.start())
        assert done.left == []
        return done

    # A busy machine may exceed the limit, and nothing is compared then.
    alone = ended(None, limit_s=5)
    if alone.status not in HUNG:
        assert ended("auto", limit_s=30).status in (0, alone.status)


@pytest.mark.parametrize("engine", NAMED)
def test_finalize_with_a_collective_that_nobody_joined(mpi, tool, engine):
    """Weft's clock goes twenty times as fast, so that its patience ends soon."""
    clock = [tool(mpi, "fast_clock")]
    if engine != "tcc":
        done = Job(mpi, ["finalizes-alone"], engine, limit_s=30, tools=clock).done()
        assert "MPI_Iallreduce (1)" in done.sentences()[0]
        return
    # The worker stays inside the library for ever, so that the job is aborted. Open MPI's launcher
    # crashes or hangs after about one of twenty calls of MPI_Abort, also without Weft.
    for _ in range(4 if mpi == "openmpi" else 1):
        job = Job(mpi, ["finalizes-alone"], engine, limit_s=15, tools=clock)
        done = job.finish(job.start())
        assert "MPI_Iallreduce (1)" in done.sentences()[0]
        assert "cannot be finalised" in done.sentences()[1]
        if done.status == 1:
            break
    assert done.status == 1 and done.left == []


def ended_when_said(job: Job, patterns: list[str]) -> Done:
    """Ends a job that hangs as soon as all patterns are in its standard error."""
    process = job.start()
    while not all(re.search(pattern, job.printed("err")) for pattern in patterns):
        assert process.poll() is None, job.printed("err")
        time.sleep(0.05)
    end_launcher(process)
    done = job.finish(process)
    assert done.left == []
    return done


@pytest.mark.parametrize("engine", ["function", "thread", "tcc"])
def test_watchdog_names_the_calls_that_wait_for_each_other(mpi, engine):
    options = ["--watchdog", "1", "--transport", "mpi"]
    job = Job(mpi, ["misordered"], engine, options=options)
    patterns = []
    for rank, call in ((0, "MPI_Ireduce"), (1, "MPI_Ibcast")):
        waits = f"watchdog: rank {rank} has waited in MPI_Wait for 1 s"
        line = rf"{waits}; .*\n  {call}, collective 1 on communicator 1 \(as rank {rank} of 2\), "
        peer = "inside the MPI library" if engine == "tcc" else f"receives from rank {1 - rank}"
        patterns.append(line + ".*" + peer)
    assert ended_when_said(job, patterns).status != 0


@pytest.mark.parametrize("engine", ["function", "thread"])
def test_calls_that_wait_for_each_other_in_shared_memory_end_in_an_error(mpi, engine):
    done = Job(mpi, ["misordered"], engine).done()
    assert done.status != 0
    assert done.left == []


@pytest.mark.parametrize("transport", ["auto", "mpi"])
def test_watchdog_names_the_blocking_call_that_waits(mpi, transport):
    options = ["--blocking", "--watchdog", "1", "--transport", transport]
    done = Job(mpi, ["late"], "function", options=options).right()
    # Rank 0 arrives later by three times the limit.
    assert done.err.count("rank 1 has waited in MPI_Allreduce for 1 s") == 1
    assert "rank 0" not in done.err


@pytest.mark.parametrize(("iterations", "of_how_many"), [(None, " of 3"), ("1", "")])
def test_watchdog_knows_no_last_round_of_a_collective_in_batches(mpi, iterations, of_how_many):
    """Since the rounds are made in batches, their number is unknown."""
    variables = {"WEFT_ALGORITHM_BCAST": "scatter-allgather"} | (
        {"WEFT_LAPS": iterations} if iterations else {}
    )
    options = ["--watchdog", "1", "--transport", "mpi"]
    job = Job(mpi, ["misordered"], "function", 3, options, variables)
    stands = rf"of 3\), round 1{of_how_many}, receives from rank 0"
    ended_when_said(job, [rf"MPI_Ibcast, .* \(as rank {rank} {stands}" for rank in (1, 2)])


def test_watchdog_says_nothing_where_nothing_hangs(mpi):
    done = Job(mpi, ["asked-by-two-threads"], "thread", options=["--watchdog", "20"]).right()
    assert done.sentences() == []


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_forked_children_leave_the_parent_alone(mpi, engine):
    Job(mpi, ["forks"], engine).right()


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_signals_interrupt_only_the_application(mpi, engine):
    done = Job(mpi, ["interrupted"], engine).right()
    if engine:  # the library's threads take no signals, either
        assert done.out == natively(mpi, "interrupted").out


@pytest.mark.parametrize("engine", ENGINES)
def test_stopped_and_continued(mpi, engine):
    job = Job(mpi, ["stoppable"], engine)
    process, pids = job.started()
    for pid in pids.values():
        stop_and_continue(pid, 0.2)
    done = job.finish(process)
    assert (done.status, done.left) == (0, [])


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_pages_may_be_tracked_by_signals(mpi, engine):
    """Weft's thread writes to the pages, so that the application's handler runs on it. This
    includes writes by the agent in another process."""
    variables = {"FAULTS_BY_THREAD": "1"} if engine in ("thread", "agent") else {}
    Job(mpi, ["tracks-pages"], engine, variables=variables).right()


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_pages_may_be_tracked_where_the_kernel_copies(mpi, engine):
    """The kernel does not write to a protected page, so that the thread which requested the copy
    writes."""
    options = ["--one-copy", "on"] if engine else []
    # MPICH's own copies by the kernel end the job.
    variables = {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}
    Job(mpi, ["tracks-pages-of-moves"], engine, options=options, variables=variables).right()


@pytest.mark.parametrize("engine", ["native", "thread", "auto"])
def test_a_message_that_waits_is_not_taken_for_a_trace(mpi, engine, tmp_path):
    trace = tmp_path / "trace.json"
    Job(mpi, ["message-waits-for-the-end"], engine, options=["--trace", str(trace)]).right()
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}
