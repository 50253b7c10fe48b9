"""Tests patches of Fortran programs from measured records: mpif.h in free and in fixed form, `use
mpi` and `use mpi_f08`.

Each call is either changed, and the program compiles and gives the same results, or it is left for
a true reason."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import LIBRARIES
from patch_programs import Program, applied, check, copied, interface, names

from weft.advise import analysis, store
from weft.advise.patch import diff, wish
from weft.system import installation

pytestmark = pytest.mark.long
pytest.importorskip("tree_sitter_fortran")
PROGRAMS = installation.ROOT / "tests" / "cli" / "programs" / "patch"
# These are the numbers of changed calls if all windows are measured. All other calls must be left.
CASES = {"cases.f90": 2, "cases_fixed.f": 2, "cases_f08.f90": 5, "use mpi": 5}
# The module files of Intel MPI are made for another version of the compiler.
RUNS = [
    (name, case)
    for name in LIBRARIES
    for case in CASES
    if name != "intelmpi" or case in ("cases.f90", "cases_fixed.f")
]
NOT_MEASURED = ("was not measured", "first used in another function")
NOT_MEASURED_WHOLE = (*NOT_MEASURED, "nothing could be computed", "another change of this patch")
NEWER = {
    "use mpi\n": "use mpi_f08\n",
    "integer, intent(in) :: comm": "type(MPI_Comm), intent(in) :: comm",
}
OLDER = {
    "use mpi_f08": "use mpi",
    "only: MPI_Allreduce, ": "only: ",
    "type(MPI_Comm)": "integer",
    "type(MPI_Datatype)": "integer",
}


def source_of(case: str, tmp_path: Path) -> Path:
    """Copies a program with buffers that are large enough for their windows to be measured."""
    name = "cases_f08.f90" if case == "use mpi" else case
    text = (PROGRAMS / name).read_text().replace("64", "20000")
    for newer, older in OLDER.items() if case == "use mpi" else ():
        text = text.replace(newer, older)
    target = tmp_path / name
    target.write_text(text)
    return target


def compiled(library, source: Path) -> Path:
    program = source.with_suffix(".program")
    # With mpif.h the compiler warns of interfaces that it lacks, also in unchanged programs.
    options = ["-g", "-O2", "-w", "-fallow-argument-mismatch", f"-J{source.parent}"]
    words = ["gfortran", *options, source, "-o", program, *library.flags(library.links_fortran)]
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, cwd=source.parent)
    assert done.returncode == 0, done.stderr
    return program


def started(library, front: list, program: Path, tmp_path: Path) -> str:
    done = subprocess.run(
        [str(word) for word in [*front, *library.mpiexec, "-n", 2, program]],
        env={**os.environ, **library.environment},
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def patch_of_a_run(library, program: Path, tmp_path: Path) -> diff.Patch:
    advise = [installation.weft_command(), "advise", "--no-sample", "--overhead", "100%", "--"]
    started(library, advise, program, tmp_path)
    stored = store.read(tmp_path / "weft-advise.sqlite")
    advice = analysis.analyse(stored)
    return diff.make(wish.wishes_of(advice, stored, advice.sites))


def answers_as_before(library, own: Program, tmp_path: Path) -> None:
    """The patch of all calls, measured or not, which plans them if the library can."""
    before = started(library, [], compiled(library, own.main), tmp_path)
    for one in own.wishes.values():
        one.plan = one.plan if "-DPERSISTENT" in library.defines else ""
    patch = diff.make(list(own.wishes.values()))
    assert patch.made
    applied(patch)
    assert started(library, [], compiled(library, own.main), tmp_path) == before


@pytest.mark.parametrize("name, case", RUNS)
def test_patches(name, case, tmp_path):
    library = LIBRARIES[name]()
    if not shutil.which("gfortran"):
        pytest.skip("there is no Fortran compiler: install gfortran")
    source = source_of(case, tmp_path)
    program = compiled(library, source)
    before = started(library, [], program, tmp_path)
    patch = patch_of_a_run(library, program, tmp_path)
    said = "\n".join([*patch.made, *patch.left])
    lacking = sum(any(why in one for why in NOT_MEASURED) * one.count(" at ") for one in patch.left)
    assert len(patch.made) + lacking >= CASES[case], said
    assert patch.made, said
    applied(patch)
    assert started(library, [], compiled(library, source), tmp_path) == before


# The record names the file from which the compiled one was generated.
WHOLE = [
    (name, program)
    for name in LIBRARIES
    for program in names("fortran")
    if program != "generated.F90" and (name != "intelmpi" or interface(program) == "mpif.h")
]


@pytest.mark.parametrize("name, program", WHOLE)
def test_whole_programs(name, program, tmp_path):
    """Checks that the record's patch is as expected, and that the patch of all calls, measured or
    not, gives right results."""
    library = LIBRARIES[name]()
    if not shutil.which("gfortran"):
        pytest.skip("there is no Fortran compiler: install gfortran")
    own = copied(program, tmp_path)
    executable = compiled(library, own.main)
    check(own, patch_of_a_run(library, executable, tmp_path), NOT_MEASURED_WHOLE)
    answers_as_before(library, own, tmp_path)


@pytest.mark.parametrize("name", [one for one in LIBRARIES if one != "intelmpi"])
def test_plans_by_the_newest_module(name, tmp_path):
    library = LIBRARIES[name]()
    if not shutil.which("gfortran"):
        pytest.skip("there is no Fortran compiler: install gfortran")
    own = copied("plans.f90", tmp_path)
    text = own.main.read_text()
    for older, newer in NEWER.items():
        text = text.replace(older, newer)
    own.main.write_text(text)
    answers_as_before(library, own, tmp_path)
