"""Tests programs that were built with a sanitizer, or preload a library of their own (row 43)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from job import ENGINES, HERE, Job

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

SOURCE = HERE / "programs" / "sanitized.c"
# Leaks in the libraries are not tested.
QUIET = {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "exitcode=0"}


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Compiles the program with GCC, which the MPI library's wrapper uses."""
    directory = tmp_path_factory.mktemp("sanitized")

    def compile_program(mpi: str, sanitizer: str) -> Path:
        target = directory / f"{sanitizer}-{mpi}"
        library = mpi_libraries.implementation(mpi)
        command = [library.prefix / "bin/mpicc", "-g", f"-fsanitize={sanitizer}", SOURCE]
        environment = {**os.environ, **library.environment()}
        if not target.exists():
            done = subprocess.run([*command, "-o", target], env=environment, capture_output=True)
            if done.returncode != 0:
                pytest.skip(f"this compiler has no -fsanitize={sanitizer}")
        return target

    return compile_program


def check(job: Job, preload: str = "") -> str:
    job.variables |= QUIET
    done = job.right()
    assert done.out.count(f"right, preload={preload}.") == 2, done.text
    return done.err


@pytest.mark.parametrize("engine", [None, "native", *ENGINES])
def test_a_program_with_the_address_sanitizer_runs(mpi, sanitized, engine):
    check(Job(mpi, [], engine, program=[sanitized(mpi, "address")]))


@pytest.mark.parametrize("sanitizer", ["undefined", "leak", "thread"])
def test_programs_with_other_sanitizers_run_where_they_do_without_weft(mpi, sanitized, sanitizer):
    program = [sanitized(mpi, sanitizer)]
    natively = Job(mpi, [], program=program, variables=dict(QUIET)).done()
    job = Job(mpi, [], "auto", program=program, variables=dict(QUIET))
    if natively.status != 0:
        assert job.done().status == natively.status
        return
    # The runtime for undefined behaviour need not be first, so that LD_PRELOAD is as weft run sets
    # it.
    library = installation.preload_library(mpi)
    check(job, str(library) if sanitizer == "undefined" else "")


def test_what_the_user_preloads_stays_where_it_is(mpi, sanitized, tool):
    """A runtime that the user preloads stays first. A tool is put behind Weft, as for other
    programs."""
    program = sanitized(mpi, "address")
    counts = tool(mpi, "count_calls")
    check(Job(mpi, [], "auto", program=[program], tools=[counts]), str(counts))
    runtime = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    runtime = str(Path(runtime).resolve())
    job = Job(mpi, [], "auto", program=[program], tools=[Path(runtime), counts])
    check(job, f"{runtime}:{installation.preload_library(mpi)}:{counts}")


def test_a_shared_heap_has_no_part_in_it(mpi, sanitized):
    """The sanitizer must allocate all memory. One rank prints that."""
    program = [sanitized(mpi, "address")]
    said = check(Job(mpi, [], "auto", program=program, options=["--shared-heap"]))
    assert said.count("and none from the shared heap: leave --shared-heap out") == 1


def test_it_may_be_watched(mpi, sanitized, tmp_path):
    weft = ["advise", "--record", str(tmp_path / "record"), "-o", str(tmp_path / "page.html")]
    done = Job(mpi, [], program=[sanitized(mpi, "address")], weft=weft, variables=dict(QUIET))
    assert done.right().out.count("right, preload=.") == 2
    assert (tmp_path / "record").exists()
