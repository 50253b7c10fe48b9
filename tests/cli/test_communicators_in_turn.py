"""The memory of a communicator is used again by the next one of the same ranks: the results are
right whatever was done in it before, and none is asked for (docs/inside/memory.md)."""

import os
import shutil
import subprocess

import pytest

from weft import installation, mpi_libraries

SOURCE = installation.ROOT / "tests/cli/programs/communicators_in_turn.c"
TWO_NODES = ["-launcher", "fork", "-hosts", "a:2,b:2"]
WAYS = {
    "auto": [],
    "auto, switching": ["--learn", "switch"],
    "function, blocking": ["--engine", "function", "--blocking"],
    "thread, blocking": ["--engine", "thread", "--blocking"],
}
# Of memory that processes share. What was given away becomes zero again by a call of the last one.
OF_MEMORY = ["memfd_create", "ftruncate", "mremap", "readlink", "openat"]


@pytest.fixture
def job(tmp_path):
    def outcome(name: str, ranks: int, arguments: list, words=(), where=(), tool=()) -> str:
        mpi = mpi_libraries.implementation(name)
        if not mpi.mpiexec.exists():
            pytest.skip(f"needs {mpi_libraries.make_target(name)}")
        program = tmp_path / "program"
        library = f"-Wl,-rpath,{mpi.prefix / 'lib'}"
        compiler = mpi.mpiexec.parent / "mpicc"
        variables = {**os.environ, **mpi.environment()}
        compile = [compiler, "-O1", SOURCE, "-o", program, library]
        subprocess.run(compile, check=True, timeout=60, env=variables)
        weft = [installation.weft_command(), "run", "--plan-cache", tmp_path / "plans", *words]
        command = [*mpi.launcher(ranks), *where, *tool, *weft, "--", program, *arguments]
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=100,
            env=variables,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("right") == ranks, done.stdout
        return done.stderr

    return outcome


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["mpich", "openmpi", "intelmpi"])
def test_on_one_node(job, name, way):
    job(name, 3, [200], WAYS[way])


@pytest.mark.parametrize("way", ["auto", "thread, blocking"])
def test_on_two_nodes(job, way):
    job("mpich", 4, [150], WAYS[way], where=TWO_NODES)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("where", [[], TWO_NODES], ids=["one node", "two nodes"])
def test_a_further_one_needs_no_memory_of_the_system(job, tmp_path, where):
    def calls(count: int) -> int:
        place = tmp_path / str(count)
        place.mkdir()
        trace = f'exec strace -f -e trace={",".join(OF_MEMORY)} -o "$0/$$" "$@"'
        ranks = 4 if where else 2
        job("mpich", ranks, [count, "short"], where=where, tool=["sh", "-c", trace, place])
        return sum(len(path.read_text().splitlines()) for path in place.iterdir())

    few, many = calls(20), calls(220)
    assert few > 0
    assert many - few < 10
