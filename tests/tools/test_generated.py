"""Tests that generated files are up to date. Files of tools/generate_reference.py, which runs the
built programs, are tested in test_reference.py."""

import subprocess
import sys

import pytest

from weft.system import installation

WHAT = ("library", "wrappers", "advise_wrappers", "gpu", "performance", "scaling", "check")


@pytest.mark.parametrize("what", WHAT)
def test_generated_files_are_up_to_date(what):
    tool = installation.ROOT / "tools" / f"generate_{what}.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
