"""Tests the modulefiles of an installation with Debian's Lmod and Environment Modules.

The prefix is moved first, since the files must find it by their own place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from weft import __version__
from weft.system import installation

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".deps" / "modules"
# Lmod reads Tcl's modulefiles with the tclsh in PATH.
PATH = f"{TOOLS}/usr/bin:/usr/bin:/bin"
# Each pair is a module tool and the suffix of its modulefile.
PAIRS = (("lmod", ".lua"), ("lmod", ""), ("environment-modules", ""))
LOAD = """
module() { eval "$(%s bash "$@")"; }
module use "$1/share/weft/modulefiles"
module load weft || exit 1
"""


@pytest.fixture(params=PAIRS, ids="{0[0]}{0[1]}".format)
def module(request):
    """Returns the shell code that defines `module`, and the name of the modulefile."""
    tool, suffix = request.param
    if not (TOOLS / "unpacked").exists():
        pytest.skip(f"needs Debian's package {tool}; tools/setup-modules fetches it")
    libraries = next((TOOLS / "usr" / "lib").glob("*-linux-gnu"))
    tcl = TOOLS / "usr" / "share" / "tcltk" / "tcl8.6"
    command = f"env LD_LIBRARY_PATH={libraries} TCL_LIBRARY={tcl} "
    command += f"{TOOLS}/usr/bin/"
    command += f"lua5.3 {(TOOLS / 'lmod').resolve()}" if tool == "lmod" else "tclsh8.6 "
    command += "" if tool == "lmod" else f"{libraries}/modulecmd.tcl"
    return LOAD % command, __version__ + suffix


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Installs the parts that the tests need, and moves them."""
    place = tmp_path_factory.mktemp("prefix")
    for component in ("native", "documentation"):
        command = ["cmake", "--install", installation.BUILD, "--strip", "--component", component]
        subprocess.run(
            [*command, "--prefix", place / "made"], check=True, stdout=subprocess.DEVNULL
        )
    return (place / "made").rename(place / "moved")


@pytest.fixture
def prefix(module, installed):
    """Hides all modulefiles except the tested one, since Lmod prefers its own to Tcl's."""
    files = installed / "share" / "weft" / "modulefiles" / "weft"
    hidden = [file for file in files.iterdir() if file.name != module[1]]
    for file in hidden:
        file.rename(installed / file.name)
    yield installed
    for file in hidden:
        (installed / file.name).rename(file)


@pytest.fixture
def shell(module, prefix):
    """Runs a script after `module load weft`, in an otherwise empty environment."""

    def run(script: str, **variables: str) -> str:
        done = subprocess.run(
            ["bash", "--norc", "-c", module[0] + script, "bash", prefix],
            env={"PATH": PATH, "LC_ALL": "C.UTF-8", **variables},
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
    before = {"PATH": PATH, "MANPATH": "/usr/share/man", "XDG_DATA_DIRS": "/usr/share"}
    names = " ".join([*before, "CPATH"])
    script = f"module unload weft; for v in {names}; do echo ${{!v}}; done"
    assert shell(script, **before).splitlines() == [*before.values(), ""]


def test_bash_and_fish_find_completion_there(shell, prefix):
    for place in ("bash-completion/completions/weft", "fish/vendor_completions.d/weft.fish"):
        found = shell(f'cat "${{XDG_DATA_DIRS%%:*}}/{place}"')
        assert found == (prefix / "share" / place).read_text()
        assert "weft" in found
