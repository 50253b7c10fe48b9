"""Tests files that are generated from the programs' tables of options: man pages, completion,
reference.

Each test has both directions: everything in `--help` is in the file, and everything in the file is
in `--help`."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.system import installation

ROOT = Path(__file__).resolve().parents[2]
MAN = ROOT / "packaging" / "man"
COMPLETION = ROOT / "packaging" / "completion"
COMMANDS = ("run", "schedule", "bench", "plan", "report", "compare", "info", "doctor", "demo")
COMMANDS = (*COMMANDS, "sim", "reproduce", "lab run", "advise", "learned", "place", "model")
COMMANDS = (*COMMANDS, "try")
LONG = pytest.mark.long  # marks all tests except the one that the files are up to date
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@pytest.fixture(scope="session")
def help_of(weft):
    """Returns the text of `weft COMMAND --help`, in which nothing is cut off."""

    def ask(command: str) -> str:
        done = subprocess.run(
            [weft, *command.split(), "--help"],
            env={"PATH": "/usr/bin:/bin", "COLUMNS": "200", "TERM": "dumb", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return ask


def options_in(text: str) -> set[str]:
    return set(OPTION.findall(text))


def test_everything_that_is_written_is_up_to_date():
    command = [sys.executable, ROOT / "tools" / "generate_reference.py"]
    done = subprocess.run(
        [*command, "--check", "--binaries", installation.BUILD / "bin"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@LONG
@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_has_the_options_of_help(help_of, command):
    if not shutil.which("man"):
        pytest.skip("needs Debian's package man-db")
    page = MAN / f"weft-{command.replace(' ', '-')}.1"
    shown = subprocess.run(
        ["man", "-l", page],
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "PAGER": "cat"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert options_in(shown.stdout) == options_in(help_of(command))


def test_man_page_has_every_fact_of_the_table(call):
    table = json.loads(call("run", "--help=json").stdout)["options"]
    page = (MAN / "weft-run.1").read_text().replace("\\-", "-").replace("\\(aq", "'")
    for option in table:
        for fact in ("text", "default", "variable"):
            assert option[fact].replace("…", "...") in page, option["name"]


def test_every_command_has_a_man_page(call):
    listed = set(re.findall(r"^[^\w-]*([a-z]+) {2,}", call("--help").stdout, re.MULTILINE))
    pages = {page.stem.split("-")[1] for page in MAN.glob("weft-*.1")}
    assert pages == listed


@LONG
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["weft", "_weft", "weft.fish"])
def test_completion_files_have_the_options_of_help(help_of, command, name):
    lines = (COMPLETION / name).read_text().splitlines()
    if name == "weft":
        begin = f"    'weft {command}:'-*)"
        found = {word for line in lines if line.startswith(begin) for word in options_in(line)}
    elif name == "_weft":
        begin = lines.index(f"_weft_{command.replace(' ', '_')}() {{")
        specs = "\n".join(lines[begin : lines.index("}", begin)])
        found = set(re.findall(r"^    '(--[a-z-]*[a-z])", specs, re.MULTILINE))
    else:
        mine = [line for line in lines if f"__weft_in weft {command}'" in line]
        found = {f"--{name}" for line in mine for name in re.findall(r" -l ([a-z-]+)", line)}
    assert found == options_in(help_of(command)) - mentioned_only(command)


def mentioned_only(command: str) -> set[str]:
    """Returns options that a command's help mentions, but that belong to another command."""
    return {"schedule": set(), "run": {"--list"}}.get(command, set())


BASH = """
source "$1"
IFS='|' read -ra COMP_WORDS <<< "$2"
[[ $2 == *'|' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_weft 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""
TYPED = [
    ("weft|", {"run", "bench", "lab"}),
    ("weft|lab|", {"run"}),
    ("weft|ru", {"run"}),
    ("weft|run|--eng", {"--engine"}),
    ("weft|run|--engine|t", {"thread", "tcc"}),
    ("weft|run|--engine|=|t", {"thread", "tcc"}),
    ("weft|run|--engine|=", {"native", "tcc"}),
    ("weft|run|--placement|p", {"pack:"}),
    ("weft|run|--algorithm|allre", {"allreduce="}),
    ("weft|run|--algorithm|allreduce|=|ri", {"ring"}),
    ("weft|run|--mpi|m", {"mpich"}),
    ("weft|schedule|allr", {"allreduce"}),
    ("weft|run|--|ech", {"echo"}),
    ("weft|run|--engine|tcc|--|ech", {"echo"}),
    ("weft|lab|run|--|ech", {"echo"}),
]


@LONG
@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_bash_completes(typed, offered):
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", COMPLETION / "weft", typed],
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = set(done.stdout.split())
    assert offered <= found
    last = typed.rpartition("|")[2]
    assert last == "=" or all(word.startswith(last) for word in found)


@LONG
@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_fish_completes(typed, offered):
    if not shutil.which("fish"):
        pytest.skip("needs Debian's package fish")
    line = re.sub(r" = ?", "=", typed.replace("|", " "))
    script = f"source {COMPLETION / 'weft.fish'}; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=60
    )
    found = {entry.split("\t")[0] for entry in done.stdout.splitlines()}
    last = line.rpartition(" ")[2]
    value_at = last.rpartition("=")[0]
    for word in offered:
        full = f"{value_at}={word}" if value_at else word
        assert any(entry.startswith(full) for entry in found), (word, found)


ZSH_SET_UP = (
    "PS1=; unsetopt zle_bracketed_paste prompt_sp; fpath=({}); autoload compinit; compinit -D -u"
)
ZSH_TYPED = [
    ("weft ru", "weft run"),
    ("weft lab r", "weft lab run"),
    ("weft run --eng", "weft run --engine"),
    ("weft run --engine nat", "weft run --engine native"),
    ("weft run --engine=nat", "weft run --engine=native"),
    ("weft run --summary --engine=nat", "weft run --summary --engine=native"),
    ("weft run --placement pa", "weft run --placement pack:"),
    ("weft run --algorithm neighbor_alltoallw", "weft run --algorithm neighbor_alltoallw="),
    ("weft run --algorithm allreduce=ri", "weft run --algorithm allreduce=ring"),
    ("weft run --algorithm=allreduce=ri", "weft run --algorithm=allreduce=ring"),
    ("weft schedule exs", "weft schedule exscan"),
    ("weft run --engine tcc -- mkfif", "weft run --engine tcc -- mkfifo"),
]


def zsh_lines(typed: list[str]) -> list[str]:
    """Returns the line that an interactive zsh makes of each line followed by a tab."""
    first, terminal = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    places = f"{COMPLETION} $fpath"
    keys = [ZSH_SET_UP.format(places), *(f"{line}\t\x01print -r -- GOT \x05 END" for line in typed)]
    os.write(first, "".join(f"{line}\n" for line in [*keys, "exit"]).encode())
    shown = b""
    with contextlib.suppress(OSError):  # the shell has ended
        while part := os.read(first, 4096):
            shown += part
    shell.wait(timeout=60)
    os.close(first)
    return re.findall(r"^GOT (.*?) +END", shown.decode(), re.MULTILINE)


@LONG
def test_zsh_completes():
    if not shutil.which("zsh"):
        pytest.skip("needs Debian's package zsh")
    assert zsh_lines([typed for typed, _ in ZSH_TYPED]) == [full for _, full in ZSH_TYPED]


def named_in(page: str, names: set[str]) -> None:
    text = (ROOT / "docs" / "reference" / page).read_text()
    assert names
    assert {name for name in names if f"`{name}`" not in text} == set()


def found_in(source: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, (ROOT / source).read_text(), re.MULTILINE))


def test_reference_names_every_variable_that_is_read():
    reads = re.compile(r"""(?:getenv\(|environ\.get\(|environ\[)"(WEFT_\w+)\"""")
    files = [*(ROOT / "src").rglob("*.cc"), *(ROOT / "python" / "weft").rglob("*.py")]
    names = {name for file in files for name in reads.findall(file.read_text())}
    assert {"WEFT_ENGINE", "WEFT_MPI_DIR"} <= names
    named_in("variables.md", names)


def test_reference_names_every_hint():
    named_in("hints.md", found_in("src/base/hint_keys.h", r'"(weft_\w+)"'))


def test_reference_names_every_algorithm():
    names = found_in("src/coll/algorithms.def", r'^WEFT_ALGORITHM\(\w+, "([\w-]+)"')
    named_in("algorithms.md", names)


def test_reference_names_every_function_of_the_headers():
    for header in ("include/weft.h", "include/weft_compute.h"):
        named_in("c-interface.md", found_in(header, r"^[\w\s*]*\b(weft_\w+)\("))
