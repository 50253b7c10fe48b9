"""Tests the help of commands: full phrases, choices, defaults, groups, and errors in one
sentence."""

import inspect
import subprocess
import sys

import pytest
from typer.main import get_command

from weft.cli import app

# Commands import these modules when they run, and not for their help.
HEAVY = ("pydantic", "jinja2", "sqlite3", "weft.bench.driver", "weft.measurements.effect")
NATIVE = ("run", "schedule")


def commands():
    """Returns commands by name. Those in groups have names such as "lab run"."""

    def below(command, name):
        for word, one in getattr(command, "commands", {}).items():
            full = f"{name} {word}".strip()
            yield from below(one, full) if hasattr(one, "commands") else [(full, one)]

    return dict(below(get_command(app), ""))


@pytest.mark.parametrize("name", [name for name in commands() if name not in NATIVE])
def test_every_option_has_a_phrase_that_ends(name):
    for parameter in commands()[name].params:
        text = getattr(parameter, "help", None)
        assert text, f"{name}: {parameter.name} has no help"
        assert text.endswith((".", ")")), f"{name}: {parameter.name}: {text}"


@pytest.mark.parametrize("name", [name for name in commands() if name not in NATIVE])
def test_typer_reads_the_signature_with_python_3_9(name):
    """With Python 3.9 typer does not evaluate annotations that are text."""
    function = inspect.unwrap(commands()[name].callback)
    for parameter in inspect.signature(function).parameters.values():
        assert not isinstance(parameter.annotation, str), f"{name}: {parameter.name}"


def weft(*words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "weft", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_help_of_the_benchmark_is_in_groups():
    text = weft("bench", "--help").stdout
    for group in ("What is measured", "Where it is measured", "How long and how exactly"):
        assert group in text
    assert "gemm, gemv, stencil" in " ".join(text.split()) and "default: 120s" in text


def test_help_of_all_commands_begins_with_those_that_a_user_needs_first():
    """The help has the layout of the native commands: plain text of 80 columns, without boxes or
    types."""
    text = weft("--help").stdout
    titles = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[:3] == ["Start with these:", "Measure and understand:", "Experts:"]
    first = text.split("Start with these:")[1].split("\n\n")[0]
    verbs = [line.split()[0] for line in first.splitlines() if line[:2] == "  " and line[2] != " "]
    assert verbs == ["try", "run", "advise", "check", "doctor", "demo"]
    for verb in ([], ["try"], ["lab"], ["lab", "run"], ["sim"]):
        lines = weft(*verb, "--help").stdout.splitlines()
        assert max(map(len, lines)) <= 80 and lines[0].startswith("Usage: weft")
        assert not [line for line in lines if ("<" in line and ">" in line) or "│" in line]


@pytest.mark.parametrize("verb", [["try"], ["lab", "run"], ["run"], ["schedule"]])
def test_help_of_a_command_by_its_name(verb):
    assert weft("help", *verb).stdout == weft(*verb, "--help").stdout != ""


def test_help_of_an_option_tells_limits_choices_and_default():
    text = " ".join(weft("help", "try").stdout.split())
    assert "--runs NUMBER Greatest number of rounds. Each way runs once in a round." in text
    assert "NUMBER: at least 1, at most 1000; default: 12" in text
    assert "default: none: Weft chooses" in text and "A word {} stands where" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bench", "--kernel", "fft"], "'gemm'"),
        (["bench", "--sed", "3"], "--seed"),
        (["plan", "dance"], "'allreduce'"),
        (["nothing"], "nothing"),
    ],
)
def test_errors_of_the_command_line_are_one_sentence(words, said):
    done = weft(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("weft") and done.stderr.count("\n") == 1
    assert said in done.stderr


def test_help_loads_nothing_heavy():
    program = "import sys; from weft import cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = done.stdout.split()
    assert "weft.cli" in loaded
    assert not [name for name in HEAVY if name in loaded]
