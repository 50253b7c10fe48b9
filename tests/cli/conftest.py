"""Fixtures that the command line tests share: small programs, and MPI libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from advise_runs import FEW_ROUNDS, HERE

from weft.bench import kernel_runs
from weft.system import mpi_libraries

SOURCES = Path(__file__).parent / "programs"


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def mpi(request):
    """Each of the libraries that most users have. The test is skipped if it is not installed."""
    library = mpi_libraries.implementation(request.param)
    if not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(request.param)}")
    return library


@pytest.fixture
def mpich():
    library = mpi_libraries.implementation("mpich")
    if not library.mpiexec.exists():
        pytest.skip("needs make mpich")
    return library


@pytest.fixture(scope="session")
def compiled(compile_once):
    """Compiles programs/NAME.c once, with extra arguments, and returns the program's path."""

    def compile_program(name: str, *arguments: str, output: str = "") -> Path:
        return compile_once(output or name, ["cc", "-O1", SOURCES / f"{name}.c", *arguments])

    return compile_program


@pytest.fixture(scope="session")
def compiled_for(compile_once):
    """Compiles programs/NAME.c for an MPI library once, and returns the program's path."""

    def compile_program(library: mpi_libraries.Implementation, name: str, *flags: str) -> Path:
        found_at = f"-Wl,-rpath,{library.prefix / 'lib'}"
        command = [library.mpiexec.parent / "mpicc", "-O1", SOURCES / f"{name}.c", *flags, found_at]
        return compile_once(f"{name}-{library.name}", command, library.environment())

    return compile_program


@pytest.fixture
def all_right(weft, environment, compiled_for, tmp_path):
    """Runs programs/NAME.c under Weft. Each rank must print "right"."""

    def run(
        name: str,
        *arguments: object,
        mpi: str = "mpich",
        ranks: int = 3,
        options: Sequence[str] = (),
        launcher: Sequence[str] = (),
        tool: Sequence[object] = (),
    ) -> None:
        library = mpi_libraries.implementation(mpi)
        if not library.mpiexec.exists():
            pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
        program = compiled_for(library, name)
        front = [weft, "run", "--plan-cache", tmp_path / "plans", *options, "--"]
        command = [*library.launcher(ranks), *launcher, *tool, *front, program, *arguments]
        done = subprocess.run(
            [str(word) for word in command],
            env={**environment, **library.environment()},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("right") == ranks, done.stdout

    return run


@pytest.fixture(scope="session")
def linked_to(compiled):
    """Builds a program that needs an MPI library of this name, which is an empty one. Returns both
    paths."""

    def link(soname: str) -> tuple[Path, Path]:
        library = compiled("empty", "-shared", "-fPIC", f"-Wl,-soname,{soname}", output=soname)
        directory = str(library.parent)
        needs = ["-Wl,--no-as-needed", f"-L{directory}", f"-l:{soname}", f"-Wl,-rpath,{directory}"]
        return compiled("say", *needs, output=f"needs-{soname}"), library

    return link


@pytest.fixture
def script(tmp_path):
    """Writes an executable shell script."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return write


# Modules are imported once, and each row of words is the command line of a child.
MANY_COMMANDS = """
import json, os, sys
from tempfile import TemporaryFile
from weft.cli import main
found = []
for words in json.load(sys.stdin):
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["weft", *words]
            sys.exit(main())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found.append((status, *(file.seek(0) or file.read() for file in (out, err))))
print(json.dumps(found))
"""


@pytest.fixture
def answers(environment):
    """Runs Weft's commands in Python, and returns each one's status and output."""

    def run(commands: Sequence[Sequence[object]]) -> list[subprocess.CompletedProcess]:
        rows = [[str(word) for word in words] for words in commands]
        done = subprocess.run(
            [sys.executable, "-c", MANY_COMMANDS],
            input=json.dumps(rows),
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        found = zip(rows, json.loads(done.stdout))
        return [subprocess.CompletedProcess(words, *said) for words, said in found]

    return run


@pytest.fixture
def kernel(environment, weft):
    """Runs a kernel on some ranks, under Weft if engines are named."""

    def run(
        name: str,
        *words: object,
        ranks: int = 2,
        engines: str = "",
        mpi: str = "mpich",
        inside: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess:
        library = mpi_libraries.implementation(mpi)
        program = library.program(name)
        if not program.exists():
            needs = kernel_runs.NEEDS.get(name, "nothing more")
            pytest.skip(f"needs {name}, built for {mpi}, which needs {needs}")
        command = [*inside, *library.launcher(ranks)]
        if engines:
            command += [weft, "run", "--engine", "thread", "--"]
        command += [str(program), *map(str, words), "--engines", engines or "native"]
        # Threads that wait by spinning would take the cores of a small machine from each other.
        variables = {**environment, **library.environment(), "OMP_WAIT_POLICY": "passive"}
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=100)

    return run


# ---- Fixtures for weft advise ----------------------------------------------------------------


@pytest.fixture(scope="session")
def program(compile_once):
    """Compiles programs/NAME for an MPI library, with debug information."""

    def compile_for(mpi, name: str, *flags: str) -> Path:
        source = SOURCES / name
        flags = ("-g", "-O1", "-pthread", *flags, f"-Wl,-rpath,{mpi.prefix}/lib")
        command = [mpi.prefix / "bin/mpicc", source, *flags]
        return compile_once(f"{source.stem}.{mpi.name}", command, mpi.environment())

    return compile_for


@pytest.fixture
def advise(weft, environment, tmp_path):
    """Runs `weft advise OPTIONS -- mpiexec -n 2 COMMAND` with few rounds of replays. Files are
    written to tmp_path."""

    def run(
        mpi,
        command: list[object],
        *options: object,
        inside: bool = False,
        launcher: Sequence[object] = (),
        before: Sequence[object] = ("--",),
        variables: dict[str, str] | None = None,
    ):
        launcher = launcher or [mpi.mpiexec, "-n", "2"]
        if mpi.name == "openmpi":
            launcher += ["--oversubscribe", "--bind-to", "none"]
        replays = "--verify" in options and not inside
        own = [
            *([sys.executable, "-c", FEW_ROUNDS] if replays else [weft]),
            "advise",
            *([] if "--sample" in options else ["--no-sample"]),
            *options,
            *before,
        ]
        words = [*launcher, *own, *command] if inside else [*own, *launcher, *command]
        return subprocess.run(
            [str(word) for word in words],
            env={**environment, **mpi.environment(), **HERE, **(variables or {})},
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
        )

    return run


@pytest.fixture
def kept(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    windows = program(mpi, "advise_windows.c")
    assert advise(mpi, [windows, 1, 4], "--json", "first.json").returncode == 0
    return tmp_path / "weft-advise.sqlite"
