"""Tests that measured plans are written to the file of plans once, at the end of the job, whichever
rank has measured them (docs/inside/choices.md#tuning)."""

import subprocess

OF_ALL, OF_OTHERS = "3 ranks", "2 ranks"


def test_all_ranks_have_their_part(mpi, weft, environment, compiled_for, tmp_path):
    file = tmp_path / "kept/plans"
    file.parent.mkdir()
    options = ["--plan-cache", file, "--init-budget", "10s", "--one-copy", "off"]
    program = compiled_for(mpi, "kept_plans")
    done = subprocess.run(
        [str(word) for word in [*mpi.launcher(3), weft, "run", *options, "--", program, file]],
        env={**environment, **mpi.environment()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "before the end: not there" in done.stdout, done.stdout + done.stderr
    assert not list(file.parent.glob("plans.*"))
    lines = file.read_text().splitlines()
    keys = [line.split("\t")[0] for line in lines if "|allreduce|" in line]
    assert len(keys) == len(set(keys))
    for ranks in (OF_ALL, OF_OTHERS):
        assert [key for key in keys if f"|{ranks}|" in key], keys
