"""Runs the conformance program on older releases that Debian packages: MPICH 4.0 and Open MPI
4.1."""

import json
import os
import re
import subprocess
import sys

import pytest
from advise_runs import FEW_ROUNDS

from weft.system import installation

pytestmark = pytest.mark.covering

ENGINES = ("function", "thread", "tcc")
# These cases are left out, since the library itself fails in them (tests/cli/test_conformance.py
# says more). MPICH 4.0 crashes in a persistent allgather of nothing, and its scattered reductions
# of derived types write beyond buffers.
LEFT_OUT = {
    "mpich-debian": dict.fromkeys(ENGINES, "MPI_Allgather_init,scattered-derived"),
    "openmpi-debian": {"tcc": "negative,comm-free"},
}


# Three ranks take much longer on two cores.
THREE = pytest.param("thread", 3, marks=pytest.mark.long)


@pytest.mark.parametrize(("engine", "ranks"), [*((engine, 2) for engine in ENGINES), THREE])
@pytest.mark.parametrize("name", ["mpich-debian", "openmpi-debian"])
def test_conformance(built, run, name, engine, ranks):
    library, program = built["conformance"](name)
    # The largest count is 7, since MPICH 4.0's own MPI_Reduce crashes in place with 1000 integers.
    groups = "results,flight,lifetime" if ranks == 2 else "results"
    options = ["--groups", groups, "--largest-count", "7", "--limit-s", "240"]
    if left_out := LEFT_OUT[name].get(engine):
        options += ["--without", left_out]
    output, summary = run(library, program, ranks, engine, *options)
    assert int(re.search(r"conformance: (\d+) cases equal", output)[1]) > 300
    handled = {entry["call"]: entry["handled"] for entry in summary["calls"]}
    assert handled["MPI_Iallreduce"] > 0


@pytest.mark.parametrize(
    "name", ["mpich-debian", pytest.param("openmpi-debian", marks=pytest.mark.long)]
)
def test_advice_is_verified(built, tmp_path, name):
    source = installation.ROOT / "tests/cli/programs/advise_ends.c"
    library, program = built["c"](name, source)
    advise = [sys.executable, "-c", FEW_ROUNDS, "advise", "--verify", "--json", "advice.json", "--"]
    done = subprocess.run(
        [str(word) for word in (*advise, *library.mpiexec, "-n", 2, program, "blocking")],
        env={**os.environ, **library.environment},
        capture_output=True,
        text=True,
        timeout=200,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "replaying these calls, Weft took" in " ".join(done.stdout.split()), done.stderr
    (site,) = json.loads((tmp_path / "advice.json").read_text())["sites"]
    assert isinstance(site["free_us"], float)
