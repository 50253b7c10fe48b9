"""The modulefiles of an installation, under Debian's Lmod and Environment Modules.

The prefix is moved before they are used: they must find it by their own place.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from weft import __version__, installation

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
TOOLS = ROOT / ".deps" / "modules"
# module tool, and the modulefile it is to use
PAIRS = (("lmod", "weft.lua"), ("lmod", "weft.tcl"), ("environment-modules", "weft.tcl"))
LOAD = """
module() { eval "$(%s bash "$@")"; }
module use "$1/share/weft/modulefiles"
module load weft || exit 1
"""


@pytest.fixture(params=PAIRS, ids="-".join)
def module(request):
    """The shell's `module`, and the modulefile with its name in an installation."""
    tool, source = request.param
    if not (TOOLS / "unpacked").exists():
        pytest.skip(f"needs Debian's package {tool}; tools/setup-modules fetches it")
    libraries = next((TOOLS / "usr" / "lib").glob("*-linux-gnu"))
    command = f"env LD_LIBRARY_PATH={libraries} {TOOLS}/usr/bin/"
    command += f"lua5.3 {(TOOLS / 'lmod').resolve()}" if tool == "lmod" else "tclsh8.6 "
    command += "" if tool == "lmod" else f"{libraries}/modulecmd.tcl"
    return LOAD % command, source, __version__ + (".lua" if source == "weft.lua" else "")


@pytest.fixture
def prefix(module, tmp_path):
    """What an installation has of it, moved after it was made."""
    made = tmp_path / "made"
    _, source, name = module
    native = installation.weft_command()
    copies = {
        native: "bin/weft",
        installation.preload_library("mpich"): "lib/weft/libweft-mpich.so",
        PACKAGING / "man" / "weft-run.1": "share/man/man1/weft-run.1",
        PACKAGING / "completion" / "weft": "share/bash-completion/completions/weft",
        PACKAGING / "modulefiles" / source: f"share/weft/modulefiles/weft/{name}",
    }
    for original, place in copies.items():
        (made / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(original, made / place)
    return made.rename(tmp_path / "moved")


@pytest.fixture
def shell(module, prefix):
    """Runs a script behind `module load weft`, in an otherwise empty environment."""

    def run(script: str, **variables: str) -> str:
        done = subprocess.run(
            ["bash", "--norc", "-c", module[0] + script, "bash", prefix],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(prefix), **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_weft_runs_with_the_libraries_of_the_prefix(shell, prefix):
    found = shell("command -v weft; weft run -- sh -c 'echo $LD_PRELOAD' 2>/dev/null")
    assert found.splitlines() == [f"{prefix}/bin/weft", f"{prefix}/lib/weft/libweft-mpich.so"]


@pytest.mark.parametrize("manpath", [{}, {"MANPATH": "/usr/share/man"}])
def test_man_finds_the_pages(shell, prefix, manpath):
    if not shutil.which("man"):
        pytest.skip("needs Debian's package man-db")
    assert shell("man -w weft-run", **manpath).strip() == f"{prefix}/share/man/man1/weft-run.1"


def test_compilers_and_completion_are_told_the_prefix(shell, prefix):
    found = shell(
        'printf "%s\\n" "$CPATH" "$PKG_CONFIG_PATH" "$CMAKE_PREFIX_PATH" "$XDG_DATA_DIRS"'
    )
    assert found.splitlines() == [
        f"{prefix}/include",
        f"{prefix}/lib/pkgconfig",
        f"{prefix}",
        f"{prefix}/share:/usr/local/share:/usr/share",
    ]


def test_unload_leaves_nothing(shell, prefix):
    before = {"PATH": "/usr/bin:/bin", "MANPATH": "/usr/share/man", "XDG_DATA_DIRS": "/usr/share"}
    names = " ".join([*before, "CPATH"])
    script = f"module unload weft; for v in {names}; do echo ${{!v}}; done"
    assert shell(script, **before).splitlines() == [*before.values(), ""]
