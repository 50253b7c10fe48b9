"""Tests `weft run` in front of a launcher: Weft is loaded into the ranks and never into the
launcher."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

ALL = mpi_libraries.IMPLEMENTATIONS
SHOW = 'echo "launcher preload=$LD_PRELOAD"; for word; do echo "word=$word"; done'


def words(result) -> list[str]:
    lines = result.stdout.splitlines()
    return [line.removeprefix("word=") for line in lines if line.startswith("word=")]


CASES = [
    ("mpiexec.hydra", "-n 4 | ./app -n 3"),
    ("mpiexec.hydra", "--np=4 -genv A B -env C=D -bind-to core -l | ./app x"),
    ("mpiexec.hydra", "-f hosts -ppn 2 -launcher ssh -prepend-rank | ./app"),
    ("mpiexec.hydra", "-n 1 | ./a : -n 2 -wdir /tmp | ./b b : -n 1 | ./c"),
    ("prterun", "-np 4 --mca btl tcp,self --map-by=ppr:2:node -x A=b | ./app --mca x y"),
    ("prterun", "--host a:1,b:1 --oversubscribe -n 2 --bind-to none | ./app : -n 1 | ./b"),
    ("srun", "-n4 -N 2 --mpi=pmix --cpu-bind none -l --exclusive | ./app -n"),
    ("srun", "--ntasks 4 -lu --export=ALL | ./app"),
    ("srun", "-n 4 --bcast | ./app in.dat"),
    ("mpiexec", "-n 4 -host a,b | ./app"),
    ("mpirun", "-np 4 | ./app"),
]


@pytest.mark.parametrize(("name", "line"), CASES)
def test_programs_are_found_in_the_launchers_arguments(call, script, weft, name, line):
    launcher = script(name, SHOW)
    result = call("run", "--engine", "tcc", "--", launcher, *line.replace("| ", "").split())
    assert result.returncode == 0, result.stderr
    expected = line.replace("|", f"{weft} run --engine=tcc --").split()
    assert words(result) == expected
    assert "launcher preload=\n" in result.stdout


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("mpiexec.hydra", "-configfile"),
        ("mpiexec.hydra", "--mca"),
        ("prterun", "--app"),
        ("srun", "--multi-prog"),
        ("mpiexec", "-nonsense"),
        ("mpiexec", "-s"),  # Intel's option takes a value, Open MPI's does not
    ],
)
def test_unknown_options_are_named(call, script, name, option):
    result = call("run", "--", script(name, SHOW), option, "x", "./app")
    assert result.returncode == 2
    assert f"'{option}'" in result.stderr
    assert "weft run -- ./app" in result.stderr
    assert result.stdout == ""


def test_variables_travel_as_options(call, script):
    settings = {"WEFT_BACKOFF": "spin", "WEFT_ALGORITHM_SCAN": "chain", "WEFT_SUMMARY": "1"}
    result = call("run", "--", script("mpiexec", SHOW), "-n", "2", "./app", **settings)
    for word in ("--backoff=spin", "--algorithm=scan=chain", "--summary=1"):
        assert word in words(result)


def test_launcher_without_a_program_is_left_alone(call, script):
    result = call("run", "--", script("mpiexec.hydra", SHOW), "--version")
    assert words(result) == ["--version"]


def test_bad_words_are_refused_before_the_launcher_starts(call, script):
    result = call("run", "--engine", "warp", "--", script("mpiexec", SHOW), "-n", "2", "true")
    assert result.returncode == 2
    assert result.stdout == ""


def launch(name: str) -> tuple[mpi_libraries.Implementation, list[str]]:
    mpi = mpi_libraries.implementation(name)
    assert mpi.mpiexec.exists(), f"get it with: {mpi_libraries.make_target(name)}"
    extra = ["--oversubscribe", "--bind-to", "none"] if name == "openmpi" else []
    return mpi, [str(mpi.mpiexec), "-n", "2", *extra]


# The rank prints its own LD_PRELOAD, and which of its ancestors were started with Weft's library.
ANCESTRY = """echo "rank preload=$LD_PRELOAD"
pid=$PPID
while [ "$pid" -gt 1 ]; do
  tr '\\0' '\\n' <"/proc/$pid/environ" | grep '^LD_PRELOAD=.*libweft' | sed 's/^/ancestor /'
  pid=$(sed 's/.*) . //' "/proc/$pid/stat" | cut -d' ' -f1)
done"""


@pytest.mark.parametrize("name", ALL)
def test_only_ranks_are_preloaded(call, script, name):
    mpi, command = launch(name)
    result = call("run", "--", *command, script("app", ANCESTRY), **mpi.environment())
    assert result.returncode == 0, result.stderr
    library = installation.preload_library(mpi.family)
    assert result.stdout.splitlines() == [f"rank preload={library}"] * 2


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("inside", [False, True])
def test_both_forms_load_weft_into_mpi_programs(weft, environment, name, inside):
    mpi, command = launch(name)
    program = str(mpi.program("weft-probe"))
    under = [weft, "run", "--engine", "tcc", "--"]
    full = [*command, *under, program] if inside else [*under, *command, program]
    variables = {**environment, **mpi.environment()}
    done = subprocess.run(full, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    facts = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert facts["ranks"] == 2
    assert facts["weft"]


def test_program_of_another_mpi_is_refused_in_the_rank(call):
    _, command = launch("mpich")
    program = mpi_libraries.implementation("openmpi").program("weft-probe")
    result = call("run", "--", *command, program)
    assert result.returncode == 2
    assert "libmpi.so.40" in result.stderr


def test_launcher_found_on_the_path(call, environment):
    mpi, _ = launch("mpich")
    path = f"{mpi.prefix}/bin:{environment['PATH']}"
    assert shutil.which("mpiexec", path=path)
    result = call("run", "--", "mpiexec", "-n", "1", mpi.program("weft-probe"), PATH=path)
    assert json.loads(result.stdout)["weft"]
