"""Tests a file of plans for all users, which only an administrator can write: it is read, and
nothing is stored in it or said about it. Plans of another machine have no effect."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOMEBODY = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]


@pytest.fixture
def job(mpi, weft, environment, compiled_for, tmp_path):
    """Runs a job with this file of plans. Returns its output on standard error."""

    def run(file: Path, before: tuple[str, ...] = ()) -> str:
        options = ["--plan-cache", file, "--init-budget", "10s", "--one-copy", "off"]
        # Another user may have no access to the folder of the compiled programs.
        program = shutil.copy(compiled_for(mpi, "kept_plans"), tmp_path)
        command = [*before, *mpi.launcher(3), weft, "run", *options, "--", program, file]
        launchers_files = tmp_path / "launcher"
        launchers_files.mkdir(exist_ok=True)
        launchers_files.chmod(0o777)
        done = subprocess.run(
            [str(word) for word in command],
            env={**environment, **mpi.environment(), "TMPDIR": str(launchers_files)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    return run


def test_it_is_read_and_stays(job, tmp_path):
    """Collectives that are in the file are not measured. Others are measured, but not stored."""
    folder = tmp_path / "kept"
    folder.mkdir()
    file = folder / "plans"
    job(file)
    lines = file.read_text().splitlines(keepends=True)
    of_others = [line for line in lines if "|2 ranks|" in line]
    assert of_others
    file.write_text("".join(line for line in lines if line not in of_others))
    file.chmod(0o444)
    before = file.read_text()
    as_somebody: tuple[str, ...] = ()
    if os.geteuid() == 0:
        as_somebody = tuple(SOMEBODY)
        for place in (folder, *folder.parents):
            if place.is_relative_to("/tmp") and place != Path("/tmp"):
                place.chmod(0o755)
    assert "weft: " not in job(file, as_somebody)
    assert file.read_text() == before
    assert [path.name for path in folder.iterdir()] == ["plans"]


@pytest.mark.one_library
def test_plans_of_another_machine_have_no_effect(job, tmp_path):
    """The foreign plans name an algorithm that does not exist. The job measures for itself, and the
    foreign plans stay in the file."""
    file = tmp_path / "plans"
    job(file)
    foreign = re.sub(r"^(weft [\d.]+)\|[^|]*", r"\1|another machine", file.read_text(), flags=re.M)
    foreign = re.sub(r"\t[\w-]+/", "\tno-such-algorithm/", foreign)
    assert foreign.count("another machine") > 1
    file.write_text(foreign)
    assert "weft: " not in job(file)
    text = file.read_text()
    own = [line for line in text.splitlines() if line.startswith("weft ") and "another" not in line]
    assert own and not [line for line in own if "no-such-algorithm" in line]
    assert set(foreign.splitlines()) <= set(text.splitlines())
