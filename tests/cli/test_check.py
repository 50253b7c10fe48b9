"""Tests that `weft check` finds planted mistakes in their lines, and nothing in correct
programs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.check.rules import RULES
from weft.system import mpi_libraries

SOURCES = Path(__file__).parent / "programs"
WRONG = re.compile(r"(?://|#|!) ([a-z-]+) (MPI_\w+)$")


def planted(name: str) -> set[tuple[str, str, int]]:
    lines = enumerate((SOURCES / name).read_text().splitlines(), 1)
    return {(*found.groups(), number) for number, line in lines if (found := WRONG.search(line))}


def mistaken(findings: list[dict], name: str) -> set[tuple[str, str, int]]:
    """Returns findings as the source marks them: at the access if its line is known, else at the
    call."""

    def one(finding: dict) -> tuple[str, str, int]:
        accessed = finding["rule"] in ("send-written", "receive-touched")
        place = finding["place"] if accessed and name in finding["place"] else finding["started"]
        return finding["rule"], finding["call"].removesuffix("_c"), int(place.rpartition(":")[2])

    return {one(finding) for finding in findings}


def words_for(weft, mpi, file: Path, ranks: int, program: list[object], *options: str) -> list[str]:
    front = [weft, "check", "--overhead", "100%", "--mpi", mpi.name, *options, "--json", file, "--"]
    return [str(word) for word in (*front, *mpi.launcher(ranks), *program)]


@pytest.fixture(scope="module")
def run(weft, tmp_path_factory):
    def check(mpi, *program: object) -> tuple[subprocess.CompletedProcess, dict]:
        file = tmp_path_factory.mktemp("check") / "found.json"
        done = subprocess.run(
            words_for(weft, mpi, file, 2, list(program), "--error-exitcode", "9"),
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **mpi.environment()},
        )
        return done, json.loads(file.read_text())

    return check


def test_each_planted_mistake_is_found_in_its_line(mpi, run, program):
    done, found = run(mpi, program(mpi, "planted.c"))
    expected = planted("planted.c")
    assert mistaken(found["findings"], "planted.c") == expected, done.stderr
    assert done.returncode == 9
    mistakes = sum(rule != "communicator-freed" for rule, *_ in expected)
    assert f"{mistakes} mistakes found in 2 ranks" in done.stderr
    assert found["schema"] == "weft-check/1" and found["ranks"] == 2
    assert found["headline"] == {"mistakes": mistakes, "status": 0}


def test_a_right_program_has_none(mpi, run, program):
    done, found = run(mpi, program(mpi, "planted.c"), "right")
    assert (done.returncode, found["findings"]) == (0, []), done.stderr


@pytest.mark.one_library
def test_right_programs_that_end_operations_in_other_ways_have_none(mpi, run, program, monkeypatch):
    monkeypatch.setenv("MPICH_ASYNC_PROGRESS", "1")  # MPICH's own thread makes progress
    done, found = run(mpi, program(mpi, "rightly.c", "-ldl"))
    assert (done.returncode, found["findings"]) == (0, []), done.stderr


@pytest.mark.one_library
def test_without_guards_a_right_program_has_none(mpi, weft, program, tmp_path):
    file, right = tmp_path / "found.json", [program(mpi, "planted.c"), "right"]
    words = words_for(weft, mpi, file, 2, right, "--overhead", "0%")
    environment = {**os.environ, **mpi.environment()}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, json.loads(file.read_text())["findings"]) == (0, []), done.stderr


@pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran")
def test_fortran(run, tmp_path):
    mpi = mpi_libraries.implementation("intelmpi")
    if not (mpi.prefix / "include" / "mpif.h").exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi.name)}")
    library, target = mpi.prefix / "lib", tmp_path / "planted"
    words = ["gfortran", "-g", "-fallow-argument-mismatch", f"-I{mpi.prefix}/include"]
    words += [SOURCES / "planted.F90", "-o", target, f"-L{library}", "-lmpifort", "-lmpi"]
    words += ["-ffree-line-length-none", f"-Wl,-rpath,{library}"]
    subprocess.run([str(word) for word in words], check=True, timeout=120)
    done, found = run(mpi, target)
    assert mistaken(found["findings"], "planted.F90") == planted("planted.F90"), done.stderr
    assert run(mpi, target, "right")[1]["findings"] == []


needs_mpi4py = pytest.mark.skipif(
    not importlib.util.find_spec("mpi4py"),
    reason=f"needs mpi4py: {sys.executable} -m pip install mpi4py",
)


def in_python(mpi, program: str, *arguments: object) -> list[object]:
    front = ["env", f"MPI4PY_LIBMPI={mpi.library}", sys.executable]
    return [*front, SOURCES / program, *arguments]


@needs_mpi4py
def test_python(mpi, run):
    done, found = run(mpi, *in_python(mpi, "planted.py"))
    assert mistaken(found["findings"], "planted.py") == planted("planted.py"), done.stderr
    assert run(mpi, *in_python(mpi, "planted.py", "right"))[1]["findings"] == []


@pytest.mark.one_library
@needs_mpi4py
def test_mpi_is_finalised_when_the_interpreter_has_ended(mpi, run, program, tmp_path):
    """The call comes from a library in mpi4py's folder, for which the interpreter knows the line
    as long as it runs."""
    library = tmp_path / "mpi4py" / "ends.so"
    library.parent.mkdir()
    shutil.copy(program(mpi, "late_end.c", "-shared", "-fPIC"), library)
    done, found = run(mpi, *in_python(mpi, "late_end.py", library))
    assert (done.returncode, found["findings"]) == (0, []), done.stderr


def test_a_hang_is_told_while_it_lasts(mpi, weft, program, tmp_path):
    """Earlier findings must be printed as well."""
    file, expected = tmp_path / "found.json", planted("planted_hang.c")
    words = words_for(weft, mpi, file, 3, [program(mpi, "planted_hang.c")], "--hang", "0.5")
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, env={**os.environ, **mpi.environment()}
    ) as job:
        said = ""
        while said.count("mend:") < len(expected) and (line := job.stderr.readline()):
            said += line
        job.terminate()
        said += job.stderr.read()
    found = json.loads(file.read_text())
    assert mistaken(found["findings"], "planted_hang.c") == expected, said
    ranks = {one["call"]: one["ranks"] for one in found["findings"] if one["rule"] == "hang"}
    assert ranks == {"MPI_Recv": [0], "MPI_Barrier": [1], "MPI_Test": [2]}


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
