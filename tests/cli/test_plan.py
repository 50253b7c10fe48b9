"""Tests persistent collectives that are tuned when they are initialised: what is measured, cached
and printed. Tests count entries in the summary, and use no times."""

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from weft.system import installation

pytestmark = pytest.mark.covering

SOURCE = installation.ROOT / "tests/cli/programs/plans.c"
COLLECTIVES, FEW = 24, 6
HEADER = "# weft plans, version 4\n"
MOST_DOUBTS = 4
CHOICE = ("algorithm", "part_bytes", "radix", "radix_across")
# Such a plan has no alternative, and follows the rule whatever could be measured.
ALONE = "there is no other candidate"
# The handling of the file does not depend on the library.
ONE_LIBRARY = pytest.mark.parametrize("mpi", ["mpich"], indirect=True)


@pytest.fixture(scope="module")
def program(mpi, compile_once):
    return compile_once("plans", [mpi.prefix / "bin/mpicc", SOURCE])


@pytest.fixture
def plans_of(mpi, program, tmp_path, environment):
    """Runs the program, checks its results, and returns the plans of the summary."""

    def job(few, *weft, ranks=2, cache="none", front=(), hosts="", **variables):
        summary = tmp_path / "summary.json"
        launcher = mpi.launcher(ranks)
        if hosts:
            launcher += ["-launcher", "fork", "-hosts", hosts]
        weft = ["--engine", "function", *weft, f"--summary=json:{summary}", "--", program, *few]
        command = [*launcher, *front, installation.weft_command(), "run", *weft]
        path = [str(mpi.prefix / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        variables = {"WEFT_PLAN_CACHE": str(cache), **variables}
        done = subprocess.run(
            [str(word) for word in command],
            env={
                **environment,
                **mpi.environment(),
                "LD_LIBRARY_PATH": os.pathsep.join(filter(None, path)),
                "OMPI_MCA_mpi_yield_when_idle": "1",
                # The budget suffices to measure everything on a busy machine.
                "WEFT_INIT_BUDGET": "10s",
                "WEFT_ONE_COPY": "off",  # its rule is measured separately, and changes plans
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said = f"{FEW if few else COLLECTIVES} collectives, 0 wrong"
        assert said in done.stdout, done.stdout + done.stderr
        return json.loads(summary.read_text())["plans"]

    return job


@pytest.fixture
def plans(plans_of):
    return partial(plans_of, [])


@pytest.fixture
def few_plans(plans_of):
    """Runs a few collectives only, for tests of the cache."""
    return partial(plans_of, ["few"])


def sources(plans):
    """Returns the sources of the plans, without those that have no alternative."""
    return {plan["source"] for plan in plans if plan["why"] != ALONE}


def chosen(plans):
    return [[plan[key] for key in ("call", "bytes", *CHOICE)] for plan in plans]


def in_cache(cache):
    """Returns the fields of the cache's lines: key, choice, doubts, times."""
    header, *lines = cache.read_text().splitlines()
    assert header + "\n" == HEADER
    return [line.split("\t") for line in lines]


def write_cache(cache, lines):
    cache.write_text(HEADER + "".join("\t".join(fields) + "\n" for fields in lines))


def with_doubts(cache, doubts):
    lines = in_cache(cache)
    write_cache(cache, [[key, choice, str(doubts), times] for key, choice, _, times in lines])


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_is_certain_is_not_measured_again(plans, tmp_path, ranks):
    cache = tmp_path / "plans"
    first = plans(cache=cache, ranks=ranks)
    assert len(first) == COLLECTIVES
    assert sources(first) == {"measured"}
    assert all(len(plan["candidates"]) > 1 for plan in first if plan["source"] == "measured")
    measured = [plan for plan in first if plan["source"] == "measured"]
    assert len(in_cache(cache)) == len(measured)
    with_doubts(cache, 0)
    text = cache.read_text()
    second = plans(cache=cache, ranks=ranks)
    assert sources(second) == {"cache"}
    assert chosen(second) == chosen(first)
    assert cache.read_text() == text


@pytest.mark.one_library
def test_what_is_doubtful_is_measured_until_it_is_certain(few_plans, tmp_path):
    """All ranks measure it alike. The number of doubts is limited, whatever the measurements
    say."""
    cache = tmp_path / "plans"
    few_plans(cache=cache, ranks=3)
    with_doubts(cache, 1)
    again = few_plans(cache=cache, ranks=3)
    assert sources(again) == {"measured"}
    doubts = [plan["doubts"] for plan in again if plan["source"] == "measured"]
    assert set(doubts) <= {0, 2}
    assert [int(fields[2]) for fields in sorted(in_cache(cache))].count(2) == doubts.count(2)
    with_doubts(cache, MOST_DOUBTS - 1)
    few_plans(cache=cache, ranks=3)
    assert {fields[2] for fields in in_cache(cache)} == {"0"}
    assert sources(few_plans(cache=cache, ranks=3)) == {"cache"}


@ONE_LIBRARY
def test_the_rule_is_certain_once_it_has_won_twice(few_plans, tmp_path):
    """A plan other than the rule's is never certain before the last comparison. Times of the first
    run are not used in the second."""
    cache = tmp_path / "plans"
    few_plans(cache=cache)
    with_doubts(cache, 1)
    before = {key: choice for key, choice, _, _ in in_cache(cache)}
    few_plans(cache=cache)
    for key, choice, doubts, times in in_cache(cache):
        rules = times.split("=")[0]
        if choice != rules:
            assert doubts == "2"
        elif before[key] == rules:
            assert doubts == "0"


@pytest.mark.one_library
def test_without_time_the_doubtful_plan_stays(few_plans, tmp_path):
    cache = tmp_path / "plans"
    first = few_plans(cache=cache)
    with_doubts(cache, 1)
    second = few_plans("--init-budget", "1us", cache=cache)
    # That a plan has no alternative is found when it is tried.
    expected = ["rule" if plan["why"] == ALONE else "cache" for plan in first]
    assert [plan["source"] for plan in second] == expected
    assert chosen(second) == chosen(first)
    assert {fields[2] for fields in in_cache(cache)} == {"2"}


@pytest.mark.one_library
def test_other_numbers_of_ranks_have_other_plans(few_plans, tmp_path):
    few_plans(cache=tmp_path / "plans", ranks=2)
    assert sources(few_plans(cache=tmp_path / "plans", ranks=3)) == {"measured"}


def algorithms(plans, call):
    return {
        one["algorithm"] for plan in plans if plan["call"] == call for one in plan["candidates"]
    }


# This includes a rank that is alone on its node, and has no node memory. Hydra is the only launcher
# that treats one machine as several nodes.
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
@pytest.mark.parametrize(
    ("ranks", "hosts"), [pytest.param(4, "a:2,b:2", marks=pytest.mark.long), (3, "a:2,b:1")]
)
def test_over_several_nodes(plans, few_plans, tmp_path, ranks, hosts):
    cache = tmp_path / "plans"
    first = plans(cache=cache, ranks=ranks, hosts=hosts)
    assert len(first) == COLLECTIVES
    assert sources(first) == {"measured"}
    assert algorithms(first, "MPI_Allreduce_init") >= {"hierarchical", "recursive-doubling"}
    assert algorithms(first, "MPI_Scan_init") == {"chain", "recursive-doubling"}
    with_doubts(cache, 0)
    second = plans(cache=cache, ranks=ranks, hosts=hosts)
    assert sources(second) == {"cache"}
    assert chosen(second) == chosen(first)
    assert sources(few_plans(cache=cache, ranks=ranks)) == {"measured"}  # on one node


@pytest.mark.one_library
def test_by_messages(plans, few_plans, tmp_path):
    cache = tmp_path / "plans"
    first = plans("--transport", "mpi", cache=cache, ranks=3)
    assert len(first) == COLLECTIVES
    assert sources(first) == {"measured"}
    assert "ring" in algorithms(first, "MPI_Allreduce_init")
    assert not any(name.startswith("node-") for name in algorithms(first, "MPI_Allreduce_init"))
    with_doubts(cache, 0)
    assert sources(plans("--transport", "mpi", cache=cache, ranks=3)) == {"cache"}
    assert sources(few_plans(cache=cache, ranks=3)) == {"measured"}  # in the node's memory


@ONE_LIBRARY
def test_without_a_cache_every_run_measures(few_plans, tmp_path):
    for _ in range(2):
        assert sources(few_plans(HOME=str(tmp_path))) == {"measured"}
    assert not (tmp_path / ".cache").exists()


@ONE_LIBRARY
def test_the_cache_is_the_users(few_plans, tmp_path):
    few_plans(HOME=str(tmp_path), XDG_CACHE_HOME="", WEFT_PLAN_CACHE=str(tmp_path / "there"))
    assert (tmp_path / "there").exists()
    assert not (tmp_path / ".cache").exists()


@pytest.mark.parametrize(
    ("weft", "why"),
    [
        (["--init-budget", "0"], "there is no budget"),
        (["--init-budget", "1us"], "not measured: the budget was too short"),
    ],
)
def test_without_time_the_rule_stays(plans, tmp_path, weft, why):
    found = plans(*weft, cache=tmp_path / "plans")
    assert len(found) == COLLECTIVES
    assert {plan["why"] for plan in found if plan["why"] != ALONE} == {why}
    assert not any(plan["candidates"] for plan in found)
    is_amd = "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    assert {plan["part_bytes"] for plan in found if plan["bytes"] <= 65536} == {65536}
    assert {plan["part_bytes"] for plan in found} == ({65536, 262144} if is_amd else {65536})
    assert not (tmp_path / "plans").exists()


@pytest.mark.one_library
def test_a_named_algorithm_is_not_tuned(plans):
    found = plans("--algorithm", "allreduce=node-tree")
    of_allreduce = [plan for plan in found if plan["call"] == "MPI_Allreduce_init"]
    assert {plan["source"] for plan in of_allreduce} == {"rule"}
    assert {plan["why"] for plan in of_allreduce} == {"the algorithm is named"}
    assert {plan["algorithm"] for plan in of_allreduce} == {"node-tree"}
    others = [plan for plan in found if plan["call"] != "MPI_Allreduce_init"]
    assert sources(others) == {"measured"}


def test_all_ranks_do_what_the_cache_of_rank_0_says(few_plans, tmp_path, script):
    """Each line of rank 0's file names the slowest candidate. The other ranks have no file."""
    cache = tmp_path / "plans"
    first = few_plans(cache=cache, ranks=3)
    lines = []
    for key, _, _, times in in_cache(cache):
        pairs = [word.split("=") for word in times.split(",")]
        slowest, _ = max(pairs, key=lambda pair: int(pair[1]))
        lines.append([key, slowest, "0", times])
    write_cache(cache, lines)
    only_rank_0 = script(
        "only_rank_0",
        '[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ] || export WEFT_PLAN_CACHE=none\nexec "$@"',
    )
    second = few_plans(cache=cache, ranks=3, front=[only_rank_0])
    assert sources(second) == {"cache"}
    for plan in second:
        slowest = max(plan["candidates"], key=lambda one: one["ns"], default=plan)
        assert [plan[key] for key in CHOICE] == [slowest[key] for key in CHOICE]
    assert chosen(second) != chosen(first)


@ONE_LIBRARY
def test_what_is_no_plan_is_measured(few_plans, tmp_path):
    cache = tmp_path / "plans"
    few_plans(cache=cache)
    with_doubts(cache, 0)
    good = cache.read_text()
    damages = (
        lambda line: line.replace("\tnode-", "\tpigeon-"),
        lambda line: re.sub(r"\t([^/]+)/\d+/", r"\t\1/9/", line, count=1),
        lambda line: line[: line.rindex("\t") - 1],
    )
    for damage in damages:
        lines = good.splitlines()[1:]
        cache.write_text(HEADER + "".join(damage(line) + "\n" for line in lines))
        assert "cache" not in sources(few_plans(cache=cache))
        with_doubts(cache, 0)
        assert sources(few_plans(cache=cache)) == {"cache"}


@ONE_LIBRARY
def test_a_cache_that_cannot_be_one_is_no_error(few_plans, tmp_path):
    cache = tmp_path / "plans"
    cache.mkdir()
    assert sources(few_plans(cache=cache)) == {"measured"}
    assert cache.is_dir()


@ONE_LIBRARY
def test_a_cache_of_another_weft_is_kept_aside(few_plans, tmp_path):
    cache = tmp_path / "plans"
    cache.write_text("# weft plans, version 5\n")
    assert sources(few_plans(cache=cache)) == {"measured"}
    assert (tmp_path / "plans.aside").read_text() == "# weft plans, version 5\n"
    with_doubts(cache, 0)
    assert sources(few_plans(cache=cache)) == {"cache"}


def test_engine_auto(plans):
    """Inside one node some of the calls are left to MPICH."""
    assert sources(plans("--engine", "auto")) <= {"measured"}


@pytest.mark.parametrize("words", [["--init-budget", "soon"], ["--init-budget=-1ms"]])
def test_a_wrong_budget_is_refused(call, words):
    result = call("run", *words, "--", "true")
    assert result.returncode == 2
    assert "WEFT_INIT_BUDGET" in result.stderr
    assert "10ms" in result.stderr


@pytest.fixture
def weft_plan(environment, tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "weft", "plan", *map(str, arguments)],
            env={
                **environment,
                "PYTHONPATH": str(installation.ROOT / "python"),
                "WEFT_PLAN_CACHE": str(tmp_path / "plans"),
                "WEFT_INIT_BUDGET": "10s",
                "WEFT_ONE_COPY": "off",  # its rule is measured separately, and changes plans
                "COLUMNS": "200",
            },
            capture_output=True,
            text=True,
            timeout=100,
        )

    return run


def test_plan_says_what_and_why(weft_plan):
    words = ["allreduce", "--bytes", "8,1MiB", "--engine", "function"]
    first = weft_plan(*words).stdout
    assert first.count("measured now") == 2
    assert "MPI_Allreduce_init, 8 bytes, 2 ranks, sum float64" in first
    assert "MPI_Allreduce_init, 1 MiB, 2 ranks, sum float64" in first
    assert first.count("→") == 2
    assert "node-ring" in first
    for _ in range(MOST_DOUBTS):
        last = weft_plan(*words).stdout
    assert last.count("from the cache") == 2
    assert "not for certain" not in last
    assert weft_plan(*words, "--fresh").stdout.count("measured now") == 2


def test_plan_says_what_is_left_to_the_library(weft_plan, environment):
    environment["WEFT_TRANSPORT"] = "mpi"  # messages are used in place of the node's memory
    said = " ".join(weft_plan("allgatherv", "--bytes", "4MiB").stdout.split())
    assert "MPI_Allgatherv_init, 4 MiB: left to MPICH: needs MPI calls on a thread" in said
    assert "MPI_Barrier" not in said


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["dance"], "reduce_scatter_block"),
        (["--op", "average"], "sum"),
        (["--type", "quaternion"], "double"),
        (["--mpi", "ours"], "openmpi"),
        (["--bytes", "many"], "1MiB"),
        (["-n", "0"], "--ranks"),
    ],
)
def test_plan_refuses_what_it_does_not_know(weft_plan, words, word):
    result = weft_plan(*words)
    assert result.returncode == 2
    assert result.stderr.startswith("weft plan: ") and result.stderr.count("\n") == 1
    assert word in result.stderr
