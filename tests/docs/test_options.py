"""Tests that options and variables in the README and in docs exist, according to the programs' own
--help."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from pages import ROOT, all_pages, page_name

from weft.system import installation, mpi_libraries

OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
COMMANDS = (
    "run",
    "advise",
    "check",
    "info",
    "doctor",
    "demo",
    "try",
    "bench",
    "report",
    "compare",
    "trace",
    "plan",
    "place",
    "model",
    "sim",
    "reproduce",
    "schedule",
)
# These are options of other programs, by the program with which a page names them.
OTHERS = {
    **dict.fromkeys(("--mca", "--with-ft"), "mpiexec of Open MPI"),
    "--output-on-failure": "ctest",
    "--wrap": "the linker's",
    "--no-such-option": "a wrong one, in an example",
    **dict.fromkeys(("--install", "--prefix"), "CMake's"),
    **dict.fromkeys(
        ("--job-name", "--ntasks-per-node", "--cpus-per-task", "--time", "--output"),
        "Slurm's",
    ),
    **dict.fromkeys(("--recipe", "--channel"), "rattler-build's"),
}
# Pages mention these tools.
TOOLS = ("compare-kernels", "device-check", "generate_scaling.py", "mpi-testsuite")
TOOLS += ("performance-checks", "real-programs")
PAGES = all_pages()


def help_of(*command: object) -> str:
    done = subprocess.run(
        [*map(str, command), "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def usage_of(program: object) -> str:
    """Returns the usage of a measuring program, which it prints for any unknown option."""
    done = subprocess.run([str(program), "--help"], capture_output=True, text=True, timeout=60)
    assert "--bytes" in done.stderr, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def weft_helps() -> dict[str, str]:
    weft = installation.weft_command()
    helps = {name: help_of(weft, name) for name in COMMANDS}
    return helps | {"lab": help_of(weft, "lab", "run"), "": help_of(weft)}


@pytest.fixture(scope="module")
def known(weft_helps) -> set[str]:
    library = mpi_libraries.implementation("mpich")
    programs = [library.program(name) for name in ("overlap", "latency")]
    helps = [*weft_helps.values(), *(usage_of(program) for program in programs)]
    helps += [help_of(sys.executable, ROOT / "tools" / name) for name in TOOLS]
    sources = [*(ROOT / "tests/mpi").glob("*.cc"), ROOT / "tests/random/sanitize.py"]
    texts = helps + [path.read_text() for path in sources]
    texts.append(options_of_kernels())
    return {option for text in texts for option in OPTION.findall(text)} | set(OTHERS)


def options_of_kernels() -> str:
    """Returns the options of kernels from their sources, since not every build has all kernels."""
    sources = "".join(path.read_text() for path in (ROOT / "kernels").glob("*.[ch]*"))
    return " ".join(f"--{name}" for name in re.findall(r'options(?:\.|->)\w+\("([\w-]+)"', sources))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_options_named_exist(page, known):
    code = [line for block in page.blocks for line in block.lines]
    code += [part for _, line in page.prose for part in re.findall(r"`([^`]+)`", line)]
    unknown = {option for text in code for option in OPTION.findall(text)} - known
    assert not unknown, f"{page_name(page)}: {sorted(unknown)}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_options_of_weft_commands_are_theirs(page, weft_helps):
    """In `weft lab run --nodes 4 -- weft run --engine tcc` each option must be one of its
    command."""
    code = [line for block in page.blocks for line in block.lines]
    code += [part for _, line in page.prose for part in re.findall(r"`([^`]+)`", line)]
    for text in code:
        for name, words in re.findall(r"\bweft ([a-z]+)((?:(?! -- |\bweft ).)*)", text):
            if name not in weft_helps:
                continue
            theirs = set(OPTION.findall(weft_helps[name]))
            words = re.sub(r"'[^']*'", "", words)  # quoted text is passed on to another command
            wrong = [option for option in OPTION.findall(words) if option not in theirs]
            assert not wrong, f"{page_name(page)}: weft {name} has no {wrong}: {text}"


def test_variables_named_exist():
    """Some source must read each variable that a page names. `WEFT_ALGORITHM_K` stands for the
    variables of all kinds."""
    trees = {
        "src": "*.cc",
        "python/weft": "*.py",
        "cmake": "*.in",
        "tests": "*.py",
        "tests/device": "*.cc",
    }
    readers = [path for folder, names in trees.items() for path in (ROOT / folder).rglob(names)]
    read = set(re.findall(r"WEFT_[A-Z_]*[A-Z]", "".join(path.read_text() for path in readers)))
    for page in PAGES:
        for number, line in page.prose:
            for name in re.findall(r"`(WEFT_[A-Z_]*[A-Z])", line):
                name = re.sub("WEFT_ALGORITHM_.*", "WEFT_ALGORITHM", name)
                assert any(name in other for other in read), f"{page_name(page)}:{number}: {name}"


@pytest.mark.parametrize("option", ["engine", "placement", "backoff"])
def test_tables_of_values_have_all_that_there_are(option):
    """The error message for a wrong value lists the right ones."""
    weft = [str(installation.weft_command()), "run", f"--{option}", "no-such", "--", "true"]
    said = subprocess.run(weft, capture_output=True, text=True, timeout=60).stderr
    _, found, values = said.partition("choose one of ")
    assert found, said
    words = re.findall(r"(?:^|, )([a-z-]+)", values)
    assert len(words) >= 3, said
    page = (ROOT / "docs/engines.md").read_text()
    for word in words:
        assert re.search(rf"^\| `{word}[`:]", page, re.MULTILINE), f"{option} {word}"
