"""`weft check`: planted mistakes are found in their lines, and right programs have none."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from weft.check.rules import RULES

SOURCE = Path(__file__).parent / "programs" / "planted.c"
WRONG = re.compile(r"// ([a-z-]+) (MPI_\w+)$")


def planted() -> set[tuple[str, str, int]]:
    lines = enumerate(SOURCE.read_text().splitlines(), 1)
    return {(*found.groups(), number) for number, line in lines if (found := WRONG.search(line))}


def line_of(place: str) -> int:
    return int(place.rpartition(":")[2])


def mistaken(finding: dict) -> tuple[str, str, int]:
    """As the source names it: at the access if that was seen, else at the call."""
    accessed = finding["rule"] in ("send-written", "receive-touched") and finding["place"]
    place = finding["place"] if accessed else finding["started"]
    return finding["rule"], finding["call"], line_of(place)


@pytest.fixture(scope="module")
def run(weft, program, tmp_path_factory):
    def check(mpi, *words: str) -> tuple[subprocess.CompletedProcess, dict]:
        file = tmp_path_factory.mktemp("check") / "found.json"
        options = ["--overhead", "100%", "--error-exitcode", "9", "--json", file]
        command = [mpi.mpiexec, "-n", "2", program(mpi, SOURCE.name), *words]
        environment = {**os.environ, **mpi.environment()}
        done = subprocess.run(
            [str(word) for word in (weft, "check", *options, "--", *command)],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
        )
        return done, json.loads(file.read_text())

    return check


def test_each_planted_mistake_is_found_in_its_line(mpi, run):
    done, found = run(mpi)
    assert {mistaken(one) for one in found["findings"]} == planted(), done.stderr
    assert done.returncode == 9
    assert f"{len(planted())} mistakes found in 2 ranks" in done.stderr
    assert found["schema"] == "weft-check/1" and found["ranks"] == 2
    assert found["headline"] == {"mistakes": len(planted()), "status": 0}


def test_a_right_program_has_none(mpi, run):
    done, found = run(mpi, "right")
    assert (done.returncode, found["findings"]) == (0, []), done.stderr


def test_a_rank_cannot_check(weft):
    environment = {**os.environ, "PMI_RANK": "0", "PMI_SIZE": "1"}
    done = subprocess.run(
        [weft, "check", "--", "/bin/true"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2 and "before the launcher" in done.stderr


def test_the_page_has_the_rules():
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text()
    rows = [f"| `{name}` | {rule.what} | {rule.mend} |" for name, rule in RULES.items()]
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows
