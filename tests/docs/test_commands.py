"""Tests that the commands in the README and in docs do what these say.

The blocks of each page are run in their order, in a temporary folder with the guide's `app.c`, with
the built Weft and the embedded MPICH. A comment above a block says why it is not run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import ROOT, SHELL, Block, Page, all_pages, page_name

from weft.lab import Lab, LabUnavailable
from weft.system import installation

GUIDE = ROOT / "docs/getting-started.md"
EXPORT = "$ export PATH="
COMPUTES = "i < 50000000"
SECONDS = 300
PAGES = all_pages()
FIRST_READ = ("README.md", "docs/getting-started.md")
RUN = [
    pytest.param(page, marks=() if page_name(page) in FIRST_READ else pytest.mark.long)
    for page in PAGES
    if any(block.runs and block.steps for block in page.blocks)
]
OWN_VARIABLES = ("WEFT_BUILD_DIR", "WEFT_MPI_DIR")
LAUNCHER_VARIABLES = ("PMI", "HYD", "OMPI_", "SLURM_", "WEFT_", "LD_PRELOAD")


def needs_lab(command: str) -> bool:
    return (
        "weft lab" in command
        or "weft.lab" in command
        or ("weft bench" in command and "--launcher" not in command)
    )


@pytest.fixture(scope="module")
def lab_problem() -> str:
    try:
        with Lab(nodes=1, check=False):
            return ""
    except LabUnavailable as error:
        return str(error)


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    """Returns the environment of a user who followed the guide: PATH from the guide's own line, and
    a new home."""
    lines = [line for block in Page(GUIDE).blocks for line in block.lines]
    (path,) = (line[len(EXPORT) :] for line in lines if line.startswith(EXPORT))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in OWN_VARIABLES or not name.startswith(LAUNCHER_VARIABLES)
    }
    path = path.replace("$PWD", str(ROOT)).replace("$PATH", kept["PATH"])
    return {**kept, "PATH": path, "HOME": str(tmp_path), "COLUMNS": "100"}


@pytest.fixture
def workplace(tmp_path, environment) -> Path:
    """Returns a folder with the guide's program, compiled, and with the folders that pages name.

    The program computes a tenth of the guide's amount, since it runs about thirty times."""
    (source,) = (b for b in Page(GUIDE).blocks if b.language == "c")
    program = "\n".join(source.lines)
    assert COMPUTES in program
    (tmp_path / "app.c").write_text(program.replace(COMPUTES, COMPUTES[:-1]))
    command = ["mpicc", "-O2", "app.c", "-o", "app"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
    (tmp_path / "build").symlink_to(installation.BUILD)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


def shape(output: str) -> str:
    """Returns the output without its figures, and without units of time that depend on them."""
    figures = re.sub(r"-?\d+(\.\d+)?", "0", output)
    units = re.sub(r"\b0 (µs|ms|s)\b", "0 s", figures)
    return re.sub(r"\s+", " ", units).strip()


def run_step(block: Block, command: str, output: str, workplace: Path, environment) -> None:
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", command],
        cwd=workplace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{block.name}: {command}\n{said}"
    if not output:
        return
    if block.differs:
        assert shape(output) in shape(said), f"{block.name}: {command}\n{said}"
    else:
        assert output.strip() in said, f"{block.name}: {command}\n{said}"


@pytest.mark.parametrize("page", RUN, ids=page_name)
def test_commands_shown_work(page, workplace, environment, lab_problem):
    ran = 0
    for block in page.blocks:
        if not block.runs:
            continue
        for command, output in block.steps:
            if needs_lab(command) and lab_problem:
                continue
            run_step(block, command, output, workplace, environment)
            ran += 1
    if not ran:
        pytest.skip(f"this machine permits no lab: {lab_problem}")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_says_what_it_is(page):
    for block in page.blocks:
        assert block.language, f"{block.name}: name the language of the block"
        is_script = block.language == "bash" and block.lines[0].startswith("#!")
        if block.language in SHELL and not is_script:
            assert block.language == "console", f"{block.name}: commands stand in ```console"
            assert block.steps, f"{block.name}: a command begins with '$ '"


def test_commands_do_not_hide_in_indented_blocks():
    """Two lines of the README are checked by other programs and must stay."""
    starts = re.compile(r"^    (\$ |weft |mpiexec |pip |\.venv|make (?!demo |test ))")
    found = [
        f"{page_name(page)}:{number}: {line}"
        for page in PAGES
        for number, line in page.prose
        if starts.match(line)
    ]
    assert not found


def test_the_program_of_the_guide_is_compiled_without_warnings(workplace, environment):
    strict = ["mpicc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "app.c", "-o", "strict"]
    done = subprocess.run(strict, cwd=workplace, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_wrong_command_is_noticed(workplace, environment):
    """The check must notice a failing command, and an output that differs from the shown one."""
    block = Block(GUIDE, 1, "console", ["$ true"])
    with pytest.raises(AssertionError):
        run_step(block, "weft run --no-such-option -- true", "", workplace, environment)
    with pytest.raises(AssertionError):
        run_step(block, "echo 12 s", "13 s", workplace, environment)
    block.differs = "times"
    run_step(block, "echo 12 s", "13.5 s", workplace, environment)
    with pytest.raises(AssertionError):
        run_step(block, "echo 12 s", "13 ranks", workplace, environment)
    assert shutil.which("weft", path=environment["PATH"])
