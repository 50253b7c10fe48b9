"""Puts ranks into two NUMA domains on a machine that has only one.

hwloc is given the description of another machine with a core in each domain, and each rank is bound
to one of these cores."""

import os
from pathlib import Path

import pytest

SCRIPT = """#!/bin/sh
rank=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}
export HWLOC_SYNTHETIC='numa:2 core:1 pu:1(indexes={first},{second})' HWLOC_THISSYSTEM=1
core={first}
[ $(({domain})) = 0 ] || core={second}
exec taskset -c $core "$@"
"""


def in_two_domains(directory: Path, domain: str) -> Path:
    """Returns a script that runs a rank's command in a domain. `domain` is a shell expression of
    the rank. Skips the test on a machine with one core."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("this machine has one core")
    path = directory / "in_two_domains"
    path.write_text(SCRIPT.format(first=cores[0], second=cores[1], domain=domain))
    path.chmod(0o755)
    return path
