"""Tests patches from measured records of the programs of test_patch.py, of all their calls, whether
or not they are worth it. Each call is changed, and the program gives the same results, or it is
left for a true reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import test_patch as made_up
from advise_runs import HERE

from weft.advise import analysis, store
from weft.advise.patch import diff, wish

pytestmark = pytest.mark.long
SIZES = ("-DN=20000", "-DTIMES=20")
# These reasons may come from the measurement, in addition to those of the source.
NOT_MEASURED = ("was not measured", "first used in another function", "nothing could be computed")


def compiled(mpi, source: Path, compiler: str) -> Path:
    target = source.with_suffix(".program")
    words = [mpi.prefix / "bin" / compiler, "-g", "-O1", "-Wall", "-Werror", *SIZES, source]
    words += ["-Wno-unknown-pragmas", "-o", target, f"-Wl,-rpath,{mpi.prefix}/lib"]
    environment = {**os.environ, **mpi.environment()}
    subprocess.run([str(word) for word in words], check=True, timeout=120, env=environment)
    return target


def answers(mpi, command: list, tmp_path: Path) -> str:
    done = subprocess.run(
        [str(word) for word in [*mpi.launcher(2), *command]],
        env={**os.environ, **mpi.environment(), **HERE},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
    return done.stdout


def patch_of_record(tmp_path: Path) -> diff.Patch:
    stored = store.read(tmp_path / "weft-advise.sqlite")
    advice = analysis.analyse(stored)
    return diff.make(wish.wishes_of(advice, stored, advice.sites))


def check(patch: diff.Patch, source: Path, language: str, comment: str, expected: dict) -> None:
    """Checks that calls which must be left are left with their reason, and that others are only
    left for a reason from the measurement."""
    marks = made_up.wishes(source, language, comment)
    for name, own in marks.items():
        # The mark may be in the last line of the call.
        places = [f" {source.name}:{own.line - before} " for before in (0, 1)]
        made = [one for one in patch.made if any(place in one for place in places)]
        left = [one for one in patch.left if any(place in one for place in places)]
        said = "\n".join([name, *patch.made, *patch.left])
        assert len(made) + len(left) == 1, said
        if expected[name]:
            assert left and any(one in left[0] for one in (expected[name], *NOT_MEASURED)), said
        elif left:
            assert any(one in left[0] for one in NOT_MEASURED), said
    assert patch.made


def applied(patch: diff.Patch) -> None:
    words = ["patch", "-p1", "-d", str(patch.root)]
    subprocess.run(words, input=patch.text, text=True, check=True, timeout=60)


@pytest.mark.parametrize(
    ("language", "compiler", "file", "comment", "expected"),
    [
        ("c", "mpicc", "cases.c", "/*", made_up.C),
        ("c++", "mpicxx", "cases.cpp", "//", made_up.CPP),
    ],
)
def test_in_c(mpi, advise, tmp_path, language, compiler, file, comment, expected):
    source = Path(shutil.copy(made_up.PROGRAMS / file, tmp_path))
    program = compiled(mpi, source, compiler)
    done = advise(mpi, [program], "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    before = answers(mpi, [program], tmp_path)
    patch = patch_of_record(tmp_path)
    check(patch, source, language, comment, expected)
    applied(patch)
    assert answers(mpi, [compiled(mpi, source, compiler)], tmp_path) == before


def test_in_python(mpi, advise, tmp_path):
    pytest.importorskip("numpy")
    source = Path(shutil.copy(made_up.PROGRAMS / "cases.py", tmp_path))
    program = [sys.executable, source, 20000, 20]
    done = advise(mpi, program, "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    before = answers(mpi, program, tmp_path)
    patch = patch_of_record(tmp_path)
    check(patch, source, "python", "#", made_up.PYTHON)
    applied(patch)
    assert answers(mpi, program, tmp_path) == before
