"""Tests one copy by the kernel (--one-copy) between ranks whose buffers are not shared.

Results are compared with those of the library (tests/mpi/shared_buffers.cc, whose buffers are
shared, private and mixed in turn). Weft's summary tells that the kernel really copied."""

import json
import subprocess

import pytest
from shared_buffers import LIMIT_S, run_shared_buffers

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

MOVES = ("Bcast", "Gather", "Scatter", "Allgather", "Alltoall")
LIBRARY_WINS = "the MPI library's own call was measured, and is as fast here"
BYTES = 300_001
PATIENT = "--init-budget=10s"  # enough time for the measurement on a busy machine
NO_TIME = "--init-budget=1us"


def found(mpi, program="shared_buffers"):
    library = mpi_libraries.implementation(mpi)
    if not library.program(program).exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    return library


def forms(name):
    return (f"MPI_{name}", f"MPI_I{name.lower()}", f"MPI_{name}_init")


def by_call(summary):
    return {entry["call"]: entry for entry in summary["calls"]}


def check_in_one_copy(summary):
    """Checks that collectives on private buffers which only move data used the other ranks' buffers
    in place, by the kernel."""
    calls = by_call(summary)
    for name in MOVES:
        for call in forms(name):
            assert 0 < calls[call]["without_copy"] <= calls[call]["handled"], calls[call]
    assert summary["one_copy_bytes"] > 0


@pytest.mark.parametrize("memory", ["private", ""], ids=["private", "mixed"])
@pytest.mark.parametrize(
    ("mpi", "ranks"),
    [
        ("mpich", 2),
        ("mpich", 3),
        ("openmpi", 2),
        pytest.param("openmpi", 4, marks=pytest.mark.long),
    ],
)
def test_equal_and_in_one_copy(mpi, ranks, memory, tmp_path):
    options = ("--engine", "function", "--blocking", "--one-copy", "on")
    summary = run_shared_buffers(mpi, ranks, tmp_path, *options, memory=memory)
    check_in_one_copy(summary)


@pytest.mark.parametrize("engine", ["thread", "auto"])
def test_other_engines(engine, tmp_path):
    options = ("--engine", engine, "--blocking", "--one-copy", "on")
    check_in_one_copy(run_shared_buffers("openmpi", 2, tmp_path, *options, memory="private"))


@pytest.mark.parametrize("options", [("--one-copy", "off"), ("--transport", "mpi")])
def test_not_where_it_is_not_wanted(options, tmp_path):
    options = ("--engine", "function", "--blocking", *options)
    summary = run_shared_buffers("mpich", 2, tmp_path, *options)
    assert summary["one_copy_bytes"] == 0


@pytest.fixture
def bcast(compiled_for):
    return compiled_for(found("mpich"), "one_copy")


@pytest.fixture
def no_readv(compiled_for):
    return compiled_for(found("mpich"), "no_readv", "-shared", "-fPIC")


@pytest.fixture
def run_bcast(bcast, tmp_path):
    """Runs some bcasts between two ranks, the second one started by the words of `odd`. Returns the
    output and the summary."""

    def run(*options, odd=(), preload=None, calls=6, hole=()):
        summary = tmp_path / "summary.json"
        weft = [installation.weft_command(), "run", f"--plan-cache={tmp_path / 'plans'}"]
        weft += [*options, f"--summary=json:{summary}", "--", bcast, BYTES, calls, *hole]
        front = ["env", f"LD_PRELOAD={preload}"] if preload else []
        mpiexec = mpi_libraries.implementation("mpich").mpiexec
        ranks = ["-n", 1, *front, *weft, ":", "-n", 1, *odd, *front, *weft]
        done = subprocess.run(
            [str(word) for word in [mpiexec, *ranks]],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        if hole:
            return done
        assert done.returncode == 0, done.stdout + done.stderr
        assert "right" in done.stdout
        return done, json.loads(summary.read_text())

    return run


def entry_of(summary):
    return by_call(summary)["MPI_Bcast"]


def test_bytes_are_counted(run_bcast):
    _, summary = run_bcast("--one-copy=on", calls=6)
    assert entry_of(summary)["without_copy"] == 2 * 6  # counts both ranks
    assert summary["one_copy_bytes"] == 6 * BYTES


@pytest.mark.parametrize("word", ["refuse", "hide"])
def test_where_one_rank_cannot_all_go_the_old_way(run_bcast, no_readv, word, monkeypatch):
    # MPICH's own copies by the kernel would abort the job of a user who is not root.
    monkeypatch.setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0")
    odd = ["env", f"NO_READV={word}"]
    options = ("--one-copy=on", "--engine=function", "--blocking")
    _, summary = run_bcast(*options, odd=odd, preload=no_readv)
    assert entry_of(summary)["handled"] == 12
    assert entry_of(summary)["without_copy"] == 0
    assert summary["one_copy_bytes"] == 0


def test_memory_that_is_gone_ends_the_job_with_a_sentence(run_bcast):
    done = run_bcast("--one-copy=on", hole=["hole"], calls=1)
    assert done.returncode != 0
    assert "right" not in done.stdout
    assert "rank 0's buffer cannot be reached any more" in done.stderr, done.stderr
    assert "the job ends" in done.stderr


def lines_of_rule(cache):
    return [line for line in cache.read_text().splitlines() if "|one copy|" in line]


def planted(cache, least):
    """Changes the cache so that one copy is used from this size, without doubts."""
    text = cache.read_text()
    for line in lines_of_rule(cache):
        key, chosen, _, times = line.split("\t")
        name, _, radices = chosen.split("/", 2)
        text = text.replace(line, "\t".join([key, f"{name}/{least}/{radices}", "0", times]))
    cache.write_text(text)


def test_the_rule_is_measured_until_it_is_certain_and_kept(run_bcast, tmp_path):
    cache = tmp_path / "plans"
    for _ in range(4):
        run_bcast(PATIENT)
        lines = lines_of_rule(cache)
        if all(line.split("\t")[2] == "0" for line in lines):
            break
    traffic = [line.split("\t")[0].split("|")[3] for line in lines]
    assert sorted(traffic) == ["of all ranks", "of one rank, in a row"]
    for line in lines:
        _, chosen, doubts, times = line.split("\t")
        pairs = {}
        for entry in times.split(","):
            name, size = entry.split("/")[:2]
            pairs.setdefault(int(size), {})[name] = int(entry.rsplit("=", 1)[1])
        wins = {size for size, ns in pairs.items() if 10 * ns["one-copy"] <= 9 * ns["two-copies"]}
        # A size that was not measured uses the result of the nearest one.
        assert chosen.startswith(f"one-copy/{min(wins, default=0) * 181 // 256}/")
        assert doubts == "0"
    run_bcast(PATIENT)
    assert lines_of_rule(cache) == lines


@pytest.mark.parametrize(("least", "used"), [(65536, True), (0, False), (1 << 20, False)])
def test_what_was_measured_before_holds(run_bcast, tmp_path, least, used):
    cache = tmp_path / "plans"
    run_bcast(PATIENT)
    planted(cache, least)
    _, summary = run_bcast(NO_TIME, "--engine=function", "--blocking")
    assert (summary["one_copy_bytes"] > 0) == used
    assert entry_of(summary)["handled"] == 12


def test_a_call_is_left_to_a_library_that_is_faster(run_bcast, compiled_for, tmp_path):
    """Engine auto has measured the library's own call, whatever the rule says about copies."""
    cache = tmp_path / "plans"
    slow = compiled_for(found("mpich"), "slow_bcast", "-shared", "-fPIC")
    run_bcast(PATIENT)
    planted(cache, 65536)
    text = cache.read_text()
    cache.write_text(
        "\n".join(line for line in text.splitlines() if "or the library's" not in line) + "\n"
    )
    _, summary = run_bcast(PATIENT, preload=slow)
    assert summary["one_copy_bytes"] >= 6 * BYTES  # includes the bytes of the measurement
    (verdict,) = (
        line for line in cache.read_text().splitlines() if "one copy by the kernel" in line
    )
    assert verdict.split("\t")[1].startswith("node-direct/")
    cache.write_text(
        cache.read_text()
        .replace("\tnode-direct/", "\tlibrary/")
        .replace("\t1\tlibrary/", "\t0\tlibrary/")
    )
    _, summary = run_bcast(NO_TIME)
    assert entry_of(summary)["passed_on"] == {LIBRARY_WINS: 12}


def test_few_system_calls_in_mpi_init(run_bcast, no_readv):
    """If the rule is known, Weft makes one system call for the other rank. MPICH makes some of its
    own."""
    odd = ["env", "NO_READV=count"]
    counts = []
    for word in ("off", "on"):
        done, _ = run_bcast(f"--one-copy={word}", odd=odd, preload=no_readv, calls=0)
        counts.append(int(done.stderr.split("process_vm_readv: ")[-1].split()[0]))
    assert counts[1] == counts[0] + 1
