"""tools/device-check: what it would measure on a machine of 16 cores. No job runs here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys
import time
from contextlib import contextmanager
from math import ceil
from pathlib import Path

import pytest

from weft import installation

TOOL = installation.ROOT / "tools" / "device-check"


@pytest.fixture
def tool(monkeypatch):
    """The script as a module, whose jobs take half of native's time."""
    loader = importlib.machinery.SourceFileLoader("device_check", str(TOOL))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("device_check", loader)
    )
    monkeypatch.setitem(sys.modules, "device_check", module)
    loader.exec_module(module)
    module.settings = []

    def overlap(row, engines, **variables):
        module.settings.append(variables)
        row.native_us, row.of_native = 100.0, dict.fromkeys(engines.split(","), 0.5)
        return row

    monkeypatch.setattr(module, "overlap", overlap)
    monkeypatch.setattr(module, "best_split", lambda cores, ranks, collective: "1")
    monkeypatch.setattr(module, "build", lambda *targets: None)
    return module


@pytest.mark.parametrize("group", ["placements", "compaction"])
def test_threads_have_as_many_cores_as_their_placement_needs(tool, group):
    rows = list(tool.GROUPS[group](16))
    assert rows
    for row, settings in zip(rows, tool.settings):
        _, _, per_core = settings["WEFT_PLACEMENT"].partition(":")
        if per_core:
            assert row.ranks + ceil(row.ranks / int(per_core)) <= 16, row


def test_the_papers_cases_are_there(tool):
    assert {row.words for row in tool.placements_of(16)} >= {"bind", "numa", "odd-even"}
    splits = {(row.collective, row.ranks, row.words[:3]) for row in tool.splits_of(16)}
    assert splits == {
        (collective, ranks, f"S={split}")
        for collective in ("bcast", "reduce")
        for ranks in range(8, 16)
        for split in range(4)
    }
    assert {row.words.split(", ")[1] for row in tool.compaction_of(16)} == {
        "yield",
        "baton",
        "agent",
    }
    assert list(tool.placements_of(2)) == []


def test_what_was_measured_is_in_one_file(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool.os, "sched_getaffinity", lambda _: set(range(16)))
    assert tool.check_cores(["splits"], tmp_path, time.monotonic() + 60) == 0
    found = json.loads((tmp_path / "device-check.json").read_text())
    assert found["schema"] == "weft-device-check/1"
    assert found["cores"] == 16 and len(found["rows"]) == 2 * 8 * 4
    assert found["rows"][0]["of_native"]["thread"] == 0.5


def test_what_does_not_fit_into_the_time_is_left_out(tool, tmp_path, capsys):
    assert tool.show("splits", 16, time.monotonic()) == []
    assert "its time is up" in capsys.readouterr().out


def test_all_programs_on_gpus_are_run(tool, monkeypatch):
    """And those that need kernels of several ranks at one time run where these are."""
    jobs = []

    @contextmanager
    def shared_device():
        yield {"CUDA_MPS_PIPE_DIRECTORY": "anywhere"}

    def run(self, what, ranks, *command, **variables):
        jobs.append(([Path(str(word)).name for word in command], variables))

    monkeypatch.setattr(tool.shutil, "which", lambda name: name)
    monkeypatch.setattr(tool, "shared_device", shared_device)
    monkeypatch.setattr(tool, "build", lambda *targets, **options: None)
    monkeypatch.setattr(tool.Gpu, "run", run)
    assert tool.check_gpu() == 0
    assert {word for words, _ in jobs for word in words} >= set(tool.GPU_PROGRAMS)
    streams = [(words, variables) for words, variables in jobs if "gpu_streams" in words]
    assert len(streams) == 4
    for words, variables in streams:
        takes_turns = "CUDA_MPS_PIPE_DIRECTORY" not in variables
        assert (words[-1] == "by calls of MPI's") == takes_turns
