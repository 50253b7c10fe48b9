"""Tests the messages about wrong settings: one understandable sentence from one rank."""

from __future__ import annotations

import re
import subprocess

import pytest
from printed import into_files, printed

from weft.system import installation

pytestmark = pytest.mark.covering

RANKS = 3
ON_RANK_1 = 'if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ]; then export "$0"; fi; exec "$@"'


@pytest.fixture
def job(mpi, weft, environment, compiled_for, tmp_path):
    """Runs ranks under Weft. Returns the exit status, and Weft's sentences."""

    def run(
        *options: object,
        program: str = "init_marks",
        arguments: tuple[object, ...] = (),
        inside: tuple[object, ...] = (),
        weft_run: bool = True,
        **variables: str,
    ) -> tuple[int, list[str]]:
        command = [*mpi.launcher(RANKS), *into_files(tmp_path), *inside]
        if weft_run:
            command += [weft, "run", "--plan-cache", "none", *options, "--"]
        else:
            command += ["env", f"LD_PRELOAD={installation.preload_library(mpi.name)}"]
        command += [compiled_for(mpi, program), *arguments]
        done = subprocess.run(
            [str(word) for word in command],
            env={**environment, **mpi.environment(), **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        err = printed(tmp_path, "err")
        return done.returncode, re.findall(r"^weft: (.*)$", err, re.MULTILINE)

    return run


@pytest.mark.parametrize("weft_run", [True, False])
def test_a_misspelt_variable_is_named_by_one_rank(job, weft_run):
    wrong = {"WEFT_ENGIN": "tcc", "WEFT_LERN": "on", "WEFT_ROOT": "/opt/weft"}
    status, said = job(weft_run=weft_run, **wrong)
    assert status == 0
    assert sorted(said) == [
        "WEFT_ENGIN is not a variable of Weft: did you mean WEFT_ENGINE?",
        "WEFT_LERN is not a variable of Weft: did you mean WEFT_LEARN?",
    ]


@pytest.mark.one_library
def test_right_variables_are_passed_over(job):
    assert job(WEFT_LEARN="off", WEFT_ALGORITHM_BCAST="binomial") == (0, [])


@pytest.mark.one_library
def test_the_back_off_of_earlier_versions_has_a_stand_in(job):
    status, said = job("--engine", "thread", "--backoff", "baton")
    assert status == 0
    assert len(said) == 1, said
    assert said[0].startswith("there is no back-off baton any more: quiet is used; ")


@pytest.mark.parametrize("weft_run", [True, False])
def test_a_wrong_value_is_named_by_one_rank(job, weft_run):
    status, said = job(weft_run=weft_run, WEFT_ENGINE="warp")
    assert status != 0
    assert len(said) == 1, said
    assert said[0].startswith("unknown engine 'warp'; choose one of native, ")


@pytest.mark.one_library
def test_a_wrong_value_is_named_where_mpi_never_begins(job):
    status, said = job(program="no_init", WEFT_ENGINE="warp")
    assert status == 0
    assert [one for one in said if "warp" in one] == said and len(said) == 1


@pytest.mark.parametrize("weft_run", [True, False])
def test_a_wrong_value_of_one_rank_alone_is_named_by_that_rank(job, weft_run):
    inside = ("sh", "-c", ON_RANK_1, "WEFT_ENGINE=warp")
    status, said = job(weft_run=weft_run, inside=inside)
    assert status != 0
    assert len(said) == 1, said
    assert said[0].startswith("rank 1: unknown engine 'warp'; choose one of ")


@pytest.mark.one_library
def test_a_file_of_plans_that_cannot_be_written_is_named(job, tmp_path):
    file = "/proc/weft-plans"
    options = ("--plan-cache", file, "--init-budget", "10s", "--one-copy", "off")
    status, said = job(*options, program="kept_plans", arguments=(tmp_path / "plans",))
    assert status == 0
    assert said == [
        f"what this run has measured and learnt is not kept: {file} cannot be written (No such file"
        " or directory); name another file with --plan-cache, or none"
    ]
