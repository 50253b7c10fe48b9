"""Tests that the recipes of packaging/ can be read, have the version of the source tree, and agree
with the release notes. Nothing is installed by them here; tools/release-check does that."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from weft import __version__
from weft.system import installation

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

ROOT = installation.ROOT
PACKAGING = ROOT / "packaging"
BY_GIT = subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True).returncode == 0
SCRIPTS = [
    *("packaging/write-recipes", "packaging/check-containers", "packaging/containers/install"),
    *("packaging/conda/weft-python", "tools/release", "tools/release-notes", "tools/try-source"),
]


def keywords(call: ast.Call) -> dict[str, object]:
    return {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}


def calls(source: str, name: str) -> list[ast.Call]:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call for call in found if getattr(call.func, "id", "") == name]


@pytest.fixture(scope="module")
def recipes(tmp_path_factory) -> Path:
    if not BY_GIT:
        pytest.skip("the source archive is git's, and there is no repository")
    folder = tmp_path_factory.mktemp("recipes")
    subprocess.run([PACKAGING / "write-recipes", folder], check=True, capture_output=True)
    return folder


def test_spack(recipes):
    """The recipe's source is the archive beside it, with the checksum of that."""
    source = (recipes / "spack_repo/weft/packages/weft/package.py").read_text()
    assert "@" not in re.sub(r'"@\d|\w@\d|^    @\w', "", source, flags=re.MULTILINE)
    (version,) = calls(source, "version")
    assert ast.literal_eval(version.args[0]) == __version__
    archive = recipes / f"weft-{__version__}.tar.gz"
    assert f'url = "file://{archive}"' in source
    sums = subprocess.run(["sha256sum", archive], capture_output=True, text=True).stdout
    assert keywords(version)["sha256"] == sums.split()[0]
    with tarfile.open(archive) as names:
        assert f"weft-{__version__}/CMakeLists.txt" in names.getnames()


def test_conda(recipes):
    """The recipe packs the wheel of this version, and requires what the wheel requires."""
    source = (recipes / "conda/recipe.yaml").read_text()
    assert f'version: "{__version__}"' in source
    (wheel,) = re.findall(r"- path: \.\./(\S+\.whl)", source)
    assert wheel == f"weft_mpi-{__version__}-py3-none-manylinux_2_28_x86_64.whl"
    assert (recipes / "conda/weft-python").exists()
    wanted = re.search(r"^  run:\n((?:    - .*\n)+)", source, re.MULTILINE)
    asked = re.search(r"^dependencies = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.M)
    assert wanted and asked
    in_conda = {line.strip(" -").lower().replace(" ", "") for line in wanted[1].splitlines()}
    assert in_conda == {"python>=3.9", *re.findall(r'"([^"]+)"', asked[1].lower())}


def test_images_install_by_one_script():
    """Each file that the images copy exists, except the wheel."""
    for name in ("Dockerfile", "weft.def"):
        text = (PACKAGING / "containers" / name).read_text()
        assert "sh /tmp/weft/install /tmp/weft/" in text
        named = set(re.findall(r"packaging/[\w/-]+", text)) - {"packaging/containers/weft"}
        assert named and all((ROOT / path).exists() for path in named), named


def test_reframe():
    tree = ast.parse((PACKAGING / "reframe/weft_check.py").read_text())
    (check,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert [ast.unparse(one) for one in check.decorator_list] == ["rfm.simple_test"]
    engines = calls(ast.unparse(check), "parameter")[0]
    assert set(ast.literal_eval(engines.args[0])) <= {"native", "function", "thread", "auto"}


def test_the_workflow_compares():
    text = (ROOT / ".github/workflows/compare.yml").read_text()
    assert "\t" not in text
    assert re.search(r"weft compare .*\\\n\s+--fail-if-slower ", text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_right_for_their_shell(name):
    path = ROOT / name
    assert path.stat().st_mode & 0o111
    shell = path.read_text().split("\n", 1)[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", path]).returncode == 0


@pytest.mark.parametrize(
    "name",
    [
        "spack/packages/weft/package.py",
        "conda/recipe.yaml",
        "containers/Dockerfile",
        "containers/weft.def",
        "reframe/weft_check.py",
    ],
)
def test_the_first_line_says_what_was_run(name):
    first = (PACKAGING / name).read_text().split("\n", 1)[0]
    assert re.match(r"# .*\b(run|ran|built)\b", first, re.IGNORECASE)


def test_a_release_agrees_with_itself(tmp_path):
    """CITATION.cff and CHANGELOG.md name the version. A version without notes is refused."""
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    notes = subprocess.run([ROOT / "tools/release-notes"], capture_output=True, text=True)
    assert notes.stdout.startswith(f"# Weft {__version__}\n\n")
    assert "## " in notes.stdout and "](docs/" not in notes.stdout
    none = subprocess.run([ROOT / "tools/release-notes", "9.9.9"], capture_output=True, text=True)
    assert none.returncode == 1 and "says nothing of version 9.9.9" in none.stderr


def test_a_release_is_not_made_of_changes_without_a_commit(tmp_path):
    shutil.copytree(
        ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "python/weft").mkdir(parents=True)
    (tmp_path / "python/weft/__init__.py").write_text('__version__ = "1.2.3"\n')
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    done = subprocess.run([tmp_path / "tools/release"], capture_output=True, text=True)
    assert done.returncode == 1 and "commit or drop them" in done.stderr
