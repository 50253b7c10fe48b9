"""Tests that the lab starts a program with the MPI library to which the program is linked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weft.lab import lab
from weft.system import linked, mpi_libraries
from weft.system.mpi_libraries import Implementation, MpiError


@pytest.fixture(autouse=True)
def libraries(monkeypatch, tmp_path):
    """Makes the search find MPICH first and then Open MPI, both without Weft's programs."""
    found = [
        Implementation(name, tmp_path, tmp_path / "mpiexec", tmp_path / name, "embedded")
        for name in ("mpich", "openmpi")
    ]
    monkeypatch.setattr(mpi_libraries, "search", lambda: iter(found))


@pytest.mark.parametrize(
    ("soname", "name"), [("libmpi.so.12", "mpich"), ("libmpi.so.40", "openmpi")]
)
def test_the_program_says_which_library(linked_to, soname, name):
    program, library = linked_to(soname)
    found = linked.linked(["weft", "run", "--engine", "thread", "--", str(program), "3"])
    assert found.program == str(program) and found.soname == soname
    assert found.library == library
    assert linked.chosen(None, found).name == name


@pytest.mark.parametrize("command", [[sys.executable, "app.py"], ["sh", "-c", "exit"], ["./no"]])
def test_where_nothing_tells_the_first_library_is_taken(command):
    assert linked.linked(command) is None
    assert linked.chosen(None, None).name == "mpich"


def test_a_library_that_cannot_start_the_program_is_refused():
    program = linked.Linked("./app", "libmpi.so.40", None)
    with pytest.raises(MpiError) as error:
        linked.chosen("mpich", program)
    said = str(error.value)
    assert said.startswith("./app is linked to Open MPI (libmpi.so.40), and MPICH cannot start it")
    assert "--mpi openmpi, or --mpi /path/to/mpiexec" in said


def test_the_library_that_the_loader_finds_goes_first(monkeypatch, tmp_path):
    (tmp_path / "intelmpi").write_text("")
    intel = Implementation("intelmpi", tmp_path, Path("mpiexec"), tmp_path / "intelmpi", "PATH")
    monkeypatch.setattr(mpi_libraries, "search", lambda: iter([*before, intel]))
    before = [Implementation("mpich", tmp_path, Path("mpiexec"), tmp_path / "mpich", "embedded")]
    program = linked.Linked("./app", "libmpi.so.12", tmp_path / "intelmpi")
    assert linked.chosen(None, program).name == "intelmpi"


@pytest.mark.parametrize(
    ("output", "path", "named"),
    [
        ("probe: symbol lookup error: undefined symbol: hwloc_x", "/my/lib", "(/my/lib)"),
        ("libmpi.so.12: cannot open shared object file", "/my/lib", "(/my/lib)"),
        ("libmpi.so.12: cannot open shared object file", "", ""),
        ("a rank was killed", "/my/lib", ""),
    ],
)
def test_a_library_path_that_may_be_wrong_is_named(monkeypatch, output, path, named):
    monkeypatch.setenv("LD_LIBRARY_PATH", path)
    said = lab.why(output)
    assert named in said and bool(said) == bool(named)


def test_a_library_path_to_be_typed_is_one_word_of_the_shell(monkeypatch, tmp_path):
    monkeypatch.setattr(mpi_libraries, "FAMILY_LIBRARY", {"mpich": "libnot-here.so.12"})
    place = str(tmp_path / "it's my MPI")
    monkeypatch.setattr(Implementation, "environment", lambda mpi: {"LD_LIBRARY_PATH": place})
    mpi = Implementation("mpich", tmp_path, Path("mpiexec"), tmp_path / "libmpi.so.12", "embedded")
    script = f'{linked.path_for_loader(mpi)}; printf %s "$LD_LIBRARY_PATH"'
    assert subprocess.check_output(["sh", "-c", script], text=True).startswith(place)
