"""Tests messages about names that do not exist, and about names that only the file of plans has."""

from __future__ import annotations

import pytest

from weft.choices import learned


def test_advice_on_a_program_that_is_not_there(call, tmp_path):
    done = call("advise", "--record", tmp_path / "record", "--", "./nothing")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "weft: ./nothing: not found\n"


LINE = (
    "weft 1|AMD, MPICH|learnt|app|4 ranks|4 ranks on one node, level kept|bcast, below 64 KiB\t"
    "function tree/65536/4/0\t0\tnative/65536/4/0=8000000,function tree/65536/4/0=6000000\n"
)


@pytest.mark.parametrize("words", learned.EXPLAINED)
def test_words_of_a_communicator_are_explained(call, tmp_path, words):
    plans = tmp_path / "plans"
    header = "# weft plans, version 4\n"
    plans.write_text(header + LINE.replace(", level kept", words))
    done = call("learned", "--plan-cache", plans, COLUMNS="200")
    shown, why = learned.EXPLAINED[words]
    assert f"bcast, below 64 KiB (4 ranks on one node{shown})" in done.stdout
    assert words not in done.stdout
    assert done.stdout.endswith(why + "\n")
    plans.write_text(header + LINE.replace(", level kept", ""))
    done = call("learned", "--plan-cache", plans, COLUMNS="200")
    assert "bcast, below 64 KiB (4 ranks on one node)" in done.stdout
    assert why not in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "try --runs 0 -- ./app",
            "weft try: --runs needs a number (at least 1, at most 1000), not '0'",
        ),
        (
            "try --runs many -- ./app",
            "weft try: --runs needs a whole number (at least 1, at most 1000), not 'many'",
        ),
        ("model --cores 1.5", "weft model: --cores needs a whole number (at least 2), not '1.5'"),
        ("lab run --nodes two -- ./app", "weft lab run: --nodes needs a whole number, not 'two'"),
        (
            "lab run --nodes 0 -- true",
            "weft lab run: --nodes must be between 1 and 64, not 0",
        ),
        ("lab run", "weft lab run: Missing argument 'COMMAND'."),
        (
            "demo --mpi lam",
            "weft demo: unknown MPI 'lam'; choose one of mpich, openmpi, intelmpi, or name a prefix"
            " or an mpiexec",
        ),
    ],
)
def test_a_wrong_word_is_named_in_one_sentence(call, words, said):
    done = call(*words.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said + "\n")


def test_a_group_without_its_command_shows_its_help(call):
    done = call("lab")
    assert done.returncode == 2 and done.stderr.startswith("Usage: weft lab [OPTIONS] COMMAND")
