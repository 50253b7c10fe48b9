"""Ranks in two NUMA domains on a machine that has one: hwloc is told of another machine, with a
core in each domain, and each rank is bound to one of these."""

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
    """What starts a rank's command in a domain: an expression of the shell's, of its rank."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("this machine has one core")
    path = directory / "in_two_domains"
    path.write_text(SCRIPT.format(first=cores[0], second=cores[1], domain=domain))
    path.chmod(0o755)
    return path
