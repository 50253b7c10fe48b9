"""Tests where MPI libraries are found: by name, in Weft's Python environment, in PATH, and by
modules.

Libraries that cannot be installed here are replaced by fake folders. Debian's unpacked packages are
real."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import debian_open_mpi
import pytest

from weft.system import installation, mpi_libraries
from weft.system.mpi_libraries import MpiError

WORDS = {
    "mpich": "HYDRA build details:\n    Version:    4.2.1",
    "intelmpi": "Intel(R) MPI Library for Linux* OS, Version 2021.18",
    "openmpi": "mpirun (Open MPI) 4.1.6",
}
DEBIAN = installation.ROOT / ".deps" / "debian-mpi"


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """Simulates a machine without any MPI library."""
    monkeypatch.setattr(mpi_libraries, "MPI_DIR", tmp_path / "embedded")
    monkeypatch.setattr(mpi_libraries.sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(mpi_libraries.site, "ENABLE_USER_SITE", False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("LD_LIBRARY_PATH", *mpi_libraries.MODULE_VARIABLES):
        monkeypatch.delenv(name, raising=False)


def plant(prefix: Path, library: str, says: str | None = None, launcher: str = "mpiexec") -> Path:
    """Creates a prefix with a launcher that prints `says`, and with a library file. Returns the
    prefix."""
    (prefix / library).parent.mkdir(parents=True, exist_ok=True)
    (prefix / library).write_text("a library")
    if says is not None:
        program(prefix / "bin" / launcher, f"echo '{says}'")
    return prefix


def program(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_a_machine_without_any(tmp_path):
    assert mpi_libraries.found() == []
    with pytest.raises(MpiError, match="there is no MPI library here; get one with: "):
        mpi_libraries.chosen(None)
    with pytest.raises(MpiError, match="openmpi is not here; get it with: "):
        mpi_libraries.chosen("openmpi")
    assert not mpi_libraries.implementation("mpich").mpiexec.exists()


@pytest.mark.parametrize(
    ("name", "library", "launcher"),
    [
        ("mpich", "lib/libmpi.so.12", "mpiexec.hydra"),
        ("mpich", "lib/x86_64-linux-gnu/libmpich.so.12", "mpiexec"),
        ("intelmpi", "lib/release/libmpi.so.12", "mpiexec.hydra"),
        ("openmpi", "lib64/libmpi.so.40", "mpiexec"),
        ("openmpi", "lib64/libmpi.so.40", "mpirun"),
    ],
)
def test_a_loaded_module(tmp_path, monkeypatch, name, library, launcher):
    prefix = plant(tmp_path / "apps" / "mpi", library, WORDS[name], launcher)
    monkeypatch.setenv("PATH", f"{prefix}/bin:/bin")
    (mpi,) = mpi_libraries.found()
    assert (mpi.name, mpi.where, mpi.prefix) == (name, "PATH", prefix)
    assert (mpi.library, mpi.mpiexec) == (prefix / library, prefix / "bin" / launcher)
    assert mpi_libraries.chosen(None) == mpi == mpi_libraries.chosen(name)
    assert mpi.version in WORDS[name]


def test_the_order(tmp_path, monkeypatch):
    plant(tmp_path / "embedded" / "mpich", "lib/libmpi.so.12", "")
    plant(tmp_path / "environment", "lib/libmpi.so.40", WORDS["openmpi"])
    module = plant(tmp_path / "module", "lib/libmpi.so.12", WORDS["intelmpi"])
    variable = plant(tmp_path / "variable", "lib/libmpi.so.40", WORDS["openmpi"])
    monkeypatch.setenv("PATH", f"{module}/bin:{tmp_path}/environment/bin:/bin")
    monkeypatch.setenv("EBROOTOPENMPI", str(variable))
    monkeypatch.setenv("I_MPI_ROOT", str(module))
    assert [(mpi.name, mpi.where) for mpi in mpi_libraries.found()] == [
        ("mpich", "embedded"),
        ("openmpi", "Weft's Python environment"),
        ("intelmpi", "PATH"),
        ("openmpi", "EBROOTOPENMPI"),
    ]
    assert mpi_libraries.implementation("openmpi").prefix == tmp_path / "environment"
    assert mpi_libraries.implementation(str(variable)).where == "named"


def test_the_default_has_its_measuring_programs(tmp_path, monkeypatch):
    plant(tmp_path / "environment", "lib/libmpi.so.12", WORDS["mpich"])
    module = plant(tmp_path / "module", "lib/libmpi.so.40", WORDS["openmpi"])
    monkeypatch.setenv("PATH", f"{module}/bin:/bin")
    program(tmp_path / "openmpi" / "weft-probe", "")
    monkeypatch.setattr(installation, "mpi_program", lambda mpi, name: tmp_path / mpi / name)
    assert mpi_libraries.default().name == "openmpi"


def test_programs_of_the_abi_serve_where_a_library_has_none_of_its_own(tmp_path, monkeypatch):
    plant(tmp_path / "environment", "lib/libmpi.so.12", WORDS["intelmpi"])
    program(tmp_path / "mpich" / "overlap", "")
    monkeypatch.setattr(installation, "mpi_program", lambda mpi, name: tmp_path / mpi / name)
    assert mpi_libraries.default().program("overlap") == tmp_path / "mpich" / "overlap"


def test_the_compiler_tells_where_the_library_lies(tmp_path, monkeypatch):
    elsewhere = tmp_path / "far" / "away"
    plant(elsewhere, "libmpi.so.12")
    prefix = tmp_path / "module"
    program(prefix / "bin" / "mpiexec", f"echo '{WORDS['mpich']}'")
    program(prefix / "bin" / "mpicc", f"echo 'gcc -I/x -L{elsewhere} -lmpi'")
    monkeypatch.setenv("PATH", f"{prefix}/bin:/bin")
    (mpi,) = mpi_libraries.found()
    assert mpi.library == elsewhere / "libmpi.so.12"


def test_without_a_launcher_srun_starts_the_ranks(tmp_path, monkeypatch):
    prefix = plant(tmp_path / "cray", "lib/libmpi.so.12")
    program(tmp_path / "bin" / "srun", "")
    monkeypatch.setenv("CRAY_MPICH_DIR", str(prefix))
    (mpi,) = mpi_libraries.found()
    assert (mpi.name, mpi.where) == ("mpich", "CRAY_MPICH_DIR")
    assert mpi.launcher(4) == ["srun", "-n", "4"]


def test_a_site_s_own_mpiexec_is_what_its_library_is(tmp_path, monkeypatch):
    prefix = plant(tmp_path / "module", "lib/libmpi.so.40", "a wrapper of this site")
    monkeypatch.setenv("PATH", f"{prefix}/bin:/bin")
    assert [mpi.name for mpi in mpi_libraries.found()] == ["openmpi"]


def test_programs_find_a_library_of_another_name(tmp_path, monkeypatch):
    prefix = plant(tmp_path / "usr", "lib/x86_64-linux-gnu/libmpich.so.12", WORDS["mpich"])
    monkeypatch.setenv("PATH", f"{prefix}/bin:/bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/before")
    mpi = mpi_libraries.default()
    first, own, before = mpi.environment()["LD_LIBRARY_PATH"].split(":")
    assert Path(first, "libmpi.so.12").resolve() == mpi.library
    assert (Path(own), before) == (mpi.library.parent, "/before")


def test_a_directory_of_the_system_is_not_put_before_all_others(tmp_path, monkeypatch):
    prefix = plant(tmp_path / "usr", "lib64/libmpi.so.40", WORDS["openmpi"])
    monkeypatch.setattr(mpi_libraries, "SYSTEM_DIRECTORIES", mpi_libraries.re.compile(".*/lib64"))
    monkeypatch.setenv("PATH", f"{prefix}/bin:/bin")
    mpi = mpi_libraries.default()
    (only,) = mpi.environment()["LD_LIBRARY_PATH"].split(":")
    assert [path.name for path in Path(only).iterdir()] == ["libmpi.so.40"]
    assert Path(only, "libmpi.so.40").resolve() == mpi.library


def test_open_mpi_is_told_that_root_may(tmp_path):
    """The variable is set for every user, since the ranks in the lab of an ordinary user are root
    as well."""
    plant(tmp_path / "environment", "lib/libmpi.so.40", WORDS["openmpi"])
    assert mpi_libraries.default().environment()["OMPI_ALLOW_RUN_AS_ROOT"] == "1"


@pytest.mark.parametrize("word", ["{}/mpiexec", "{}/program", "{}/empty", "{}/nothing"])
def test_what_is_no_mpi_is_refused_with_what_was_looked_for(tmp_path, word):
    program(tmp_path / "mpiexec", "echo hello")
    program(tmp_path / "program", "echo hello")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        MpiError, match=r"is no MPI library: looked for .*libmpi\.so\.40"
    ) as refused:
        mpi_libraries.implementation(word.format(tmp_path))
    assert "\n" not in str(refused.value)


def test_an_unknown_word_names_the_choices():
    with pytest.raises(MpiError, match="unknown MPI 'lam'; choose one of mpich, openmpi, intelmpi"):
        mpi_libraries.implementation("lam")


# These are the versions of Debian 12 and 13.
@pytest.mark.parametrize(("name", "versions"), [("mpich", ("4.",)), ("openmpi", ("4.1", "5.0"))])
def test_debian_s_packages(monkeypatch, name, versions):
    """Packages that are unpacked elsewhere than at /usr need variables with their place."""
    if not (DEBIAN / "unpacked").exists():
        pytest.skip("Debian's MPI libraries are not in .deps: tools/setup-debian-mpi fetches them")
    monkeypatch.setenv("PATH", f"{DEBIAN}/usr/bin:/usr/bin:/bin")
    for variable, value in debian_open_mpi.environment(DEBIAN).items():
        monkeypatch.setenv(variable, value)
    mpi = mpi_libraries.chosen(name)
    assert mpi.version.startswith(versions)
    program = mpi.program("weft-probe")
    if not program.exists():
        pytest.skip(f"needs a build for {name}")
    environment = mpi.environment()
    done = subprocess.run(
        [*mpi.launcher(3), *debian_open_mpi.finds_libraries(environment), program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert '"ranks":3' in done.stdout, done.stderr
    assert f"{mpi.version}" in done.stdout
