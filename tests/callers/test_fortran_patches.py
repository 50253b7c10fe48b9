"""Patches of Fortran programs, from records that were measured: mpif.h in free and in fixed form,
`use mpi` and `use mpi_f08`. Each call is changed, compiles and answers as before; or it is left for
a true reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import LIBRARIES

from weft.advise import analysis, store
from weft.advise.patch import diff, wish
from weft.system import installation

pytestmark = pytest.mark.long
pytest.importorskip("tree_sitter_fortran")
PROGRAMS = installation.ROOT / "tests" / "cli" / "programs" / "patch"
# How many calls of each are changed if all windows are measured; the others are left for sure.
CASES = {"cases.f90": 2, "cases_fixed.f": 2, "cases_f08.f90": 5, "use mpi": 5}
# Intel MPI's module files are of another version of the compiler.
RUNS = [
    (name, case)
    for name in LIBRARIES
    for case in CASES
    if name != "intelmpi" or case in ("cases.f90", "cases_fixed.f")
]
NOT_MEASURED = ("was not measured", "first used in another function")
OLDER = {
    "use mpi_f08": "use mpi",
    "only: MPI_Allreduce, ": "only: ",
    "type(MPI_Comm)": "integer",
    "type(MPI_Datatype)": "integer",
}


def source_of(case: str, tmp_path: Path) -> Path:
    """With buffers that windows can be measured of."""
    name = "cases_f08.f90" if case == "use mpi" else case
    text = (PROGRAMS / name).read_text().replace("64", "20000")
    for newer, older in OLDER.items() if case == "use mpi" else ():
        text = text.replace(newer, older)
    target = tmp_path / name
    target.write_text(text)
    return target


def compiled(library, source: Path) -> Path:
    program = source.with_suffix(".program")
    # Interfaces that mpif.h leaves out are warned of, whatever is changed.
    options = ["-g", "-O2", "-w", "-fallow-argument-mismatch", f"-J{source.parent}"]
    words = ["gfortran", *options, source, "-o", program, *library.flags(library.links_fortran)]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
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


@pytest.mark.parametrize("name, case", RUNS)
def test_patches(name, case, tmp_path):
    library = LIBRARIES[name]()
    if not shutil.which("gfortran"):
        pytest.skip("there is no Fortran compiler: install gfortran")
    source = source_of(case, tmp_path)
    program = compiled(library, source)
    before = started(library, [], program, tmp_path)
    advise = [installation.weft_command(), "advise", "--no-sample", "--overhead", "100%", "--"]
    started(library, advise, program, tmp_path)
    stored = store.read(tmp_path / "weft-advise.sqlite")
    advice = analysis.analyse(stored)
    patch = diff.make(wish.wishes_of(advice, stored, advice.sites))
    said = "\n".join([*patch.made, *patch.left])
    lacking = sum(any(why in one for why in NOT_MEASURED) * one.count(" at ") for one in patch.left)
    assert len(patch.made) + lacking >= CASES[case], said
    assert patch.made, said
    words = ["patch", "-p1", "-d", str(patch.root)]
    subprocess.run(words, input=patch.text, text=True, check=True, timeout=60)
    assert started(library, [], compiled(library, source), tmp_path) == before
