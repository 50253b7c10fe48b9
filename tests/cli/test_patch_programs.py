"""Tests `weft advise --patch` on whole programs: each call becomes what the program's marks expect.
The changed program must compile, give the same results, and access no buffer in flight according to
`weft check`.

Fortran is compiled in tests/callers, for libraries that have its modules; two programs here get
a binding of their own (tools/fortran_binding.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fortran_binding
import pytest
from advise_runs import HERE
from patch_programs import Program, applied, check, copied, names

from weft.advise import analysis, store
from weft.advise.patch import diff, wish

pytest.importorskip("tree_sitter_c")
COMPILERS = {"c": "mpicc", "c++": "mpicxx"}
LIMIT_S = 120
FIRST = ("two_files.c", "history.cpp")  # programs that `make test` compiles
# These reasons come from the measurement, and are added to those of the program.
NOT_MEASURED = ("was not measured", "first used in another function", "nothing could be computed")
NOT_MEASURED += ("another change of this patch is too near",)
COMPILED = names("c", "c++", "python")


@pytest.mark.parametrize("name", names("c", "c++", "fortran", "python"))
def test_each_call_becomes_what_is_expected(name, tmp_path):
    """The marks in the sources give the places, in place of a record."""
    program = copied(name, tmp_path)
    assert program.wishes.keys() == program.expected.keys()
    for call, own in program.wishes.items():
        patch = diff.make([own])
        words = program.expected[call]
        assert bool(patch.left) == bool(words), f"{call}: {patch.made + patch.left}"
        assert not words or words in patch.left[0], f"{call}: {patch.left[0]}"
        assert words or program.said.get(call, "") in patch.made[0], patch.made[0]


def command_of(mpi, program: Program) -> list:
    """Returns the command that runs a program. The program is compiled first unless it is a Python
    script."""
    if program.language == "python":
        pytest.importorskip("numpy")
        return [sys.executable, program.main]
    target = program.main.with_suffix("")
    if program.language == "fortran":
        words = fortran_binding.compiler(mpi, program.main.parent / "binding")
        words = [*words, "-g", "-O1", f"-J{target.parent}", program.main, "-o", target]
        subprocess.run(words, check=True, timeout=LIMIT_S)
        return [target]
    words = [mpi.prefix / "bin" / COMPILERS[program.language], "-g", "-O1", "-Wall", "-Wextra"]
    words += ["-Werror", *program.sources, "-o", target, f"-Wl,-rpath,{mpi.prefix}/lib", "-lm"]
    variables = {**os.environ, **mpi.environment()}
    subprocess.run([str(word) for word in words], check=True, timeout=LIMIT_S, env=variables)
    return [target]


def answers(mpi, command: list, folder: Path, *front: str) -> str:
    done = subprocess.run(
        [str(word) for word in [*front, *mpi.launcher(2), *command]],
        cwd=folder,
        env={**os.environ, **mpi.environment(), **HERE},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
    return done.stdout


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.long] * (one not in FIRST)) for one in COMPILED]
)
def test_what_is_changed_answers_as_before(mpich, weft, name, tmp_path):
    program = copied(name, tmp_path)
    patch = diff.make(list(program.wishes.values()))
    before = answers(mpich, command_of(mpich, program), tmp_path)
    if not patch.made:
        return
    applied(patch)
    checked = [weft, "check", "--error-exitcode", "9", "--"]
    assert answers(mpich, command_of(mpich, program), tmp_path, *checked) == before


@pytest.mark.covering
@pytest.mark.parametrize("name", ["plans.f90", "rounds.f", "plans.py"])
def test_plans_and_waits_of_the_next_round_answer_as_before(mpi, weft, name, tmp_path):
    program = copied(name, tmp_path)
    if program.language == "fortran" and not shutil.which("gfortran"):
        pytest.skip("there is no Fortran compiler: install gfortran")
    patch = diff.make(list(program.wishes.values()))
    before = answers(mpi, command_of(mpi, program), tmp_path)
    applied(patch)
    changed = command_of(mpi, program)
    for front in ([], [weft, "run", "--"], [weft, "check", "--error-exitcode", "9", "--"]):
        assert answers(mpi, changed, tmp_path, *front) == before


@pytest.mark.long
@pytest.mark.parametrize("name", COMPILED)
def test_from_a_record_that_was_measured(mpi, advise, name, tmp_path):
    program = copied(name, tmp_path)
    command = command_of(mpi, program)
    before = answers(mpi, command, tmp_path)
    done = advise(mpi, command, "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    advice = analysis.analyse(stored)
    patch = diff.make(wish.wishes_of(advice, stored, advice.sites))
    check(program, patch, NOT_MEASURED)
    if patch.made:
        applied(patch)
        assert answers(mpi, command_of(mpi, program), tmp_path) == before
