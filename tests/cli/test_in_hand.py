"""Short collectives for requests that stay in their caller's hand (src/runtime/in_hand.h): what
they cost, by instructions, which no other load changes; and that whatever else comes finds them."""

import os
import re
import subprocess

import pytest
from test_start_cost import CALLS, needs_valgrind, outside_the_library, profile, program

from weft import installation, mpi_libraries

__all__ = ["program"]  # the fixture
SOURCES = installation.ROOT / "tests/cli/programs"
LIMIT_S = 110
# Of start and wait together, inside Weft and without what it calls of the MPI library's.
MOST_INSTRUCTIONS = 700
MOST_AT_A_SITE = 80  # more, where engine auto has settled


@needs_valgrind
@pytest.mark.parametrize("role", ["root", "reader"])
@pytest.mark.parametrize(
    ("engine", "option"), [("function", "--transport=auto"), ("auto", "--learn=use")]
)
def test_start_and_wait_are_short(program, tmp_path, role, engine, option, capsys):
    counted = []
    for calls in CALLS:
        file = tmp_path / f"{calls}.out"
        text = profile(program, calls, file, option, role, 1, "counted_*", engine)
        counted.append(outside_the_library(text))
    instructions = (counted[1] - counted[0]) / (CALLS[1] - CALLS[0])
    with capsys.disabled():
        print(f"  engine {engine}, {role}: {instructions:.0f} instructions")
    assert instructions <= MOST_INSTRUCTIONS + (MOST_AT_A_SITE if engine == "auto" else 0)


@needs_valgrind
@pytest.mark.parametrize("doubles", [1, 512])
@pytest.mark.parametrize("role", ["root", "reader"])
def test_no_list_and_no_new_request(program, tmp_path, role, doubles):
    text = profile(program, 50, tmp_path / "out", "--transport=auto", role, doubles, "counted_*")
    assert "weft::AloneCall::go_on" in text
    assert "weft::Progress::submit" not in text
    assert "weft::Requests::find" not in text
    made = re.findall(r"^cfn=PMPI_Grequest_start\ncalls=(\d+)", text, re.MULTILINE)
    assert [int(calls) for calls in made] == [1]
    assert "PMPI_Wait" not in text


@pytest.mark.parametrize("engine", ["function", "thread", "auto"])
@pytest.mark.parametrize(
    ("mpi", "ranks"), [("mpich", 2), ("openmpi", 2), ("intelmpi", 2), ("mpich", 3)]
)
def test_whatever_comes_meanwhile(mpi, ranks, engine, tmp_path):
    library = mpi_libraries.implementation(mpi)
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    target = tmp_path / "in_hand"
    path = f"-Wl,-rpath,{library.prefix / 'lib'}"
    command = [library.prefix / "bin/mpicc", "-O1", SOURCES / "in_hand.c", "-o", target, path]
    subprocess.run([str(word) for word in command], check=True, timeout=60)
    weft = [installation.weft_command(), "run", f"--engine={engine}"]
    done = subprocess.run(
        [str(word) for word in [*library.launcher(ranks), *weft, "--", target, 40]],
        env={**os.environ, **library.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right" in done.stdout
