"""Generated files are those that the tools would write now. Of tools/generate_reference.py, which
asks the built programs, test_reference.py says so.
"""

import subprocess
import sys

import pytest

from weft.system import installation

WHAT = ("library", "wrappers", "advise_wrappers", "gpu", "performance", "scaling")


@pytest.mark.parametrize("what", WHAT)
def test_generated_files_are_up_to_date(what):
    tool = installation.ROOT / "tools" / f"generate_{what}.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
