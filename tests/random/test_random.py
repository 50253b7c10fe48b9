"""Runs random programs with fixed seeds under each engine, and finds a planted fault.

The results of the programs are known without any MPI library (see program.h). Weft's summary tells
that Weft really did the work."""

import json
import os
import subprocess

import pytest
from shrink import Setting, shrink, smallest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

ONE_CORE = "--placement list:" + ",".join([str(min(os.sched_getaffinity(0)))] * 8)
AGENT = "agent " + ONE_CORE
ENGINES = ("function", "thread", "tcc", "assist", "auto", AGENT)
PROGRAMS = 60
SOURCES = installation.ROOT / "tests" / "random"
# Engines that accept every size handle these calls.
HANDLED = ("MPI_Iallreduce", "MPI_Ibcast", "MPI_Iallgather", "MPI_Ialltoall", "MPI_Ireduce")
# Each rank knows only its own part of the counts of these calls. Weft carries them out in rounds in
# the node's memory.
IRREGULAR = ("MPI_Igatherv", "MPI_Iscatterv", "MPI_Iallgatherv", "MPI_Ialltoallv", "MPI_Ialltoallw")
OWN_ROUNDS = ("function", "thread", AGENT)


def needs(mpi: str) -> None:
    library = mpi_libraries.implementation(mpi)
    if not library.program("random").exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_random_programs(mpi, engine, tmp_path):
    needs(mpi)
    summary = tmp_path / "summary.json"
    setting = Setting(mpi, 3, engine, limit_s=60, summary=summary)
    done = setting.run("--seed", 1000 * (1 + ENGINES.index(engine)), "--programs", PROGRAMS)
    assert done.returncode == 0, done.stdout
    assert f"random: {PROGRAMS} programs right" in done.stdout
    told = json.loads(summary.read_text())
    assert (told["left_to_agent"] > 0) == (engine == AGENT)
    calls = {entry["call"]: entry for entry in told["calls"]}
    for call in HANDLED:
        assert calls[call]["seen"] > 0
        assert engine == "auto" or calls[call]["handled"] > 0, calls[call]
    for call in IRREGULAR:
        assert engine not in OWN_ROUNDS or calls[call]["in_memory"] > 0, calls[call]


# The agents of the nodes carry whole collectives: also where one node has a single rank, and where
# some threads have another core.
TWO_CORES = (min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0)))


# Ranks on one core sleep while the agent works for them; otherwise they take their parts back.
@pytest.mark.parametrize(
    ("ranks", "nodes", "cores", "loader"),
    [
        (4, "a:2,b:2", (0, 0), ()),
        (4, "a:3,b:1", (0, 0, 0), ("taskset", "-c", str(TWO_CORES[0]))),
        (5, "a:2,b:2,c:1", (0, 0), ("taskset", "-c", str(TWO_CORES[0]))),
        (6, "a:3,b:3", (0, 0, 1), ()),
    ],
)
def test_random_programs_of_agents_between_nodes(ranks, nodes, cores, loader, tmp_path):
    needs("mpich")
    summary = tmp_path / "summary.json"
    placement = ",".join(str(TWO_CORES[core]) for core in cores)
    engine = f"agent --placement list:{placement}"
    setting = Setting("mpich", ranks, engine, 60, summary=summary, loader=loader, nodes=nodes)
    done = setting.run("--seed", 97_000 + ranks, "--programs", PROGRAMS)
    assert done.returncode == 0, done.stdout
    assert f"random: {PROGRAMS} programs right" in done.stdout
    told = json.loads(summary.read_text())
    assert told["left_to_agent"] > 0 and told["led_by_agent"] > 0


# What ranks do not see of each other, the kernel copies.
@pytest.mark.parametrize(("mpi", "engine"), [("mpich", "function"), ("openmpi", "thread")])
def test_random_programs_in_one_copy(mpi, engine, tmp_path):
    needs(mpi)
    summary = tmp_path / "summary.json"
    setting = Setting(mpi, 3, f"{engine} --one-copy on", limit_s=60, summary=summary)
    done = setting.run("--seed", 91_000, "--programs", PROGRAMS)
    assert done.returncode == 0, done.stdout
    assert json.loads(summary.read_text())["one_copy_bytes"] > 0


# These algorithms have a round for each rank. Each batch of rounds is made when the previous one
# has ended.
IN_BATCHES = {
    "ring": ("allgather", "allgatherv", "allreduce"),
    "pairwise": ("alltoall", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block"),
    "scatter-allgather": ("bcast",),
}


@pytest.mark.parametrize(
    ("mpi", "engine"), [("mpich", "thread --blocking"), ("openmpi", "function")]
)
def test_random_programs_in_sections(mpi, engine):
    needs(mpi)
    names = {
        f"WEFT_ALGORITHM_{kind.upper()}": name for name in IN_BATCHES for kind in IN_BATCHES[name]
    }
    variables = {**names, "WEFT_LAPS": "1"}
    setting = Setting(mpi, 4, f"{engine} --transport mpi", limit_s=60, variables=variables)
    done = setting.run("--seed", 93_000, "--programs", PROGRAMS)
    assert done.returncode == 0, done.stdout
    assert f"random: {PROGRAMS} programs right" in done.stdout


# Each call class takes another variant every few calls, so that calls are deferred again and again.
# Jobs run on nodes that Hydra is told, and on one node, in whose memory Weft carries out all kinds
# of collectives. The threads of a node's ranks may share a core, and then have an agent. At the
# program's own thread level, on one node, no call is deferred.
@pytest.mark.parametrize(
    ("mpi", "ranks", "nodes", "options", "level"),
    [
        ("mpich", 3, "a:2,b:1", "", "multiple"),
        ("mpich", 4, "a:1,b:2,c:1", "", "multiple"),
        ("mpich", 4, "a:3,b:1", ONE_CORE, "multiple"),
        ("mpich", 2, "", "--blocking", "multiple"),
        ("openmpi", 3, "", "--blocking", "multiple"),
        ("mpich", 3, "", "", "funneled"),
        ("openmpi", 3, "", "", "serialized"),
    ],
)
def test_random_programs_while_ways_are_switched(mpi, ranks, nodes, options, level, tmp_path):
    needs(mpi)
    summary = tmp_path / "summary.json"
    engine = f"auto --learn switch {options}"
    words = ("--level", level)
    setting = Setting(mpi, ranks, engine, 60, words, summary, nodes=nodes)
    done = setting.run("--seed", 77_000, "--programs", 4 * PROGRAMS)
    assert done.returncode == 0, done.stdout
    assert f"random: {4 * PROGRAMS} programs right" in done.stdout
    sites = json.loads(summary.read_text())["learnt"]
    assert len({site["way"] for site in sites}) > 3


# If a summary is requested, short calls are recorded among the others.
@pytest.mark.parametrize("engine", ["function", "thread", "auto --learn switch"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_random_programs_that_nobody_observes(mpi, engine):
    needs(mpi)
    setting = Setting(mpi, 3, engine, 60, ("--level", "funneled"))
    done = setting.run("--seed", 95_000, "--programs", 2 * PROGRAMS)
    assert done.returncode == 0, done.stdout
    assert f"random: {2 * PROGRAMS} programs right" in done.stdout


def test_a_planted_fault_is_found_and_cut_down_to_one_call(tmp_path):
    needs("mpich")
    library = tmp_path / "libplanted.so"
    compiler = mpi_libraries.implementation("mpich").prefix / "bin" / "mpicc"
    command = [compiler, "-shared", "-fPIC", SOURCES / "planted_fault.c", "-o", library]
    subprocess.run([str(word) for word in command], check=True)
    setting = Setting("mpich", 2, variables={"LD_PRELOAD": str(library)})
    done = setting.run("--seed", 1, "--programs", 1000)
    assert done.returncode == 1, done.stdout
    seed = int(done.stdout.split("random: seed ")[1].split(",")[0])
    found = shrink(setting, seed, repeat=1)
    assert found
    steps, report = found
    assert len(steps) == 1
    assert "MPI_Iallreduce" in next(iter(steps.values()))
    assert "the receive buffer is wrong" in report


def test_smallest_keeps_what_fails_together():
    assert smallest(range(40), lambda kept: 7 in kept and 31 in kept) == [7, 31]
    assert smallest(range(5), lambda kept: 4 in kept) == [4]


def test_a_bad_option_is_refused():
    needs("mpich")
    done = Setting("mpich", 1).run("--seed", "many")
    assert done.returncode == 2
    assert "cannot use '--seed'" in done.stdout
