"""Tests that an installation by `cmake --install` is independent of the source tree, and works
after its prefix was moved."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft import __version__
from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

ROOT = installation.ROOT
PROGRAMS = ("overlap", "nbceff", "latency", "pingpong", "plan", "replay", "idle", "weft-probe")
PROGRAMS += ("iallreduce_kernel", "gemv_alltoall", "gemm_allgather", "pipecg", "stencil", "cpals")
PROGRAMS += ("atmosphere", "gpu_stencil", "gpu_cg", "gpu_notify", "gpu_allreduce", "gpu_fft3d")
FAMILIES = ("mpich", "openmpi")
EXPECTED = {
    "bin/weft",
    "bin/weft-python",
    "libexec/weft/weft-cores",
    "libexec/weft/weft-schedule",
    "libexec/weft/weft-sim",
    "libexec/weft/weft-switch",
    "include/weft.h",
    "include/weft_compute.h",
    "include/weft_gpu.h",
    "include/weft_gpu_calls.h",
    "include/weft_gpu_device.h",
    "lib/pkgconfig/weft.pc",
    "lib/cmake/weft/weft-config.cmake",
    "lib/cmake/weft/weft-config-version.cmake",
    "lib/weft/libweft-heap.so",
    "lib/weft/libweft-abi.so",
    *(f"share/man/man1/{page.name}" for page in (ROOT / "packaging" / "man").iterdir()),
    "share/bash-completion/completions/weft",
    "share/zsh/site-functions/_weft",
    "share/fish/vendor_completions.d/weft.fish",
    f"share/weft/modulefiles/weft/{__version__}",
    f"share/weft/modulefiles/weft/{__version__}.lua",
    *(f"lib/weft/libweft-{family}.so" for family in FAMILIES),
    *(f"lib/weft/libweft-advise-{family}.so" for family in (*FAMILIES, "abi")),
    *(f"lib/weft/libweft-gpu-{family}.so" for family in (*FAMILIES, "abi")),
    *(f"libexec/weft/{family}/{name}" for family in FAMILIES for name in PROGRAMS),
}
SAYS_ITS_VERSION = """
#include <weft.h>
#include <stdio.h>
int main(void) { puts(weft_version ? weft_version() : "not loaded"); return 0; }
"""
CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(weft {version} REQUIRED)
add_executable(says says.c)
target_link_libraries(says PRIVATE weft::weft)
"""


def done(command, **options) -> str:
    finished = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=300, **options
    )
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    return finished.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    """Makes an installation and moves it to another place. Its Python packages have the versions of
    .venv."""
    if not (installation.BUILD / "bin/openmpi/overlap").exists():
        pytest.skip("an installation of all families needs: make mpis")
    place = tmp_path_factory.mktemp("install")
    pins = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "tools/requirements/run.txt")}
    done(["cmake", "--install", installation.BUILD, "--prefix", place / "a", "--strip"], env=pins)
    return (place / "a").rename(place / "b")


@pytest.fixture
def weft(prefix, tmp_path, environment):
    """Runs the installed `weft` in a directory that contains a folder with the package's name."""
    (tmp_path / "weft").mkdir()
    (tmp_path / "weft" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    environment.pop("WEFT_BUILD_DIR", None)
    environment["WEFT_MPI_DIR"] = str(mpi_libraries.MPI_DIR)

    def run(*arguments) -> str:
        return done([prefix / "bin/weft", *arguments], cwd=tmp_path, env=environment)

    return run


def files_of(prefix: Path) -> list[Path]:
    return [path for path in prefix.rglob("*") if path.is_file()]


def test_layout(prefix):
    names = {str(path.relative_to(prefix)) for path in files_of(prefix)}
    assert {name for name in names if not name.startswith("lib/weft/python/")} == EXPECTED
    assert {"lib/weft/python/__main__.py", "lib/weft/python/weft/cli.py"} <= names


def test_no_library_of_the_tests_lies_beside_those_that_are_installed(prefix):
    """`make build` copies all libraries in that folder to the environment of the source tree."""
    rules = (installation.BUILD / "build.ninja").read_text()
    built = set(re.findall(r"^build lib/(\S+\.so)", rules, re.MULTILINE))
    assert built == {path.name for path in (prefix / "lib/weft").glob("*.so")}


def test_no_file_names_the_source_tree(prefix):
    source = str(ROOT).encode()
    assert [str(path) for path in files_of(prefix) if source in path.read_bytes()] == []


def test_schedule(weft):
    assert "rank" in weft("schedule", "allreduce", "--algorithm", "ring", "--ranks", "3")


def test_run(prefix, weft):
    said = weft("run", "--mpi", "openmpi", "--", "sh", "-c", "echo $LD_PRELOAD")
    assert said.strip() == str(prefix / "lib/weft/libweft-openmpi.so")


def test_info(prefix, weft):
    facts = json.loads(weft("info", "--json"))
    assert facts["weft"] == __version__
    libraries = facts["preload_libraries"]
    assert all(Path(path).is_relative_to(prefix) for path in libraries.values())
    mpich = next(mpi for mpi in facts["libraries"] if mpi["name"] == "mpich")
    assert mpich["engines"]["tcc"] is None


def test_plan(weft):
    assert "allreduce" in weft("plan", "allreduce", "--bytes", "8", "--fresh").lower()


@pytest.mark.parametrize("family", FAMILIES)
def test_gpu_programs_find_their_library(prefix, family, environment):
    """The program must find the installed library. There is no GPU here."""
    program = prefix / "libexec/weft" / family / "gpu_stencil"
    library = mpi_libraries.implementation(family)
    environment["LD_LIBRARY_PATH"] = str(library.prefix / "lib")
    found = re.search(r"libweft-gpu-\w+\.so => (\S+)", done(["ldd", program], env=environment))
    assert Path(found[1]).resolve() == prefix / f"lib/weft/libweft-gpu-{family}.so"


def test_bench(weft, tmp_path):
    sizes = ("--collective", "allreduce", "--bytes", "8KiB", "--engines", "thread")
    weft("bench", "--ranks", "2", *sizes, "--time-budget", "5s", "--out", "found.sqlite")
    assert (tmp_path / "found.sqlite").exists()


def test_a_cmake_project_finds_it(prefix, weft, tmp_path):
    (tmp_path / "says.c").write_text(SAYS_ITS_VERSION)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_PROJECT.format(version=__version__))
    build = tmp_path / "user-build"
    done(["cmake", "-S", tmp_path, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
    done(["cmake", "--build", build])
    assert weft("run", "--", build / "says") == f"{__version__}\n"
    assert done([build / "says"]) == "not loaded\n"


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="needs pkg-config")
def test_pkg_config(prefix):
    there = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    assert done(["pkg-config", "--modversion", "weft"], env=there) == f"{__version__}\n"
    flags = done(["pkg-config", "--cflags", "weft"], env=there).strip()
    assert Path(flags.removeprefix("-I")).resolve() == prefix / "include"


def test_without_its_python(prefix, tmp_path):
    """Packages that were compiled for one version of Python cannot be used with another one."""
    for name in ("sh", "readlink"):
        (tmp_path / name).symlink_to(shutil.which(name))
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    finished = subprocess.run(
        [prefix / "bin/weft", "info"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    needed = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (finished.returncode, finished.stdout) == (2, "")
    assert re.fullmatch(rf"weft: Python {needed} is needed .*\n", finished.stderr)


def test_the_version_stands_in_one_place():
    for name in ("CMakeLists.txt", "pyproject.toml"):
        assert __version__ not in (ROOT / name).read_text()
    binary = (installation.BUILD / "lib/libweft-mpich.so").read_bytes()
    assert __version__.encode() in binary
