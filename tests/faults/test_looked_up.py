"""Tests calls that a program looks up itself, without regard to preloaded libraries (row 42)."""

import json
import os
import subprocess
import sys

import pytest
from job import ENGINES, HERE, Job

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_calls_looked_up_in_the_library_are_wefts(mpi, tool, engine):
    job = Job(mpi, ["looked-up"], engine)
    job.variables = {"FAULTS_PLUGIN": str(tool(mpi, "looked_up_plugin"))}
    assert job.right().out.count("13 ways") == 2


def test_a_tool_behind_weft_looks_past_it(mpi, tool):
    """If its lookup returned Weft's function, which leads to the tool again, no call would ever
    end."""
    job = Job(mpi, ["looked-up"], "thread")
    job.tools = [tool(mpi, "wait_by_handle")]
    assert job.right().out.count("7 ways") == 2


OPENER = """
#include <dlfcn.h>
void* open_own_part(void) { return dlopen("libown-part.so", RTLD_NOW); }
"""
PROGRAM = """
void* open_own_part(void);
int main(void) { return open_own_part() ? 0 : 1; }
"""


def test_files_are_searched_for_by_the_object_that_opens_them(mpi, tmp_path):
    """An object may have its own search path (DT_RUNPATH), whatever is preloaded."""
    (tmp_path / "parts").mkdir()
    weft = installation.preload_library(mpi_libraries.FAMILY[mpi])

    def compiled(name, source, *options):
        command = ["cc", "-x", "c", "-", "-o", tmp_path / name, *options]
        subprocess.run(command, input=source, text=True, check=True, timeout=60)
        return tmp_path / name

    shared = ("-shared", "-fPIC")
    compiled("parts/libown-part.so", "int own_part;", *shared)
    new_tags = "-Wl,--enable-new-dtags"
    opener = compiled("libopener.so", OPENER, *shared, new_tags, "-Wl,-rpath,$ORIGIN/parts")
    linked = ("-x", "none", opener, new_tags, "-Wl,-rpath,$ORIGIN")
    program = compiled("program", PROGRAM, *linked)
    subprocess.run([program], env={"LD_PRELOAD": str(weft)}, check=True, timeout=60)


def test_weft_serves_a_program_that_calls_by_ctypes(mpi, tmp_path):
    library = mpi_libraries.implementation(mpi)
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    summary = tmp_path / "summary.json"
    weft = [installation.weft_command(), "run", "--mpi", mpi, "--learn", "off"]
    weft += ["--init-budget", "0"]  # without measurements the library's own call is never used
    weft += [f"--summary=json:{summary}", "--"]
    name = mpi_libraries.FAMILY_LIBRARY[library.family]
    program = [sys.executable, HERE / "programs/ctypes_sum.py", name]
    done = subprocess.run(
        [*map(str, [*library.launcher(2), *weft, *program])],
        env={**os.environ, **library.environment()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "right\n" * 2), done.stderr
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    assert calls["MPI_Iallreduce"]["handled"] == 40
    assert calls["MPI_Allreduce_init"]["handled"] == 2
