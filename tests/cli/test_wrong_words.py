"""What users see of what is not there, and of words that only the file of plans has."""

from __future__ import annotations

import pytest

from weft.choices import learned


def test_advice_on_a_program_that_is_not_there(call, tmp_path):
    done = call("advise", "--record", tmp_path / "record", "--", "./nothing")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "weft: ./nothing: not found\n"


LINE = (
    "weft 1|AMD, MPICH|learnt|app|4 ranks|4 ranks on one node, level kept|bcast, below 64 KiB\t"
    "function tree/65536/4/0\t0\tnative/65536/4/0=8000000,function tree/65536/4/0=6000000\n"
)


@pytest.mark.parametrize("words", learned.EXPLAINED)
def test_words_of_a_communicator_are_explained(call, tmp_path, words):
    plans = tmp_path / "plans"
    header = "# weft plans, version 4\n"
    plans.write_text(header + LINE.replace(", level kept", words))
    done = call("learned", "--plan-cache", plans, COLUMNS="200")
    shown, why = learned.EXPLAINED[words]
    assert f"bcast, below 64 KiB (4 ranks on one node{shown})" in done.stdout
    assert words not in done.stdout
    assert done.stdout.endswith(why + "\n")
    plans.write_text(header + LINE.replace(", level kept", ""))
    done = call("learned", "--plan-cache", plans, COLUMNS="200")
    assert "bcast, below 64 KiB (4 ranks on one node)" in done.stdout
    assert why not in done.stdout
