"""Tests tools/device-check: which measurements it would make on a machine of 16 cores, without a
job, and its run on a GPU, with short jobs and a stand-in for the driver (tests/device)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from math import ceil
from pathlib import Path

import generate_performance
import pytest
import standins
from device_check import cores, gpu, page, papers, programs
from device_check import jobs as core_jobs

from weft.measurements import presets
from weft.system import gpu as weft_gpu
from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

TOOL = installation.ROOT / "tools" / "device-check"
PARTS = installation.ROOT / "tools" / "device_check"


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Returns the list of the jobs' variables. Each job takes half of native's time."""
    found = []

    def overlap(row, engines, **variables):
        found.append(variables)
        row.native_us, row.of_native = 100.0, dict.fromkeys(engines.split(","), 0.5)
        return row

    monkeypatch.setattr(cores, "overlap", overlap)
    monkeypatch.setattr(cores, "best_split", lambda cores, ranks, collective: "1")
    monkeypatch.setattr(programs, "build", lambda *targets, **options: None)
    monkeypatch.setattr(programs, "CARRIED_PROGRAMS", programs.BUILD / "nothing")
    return found


@pytest.mark.parametrize("group", ["placements", "compaction"])
def test_threads_have_as_many_cores_as_their_placement_needs(settings, group):
    rows = list(cores.GROUPS[group](16))
    assert rows
    for row, variables in zip(rows, settings):
        _, _, per_core = variables["WEFT_PLACEMENT"].partition(":")
        if per_core:
            assert row.ranks + ceil(row.ranks / int(per_core)) <= 16, row


def test_the_papers_cases_are_there():
    assert {row.words for row in cores.placements_of(16)} >= {"bind", "numa", "odd-even"}
    splits = {(row.collective, row.ranks, row.words[:3]) for row in cores.splits_of(16)}
    assert splits == {
        (collective, ranks, f"S={split}")
        for collective in ("bcast", "reduce")
        for ranks in range(8, 16)
        for split in range(4)
    }
    assert {row.words.split(", ")[1] for row in cores.compaction_of(16)} == {
        "yield",
        "quiet",
        "agent",
    }
    assert list(cores.placements_of(2)) == []


def test_what_learns_is_measured_in_jobs_of_its_own(monkeypatch):
    jobs = []

    def output_of(ranks, program, options, variables):
        assert program == "steps"
        jobs.append((ranks, variables.get("WEFT_ENGINE", ""), list(options)))
        # Without work the program prints seconds, us of a step, ns of an iteration.
        if options[-1] == 0:
            return "0.1 200.0\n2.0\n"
        return "0.2 {}\n".format(300 if variables.get("WEFT_ENGINE") == "auto" else 400)

    monkeypatch.setattr(cores, "output_of", output_of)
    row = next(cores.learnt_of(16))
    assert row.native_us == 400 and row.of_native["auto"] == 0.75
    assert row.of_native["blocking"] == 1
    measured = [job for job in jobs if "--work" in job[2] and job[2][-1] != 0]
    assert all("--work 100000" in " ".join(map(str, options)) for _, _, options in measured)
    assert [engine for _, engine, _ in measured[:4]] == ["", "", "auto", "thread"]
    monkeypatch.setattr(cores, "output_of", lambda *words: None)
    assert next(cores.learnt_of(16)).of_native == {}


def test_kernels_are_measured_with_weft_and_without(monkeypatch):
    times = {"": 100, "auto": 80, "thread": 120}

    def found_by(ranks, program, options, variables):
        us = times[variables.get("WEFT_ENGINE", "")]
        return {
            "variants": [
                {"name": "blocking", "samples_us": [us] * 5},
                {"name": "overlapped", "samples_us": [us / 2] * 5},
            ]
        }

    monkeypatch.setattr(cores, "found_by", found_by)
    rows = list(cores.kernels_of(16))
    assert {row.ranks for row in rows} == {8, 14, 16}
    assert {row.collective for row in rows} == set(programs.KERNELS)
    assert rows[0].words == "blocking"
    assert rows[0].of_native == {"alone": 1, "auto": 0.8, "thread": 1.2}
    assert rows[1].of_native == {"alone": 0.5, "auto": 0.4, "thread": 0.6}
    monkeypatch.setattr(cores, "found_by", lambda *words: {})
    assert all(row.of_native == {} for row in cores.kernels_of(16))


def test_what_was_measured_is_in_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(16)))
    assert cores.check_cores(["splits"], tmp_path, time.monotonic() + 60) == 0
    found = json.loads((tmp_path / "device-check.json").read_text())
    assert found["schema"] == "weft-device-check/1"
    assert found["cores"] == 16 and len(found["rows"]) == 2 * 8 * 4
    assert found["rows"][0]["of_native"]["thread"] == 0.5


def test_what_does_not_fit_into_the_time_is_left_out(tmp_path, capsys):
    assert cores.show("splits", 16, time.monotonic()) == []
    assert "its time is up" in capsys.readouterr().out


# ---- The papers' own experiments


def variant(name, us, engine=""):
    return {"name": name, "engine": engine, "samples_us": [us] * 3}


@pytest.fixture
def asked(monkeypatch):
    """Jobs of kernels, whose overlapped forms take half of the blocking one's time, or less."""
    found = []

    def found_by(ranks, program, options, variables, each=1):
        found.append((ranks, program, [str(word) for word in options], variables, each))
        overlapped = [variant("overlapped", 50, "function"), variant("overlapped", 40, "thread")]
        return {"variants": [variant("blocking", 100), *overlapped], "amount": 7}

    monkeypatch.setattr(core_jobs, "found_by", found_by)
    monkeypatch.setattr(core_jobs, "DONE", {})
    return found


def test_the_papers_experiments_come_first():
    assert tuple(cores.GROUPS)[: len(cores.PAPERS)] == cores.PAPERS
    assert cores.PAPERS_S <= 240 < programs.LIMIT_S


def test_kernels_have_the_papers_ranks_and_threads(asked):
    rows = list(papers.iallreduce_of(16))
    assert {row.ranks for row in rows} == {12, 16} and rows[1].of_native == {"of blocking": 0.5}
    assert asked[0][2][:2] == ["--elements", "10000"]
    del asked[:]
    rows = list(papers.tcc_of(16))
    assert [row.words for row in rows[:3]] == [
        "order 4000, blocking",
        "order 4000, overlapped, function",
        "order 4000, overlapped, thread",
    ]
    assert {(ranks, each) for ranks, _, _, _, each in asked} == {(2, 8)}
    assert all(options[options.index("--threads") + 1] == "8" for _, _, options, *_ in asked)
    assert "function,thread,tcc" in asked[0][2][asked[0][2].index("--engines") + 1]
    del asked[:]
    assert {row.words for row in papers.masters_of(16)} >= {"pipelined, blocking"}
    assert {(ranks, each) for ranks, _, _, _, each in asked} == {(8, 2)}
    assert list(papers.tcc_of(2)) == [] and list(papers.masters_of(2)) == []


def test_threads_per_core_have_the_products_of_the_blocking_case(asked):
    rows = list(papers.threads_of(16))
    assert [row.size for row in rows] == ["16", "16", "1000000", "1000000"]
    assert all(set(row.of_native) == {"Normal", "Prog1", "Prog2", "Prog4"} for row in rows)
    assert [one[0] for one in asked[:4]] == [16, 8, 10, 12]
    assert all(one[2][-2:] == ["--products", "7"] for one in asked[1:4])
    assert [one[3]["WEFT_PLACEMENT"] for one in asked[1:4]] == ["pack:1", "pack:2", "pack:4"]


def test_shared_memory_stands_beside_both_libraries(monkeypatch):
    def output_of(ranks, program, options, variables, mpi="mpich", each=1):
        if mpi == "openmpi" and ranks == 16:
            return None
        assert ("LD_PRELOAD" in variables) == ("WEFT_ENGINE" in variables)
        assert f"libweft-{mpi}.so" in variables.get("LD_PRELOAD", f"libweft-{mpi}.so")
        return f"blocking 8 1.0 {2 if variables else 4}\n"

    monkeypatch.setattr(core_jobs, "output_of", output_of)
    monkeypatch.setattr(core_jobs, "DONE", {})
    rows = list(papers.shared_of(16))
    assert [(row.ranks, row.words) for row in rows] == [
        (8, "mpich, blocking, 8"),
        (16, "mpich, blocking, 8"),
        (8, "openmpi, blocking, 8"),
        (16, "openmpi"),
    ]
    assert rows[0].of_native == {"function": 0.5, "auto": 0.5} and rows[0].native_us == 4
    assert rows[-1].of_native == {}  # it did not run


def test_each_librarys_launcher_gives_a_rank_its_cores():
    words = [str(word) for word in core_jobs.launcher("mpich", 2, 8, {"A": "b"})]
    assert words[0].endswith("mpich/bin/mpiexec")
    assert words[1:] == ["-n", "2", "-bind-to", "core:8", "-genv", "A", "b"]
    words = [str(word) for word in core_jobs.launcher("openmpi", 2, 8, {"A": "b"})]
    assert words[0].endswith("openmpi/bin/mpiexec") and "slot:PE=8" in words
    assert words[-2:] == ["-x", "A=b"]


def test_a_second_call_measures_the_rest(asked, tmp_path):
    rows = [*papers.iallreduce_of(16), *papers.threads_of(16)]
    rows[-1].of_native = {}  # it did not run
    cores.write(rows, 16, tmp_path)
    del asked[:]
    core_jobs.keep(tmp_path / "device-check.json")
    again = [*papers.iallreduce_of(16), *papers.threads_of(16)]
    assert again[:-1] == rows[:-1] and again[-1].of_native
    assert {program for _, program, *_ in asked} == {"gemm_allgather"} and len(asked) == 4


def test_the_page_has_a_table_of_each_experiment(asked, tmp_path, capsys):
    cores.write([*papers.iallreduce_of(16), *papers.threads_of(16)], 16, tmp_path)
    out = tmp_path / "page.json"
    assert page.write(str(tmp_path / "device-check.json"), "xeon16", out) == 0
    tables = json.loads(out.read_text())["measurements"]
    assert [one["what"].partition(":")[0] for one in tables] == [
        "Intel's kernel",
        "Threads per core",
    ]
    for one in tables:
        assert {*generate_performance.NEEDED, "commit"} <= one.keys()
        assert {len(row) for row in one["rows"]} == {len(one["columns"])}
    assert tables[0]["rows"][1][-1] == "0.50" and tables[0]["machine"] == "xeon16"
    cores.write([], 16, tmp_path)
    assert page.write(str(tmp_path / "device-check.json"), "xeon16", out) == 1


# ---- On a GPU: its jobs are scripts here


def names(part):
    return [Path(str(word)).name for word in part.command]


def test_all_programs_on_gpus_are_run(monkeypatch):
    """Programs that need kernels of several ranks at the same time run where that is possible."""
    monkeypatch.setattr(gpu.shutil, "which", lambda name: name)
    parts = gpu.gpu_parts({"CUDA_MPS_PIPE_DIRECTORY": "anywhere"})
    assert {word for part in parts for word in names(part)} >= set(programs.GPU_PROGRAMS)
    streams = [part for part in parts if "gpu_streams" in names(part)]
    assert len(streams) == 5
    for part in streams:
        takes_turns = "CUDA_MPS_PIPE_DIRECTORY" not in part.variables
        assert (names(part)[-1] == "by calls of MPI's") == takes_turns


@pytest.mark.parametrize("shared", [None, {"CUDA_MPS_PIPE_DIRECTORY": "anywhere"}])
def test_a_graph_is_launched_by_ranks_that_are_neighbours(shared):
    launched = [part for part in gpu.gpu_parts(shared) if "launches of a graph" in part.what]
    assert [part.ranks for part in launched] == [2]
    if shared:
        assert "10,000" in launched[0].what and "20000" in map(str, launched[0].command)
        assert launched[0].variables == shared


def test_the_stencil_has_the_sizes_of_its_preset():
    assert gpu.STENCILS == presets.GPU_STENCILS
    assert [order for order, _ in presets.GPU_STENCILS] == [1024 << i for i in range(6)]


def test_whether_it_is_right_comes_before_how_fast_it_is(monkeypatch):
    monkeypatch.setattr(gpu.shutil, "which", lambda name: name)
    measures = [
        not {"--check", "gpu_streams", "racecheck", "memcheck"} & set(names(part))
        and "small" not in part.what
        for part in gpu.gpu_parts({})
    ]
    assert measures == sorted(measures)


def test_what_lacks_something_is_named(monkeypatch, capsys):
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    parts = gpu.gpu_parts(None)
    run = []
    monkeypatch.setattr(gpu, "run_part", lambda part, limit_s: run.append(part))
    gpu.run_parts(parts, time.monotonic() + 500)
    gpu.show_parts(parts)
    table = capsys.readouterr().out
    assert len(run) < len(parts)
    assert "left out: MPS does not start" in table
    assert "left out: there is no compute-sanitizer" in table


def test_parts_that_were_right_before_are_not_run_again(tmp_path, monkeypatch):
    parts = [gpu.Part("one", 1, (), status="right", took_s=3, output="x"), gpu.Part("two", 1, ())]
    gpu.write_outputs(parts, tmp_path)
    monkeypatch.setattr(gpu, "DONE", {})
    run = []
    monkeypatch.setattr(gpu, "run_part", lambda part, limit_s: run.append(part.what))
    gpu.keep(tmp_path / "device-check-gpu.json")
    again = [gpu.Part("one", 1, ()), gpu.Part("two", 1, ())]
    gpu.with_earlier(again)
    gpu.run_parts(again, time.monotonic() + 500)
    assert run == ["two"] and again[0] == parts[0]


def test_the_papers_experiments_on_a_gpu_are_among_its_parts(monkeypatch):
    monkeypatch.setattr(gpu.shutil, "which", lambda name: name)
    first = [part.what for part in gpu.gpu_parts({}) if re.search(gpu.FIRST, part.what)]
    assert [name.partition(",")[0] for name in first] == [
        "notice and overlap",
        "allreduces",
        "stencil 1024",
        "stencil 4096",
        "stencil 16384",
    ]
    assert gpu.FIRST_S < cores.PAPERS_S


def test_limits_that_are_missed_are_counted(capsys):
    said = "notice: 7.00 us; limit 5 us: missed\noverlap: 95 %; limit 90 %: met\n"
    gpu.show_parts([gpu.Part("notice", 1, (), status="right", took_s=1, output=said)])
    assert "right; limits missed: 1" in capsys.readouterr().out


def test_the_fastest_method_of_the_stencil_is_named(capsys):
    said = "nccl     left out: it needs NCCL\ndefault     144.11 [144.07 - 161.63]\n"
    said += "graphs      110.64 [110.58 - 110.77]\nacx         141.77 [139.08 - 148.82]\n"
    gpu.show_parts([gpu.Part("stencil", 1, (), status="right", took_s=1, output=said)])
    assert "right; fastest: graphs" in capsys.readouterr().out


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Replaces mpiexec by a script that runs the words behind the number of ranks."""
    launcher = tmp_path / "bin" / "mpiexec"
    launcher.parent.mkdir()
    launcher.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    launcher.chmod(0o755)
    monkeypatch.setattr(programs, "MPICH", tmp_path)


def test_jobs_that_hang_leave_time_for_the_others(jobs, monkeypatch, capsys):
    """Processes that a job has started may keep its output open."""
    monkeypatch.setattr(gpu, "LEAST_GPU_JOB_S", 0.05)
    hangs = ("sh", "-c", "trap '' TERM; sleep 60 & sleep 60")
    parts = [
        gpu.Part("hangs", 2, hangs),
        gpu.Part("fails", 2, ("sh", "-c", "echo why; exit 3")),
        gpu.Part("is right", 2, ("echo", "fast")),
    ]
    began = time.monotonic()
    gpu.run_parts(parts, began + 8)
    assert time.monotonic() - began < 8
    assert gpu.show_parts(parts) == 2
    said = capsys.readouterr().out
    assert "why" in said and "fast" in said
    table = said[said.index("what came of each") :]
    assert "did not end within 2 s" in table
    assert "ended with status 3" in table
    assert table.rstrip().endswith("2 of 3 failed, or had no time")


def test_a_debugger_shows_where_a_job_hangs(jobs, tmp_path, monkeypatch):
    hangs, debugger = tmp_path / "hangs", tmp_path / "gdb"
    shutil.copy2(shutil.which("sleep"), hangs)
    debugger.write_text("#!/bin/sh\necho 'Thread 1'; echo '#0 of process' $3; echo 'no stack'\n")
    debugger.chmod(0o755)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: debugger if name == "gdb" else None)
    part = gpu.Part("hangs", 1, (hangs, 60))
    gpu.run_part(part, 0.5)
    assert re.search(r"Thread 1\n#0 of process \d+$", part.output)


def test_what_has_no_time_is_named(jobs, capsys):
    parts = [gpu.Part("late", 1, ("true",))]
    gpu.run_parts(parts, time.monotonic() + 1)
    assert gpu.show_parts(parts) == 1
    assert "left out: the time is up" in capsys.readouterr().out


def test_all_of_it_ends_within_its_time(monkeypatch):
    """The tool ends in time even if each job uses its whole time limit."""
    now = 100.0
    monkeypatch.setattr(gpu, "monotonic", lambda: now)

    def run(part, limit_s):
        nonlocal now
        now += limit_s
        part.status = "right"

    monkeypatch.setattr(gpu, "run_part", run)
    parts = gpu.gpu_parts({})
    gpu.run_parts(parts, now + programs.LIMIT_S)
    assert now < 100 + programs.LIMIT_S < 100 + 600
    assert parts[0].status == "right" and parts[-1].status.startswith("left out")


def test_the_gpu_is_checked_within_the_limit(tmp_path, monkeypatch, capsys):
    @contextmanager
    def shared_device():
        yield {"CUDA_MPS_PIPE_DIRECTORY": "anywhere"}

    def run(part, limit_s):
        part.status = "right"

    limits = []
    monkeypatch.setattr(gpu.shutil, "which", lambda name: name)
    monkeypatch.setattr(gpu, "shared_device", shared_device)
    monkeypatch.setattr(programs, "build", lambda *targets, **options: limits.append(options))
    monkeypatch.setattr(gpu, "run_part", run)
    assert gpu.check_gpu("stencil", tmp_path, time.monotonic() + 500) == 0
    assert limits[0]["limit_s"] <= 500
    table = capsys.readouterr().out
    assert "0 of" in table and "graph" not in table
    assert "--- stencil 1024, 1 rank: right" in (tmp_path / "device-check-gpu.log").read_text()


def test_carried_programs_are_taken_where_they_run(tmp_path, monkeypatch):
    carried, mark = tmp_path / "carried", tmp_path / "mark"
    (carried / "bin").mkdir(parents=True)
    monkeypatch.setattr(programs, "CARRIED_PROGRAMS", carried)
    monkeypatch.setattr(programs, "SOURCES_MARK", mark)
    monkeypatch.setattr(programs, "BUILD", tmp_path / "build")
    assert not programs.carried_programs_run()  # there are no copied programs
    program = carried / "bin" / "program"
    shutil.copy2("/bin/ls", program)
    mark.write_text("another source")
    assert not programs.carried_programs_run()
    mark.write_text(programs.sources())
    assert programs.carried_programs_run()
    programs.get_programs("anything")
    assert (tmp_path / "build" / "bin" / "program").exists()
    program.write_text("no program")
    assert not programs.carried_programs_run()


# ---- The whole tool, with copied programs and the stand-in --------------------------------------


LAUNCHER = """\
#!{python}
# The library's, with short jobs on the stand-in.
import os, pathlib, sys
SHORT = {{
    "gpu_stencil": "--order 24 --steps 4 --repetitions 1",
    "gpu_cg": "--order 8 --repetitions 1",
    "gpu_notify": "--turns 2 --gap-ms 1 --bytes 65536 --repetitions 1 --blocks 2",
    "gpu_allreduce": "--bytes 8,4096 --turns 2 --blas {standin}",
    "gpu_fft3d": "--order 12 --blocks 2 --repetitions 1 --work 1,2 --fft {standin}",
}}
words = sys.argv[1:]
names = [pathlib.Path(word).name for word in words]
if "gpu_streams" in names:  # tests of its own run it
    place = names.index("gpu_streams")
    assert pathlib.Path(words[place]).exists() and words[place + 1] == "libcuda.so.1", words
    print("0 cases equal")
    sys.exit()
(program,) = SHORT.keys() & set(names)
os.environ["LD_LIBRARY_PATH"] += ":{libraries}"
os.execv("{mpiexec}", ["{mpiexec}", *words, *SHORT[program].split()])
"""
SANITIZER = """\
#!/bin/sh
test "$1 $3 $4" = "--tool --error-exitcode 9" || exit 1
shift 4
exec "$@"
"""
MPS = """\
#!/bin/sh
test "$1" = -d && exec touch "$CUDA_MPS_PIPE_DIRECTORY/control"
read command && test "$command" = quit && rm "$CUDA_MPS_PIPE_DIRECTORY/control"
"""


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_from_its_start_to_its_end(tmp_path):
    library = mpi_libraries.implementation("mpich")
    built = installation.BUILD / "bin" / "mpich"
    lacking = not (built / "gpu_stencil").exists() or not weft_gpu.has_kernels()
    if lacking or not library.mpiexec.exists():
        pytest.skip("needs MPICH's programs, and kernels")
    tree, commands = tmp_path / "tree", tmp_path / "bin"
    carried = tree / ".device" / "programs"
    shutil.copytree(
        built,
        carried / "bin" / "mpich",
        ignore=lambda _, names: {name for name in names if not name.startswith("gpu_")},
    )
    (carried / "lib").mkdir()
    for name in ("weft", "weft-gpu"):
        shutil.copy2(installation.BUILD / "lib" / f"lib{name}-mpich.so", carried / "lib")
    script(tree / "tools" / "device-check", TOOL.read_text())
    shutil.copytree(PARTS, tree / "tools" / PARTS.name)
    # This is the checksum of no files.
    (carried.parent / "programs.sources").write_text(hashlib.sha256().hexdigest())
    launcher = LAUNCHER.format(
        python=sys.executable,
        standin=standins.CUDA,
        libraries=standins.FOLDER,
        mpiexec=library.mpiexec,
    )
    script(tree / ".mpi" / "mpich" / "bin" / "mpiexec", launcher)
    (tree / ".mpi" / "mpich" / "lib").symlink_to(library.prefix / "lib")
    (tree / ".mpi" / "mpich" / ".installed").touch()
    script(commands / "nvidia-smi", "#!/bin/sh\n")
    script(commands / "compute-sanitizer", SANITIZER)
    script(commands / "nvidia-cuda-mps-control", MPS)
    # A busy machine may need this long.
    options = ("--gpu", "--limit", "3600", "--out", tmp_path / "out")
    done = subprocess.run(
        [sys.executable, tree / "tools" / "device-check", *options],
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout[done.stdout.index("what came of each") :].splitlines()[1:]
    assert re.fullmatch(r"0 of (\d+) failed, or had no time", table[-1])
    assert len(table) - 1 == int(table[-1].split()[2]) > 40
    assert all(re.search(r" \d+\.\d s right", line) for line in table[:-1]), table
    log = (tmp_path / "out" / "device-check-gpu.log").read_text()
    assert log.count("\n--- ") + 1 == len(table) - 1
    assert "0 wrong values" in log and "all answers right" in log
