"""Tests those parts of tools/slurm-test that need no Slurm: the page's scripts, and the judgement
of jobs.

The tool itself starts a Slurm of two nodes and needs root; docs/cluster.md describes it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys

import pytest

from weft.system import installation

pytestmark = pytest.mark.long  # few changes affect this tool of the repository


@pytest.fixture(scope="module")
def tool():
    path = str(installation.ROOT / "tools" / "slurm-test")
    loader = importlib.machinery.SourceFileLoader("slurm_test", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("slurm_test", loader))
    sys.modules["slurm_test"] = module  # dataclasses look the module up there
    loader.exec_module(module)
    return module


def test_the_page_has_a_script_for_each_launcher(tool):
    scripts = tool.scripts()
    assert "srun --mpi=pmi2 weft run" in scripts["srun"]
    assert 'mpiexec -n "$SLURM_NTASKS" weft run' in scripts["mpiexec"]
    for script in scripts.values():
        assert "module load mpich" in script and "weft-env/bin/activate" in script
        assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


RESULT = "app: 4 ranks on 2 hosts, Weft in {inside} of them, {wrong} wrong\n"
SUMMARY = "weft: summary of {ranks} ranks, MPICH, engine auto\n"
POINTS = {("native", 4, 2), ("thread", 4, 2)}


@pytest.mark.parametrize(
    ("output", "points", "good"),
    [
        (RESULT.format(inside=4, wrong=0) + SUMMARY.format(ranks=4), POINTS, True),
        (RESULT.format(inside=3, wrong=0) + SUMMARY.format(ranks=4), POINTS, False),
        (RESULT.format(inside=4, wrong=1) + SUMMARY.format(ranks=4), POINTS, False),
        (RESULT.format(inside=4, wrong=0), POINTS, False),
        (4 * (RESULT.format(inside=4, wrong=0) + SUMMARY.format(ranks=1)), POINTS, False),
        (RESULT.format(inside=4, wrong=0) + SUMMARY.format(ranks=4), {("native", 4, 1)}, False),
        ("", set(), False),
    ],
)
def test_a_job_is_good_only_with_weft_in_all_ranks_and_right_sums(tool, output, points, good):
    assert tool.judge("mpich-srun", output, "", points) is good


def test_without_root_it_says_what_to_type(tool, monkeypatch):
    monkeypatch.setattr(tool.os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(tool, "PROGRAMS", ("slurmctld-that-is-nowhere",))
    with pytest.raises(tool.SlurmError, match=r"sudo apt-get install .*slurmctld"):
        tool.prepare_machine()
