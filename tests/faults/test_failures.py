"""Jobs that go on after a failure (row 41): Weft leaves them to the MPI library, and says so."""

import pytest
from job import ENGINES, Job

SIZES = (1, 65536)
GO_ON = ["--with-ft", "ulfm"]
RANKS = 4


def lines_of_those_left(case: str) -> list[str]:
    """As the library alone prints them: each failure takes the last rank, or none."""
    lines, left = [], RANKS
    for size in SIZES:
        left -= case == "killed"
        lines += [f"rank {rank}: {size} integers, {left} ranks left" for rank in range(left)]
    return sorted(lines)


@pytest.mark.parametrize("case", ["revoked", "killed"])
@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_a_job_that_goes_on_after_a_failure(tool, engine, case):
    done = Job(
        "openmpi",
        [case],
        engine,
        ranks=RANKS,
        launcher_options=GO_ON,
        options=["--summary"],
        tools=[tool("openmpi", "end_at_finalize")],
    ).right()
    assert sorted(line for line in done.out.splitlines() if "left" in line) == (
        lines_of_those_left(case)
    )
    assert "wrong" not in done.err
    said = [sentence for sentence in done.sentences() if "--with-ft ulfm" in sentence]
    assert done.sentences() == said and len(said) == (1 if engine else 0)
