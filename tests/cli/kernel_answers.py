"""What tests of kernels ask of a run's words."""

from __future__ import annotations

import subprocess


def check(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 wrong results" in done.stdout
    return done.stdout


def refused(done: subprocess.CompletedProcess, name: str) -> str:
    """The one sentence."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{name}: ")]
    assert len(lines) == 1 and "us" not in done.stdout.split()
    return lines[0]


QUICK = ("--repetitions", 1)
SMALL = ("--grid", "7x5x6", *QUICK)
