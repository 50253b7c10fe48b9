"""Runs random programs with Weft built with a sanitizer. tools/sanitize builds it and runs these
tests."""

import subprocess
from pathlib import Path

import pytest
import sanitize

from weft.system import mpi_libraries

PROGRAMS = 20
ENGINES = ("auto", "thread --blocking", "function", "thread", "tcc")


def needs(sanitizer: str) -> None:
    if not sanitize.library(sanitizer, "mpich").exists():
        pytest.skip(f"needs {sanitize.BUILDS[sanitizer]}: tools/sanitize {sanitizer}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sanitizer", sanitize.BUILDS)
def test_random_programs(sanitizer, engine):
    needs(sanitizer)
    words = ("--seed", 6000, "--programs", PROGRAMS)
    done = sanitize.setting(sanitizer, "mpich", 3, engine).run(*words)
    assert done.returncode == 0, done.stdout
    assert f"random: {PROGRAMS} programs right" in done.stdout


@pytest.mark.parametrize("sanitizer", ["thread"])
def test_plans_of_deferred_calls(sanitizer, tmp_path):
    """Weft's thread makes these plans while the program's thread makes others and searches all that
    exist."""
    needs(sanitizer)
    program = tmp_path / "deferred_plans"
    compiler = mpi_libraries.implementation("mpich").prefix / "bin" / "mpicc"
    source = Path(__file__).with_name("deferred_plans.c")
    subprocess.run([compiler, "-O1", source, "-o", program], check=True)
    more = {"nodes": "a:1,b:1", "program": program}
    done = sanitize.setting(sanitizer, "mpich", 2, "auto --learn switch", **more).run()
    assert done.returncode == 0, done.stdout
    assert "deferred_plans: right" in done.stdout


@pytest.mark.parametrize("sanitizer", ["thread"])
def test_a_planted_race_is_found(sanitizer, tmp_path):
    needs(sanitizer)
    before = sanitize.planted_race(tmp_path)
    planted = sanitize.setting(sanitizer, "mpich", 2, "thread", before=before)
    done = planted.run("--seed", 6000, "--programs", 5)
    assert done.returncode != 0, done.stdout
    assert "WARNING: ThreadSanitizer: data race" in done.stdout
    assert "weft::Progress::thread_main" in done.stdout  # the call stack is one of Weft's thread
