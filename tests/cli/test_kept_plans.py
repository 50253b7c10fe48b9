"""What is measured goes into the file of plans once, at the end of the job, whichever rank has
measured it (docs/inside/choices.md#tuning)."""

import os
import subprocess

import pytest

from weft import installation

SOURCE = installation.ROOT / "tests/cli/programs/kept_plans.c"
OF_ALL, OF_OTHERS = "3 ranks", "2 ranks"


@pytest.fixture
def keys_after(mpi, environment, tmp_path):
    program = tmp_path / "kept_plans"
    library = f"-Wl,-rpath,{mpi.prefix / 'lib'}"
    variables = {**os.environ, **mpi.environment()}
    compile = [mpi.prefix / "bin/mpicc", SOURCE, "-o", program, library]
    subprocess.run(compile, check=True, timeout=60, env=variables)

    def job() -> list[str]:
        file = tmp_path / "kept/plans"
        options = ["--plan-cache", file, "--init-budget", "10s", "--one-copy", "off"]
        weft = [installation.weft_command(), "run", *options, "--", program, file]
        done = subprocess.run(
            [str(word) for word in [*mpi.launcher(3), *weft]],
            capture_output=True,
            text=True,
            timeout=60,
            env={**environment, **mpi.environment()},
        )
        assert "before the end: not there" in done.stdout, done.stdout + done.stderr
        assert not list(file.parent.glob("plans.*"))
        lines = file.read_text().splitlines()
        return [line.split("\t")[0] for line in lines if "|allreduce|" in line]

    return job


def test_all_ranks_have_their_part(keys_after):
    keys = keys_after()
    assert len(keys) == len(set(keys))
    for ranks in (OF_ALL, OF_OTHERS):
        assert [key for key in keys if f"|{ranks}|" in key], keys
