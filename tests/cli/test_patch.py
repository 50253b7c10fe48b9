"""Tests `weft advise --patch` on programs with one call in each function. A patch must compile
without warnings and keep the results. If a change could be wrong, the call is left with a reason.

The records are made up: places come from marks in the sources, so that one job shows all of
them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import advise_runs
import pytest

from weft.advise import analysis, store
from weft.advise.patch import diff, wish
from weft.advise.patch.wish import Place, Wish
from weft.system import mpi_libraries

pytest.importorskip("tree_sitter_c")

PROGRAMS = Path(__file__).parent / "programs" / "patch"
LIMIT_S = 60
# By language these are the expected results for each call. An empty string means that it is
# changed; any other text is part of the reason why it is not.
C = {
    "plain": "",
    "looped": "",
    "next_iteration": "",
    "at_once": "its result is used at line",
    "written": "may write part, which is sent",
    "alias": "",
    "early_return": "may leave this place",
    "late_return": "",
    "by_macro": "the macro SUM_UP",
    "checked": "part of a larger expression",
    "error_code": "",
    "in_condition": "not in a block",
    "derived_type": "",
    "part_of_world": "",
    "counts_change": "",
    "global_seen": "peek in line",
    "global_unseen": "",
    "members": "",
    "in_callee": "",
    "threads": "",
    "sooner": "",
    "planned": "",
    "not_planned": "",
    "lagged": "",
    "lagged_away": "",
}


def wishes(path: Path, language: str, comment: str) -> dict[str, Wish]:
    """Returns the calls by the marks in the source: CALL NAME [MPI call], USE NAME [function],
    WRITE NAME."""
    found: dict[str, Wish] = {}
    places: list[tuple[str, str, Place]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if f"{comment} CALL " in line:
            name = line.split(" CALL ")[1].split()[0]
            calls = ("Allreduce", "Allgather", "Alltoallv", "Bcast", "Alltoall", "Reduce")
            said = [one for one in calls if f"{one}(".lower() in line.lower()]
            call = f"MPI_{said[0] if said else 'Allreduce'}"
            found[name] = Wish(call, str(path), number, language, source=line.strip())
        for kind in ("USE", "WRITE"):
            if f"{comment} {kind} " in line:
                name, *function = line.split(f" {kind} ")[1].replace("*/", "").split()
                places.append((kind, name, Place(str(path), number, "".join(function))))
    for kind, name, place in places:
        (found[name].uses if kind == "USE" else found[name].writes).append(place)
        found[name].earlier |= kind == "WRITE"
    return found


def patched(path: Path, language: str, comment: str, tmp_path: Path, expected: dict) -> Path:
    """Returns the changed copy of a source. Checks that each call was changed or left as
    expected."""
    target = tmp_path / path.name
    target.write_text(path.read_text())
    made = wishes(target, language, comment)
    for name in ("looped", "planned", "not_planned"):
        if name in made:
            made[name].plan = f"{made[name].call}_init"
    if "objects" in made:
        made["objects"].object_method = "allreduce"
    assert made.keys() == expected.keys()
    patch = diff.make(list(made.values()))
    said = "\n".join([*patch.made, *patch.left])
    for name, own in made.items():
        left = [one for one in patch.left if f" {own.place} " in one]
        assert bool(left) == bool(expected[name]), f"{name}\n{said}"
        assert not left or expected[name] in left[0], f"{name}\n{said}"
        assert (
            not left
            or f"advise: {own.call} is left as it is: {left[0].split(' as it is: ')[1]}"
            in remarks(patch)
        ), name
    whole = tmp_path / "whole.diff"
    whole.write_text(patch.text)
    subprocess.run(["patch", "-p1", "-i", str(whole)], cwd=patch.root, check=True, timeout=LIMIT_S)
    assert target.read_text() != path.read_text()
    return target


def remarks(patch: diff.Patch) -> str:
    """Returns the text of all inserted lines in one line."""
    put_in = (line[1:] for line in patch.text.splitlines() if line.startswith("+"))
    return " ".join(
        " ".join(put_in).replace(" * ", " ").replace("! ", "").replace("# ", "").split()
    )


def answers(words: list, library: mpi_libraries.Implementation) -> str:
    command = [str(word) for word in [*library.launcher(2), *words]]
    variables = {**os.environ, **library.environment()}
    done = subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
    return done.stdout


def compiled(source: Path, target: Path, compiler: str, library) -> Path:
    words = [library.mpiexec.parent / compiler, "-O2", "-Wall", "-Wextra", "-Werror"]
    words += ["-Wno-unknown-pragmas", source, "-o", target]
    words += [f"-Wl,-rpath,{library.prefix / 'lib'}"]
    variables = {**os.environ, **library.environment()}
    subprocess.run([str(word) for word in words], check=True, timeout=LIMIT_S, env=variables)
    return target


def test_c(mpi, tmp_path):
    source = PROGRAMS / "cases.c"
    before = compiled(source, tmp_path / "before", "mpicc", mpi)
    changed = patched(source, "c", "/*", tmp_path, C)
    # One call in a loop has arguments that change between iterations.
    assert changed.read_text().count("MPI_Allreduce_init(") == 2
    assert answers([compiled(changed, tmp_path / "after", "mpicc", mpi)], mpi) == answers(
        [before], mpi
    )


def test_a_call_that_other_ranks_make_at_another_place_is_left_alone(tmp_path):
    """MPI does not match a non-blocking call with the blocking one of another rank."""
    (tmp_path / "cases.c").write_text((PROGRAMS / "cases.c").read_text())
    made = wishes(tmp_path / "cases.c", "c", "/*")["plain"]
    made.elsewhere = "cases.c:7"
    [left] = diff.make([made]).left
    assert "other ranks make the same call at cases.c:7" in left


@pytest.mark.parametrize("places", [("f.c:7:work", "f.c:7:work"), ("f.c:7:work", "f.c:9:serve")])
def test_a_record_tells_where_other_ranks_make_a_call(places):
    stored = advise_runs.made("MPI_Bcast", [(0, 1000, 9000), (1, 2000, 9000)])
    for row, place in zip(stored["site"], places):
        row["place"] = place
    advice = analysis.analyse(stored)
    found = {one.place: one.elsewhere for one in wish.wishes_of(advice, stored, advice.sites)}
    expected = {"f.c:7": "f.c:9", "f.c:9": "f.c:7"} if len(set(places)) > 1 else {"f.c:7": ""}
    assert found == expected


@pytest.mark.parametrize(("name", "is_planned"), [("loop.c", True), ("lagged.c", False)])
def test_a_count_of_a_header_is_constant(tmp_path, name, is_planned):
    """A call whose result is used in the next round is carried there, and not planned."""
    for file in ("work.h", name):
        shutil.copy(PROGRAMS / "gain" / file, tmp_path)
    lines = (tmp_path / name).read_text().splitlines()
    [line] = (number for number, text in enumerate(lines, 1) if "MPI_Allreduce" in text)
    use = next(number for number, text in enumerate(lines, 1) if "used(total)" in text)
    own = Wish("MPI_Allreduce", str(tmp_path / name), line, "c", plan="MPI_Allreduce_init")
    own.uses = [Place(own.file, use)]
    [made] = diff.make([own]).changes
    assert made.is_planned is is_planned
    assert ("in the next round of its loop" in made.note) is not is_planned
    assert made.is_late


@pytest.mark.parametrize(
    ("name", "call", "language", "after"),
    [("transpose.cpp", "MPI_Alltoall", "c++", 2), ("lagged.c", "MPI_Allreduce", "c", -2)],
)
def test_a_use_in_a_function_that_was_inlined(tmp_path, name, call, language, after):
    """The binary names the function around it, and the line is in the header. A use in front of the
    call is one in the next round."""
    for file in ("work.h", name):
        shutil.copy(PROGRAMS / "gain" / file, tmp_path)
    texts = {one.name: one.read_text().splitlines() for one in tmp_path.iterdir()}
    [line] = (n for n, text in enumerate(texts[name], 1) if call in text)
    [touch] = (n for n, text in enumerate(texts["work.h"], 1) if "sum += total[i]" in text)
    own = Wish(call, str(tmp_path / name), line, language)
    own.uses = [Place(str(tmp_path / "work.h"), touch, "main")]
    [made] = diff.make([own]).changes
    assert f"before line {line + after}" in made.note


CPP = {
    "vectors": "",
    "reference": "names result",
    "lambda": "names first",
    "exception": "an exception may pass by the wait",
    "grown": "may write part, which is sent",
    "own": "",
    "by_method": "first in line",
}
PYTHON = {
    "plain": "",
    "view": "names half",
    "closure": "names change",
    "repeated": "",
    "objects": "pickles objects",
    "method": "not local",
}


def test_cpp(mpi, tmp_path):
    source = PROGRAMS / "cases.cpp"
    changed = patched(source, "c++", "//", tmp_path, CPP)
    before = compiled(source, tmp_path / "before", "mpicxx", mpi)
    after = compiled(changed, tmp_path / "after", "mpicxx", mpi)
    assert answers([after], mpi) == answers([before], mpi)


def test_python(mpich, tmp_path):
    source = PROGRAMS / "cases.py"
    changed = patched(source, "python", "#", tmp_path, PYTHON)
    compile(changed.read_text(), str(changed), "exec")
    if importlib.util.find_spec("numpy"):
        answer = answers([sys.executable, changed], mpich)
        assert answer == answers([sys.executable, source], mpich)


FORTRAN = {
    "plain": "",
    "section": "is a section",
    "shape": "has an assumed shape",
    "checked": "uses its error code",
    "looped": "",
    "pointed": "names other",
    "alone": "behind a condition",
}


FIXED_FORM = {"plain": "", "looped": "", "handed": "cannot be asynchronous"}


@pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran")
@pytest.mark.parametrize(
    ("file", "expected"), [("cases.f90", FORTRAN), ("cases_fixed.f", FIXED_FORM)]
)
def test_fortran(tmp_path, file, expected):
    library = mpi_libraries.implementation("intelmpi")
    if not library.mpiexec.exists():
        pytest.skip("needs make intelmpi")
    source = PROGRAMS / file
    changed = patched(source, "fortran", "!", tmp_path, expected)

    def program(file: Path, name: str) -> Path:
        place = library.prefix / "lib"
        # With mpif.h the compiler warns of interfaces that it lacks, also in unchanged programs.
        words = ["gfortran", "-O2", "-w", "-fallow-argument-mismatch"]
        words += [f"-I{library.prefix}/include", file, f"-L{place}", f"-Wl,-rpath,{place}"]
        words += ["-lmpifort", "-lmpi", "-o", tmp_path / name]
        subprocess.run([str(w) for w in words], check=True, timeout=LIMIT_S, cwd=tmp_path)
        return tmp_path / name

    before = answers([program(source, "before")], library)
    assert answers([program(changed, "after")], library) == before


MODULES = {
    "handed_on": "",
    "plain": "",
    "some_names": "",
    "some_ranks": "",
    "pairs": "",
    "early": "may leave this place",
    "sooner": "",
}


@pytest.mark.parametrize(
    ("module", "request_of_it"), [("mpi_f08", "type(MPI_Request)"), ("mpi", "integer")]
)
def test_modules_of_fortran(tmp_path, module, request_of_it):
    """tests/callers compiles the results, for libraries that have modules."""
    source = tmp_path / "original" / "cases_f08.f90"
    source.parent.mkdir()
    source.write_text((PROGRAMS / source.name).read_text().replace("mpi_f08", module))
    text = patched(source, "fortran", "!", tmp_path, MODULES).read_text()
    requests = [line for line in text.splitlines() if f"{request_of_it} :: weft_request_" in line]
    assert sum(line[-1].isdigit() for line in requests) == 6
    assert text.count(f"  use {module}\n    use {module}, only") == 1
    after = "call MPI_F_sync_reg" if module == "mpi_f08" else "call MPI_Get_address"
    assert text.count(after) == 11


def test_an_interface_that_cannot_be_told(tmp_path):
    source = tmp_path / "cases_f08.f90"
    source.write_text((PROGRAMS / source.name).read_text().replace("use mpi_f08", "use elsewhere"))
    patch = diff.make(list(wishes(source, "fortran", "!").values()))
    assert not patch.made
    assert any("whether its function has mpif.h, mpi or mpi_f08" in one for one in patch.left)
    (tmp_path / "beside.f90").write_text("module elsewhere\n  use mpi_f08\nend module elsewhere\n")
    assert len(diff.make(list(wishes(source, "fortran", "!").values())).made) == 6


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("\tcall MPI_Barrier(MPI_COMM_WORLD, ierr)", "begins with a tab"),
        ("      call MPI_Barrier(MPI_COMM_WORLD, ierr)" + 30 * " " + "x", "longer than 72"),
        ("      print *, 'a string", "a string of its file goes on"),
    ],
)
def test_fixed_form_that_is_not_simple(tmp_path, line, why):
    source = tmp_path / "cases_fixed.f"
    source.write_text((PROGRAMS / source.name).read_text() + line + "\n")
    patch = diff.make(list(wishes(source, "fortran", "!").values()))
    assert not patch.made
    assert why in patch.left[0]


def test_a_patch_of_a_record_that_was_measured(mpich, program, advise, tmp_path):
    """Runs the command from the recorded run to the patch."""
    shutil.copy(PROGRAMS / "live.c", tmp_path / "live.c")
    app = program(mpich, tmp_path / "live.c")
    done = advise(mpich, [app], "--overhead", "50%", "--patch", "live.diff")
    advice = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    [site] = advice.sites
    # On one node without a free core there is no gain, and nothing is changed.
    if not advice.best:
        assert done.returncode == 2
        assert "live.diff is not written" in done.stderr
    made = wish.wish_of(site, [site], str(app))
    [use] = {one.line for one in made.uses}
    assert made.is_known
    assert "sum += total[i]" in (tmp_path / "live.c").read_text().splitlines()[use - 1]
    patch = diff.make([made])
    assert not patch.left
    assert f"its result is used at line {use}" in patch.made[0]
    # A source that has changed since the run is left unchanged.
    text = (tmp_path / "live.c").read_text()
    (tmp_path / "live.c").write_text(f"\n{text}")
    [left] = diff.make([made]).left
    assert "the line has changed since the program ran" in left
    os.utime(tmp_path / "live.c", (2e9, 2e9))
    (tmp_path / "live.c").write_text(text)
    os.utime(tmp_path / "live.c", (4e9, 4e9))
    [left] = diff.make([made]).left
    assert "the file is newer than" in left
