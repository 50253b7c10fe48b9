"""Tests that files of a job are absent if the disk is full, and that one sentence says so (row 45).
tests/cli/test_files.py tests files that the Python part writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from job import CAN_ENCLOSE, Job

pytestmark = pytest.mark.covering

NO_ROOM = "(No space left on device)"
NAME = "name a file that can be written"


@pytest.mark.skipif(not CAN_ENCLOSE, reason="a small disk is mounted by root")
def test_files_of_a_job_are_absent(mpi, tmp_path):
    """One job writes all kinds of files."""
    disk = tmp_path / "disk"
    disk.mkdir()
    names = {"--summary=json:": "summary", "--trace=": "trace", "--plan-cache=": "plans"}
    options = [f"{option}{disk / name}" for option, name in names.items()]
    options += ["--init-budget", "10s", "--one-copy", "off"]
    done = Job(mpi, ["persistent-never-freed"], "auto", options=options, full_disk=disk).right()
    assert "on the full disk" not in done.out, done.out
    assert sorted(done.sentences()) == [
        f"weft: cannot write the summary to {disk}/summary {NO_ROOM}: {NAME}",
        f"weft: cannot write the trace to {disk}/trace {NO_ROOM}: {NAME}",
        f"weft: what this run has measured and learnt is not kept: {disk}/plans cannot be written"
        f" {NO_ROOM}; name another file with --plan-cache, or none",
    ]


@pytest.mark.parametrize("name", ["none/file", "/dev/full"])
def test_files_that_cannot_be_written_are_named(mpi, tmp_path, name):
    """Missing folders are not created."""
    file = tmp_path / Path(name)
    options = [f"--summary=json:{file}", f"--trace={file}"]
    done = Job(mpi, ["work"], "thread", options=options).right()
    assert len(done.sentences()) == 2, done.text
    assert not (tmp_path / "none").exists()
