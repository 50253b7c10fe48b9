"""MPI libraries under which callers are tested: those of .mpi/ that support Fortran, and Debian's.

Debian's MPICH and Open MPI are other releases than those in .mpi/; tools/setup-debian-mpi unpacks
them. Tests whose library or Fortran compiler is missing are skipped."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import debian_open_mpi
import pytest
from programs import CONFORMANCE

from weft.system import installation, mpi_libraries

DEBIAN = installation.ROOT / ".deps" / "debian-mpi"
SOURCES = Path(__file__).parent / "programs"
LIMIT_S = 300


@dataclass(frozen=True)
class Library:
    """Knows how to compile for an MPI library, and how to run programs with it."""

    family: str
    headers: list[Path]
    directory: Path
    links_c: list[str]
    links_fortran: list[str]
    interfaces: tuple[str, ...]
    mpiexec: list[object]
    defines: list[str]  # macros that tell the program what the library supports
    environment: dict[str, str] = field(default_factory=dict)

    def flags(self, links: list[str]) -> list[object]:
        headers = [f"-I{path}" for path in self.headers]
        return [*headers, f"-L{self.directory}", *links, f"-Wl,-rpath,{self.directory}"]


def debian_directory(library: str) -> Path:
    """Returns the folder with the library of Debian's packages. Skips the test if it is missing."""
    found = list(DEBIAN.glob(f"usr/lib/*/{library}"))
    if not (DEBIAN / "unpacked").exists() or not found:
        pytest.skip("Debian's MPI libraries are not in .deps: tools/setup-debian-mpi fetches them")
    return found[0].parent


def loader_path(directory: Path) -> dict[str, str]:
    beside = DEBIAN / "lib" / directory.name
    return {"LD_LIBRARY_PATH": f"{directory}:{beside}"}


def debian_mpich() -> Library:
    directory = debian_directory("libmpich.so.12")
    return Library(
        family="mpich",
        headers=[
            DEBIAN / "usr/include" / directory.name / "mpich",
            directory / "mpich/include",  # path since Debian 13
            *directory.glob("fortran/gfortran-mod-*/mpich"),
        ],
        directory=directory,
        links_c=["-lmpich"],
        links_fortran=["-lmpichfort", "-lmpich"],
        interfaces=("MPIF_H", "MPI", "MPI_F08"),
        mpiexec=[DEBIAN / "usr/bin/mpiexec.hydra"],
        defines=["-DPERSISTENT", "-DMIXED_TYPES"],
        environment=loader_path(directory),
    )


def debian_openmpi() -> Library:
    directory = debian_directory("libmpi.so.40")
    header = (directory / "openmpi/include/mpi.h").read_text()
    if not re.search(r"define OMPI_MAJOR_VERSION\s+4$", header, re.MULTILINE):
        pytest.skip("this machine's Debian has no older Open MPI than that in .mpi/openmpi")
    return Library(
        family="openmpi",
        headers=[
            directory / "openmpi/include",
            *directory.glob("fortran/gfortran-mod-*/openmpi"),
        ],
        directory=directory,
        links_c=["-l:libmpi.so.40"],
        links_fortran=[
            *("-lmpi_usempif08", "-lmpi_usempi_ignore_tkr", "-lmpi_mpifh", "-l:libmpi.so.40"),
        ],
        interfaces=("MPIF_H", "MPI", "MPI_F08"),
        mpiexec=[DEBIAN / debian_open_mpi.LAUNCHER, "--oversubscribe", "--bind-to", "none"],
        defines=["-DMIXED_TYPES"],
        environment=debian_open_mpi.environment(DEBIAN),
    )


def intelmpi() -> Library:
    mpi = mpi_libraries.implementation("intelmpi")
    if not (mpi.prefix / "include" / "mpif.h").exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi.name)}")
    return Library(
        family="mpich",
        headers=[mpi.prefix / "include"],
        directory=mpi.prefix / "lib",
        links_c=["-lmpi"],
        links_fortran=["-lmpifort", "-lmpi"],
        interfaces=("MPIF_H",),
        mpiexec=[mpi.mpiexec],
        # This library's allgather from a derived type to a plain one gives wrong results.
        defines=["-DPERSISTENT"],
        environment=mpi.environment(),
    )


LIBRARIES = {"mpich-debian": debian_mpich, "openmpi-debian": debian_openmpi, "intelmpi": intelmpi}


@pytest.fixture(scope="session")
def built(compile_once):
    """Compiles a program once for each library and interface. Returns (library, program)."""

    def fortran(name: str, interface: str, what: str = "collectives") -> tuple[Library, Path]:
        library = LIBRARIES[name]()
        if not shutil.which("gfortran"):
            pytest.skip("there is no Fortran compiler: install gfortran")
        if interface not in library.interfaces:
            pytest.skip(f"{name} has no module files for this compiler")
        options = ["-O1", "-w", "-ffree-line-length-none", "-fallow-argument-mismatch"]
        defines = [f"-DINTERFACE_{interface}", *library.defines]
        source = SOURCES / f"{what}.F90"
        flags = library.flags(library.links_fortran)
        command = ["gfortran", *options, *defines, source, *flags]
        return library, compile_once(f"{what}-{name}-{interface}", command)

    def conformance(name: str) -> tuple[Library, Path]:
        library = LIBRARIES[name]()
        options = [
            "-std=c++20",
            "-O1",
            "-w",
            "-pthread",
            "-DOMPI_SKIP_MPICXX",
            "-DMPICH_SKIP_MPICXX",
        ]
        options += [f"-I{installation.ROOT}/include"]
        flags = library.flags(library.links_c)
        command = ["c++", *options, *CONFORMANCE, *flags]
        return library, compile_once(f"conformance-{name}", command)

    def in_c(name: str, source: Path) -> tuple[Library, Path]:
        library = LIBRARIES[name]()
        flags = library.flags(library.links_c)
        command = ["cc", "-g", "-O1", source, *flags]
        return library, compile_once(f"{source.stem}-{name}", command)

    return {"fortran": fortran, "conformance": conformance, "c": in_c}


@pytest.fixture
def run(tmp_path):
    """Runs a program under an engine (None: without Weft). Returns its output, and the summary or
    None."""

    def start(library, program, ranks, engine, *options) -> tuple[str, dict | None]:
        summary = tmp_path / "summary.json"
        front = []
        if engine:
            front = [installation.weft_command(), "run", "--mpi", library.family]
            front += ["--engine", *engine.split(), f"--summary=json:{summary}", "--"]
        command = [*library.mpiexec, "-n", ranks, *front, program, *options]
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **library.environment},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout, json.loads(summary.read_text()) if engine else None

    return start
