"""Tests runs of `weft bench`: planted engines, hanging ones, wrong options, a short run, and
--resume."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.bench import driver as driver_module
from weft.bench import places, settings, variants
from weft.bench.driver import Driver
from weft.bench.settings import Settings
from weft.bench.variants import Variant
from weft.cores import native
from weft.cores.native import Placement
from weft.measurements import store
from weft.measurements.result import CANNOT_RUN, STOPPED, Candidate
from weft.system import installation, mpi_libraries

MPICH = mpi_libraries.implementation("mpich")
SHORTEST_S = 0.3
NEEDS_BUILD = pytest.mark.skipif(not MPICH.program("planted").exists(), reason="needs a build")


def wanted(**changes) -> Settings:
    facts = {
        "collectives": ["allreduce"],
        "bytes": [1024],
        "engines": ["native"],
        "mpis": ["mpich"],
        "placements": ["bind"],
        "backoffs": ["quiet"],
        "algorithms": ["selected"],
        "amounts": "3",
        "kernel": "gemm",
        "time_budget_s": 20.0,
        "ranks": [2],
    }
    return Settings(**{**facts, **changes})


class PlantedVariant(Variant):
    """A job of the test program, which runs without Weft."""

    def front(self, collective: str) -> list[str]:
        return []


def plan_of(*engines: str, variants: int = 1):
    """Returns a plan in which each variant has all engines. The variants differ in their
    placement."""

    class Planted:
        def __init__(self, *_: object) -> None:
            self.left_out: list = []
            self.variants = [
                PlantedVariant(
                    *("mpich", f"place{n}", "quiet", "selected"),
                    [Candidate("mpich 5", engine, f"place{n}") for engine in engines],
                )
                for n in range(variants)
            ]

    return Planted


def run_planted(path, *engines: str, begun: dict | None = None, **changes):
    """Measures planted engines, and returns the result. `begun` has the iterations of cases that an
    earlier run has begun."""
    asked = wanted(**changes)
    with store.Store(path) as file:
        run = file.new_run({}, asked.to_json())
        for case, iterations in (begun or {}).items():
            file.case(run, case, asked.kernel, iterations)
        place = places.place(asked)
        Driver(asked, place, file, run, program="planted", plan=plan_of(*engines)).measure()
        return file.result(run)


@NEEDS_BUILD
def test_an_engine_that_hangs_is_stopped_and_the_rest_goes_on(tmp_path):
    path = tmp_path / "x.sqlite"
    found = run_planted(path, "half", "stuck", hang_s=1.0, amounts="20ms", time_budget_s=3.0)
    stuck = next(c for c in found.candidates if c.engine == "stuck")
    assert stuck.status == STOPPED
    assert "no answer within 1 s during immediate" in stuck.reason
    assert {p.engine for p in found.points} == {"half"}
    assert not (tmp_path / ".x.sqlite.samples.jsonl").exists()


def test_what_cannot_run_is_listed_with_its_reason(monkeypatch):
    def facts(mpi):
        if mpi == "intelmpi":
            return mpi, "", "intelmpi is not here; get it with: make mpis"
        return f"{mpi} 5", "MPI_THREAD_SERIALIZED", ""

    monkeypatch.setattr(variants, "mpi_facts", facts)
    monkeypatch.setattr(variants.info.installation, "preload_library", lambda family: "there")
    asked = wanted(
        mpis=["openmpi", "intelmpi"],
        engines=["native", "thread", "library-async"],
        placements=["bind", "numa"],
    )
    plan = variants.Plan(asked, "allreduce", 2)
    assert [c.engine for v in plan.variants for c in v.candidates] == ["native"]
    reasons = {(c.mpi, c.engine, c.placement): c.reason for c in plan.left_out}
    assert all(c.status == CANNOT_RUN for c in plan.left_out)
    assert "MPI_THREAD_MULTIPLE" in reasons["openmpi 5", "thread", "numa"]
    assert "no asynchronous progress" in reasons["openmpi 5", "library-async", "none"]
    assert "make mpis" in reasons["intelmpi", "native", "none"]


def test_axes_that_make_no_difference_are_not_measured_twice(monkeypatch):
    monkeypatch.setattr(
        variants, "mpi_facts", lambda mpi: ("mpich 5.0.2", "MPI_THREAD_MULTIPLE", "")
    )
    monkeypatch.setattr(variants.info.installation, "preload_library", lambda family: "there")
    asked = wanted(engines=["native", "function", "thread", "tcc"], placements=["bind", "numa"])
    plan = variants.Plan(asked, "allreduce", 2)
    engines = [[c.engine for c in v.candidates] for v in plan.variants]
    assert engines == [["native", "function", "thread", "tcc"], ["thread", "tcc"]]


def test_ranks_are_bound_where_placements_are_compared(monkeypatch):
    """Without binding no core would be known to be free, and each thread would share its rank's
    core."""
    placed = Placement("bind", [0, 1, 2, 3], [0] * 4, [0, 2], [0, 2])
    asked = []

    def ask(kind, words):
        asked.append(words)
        if "9" in words:
            raise native.CoresError("9 ranks on 4 cores")
        return placed, ""

    class Two:
        ranks = 2

    class Nine:
        ranks = 9

    monkeypatch.setattr(driver_module.native, "ask", ask)
    driver = Driver.__new__(Driver)
    driver.settings = wanted(placements=["bind", "numa"])
    words = driver.binding(Two)
    assert words[0] == "sh" and "set -- 0 2;" in words[2]
    assert asked == [["place", "--ranks", "2"]] and driver.binding(Nine) == []
    for changes in ({"placements": ["bind"]}, {"launcher": "srun"}, {"lab": {"nodes": 2}}):
        driver.settings = wanted(**{"placements": ["bind", "numa"], **changes})
        assert driver.binding(Two) == []


def test_fixed_work_is_shared_out():
    driver = Driver.__new__(Driver)
    driver.settings = wanted(fixed_work=True)
    driver.base = {("allreduce", 8): (4, [100, 200])}

    class FewerRanks:
        collective, bytes, ranks = "allreduce", 8, 2

    assert driver.choose(FewerRanks) == [200, 400]
    assert wanted(ranks=[2, 4]).cases()[0][2] == 4, "the most ranks set the work"


@NEEDS_BUILD
def test_fixed_work_stays_the_same_when_a_run_is_resumed(tmp_path):
    path = tmp_path / "x.sqlite"
    begun = {("allreduce", 1024, 3, 1): [10000, 20000]}
    shape = {"fixed_work": True, "ranks": [2, 3], "time_budget_s": 2.0}
    found = run_planted(path, "half", begun=begun, **shape)
    with store.Store(path) as file:
        assert file.iterations(1, ("allreduce", 1024, 2, 1)) == [15000, 30000]
    assert {(p.ranks, p.amount) for p in found.points} == {(2, 0), (2, 1), (3, 0), (3, 1)}


STAND_IN = """#!/bin/sh
# srun as the benchmark calls it: its words are kept, and mpiexec starts the ranks.
echo "$@" >> {log}
{start}
"""


def stand_in_srun(directory, start: str) -> dict[str, str]:
    """Returns an environment in which `srun` is a script. `start` is its last command."""
    script = directory / "srun"
    script.write_text(STAND_IN.format(log=directory / "calls.txt", start=start))
    script.chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}"}


SMALL = ["--bytes", "4KiB", "--engines", "native", "--amounts", "1", "--time-budget", "1s"]


@NEEDS_BUILD
def test_srun_gets_the_ranks_and_the_program(environment, tmp_path):
    mpiexec = f'shift; exec {MPICH.mpiexec} "$@"'
    where = {**environment, **stand_in_srun(tmp_path, mpiexec)}
    out = ["--json", tmp_path / "x.json", "-o", tmp_path / "x.sqlite"]
    done = bench(where, *SMALL, "--launcher", "srun --mpi=pmi2", "--ranks", "2", *out)
    assert done.returncode == 0, done.stderr + done.stdout
    for line in (tmp_path / "calls.txt").read_text().splitlines():
        weft = installation.weft_command()
        front = f"--mpi=pmi2 -n 2 {weft} run --engine thread --placement bind --backoff quiet -- "
        assert line.startswith(f"{front}{MPICH.program('nbceff')} --collective allreduce ")
    data = json.loads((tmp_path / "x.json").read_text())
    assert {p["ranks"] for p in data["points"]} == {2}
    assert data["machine"]["network"] == "srun --mpi=pmi2"


@NEEDS_BUILD
def test_ranks_that_do_not_find_each_other_are_no_result(environment, tmp_path):
    alone = f'shift 2; exec {MPICH.mpiexec} -n 1 "$@"'
    where = {**environment, **stand_in_srun(tmp_path, alone)}
    done = bench(where, *SMALL, "--launcher", "srun", "-o", tmp_path / "x.sqlite")
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "the program found 1 rank instead of 2" in said
    assert "--launcher 'srun --mpi=pmi2'" in said


# The command is run with jobs that are as short as possible, since their figures do not matter
# here.
SHORT_JOBS = f"""
from weft.bench import driver
from weft.cli import main
driver.SHORTEST_JOB_SECONDS = {SHORTEST_S}
main()
"""


def bench(environment, *arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", SHORT_JOBS, "bench", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


@NEEDS_BUILD
def test_a_short_run_from_end_to_end(environment, tmp_path):
    """One run measures every installed MPI library."""
    mpis = [
        name
        for name in mpi_libraries.IMPLEMENTATIONS
        if mpi_libraries.implementation(name).program("nbceff").exists()
    ]
    out = ["--json", tmp_path / "x.json", "-o", tmp_path / "x.sqlite"]
    shape = ["--bytes", "4KiB", "--engines", "native,thread", "--amounts", "2"]
    where = ["--mpi", ",".join(mpis), "--launcher", "mpiexec", "--time-budget", "2s"]
    done = bench(environment, *shape, *where, *out)
    assert done.returncode == 0, done.stderr + done.stdout
    data = json.loads((tmp_path / "x.json").read_text())
    assert {(p["mpi"].split()[0], p["engine"], p["amount"]) for p in data["points"]} == set(
        itertools.product(mpis, ("native", "thread"), (0, 1))
    )
    assert data["complete"] and data["machine"]["cores"] == os.cpu_count()
    again = bench(environment, "--resume", tmp_path / "x.sqlite")
    assert again.returncode == 0
    assert "complete" in again.stderr


@NEEDS_BUILD
def test_sizes_and_algorithms_are_candidates_of_one_run(environment, tmp_path):
    words = ["--bytes", "1KiB,8KiB", "--algorithms", "ring,recursive-doubling"]
    words += ["--engines", "native,function", "--amounts", "1", "--time-budget", "2s"]
    words += ["--json", tmp_path / "x.json", "-o", tmp_path / "x.sqlite"]
    done = bench(environment, *words, "--launcher", "mpiexec")
    assert done.returncode == 0, done.stderr + done.stdout
    data = json.loads((tmp_path / "x.json").read_text())
    names = [("native", "library"), ("function", "ring"), ("function", "recursive-doubling")]
    assert {(p["bytes"], p["engine"], p["algorithm"]) for p in data["points"]} == {
        (size, *name) for size in (1024, 8192) for name in names
    }
    assert not [c for c in data["candidates"] if c["status"] == "cannot run"]


@NEEDS_BUILD
def test_resume_goes_on_with_the_same_work(environment, tmp_path):
    path = tmp_path / "x.sqlite"
    asked = wanted(engines=["native"], amounts="2", launcher="mpiexec")
    with store.Store(path) as file:
        run = file.new_run({}, asked.to_json())
        case = file.case(run, ("allreduce", 1024, 2, 1), "gemm", [50, 200])
    done = bench(environment, "--resume", path, "--time-budget", "1s")
    assert done.returncode == 0, done.stderr + done.stdout
    with store.Store(path) as file:
        assert file.last_run() == run
        assert file.iterations(run, ("allreduce", 1024, 2, 1)) == [50, 200]
        assert file.case(run, ("allreduce", 1024, 2, 1), "gemm", []) == case
        found = file.result(run)
    assert found.complete and {p.amount for p in found.points} == {0, 1}


def with_word(word: str) -> list[int]:
    """Returns the processes that have this word in their command line."""
    found = []
    for name in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in name.read_text(errors="replace"):
                found.append(int(name.parent.name))
    return found


@NEEDS_BUILD
def test_whoever_ends_it_ends_its_job(environment, tmp_path):
    words = [installation.weft_command(), "bench", "--launcher", "mpiexec", "--engines", "native"]
    words += ["--mpi", "mpich", "--time-budget", "60s", "-o", tmp_path / "x.sqlite"]
    process = subprocess.Popen(
        [str(word) for word in words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 30
    while not (job := [pid for pid in with_word(str(tmp_path)) if pid != process.pid]):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.1)
    process.terminate()
    assert process.wait(30) == 130
    while set(job) & set(with_word(str(tmp_path))):
        assert time.monotonic() < end + 30
        time.sleep(0.1)


class Stopped(Exception):
    """Raised in place of KeyboardInterrupt."""


def measure_until(path, jobs: int | None, plan, asked: Settings, retry: bool = False) -> int:
    """Measures the file's last run until this number of further jobs has begun. Returns the number
    of its jobs."""
    with store.Store(path) as file:
        run = file.last_run()
        most = None if jobs is None else file.jobs(run) + jobs

        def tick(_: object) -> None:
            if most is not None and file.jobs(run) > most:
                raise Stopped

        place = places.place(asked)
        driver = Driver(asked, place, file, run, tick, "planted", plan, retry)
        with contextlib.suppress(Stopped):
            driver.measure()
        return file.jobs(run)


def new_run(path, asked: Settings) -> None:
    with store.Store(path) as file:
        file.new_run({}, asked.to_json())


def jobs_of(path) -> list[tuple[int, int]]:
    with store.Store(path) as file:
        query = "SELECT measured_case, round FROM job ORDER BY id"
        return file.connection.execute(query).fetchall()


# With this tolerance three rounds of measurements are never enough.
QUICK = {"amounts": "1ms", "time_budget_s": 600.0, "tolerance": 1e-9}


@NEEDS_BUILD
def test_resume_measures_only_what_is_missing(tmp_path, monkeypatch):
    """There are two cases with two variants. Each needs one job for the range and one in the only
    round."""
    monkeypatch.setattr(driver_module, "ROUNDS", 1)
    monkeypatch.setattr(driver_module, "SHORTEST_JOB_SECONDS", SHORTEST_S)
    monkeypatch.setattr(Settings, "cases", lambda _: [("allreduce", 8, 2), ("allreduce", 16, 2)])
    asked, plan, path = wanted(**QUICK), plan_of("half", variants=2), tmp_path / "x.sqlite"
    monkeypatch.setattr(Driver, "slice_s", lambda *_: 0.2)
    new_run(path, asked)
    measure_until(path, 2, plan, asked)
    before = jobs_of(path)
    assert before == [(1, 0), (1, 0), (1, 1)], "the last one was stopped"
    measure_until(path, None, plan, asked)
    after = jobs_of(path)[len(before) :]
    expected = [(1, 1), (1, 1), *[(2, number) for number in (0, 0, 1, 1)]]
    assert after == expected, "the stopped job again, and what had not begun"
    measure_until(path, None, plan, asked)
    assert len(jobs_of(path)) == len(before) + len(after), "all was there"
    assert {(p.bytes, p.placement) for p in store.load(path).points} == {
        (size, place) for size in (8, 16) for place in ("place0", "place1")
    }


@NEEDS_BUILD
def test_what_hung_is_tried_again_only_if_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(driver_module, "ROUNDS", 1)
    monkeypatch.setattr(driver_module, "SHORTEST_JOB_SECONDS", SHORTEST_S)
    monkeypatch.setattr(Driver, "slice_s", lambda *_: 0.2)
    asked, path = wanted(**QUICK, hang_s=1.0), tmp_path / "x.sqlite"
    new_run(path, asked)
    first = measure_until(path, None, plan_of("half", "stuck"), asked)
    assert first == 3, "the range with the one that hangs, the range without it, a round"
    assert measure_until(path, None, plan_of("half", "stuck"), asked) == first
    assert next(c for c in store.load(path).candidates if c.engine == "stuck").status == STOPPED
    again = measure_until(path, None, plan_of("half", "stuck"), asked, retry=True)
    assert again == first + 1, "alone, and it hangs again"
    assert next(c for c in store.load(path).candidates if c.engine == "stuck").status == STOPPED


BAD_INPUT = [
    (["--bytes", "1MB/s"], "--bytes needs a number with B, kB"),
    (["--collective", "alreduce"], "allreduce, alltoall"),
    (["--engines", "agents"], "native, assist"),
    (["--mpi", "lam"], "mpich, openmpi, intelmpi"),
    (["--lab", "rate=fast"], "kbit, mbit"),
    (["--lab", "nodes=2", "--launcher", "srun"], "exclude each other"),
    (["--placements", "everywhere"], "bind, numa"),
    (["--backoffs", "nap"], "yield, spin"),
    (["--algorithms", "rong"], "unknown algorithm 'rong' for allreduce"),
    (["--bytes", "8,,64"], "a word is missing in '8,,64'"),
    (["--fixed-work"], "--ranks"),
    (["--compute-library", "nothing.so"], "no file nothing.so"),
    (["--retry"], "--resume FILE --retry"),
    (
        ["--preset", "placement", "--collective", "bcast"],
        "another experiment than preset placement",
    ),
    (["--preset", "iallreduce-kernel", "--bytes", "8"], "--bytes has no effect on preset"),
    *(([*SMALL, "--launcher", launcher], "it takes mpiexec") for launcher in ("moon -n", "'", " ")),
]


def test_bad_input_is_refused(answers, tmp_path):
    file = tmp_path / "x.sqlite"
    found = answers([["bench", *arguments, "-o", file] for arguments, _ in BAD_INPUT])
    for done, (_, names) in zip(found, BAD_INPUT):
        assert done.returncode == 2 and names in done.stderr, done
    assert not file.exists()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], "no such file"),
        (["--engines", "thread"], "the run's own settings; leave out --engines"),
    ],
)
def test_what_cannot_be_resumed_is_refused(environment, tmp_path, arguments, names):
    done = bench(environment, "--resume", tmp_path / "nothing.sqlite", *arguments)
    assert done.returncode == 2, done.stdout
    assert names in done.stderr


def test_library_words_are_checked(tmp_path):
    mine = tmp_path / "mine.so"
    mine.touch()
    assert settings.library(mine) == str(mine)


REFUSE = "#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n"


def without_namespaces(directory, environment) -> dict[str, str]:
    program = directory / "unshare"
    program.write_text(REFUSE)
    program.chmod(0o755)
    return {**environment, "PATH": f"{directory}:{environment['PATH']}"}


@NEEDS_BUILD
def test_without_namespaces_ranks_share_memory_and_it_says_so(environment, tmp_path):
    where = without_namespaces(tmp_path, environment)
    out = ["--json", tmp_path / "x.json", "-o", tmp_path / "x.sqlite"]
    done = bench(where, *SMALL, *out)
    assert done.returncode == 0, done.stderr + done.stdout
    (line,) = done.stderr.splitlines()
    assert "not permitted" in line and "--launcher mpiexec" in line
    data = json.loads((tmp_path / "x.json").read_text())
    assert data["machine"]["network"] == "shared memory of this machine"


def test_a_lab_that_was_asked_for_is_not_replaced(environment, tmp_path):
    where = without_namespaces(tmp_path, environment)
    done = bench(where, *SMALL, "--lab", "nodes=2", "-o", tmp_path / "x.sqlite")
    assert done.returncode == 2, done.stdout
    assert "measure without a lab: --launcher mpiexec" in done.stderr


@NEEDS_BUILD
def test_another_library_is_named_by_its_place(environment, tmp_path):
    files = ["--json", tmp_path / "x.json", "-o", tmp_path / "x.sqlite"]
    where = ["--launcher", "mpiexec -genv A b", "--mpi", MPICH.prefix]
    done = bench(environment, *SMALL, *where, *files)
    assert done.returncode == 0, done.stderr + done.stdout
    data = json.loads((tmp_path / "x.json").read_text())
    assert {p["mpi"].endswith(f"({MPICH.prefix})") for p in data["points"]} == {True}
    refused = bench(environment, *SMALL, "--mpi", tmp_path, "-o", tmp_path / "y.sqlite")
    assert refused.returncode == 2 and "libmpi.so.12" in refused.stderr
