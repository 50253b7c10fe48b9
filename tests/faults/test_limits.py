"""Tests requests that the system or the MPI library refuses, and programs that Weft does not
concern (rows 25, 28 to 30). Weft prints one sentence, and the program's results are right."""

import bisect
import os
import re
import resource
import subprocess
import sys
from functools import cache

import pytest
from job import ENGINES, Job

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

LIMIT_THREADS = installation.ROOT / "tests/cli/programs/limit_threads.c"
NO_THREAD = ("threads", "threads-on-rank-1", "memory", "clone")


def weft_threads(done) -> list[str]:
    return re.findall(r"thread (weft-\S+)", done.out)


@pytest.mark.parametrize("engine", [None, *ENGINES])
@pytest.mark.parametrize("refused", NO_THREAD)
def test_no_thread_to_be_had(mpi, tool, engine, refused):
    job = Job(mpi, ["work"], engine, variables={"FAULTS_REFUSE": refused})
    job.tools = [tool(mpi, "refuse")]
    job.as_somebody = refused.startswith("threads")
    done = job.right()
    assert done.out.count("works") == 2
    assert len(done.sentences()) <= 1, done.text
    if engine in ("thread", "tcc", "assist", "agent"):
        rank = 1 if refused == "threads-on-rank-1" else 0
        assert f"rank {rank} gets no progress thread" in done.err


@pytest.mark.parametrize("engine", [None, "thread", "tcc"])
def test_cores_not_to_be_had(mpi, tool, engine):
    core = min(os.sched_getaffinity(0))
    job = Job(mpi, ["work"], engine, options=["--placement", f"list:{core},{core}"])
    job.variables = {"FAULTS_REFUSE": "affinity"}
    job.tools = [tool(mpi, "refuse")]
    done = job.right()
    for sentence in done.sentences():
        assert f"core {core} is not available" in sentence
    assert len(done.sentences()) <= 2 * 3  # the progress thread and two workers may print one each


@pytest.mark.parametrize("refused", ["yield", "prctl", "memfd", "readv", "madvise"])
@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_a_call_refused(mpi, tool, engine, refused):
    """Weft does without the refused feature, such as memory that ranks share."""
    # MPICH itself gives wrong results if its own copies by the kernel are refused.
    variables = {"FAULTS_REFUSE": refused, "MPIR_CVAR_CH4_CMA_ENABLE": "0"}
    job = Job(mpi, ["work"], engine, variables=variables)
    job.tools = [tool(mpi, "refuse")]
    assert len(job.right().sentences()) <= 1


def taken(job: Job) -> list[dict[str, int]]:
    """Returns the resources that each rank reports. A rank that reports twice is in the list
    twice."""
    said = r"addresses (\d+) KiB, shared pages (\d+) KiB, descriptors (\d+)"
    found = [map(int, numbers) for numbers in re.findall(said, job.right().out)]
    assert len(found) >= job.ranks
    return [dict(zip(("addresses", "shared", "descriptors"), numbers)) for numbers in found]


def most(job: Job, what: str) -> int:
    return max(rank[what] for rank in taken(job))


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("engine", ["auto", "thread"])
def test_addresses_grow_with_what_is_used(mpi, engine, ranks):
    """Addresses must not grow with the machine's memory, which each rank may expose to the
    others."""
    natively = most(Job(mpi, ["resources"], ranks=ranks), "addresses")
    under_weft = most(Job(mpi, ["resources"], engine, ranks=ranks), "addresses")
    communicators = 21 * (40 << 10)  # memory that ranks share, for each communicator
    assert under_weft - natively < communicators + (400 << 10)


@pytest.mark.parametrize("ranks", [2, 4])
def test_descriptors_of_other_ranks_are_closed(mpi, ranks):
    natively = most(Job(mpi, ["resources"], ranks=ranks), "descriptors")
    under_weft = most(Job(mpi, ["resources"], "auto", ranks=ranks), "descriptors")
    assert under_weft <= natively + 1  # one descriptor is for the rank's own memory


@pytest.mark.skipif(
    os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != resource.RLIM_INFINITY,
    reason="this machine's user may not lock all memory (ulimit -l)",
)
@pytest.mark.parametrize("case", ["locked-before", "locked-after"])
@pytest.mark.parametrize("engine", ["auto", "thread"])
def test_locked_memory_is_not_filled(mpi, engine, case):
    """Only a few pages of the shared memory are used. Locking all of it would need gigabytes."""
    natively = most(Job(mpi, [case]), "shared")
    under_weft = most(Job(mpi, [case], engine), "shared")
    assert under_weft - natively < (64 << 10 if case == "locked-before" else 1 << 20)


LIMITS = {
    "descriptors": "-n 40",
    "file size": "-f 200000",
    "locked memory": "-l 64",
    "addresses": "-v 2000000",
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("engine", ENGINES)
def test_works_within_a_users_limits(mpi, engine, limit):
    """If the program alone runs within the limit, it runs with Weft, which prints at most one
    sentence."""
    job = Job(mpi, ["work"], engine, limits=LIMITS[limit])
    natively = Job(mpi, ["work"], limits=LIMITS[limit])
    job.as_somebody = natively.as_somebody = True
    if natively.done().status != 0:
        pytest.skip(f"this machine: {mpi} itself ends under this limit of {limit}")
    assert len(job.right().sentences()) <= 1


MOST_PROCESSES = 100


@cache
def fewest_processes(mpi) -> int:
    """Returns the fewest processes with which the library itself works, including launcher and
    threads."""

    def gets_through(limit) -> bool:
        job = Job(mpi, ["work"], limits=f"-u {limit}", as_somebody=True, limit_s=10)
        return job.finish(job.start()).status == 0

    return bisect.bisect_left(range(MOST_PROCESSES), True, key=gets_through)


@pytest.mark.parametrize("spare", [0, 1, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_works_with_a_users_limit_of_processes(mpi, engine, spare):
    """Threads count as processes. There are none left for Weft, enough for one rank, or some."""
    fewest = fewest_processes(mpi)
    if fewest == MOST_PROCESSES:
        pytest.skip("this machine: the user has many other processes, which count, too")
    limits = f"-u {fewest + spare}"
    done = Job(mpi, ["work"], engine, limits=limits, as_somebody=True).right()
    assert len(done.sentences()) <= 1, done.text


def test_a_heap_that_was_asked_for_is_missed_where_addresses_are_limited(mpi):
    limit = LIMITS["addresses"]
    done = Job(mpi, ["work"], "function", options=["--shared-heap"], limits=limit).right()
    assert len(done.sentences()) == 1, done.text
    assert "limit on its addresses (ulimit -v)" in done.err


@pytest.mark.parametrize("engine", ["thread", "tcc"])
def test_no_room_in_dev_shm(mpi, engine):
    """Weft needs no room in /dev/shm, so that the job behaves as without Weft."""
    natively = Job(mpi, ["work"], shm_size="8k").done()
    under_weft = Job(mpi, ["work"], engine, shm_size="8k").done()
    assert (under_weft.status == 0) == (natively.status == 0), under_weft.text
    assert under_weft.sentences() == []


@pytest.mark.parametrize("level", ["single", "funneled", "serialized"])
@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_the_level_asked_for_is_granted(mpi, engine, level):
    variables = {"FAULTS_LEVEL": level}
    if engine in ("thread", "tcc"):
        variables["FAULTS_AWAITED_THREAD"] = "weft-tcc" if engine == "tcc" else "weft-progress"
    done = Job(mpi, ["level-asked"], engine, variables=variables).right()
    if engine in (None, "thread", "tcc"):  # other engines may have such a thread or not
        assert bool(weft_threads(done)) == bool(engine)


@pytest.mark.parametrize("engine", [None, "thread"])
def test_plain_init(mpi, engine):
    Job(mpi, ["plain-init"], engine).right()


@pytest.mark.parametrize("engine", ["thread", "tcc", "assist", "agent"])
def test_no_thread_of_wefts_where_the_library_grants_none(mpi, tool, engine):
    job = Job(mpi, ["level-asked"], engine, variables={"FAULTS_LEVEL": "funneled"})
    job.tools = [tool(mpi, "limit_threads", LIMIT_THREADS)]
    done = job.right()
    assert weft_threads(done) == []
    assert len(done.sentences()) == 1


@pytest.mark.parametrize("case", ["never-init", "sessions-only"])
@pytest.mark.parametrize("engine", [None, "thread", "auto"])
def test_inert_without_init(mpi, engine, case):
    done = Job(mpi, [case], engine).right()
    assert done.sentences() == []


@pytest.mark.parametrize("engine", [None, "thread", "auto"])
def test_inert_where_init_fails(mpi, tool, engine):
    job = Job(mpi, ["init-fails"], engine, variables={"FAULTS_REFUSE": "init"})
    job.tools = [tool(mpi, "refuse")]
    done = job.done()  # the launcher may report a failure
    assert done.out.count("MPI_Init returned an error") == 2
    assert done.sentences() == []


def preload(*libraries) -> dict[str, str]:
    return {**os.environ, "LD_PRELOAD": ":".join(map(str, libraries))}


@pytest.mark.parametrize(
    "command", [["/bin/sh", "-c", "echo hello"], ["python3", "-c", "print(1)"]]
)
def test_inert_in_programs_without_mpi(mpi, command):
    plain = subprocess.run(command, capture_output=True, text=True, timeout=60)
    library = installation.preload_library(mpi)
    under = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=preload(library)
    )
    assert (under.returncode, under.stdout, under.stderr) == (0, plain.stdout, plain.stderr)


def test_preloaded_into_the_launcher_too(mpi):
    job = Job(mpi, ["work"])
    command = job.command()
    at = command.index(str(job.library.mpiexec))
    preloads = ["env", f"LD_PRELOAD={installation.preload_library(mpi)}", "WEFT_ENGINE=thread"]
    job.command = lambda: command[:at] + preloads + command[at:]
    assert job.right().out.count("works") == 2


def test_another_mpi_than_the_programs_is_named(mpi):
    other = {"mpich": "openmpi", "openmpi": "mpich"}[mpi]
    job = Job(mpi, ["work"], tools=[installation.preload_library(other)])
    done = job.done()
    assert done.status != 0
    assert "use 'weft run --mpi ...' to name the right one" in done.err
    assert "works" not in done.out


def test_the_library_may_be_opened_by_another_name(mpi, tmp_path):
    """Interpreters open the library by another name. Weft must recognise the name by which programs
    are linked to it."""
    pytest.importorskip("mpi4py")
    library = mpi_libraries.implementation(mpi)
    if not library.present:
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    opened = tmp_path / "libmpi.so"
    opened.symlink_to(library.library)
    for beside in library.library.parent.iterdir():  # the library looks for its own parts beside it
        if beside.name != opened.name:
            (tmp_path / beside.name).symlink_to(beside)
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(2))"
    weft = [installation.weft_command(), "run", "--summary", "--mpi", mpi, "--"]
    done = subprocess.run(
        [*library.launcher(2), *weft, sys.executable, "-c", program],
        env={**os.environ, **library.environment(), "MPI4PY_LIBMPI": str(opened)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "".join(done.stdout.split()) == "44", done.stdout + done.stderr
    assert "weft: summary of 2 ranks" in done.stderr


@pytest.mark.parametrize("first", ["tool", "weft"])
def test_another_tool_before_or_after(mpi, tool, first):
    """A tool before Weft sees the application's calls. A tool behind Weft sees only those that Weft
    does not handle."""
    library = installation.preload_library(mpi)
    chain = [tool(mpi, "count_calls"), library]
    job = Job(mpi, ["work"], variables={"WEFT_ENGINE": "thread"})
    job.tools = chain if first == "tool" else chain[::-1]
    done = job.right()
    started, waited = map(int, re.search(r"tool: (\d+) started, (\d+) waited", done.out).groups())
    assert started == (4 if first == "tool" else 0)
    assert waited > 0


def test_weft_makes_nothing_that_could_be_left():
    """Weft makes no segments with names, on which rows 1, 2 and 30 are based."""
    for library in installation.BUILD.glob("lib/libweft-*.so"):
        names = subprocess.run(["nm", "-D", library], capture_output=True, text=True).stdout
        for call in ("shm_open", "shmget", "semget", "msgget", "mkfifo", "sem_open"):
            assert call not in names


@pytest.mark.parametrize("engine", ["auto", "function", "thread"])
def test_a_type_of_more_than_2_gib_is_left_to_the_library(mpi, engine):
    done = Job(mpi, ["huge-type"], engine, options=["--summary"]).right()
    assert done.out.count("a huge type: right") == 2
    assert "more than 2 GiB" in done.err
