"""Tests conformance with MPI: each engine and algorithm against the library's own blocking calls.

The program (tests/mpi/conformance.cc) knows nothing of Weft. The summary tells what Weft did. Most
cases of algorithms run in the simulator; here the ranks share a few cores."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from domains import in_two_domains

from weft.system import installation, mpi_libraries

# Every engine except native must handle these collectives in any form ("Bcast_init"). Add new ones
# here.
HANDLED = ("Iallreduce", "Ialltoall", "Ibcast", "Ireduce", "Iallgather", "Iscan", "Ibarrier")
# Engine agent needs options: the threads of all ranks must be placed on one core.
CORE = str(min(os.sched_getaffinity(0)))
AGENT = "agent --placement list:" + ",".join([CORE] * 8)
ONE_CORE = ("taskset", "-c", CORE)
ENGINES = ("auto", "native", "function", "thread", "thread --blocking", "tcc", "assist", AGENT)
TAKE_BLOCKING = ("auto", "thread --blocking")
WEFT_SCHEDULES = ("auto", "function", "thread", AGENT)
# These cases are left out, since the library itself fails in them, and a comparison says nothing.
#
# Open MPI: non-blocking reductions of types with a negative lower bound write before their buffer,
# and a communicator that is freed with collectives pending is lost. Intel MPI: a non-blocking
# allgather from a vector to plain ints; blocking reductions of derived types with a user's
# operator, and gathers of a type with a negative lower bound, which write beyond their buffers. Its
# persistent gathers and scatters are right only once, and its alltoallw in place is not. MPICH and
# Intel MPI: scattered reductions of derived types write beyond their buffers if the operator does
# not commute.
FAULTS = {
    "mpich": "scattered-derived",
    "openmpi": "negative,comm-free,alltoallw-in-place",
    "intelmpi": "scattered-derived,reduced-negative,gathered-negative,mixed,"
    "MPI_Gather_init,MPI_Scatter_init,MPI_Allgather_init,alltoallw-in-place",
}
BLOCKING_FAULTS = {"intelmpi": FAULTS["intelmpi"] + ",negative,struct"}
# With WEFT_CONFORMANCE=full every size and number of ranks is tested. Otherwise the tests fit the
# time of `make test`.
FULL = os.environ.get("WEFT_CONFORMANCE") == "full"
LONG = pytest.mark.long
LIMIT_S = 600 if FULL else 240
DEFINITIONS = installation.ROOT / "src" / "coll" / "algorithms.def"


@dataclass(frozen=True)
class Place:
    """The nodes and NUMA domains of the ranks in an algorithm's job."""

    ranks: int
    nodes: str = ""  # hosts for Hydra, which are all this machine
    domains: str = ""  # shell expression of a rank's domain, if there are two


def places_of(name: str, needs: str) -> list[Place]:
    """Returns the places in which an algorithm is tested.

    `make test` uses 3 ranks, which take a third of the time of 5 on two cores. Otherwise there are
    5, or 4 if the algorithm needs a power of two. Both are used if there are several nodes or
    domains, and with WEFT_CONFORMANCE=full. Ranks are placed in turn or one after the other. On
    several nodes, ranks are also out of order, with the lowest rank not on the first node."""
    if name.startswith("domain-"):
        return [
            Place(3, domains="rank / 2"),
            Place(5, domains="rank / 3"),
            Place(4, domains="rank % 2"),
        ]
    if name.startswith("hierarchical"):
        in_order = name.endswith("in-order") or needs == "nodes_in_order"
        return [
            Place(3, "a:2,b:1", "" if in_order else "(rank + 1) % 2"),
            Place(5, "a:3,b:2", "" if in_order else "(rank + 1) % 2"),
            Place(4, "a:2,b:2"),
            Place(6, "a:2,b:2,c:2"),
        ]
    if needs == "power_of_two":
        return [Place(2), Place(4)]
    return [Place(3), Place(5), *([Place(4)] if FULL else [])]


MOST_KINDS = 8  # most collectives in a job


def algorithm_jobs() -> list:
    """Returns jobs, each with a place and with one algorithm for each of some collectives. All
    algorithms are tested in each of their places."""
    pattern = r'WEFT_ALGORITHM\((\w+), "([\w-]+)", \w+, (\w+)'
    jobs: list[tuple[Place, dict[str, str]]] = []
    for kind, name, needs in re.findall(pattern, DEFINITIONS.read_text()):
        for place in places_of(name, needs):
            fits = (
                chosen
                for where, chosen in jobs
                if where == place and kind not in chosen and len(chosen) < MOST_KINDS
            )
            chosen = next(fits, None)
            if chosen is None:
                jobs.append((place, chosen := {}))
            chosen[kind] = name
    return [
        pytest.param(place, chosen, marks=() if place.ranks <= 3 else LONG)
        for place, chosen in jobs
    ]


def run(
    mpi: str,
    ranks: int,
    summary: Path,
    engine: str | None,
    options=(),
    environment=None,
    nodes: str = "",
    before=(),
):
    """Runs the program. Returns the number of equal cases, and the summary (None without Weft).

    `nodes`: hosts for Hydra, which are all this machine. `before`: words in front of each rank's
    command."""
    library = mpi_libraries.implementation(mpi)
    program = library.program("conformance")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    launcher = library.launcher(ranks)
    if nodes:
        launcher += ["-launcher", "fork", "-hosts", nodes]
    front = [*before]
    if engine:
        front += [installation.weft_command(), "run", "--engine", *engine.split()]
        front += [f"--summary=json:{summary}", "--"]
    command = [*launcher, *front, program, "--limit-s", LIMIT_S, *options]
    variables = {**os.environ, **library.environment(), **(environment or {})}
    # The wheel's vectorised operators add 8-bit integers wrongly. Waiting ranks yield, since there
    # are more of them than cores.
    variables |= {"OMPI_MCA_op": "^avx", "OMPI_MCA_mpi_yield_when_idle": "1"}
    variables |= {"I_MPI_THREAD_YIELD": "2"}
    done = subprocess.run(
        [str(word) for word in command],
        env=variables,
        capture_output=True,
        text=True,
        timeout=LIMIT_S + 30,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    equal = re.search(r"conformance: (\d+) cases equal", done.stdout)
    assert equal, done.stdout
    return int(equal[1]), json.loads(summary.read_text()) if engine else None


def calls_of(summary: dict) -> dict[str, dict]:
    return {entry["call"]: entry for entry in summary["calls"]}


def check_handled(summary: dict, engine: str, ranks: int) -> None:
    """Checks that the engine did the work: each collective was handled, or was rightly left to the
    library."""
    calls = calls_of(summary)
    if engine == "auto":  # the rule decides which calls engine auto takes
        taken = sum(entry["handled"] for entry in calls.values())
        assert (taken > 0) == (ranks > 1)
        return
    # Only long operations of ranks that share memory are left to the agent.
    assert (summary["left_to_agent"] > 0) == (engine == AGENT and ranks > 1)
    for kind in HANDLED:
        entry = calls[f"MPI_{kind}"]
        passed_on = sum(entry["passed_on"].values())
        assert entry["seen"] == entry["handled"] + passed_on
        if engine == "native" or ranks == 1:
            assert entry["handled"] == 0
        else:
            assert entry["handled"] > passed_on, entry


def faults(mpi: str, engine: str) -> list[str]:
    """Returns options that leave out cases in which the library's own collective does the work and
    fails, or the one with which results are compared."""
    blocking = BLOCKING_FAULTS if engine in ("tcc", *TAKE_BLOCKING) else {}
    left_out = blocking.get(mpi, FAULTS.get(mpi))
    return ["--without", left_out] if left_out else []


def groups(mpi: str, engine: str | None = None) -> list[str]:
    # The MPICH wheel is built without checks of arguments, so that a mistake in a call crashes it.
    mistakes = "" if mpi == "mpich" else ",mistakes"
    blocking = ",blocking" if engine in TAKE_BLOCKING else ""
    return ["--groups", f"results,flight,lifetime{mistakes}{blocking}"]


def check(mpi, ranks, engine, tmp_path, capsys, options=()):
    words = [*groups(mpi, engine), *faults(mpi, engine), *options]
    # Short operations are no work for the agent. MPICH's own gathers of 1000 elements are wrong
    # from 4 ranks on.
    if engine == AGENT and ranks < 4 and not FULL:
        words += ["--largest-count", "1500"]
    equal, summary = run(mpi, ranks, tmp_path / "summary.json", engine, words)
    check_handled(summary, engine, ranks)
    with capsys.disabled():
        print(f"  {mpi} {engine} {ranks} ranks: {equal} cases equal")


def largest_count(full: int) -> list[str]:
    return ["--largest-count", str(full if FULL else 7)]


@LONG  # tests the program only
@pytest.mark.parametrize("mpi", mpi_libraries.IMPLEMENTATIONS)
def test_the_program_itself_passes_without_weft(mpi, tmp_path):
    options = [*groups(mpi), *faults(mpi, "native"), *largest_count(1000)]
    equal, _ = run(mpi, 2, tmp_path / "none", None, options)
    assert equal > 500


def engines_and_ranks() -> list:
    """Returns the engines with numbers of ranks. `make test` has each engine on 3 ranks, and auto
    on one rank, too. Four ranks take eight times as long as three on two cores."""
    short = {("auto", 1), *((engine, 3) for engine in ENGINES)}
    return [
        pytest.param(engine, ranks, marks=() if (engine, ranks) in short else LONG)
        for engine in ENGINES
        for ranks in ([1, 2, 3, 4, 5] if FULL else [1, 3, 4])
    ]


@pytest.mark.parametrize(("engine", "ranks"), engines_and_ranks())
def test_mpich(engine, ranks, tmp_path, capsys):
    largest = largest_count(100003 if ranks <= 4 else 1000)
    check("mpich", ranks, engine, tmp_path, capsys, largest)


@LONG
@pytest.mark.parametrize("engine", WEFT_SCHEDULES if FULL else ("auto",))
def test_eight_ranks(engine, tmp_path, capsys):
    check("mpich", 8, engine, tmp_path, capsys, ["--largest-count", "7"])


@pytest.mark.parametrize("ranks", [2, 3] if FULL else [2])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mpi", ["openmpi", "intelmpi"])
def test_other_libraries(mpi, engine, ranks, tmp_path, capsys):
    largest = largest_count(100003 if ranks == 2 else 1000)
    check(mpi, ranks, engine, tmp_path, capsys, largest)


# On one core ranks sleep while the agent works for them; otherwise they take their parts back.
@pytest.mark.parametrize(
    ("ranks", "nodes", "before"),
    [
        pytest.param(4, "a:2,b:2", (), marks=LONG),
        (5, "a:3,b:2", ONE_CORE),
        pytest.param(6, "a:2,b:2,c:2", ONE_CORE, marks=LONG),
    ],
)
def test_agents_between_nodes(ranks, nodes, before, tmp_path, capsys):
    words = ["--groups", "results,flight,lifetime", "--largest-count", "1500"]
    words += ["--without", FAULTS["mpich"] + ",negative"]
    path = tmp_path / "summary.json"
    equal, summary = run("mpich", ranks, path, AGENT, words, nodes=nodes, before=before)
    check_handled(summary, AGENT, ranks)
    assert summary["led_by_agent"] > 0
    with capsys.disabled():
        print(f"  agents of {nodes}: {equal} cases equal")


@pytest.mark.parametrize(("place", "chosen"), algorithm_jobs())
def test_algorithms(place, chosen, tmp_path, capsys):
    variables = {f"WEFT_ALGORITHM_{kind.upper()}": name for kind, name in chosen.items()}
    equal, summary = run(
        "mpich",
        place.ranks,
        tmp_path / "summary.json",
        "thread",
        # MPICH's own Gather_c does not support types with a negative lower bound in place.
        ["--groups", "results", "--only", ",".join(chosen), "--largest-count", "1000"]
        + ["--without", FAULTS["mpich"] + ",negative"],
        # Algorithms with a round for each rank are carried out in batches of two iterations.
        {**variables, "WEFT_LAPS": "2"},
        place.nodes,
        [in_two_domains(tmp_path, place.domains)] if place.domains else [],
    )
    for kind, algorithm in chosen.items():
        entry = calls_of(summary)[f"MPI_I{kind}"]
        assert entry["handled"] > 0, algorithm
        if algorithm.startswith(("node-", "domain-", "hierarchical")):
            assert entry["in_memory"] > 0, (algorithm, entry)
        else:  # an algorithm that does not permit the operator is replaced by the default one
            assert entry["in_memory"] < entry["handled"], (algorithm, entry)
    with capsys.disabled():
        print(f"  {chosen} {place}: {equal} cases equal")
