"""Tests the site file, PREFIX/etc/weft.conf, with defaults for all users of an installation.

The same lines are valid under `weft run` and if the library is preloaded by hand. With a mistake
the whole file is ignored, and one rank says so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from printed import into_files, printed

from weft.doctor import checks
from weft.system import installation, mpi_libraries

RANKS = 3
SAYS = ["sh", "-c", "echo engine=$WEFT_ENGINE learn=$WEFT_LEARN bcast=$WEFT_ALGORITHM_BCAST"]
FILE = """\
# Defaults of this site.

WEFT_ENGINE = thread
  WEFT_LEARN=off\t
WEFT_ALGORITHM_BCAST = binomial\r
"""
MISTAKES = {
    "WEFT_ENGIN = thread": "line 1: 'WEFT_ENGIN' is not a variable that it may set",
    "WEFT_MPI = openmpi": "line 1: 'WEFT_MPI' is not a variable that it may set",
    "PATH = /tmp": "line 1: 'PATH' is not a variable that it may set",
    "WEFT_LEARN = off\nWEFT_ENGINE = warp": "line 2: unknown engine 'warp'; choose one of native",
    "# engine\n\nthread": "line 3: 'thread' is not NAME = VALUE",
    "WEFT_ENGINE = thread\nWEFT_ENGINE = tcc": "line 2: WEFT_ENGINE is set twice",
    "WEFT_ALGORITHM_BCAST = rings": "line 1: unknown algorithm 'rings' for bcast; choose one of",
    "WEFT_REPRODUCIBLE = 1\nWEFT_BLOCKING = 0": "line 2: reproducible reductions need the blocking",
    "WEFT_REPRODUCIBLE = 1\nWEFT_ALGORITHM_SCAN = linear": "line 2: reproducible reductions have",
    "WEFT_PLAN_CACHE = /etc/passwd": "line 1: the file of plans '/etc/passwd' is nothing of Weft's",
    "WEFT_ENGINE = \x1b[31m": "line 1: unknown engine '\\x1b[31m'",
    "WEFT_ENGINE = thread\0": "it is no text",
    "#" * 70_000: "it is longer than 64 KiB",
}


@pytest.fixture
def prefix(weft, tmp_path) -> Path:
    """Makes an installation with the command and the libraries."""
    place = tmp_path / "prefix"
    for folder in ("bin", "lib/weft", "etc"):
        (place / folder).mkdir(parents=True)
    shutil.copy(Path(weft).resolve(), place / "bin/weft")
    for name in ("mpich", "openmpi"):
        if installation.preload_library(name).exists():
            (place / f"lib/weft/libweft-{name}.so").symlink_to(installation.preload_library(name))
    return place


@pytest.fixture
def site_file(prefix):
    def write(text: str) -> Path:
        file = prefix / "etc/weft.conf"
        file.write_bytes(text.encode())
        return file

    return write


@pytest.fixture
def run(prefix, environment):
    def start(command: list[object], **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(word) for word in command],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return start


@pytest.mark.parametrize(
    "options, variables, engine, learn",
    [
        ([], {}, "thread", "off"),
        ([], {"WEFT_ENGINE": "function"}, "function", "off"),
        (["--learn", "use"], {"WEFT_ENGINE": "function"}, "function", "use"),
    ],
)
def test_options_win_over_variables_and_these_over_the_file(
    run, prefix, site_file, options, variables, engine, learn
):
    site_file(FILE)
    done = run([prefix / "bin/weft", "run", *options, "--", *SAYS], **variables)
    assert (done.stdout, done.stderr) == (f"engine={engine} learn={learn} bcast=binomial\n", "")


@pytest.mark.parametrize("text", MISTAKES, ids=[text[:24] for text in MISTAKES])
def test_a_mistake_leaves_the_file_out(run, prefix, site_file, text):
    file = site_file(text)
    done = run([prefix / "bin/weft", "run", "--", *SAYS])
    assert done.stdout == "engine= learn= bcast=\n"
    assert done.stderr.startswith(f"weft: the site file {file} is left out ({MISTAKES[text]}")
    assert done.stderr.endswith("), and Weft's defaults hold; ask the administrator to mend it\n")
    assert done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


@pytest.mark.parametrize("kind", ["folder", "pipe", "forbidden"])
def test_what_is_no_file_is_left_out(run, prefix, kind):
    file = prefix / "etc/weft.conf"
    before: list[str] = []
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.write_text("WEFT_ENGINE = thread\n")
        file.chmod(0o200)
        if os.geteuid() == 0:
            for folder in prefix.parents:
                if folder.stat().st_uid == os.geteuid() and folder.is_relative_to("/tmp"):
                    folder.chmod(0o755)
            before = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
    done = run([*before, prefix / "bin/weft", "run", "--", *SAYS])
    why = "Permission denied" if kind == "forbidden" else "it is no regular file"
    assert done.stdout == "engine= learn= bcast=\n"
    assert f"is left out ({why})" in done.stderr


@pytest.mark.parametrize("weft_run", [True, False])
def test_ranks_take_it(mpi, run, prefix, site_file, compiled_for, tmp_path, weft_run):
    """The library is loaded by `weft run`, or preloaded by hand."""
    summary = tmp_path / "summary.json"
    file = site_file(f"WEFT_ENGINE = function\nWEFT_SUMMARY = json:{summary}\n")
    library = prefix / f"lib/weft/libweft-{mpi.name}.so"
    before = [prefix / "bin/weft", "run", "--"] if weft_run else ["env", f"LD_PRELOAD={library}"]
    job = [*mpi.launcher(RANKS), *into_files(tmp_path), *before, compiled_for(mpi, "init_marks")]
    assert run(job, **mpi.environment()).returncode == 0
    assert json.loads(summary.read_text())["engine"] == "function"
    assert "weft: " not in printed(tmp_path, "err")

    summary.unlink()
    file.write_text(file.read_text() + "WEFT_LERN = off\n")
    assert run(job, **mpi.environment()).returncode == 0
    assert not summary.exists()
    said = re.findall(r"^weft: (.*)$", printed(tmp_path, "err"), re.MULTILINE)
    assert len(said) == 1 and "line 3: 'WEFT_LERN' is not a variable" in said[0], said


def test_a_launcher_hands_it_to_all_ranks(run, mpi, prefix, site_file):
    """The ranks may run on nodes on which the file is missing."""
    site_file("WEFT_ENGINE = function\n")
    job = [prefix / "bin/weft", "run", "--verbose", "--", *mpi.launcher(2), "true"]
    done = run(job, **mpi.environment())
    assert "weft run --engine=function" in done.stderr.splitlines()[0]


@pytest.mark.parametrize("preloaded", [False, True])
def test_what_is_wrong_beside_it_names_its_line(run, prefix, site_file, compiled_for, preloaded):
    file = site_file("# defaults\nWEFT_ENGINE = auto\nWEFT_BLOCKING = 0\n")
    mpi = mpi_libraries.implementation("mpich")
    if preloaded:
        command = ["env", f"LD_PRELOAD={prefix}/lib/weft/libweft-mpich.so"]
        command += [compiled_for(mpi, "init_marks")]
    else:
        command = [prefix / "bin/weft", "run", "--reproducible", "--", "true"]
    done = run(command, WEFT_REPRODUCIBLE="1", **mpi.environment())
    assert done.returncode != 0
    assert (
        "reproducible reductions need the blocking ones too; leave WEFT_BLOCKING=0 out; line 3 of "
        f"the site file {file} sets WEFT_BLOCKING: set it otherwise in the environment"
    ) in done.stderr
    done = run(command, WEFT_REPRODUCIBLE="1", WEFT_BLOCKING="1", **mpi.environment())
    assert "site file" not in done.stderr


def test_the_file_of_plans_is_looked_at_once(run, prefix, site_file, tmp_path):
    plans, calls = tmp_path / "plans", tmp_path / "calls"
    plans.write_text("")
    site_file(f"WEFT_PLAN_CACHE = {plans}\nWEFT_ENGINE = thread\nWEFT_LEARN = off\n")
    command = ["strace", "-e", "trace=open,openat,execve", "-o", calls, prefix / "bin/weft", "run"]
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    assert run([*command, "--", "true"]).returncode == 0
    of_command, _, _ = calls.read_text().partition(f'execve("{shutil.which("true")}"')
    assert of_command.count(f'"{plans}"') == 1


def test_doctor_says_that_nothing_checks_it(monkeypatch, prefix, site_file):
    monkeypatch.setattr(installation, "weft_command", lambda: prefix / "bin/weft")
    file = site_file("WEFT_ENGINE = thread\n")
    (prefix / "bin/weft").chmod(0o644)
    finding = checks.check_site_file()
    words = f"{file} is not checked: {prefix / 'bin/weft'} does not run (Permission denied)"
    assert (finding.good, finding.note) == (False, words)


def test_doctor_names_its_mistake(monkeypatch, prefix, site_file):
    monkeypatch.setattr(installation, "weft_command", lambda: prefix / "bin/weft")
    file = site_file("WEFT_ENGINE = thread\n")
    assert checks.check_site_file() == checks.Finding("site file", True, str(file))
    site_file("WEFT_LERN = off\n")
    finding = checks.check_site_file()
    assert (finding.good, finding.fix) == (False, f"mend {file}")
    assert finding.note == "left out (line 1: 'WEFT_LERN' is not a variable that it may set)"
