"""Tests fragments with the arguments in the program's source, and arguments that cannot be read
there. Records are made here, and no program runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise_runs import made

from weft.advise import analysis, arguments, fragments, places, sites

C = "MPI_Allreduce(&part[i], f(a, b), n * (k), MPI_DOUBLE, MPI_SUM, comm);"
LINES = {
    "c": [f"  {C}", "next(1);"],
    "c++": [f"  check({C[:-1]});"],
    "fortran": [
        "  call mpi_allreduce(part(1, i), total, n, &  ! the (field",
        "    & MPI_REAL, MPI_SUM, comm, err)",
        "  call other(x)",
    ],
    "python": [
        "self.comm.Allreduce(",
        "    [parts['a, b'], MPI.DOUBLE],  # (sent",
        "    total[:, 0],",
        "    op=MPI.SUM,",
        ")",
    ],
}
STARTED = {
    "c": "MPI_Iallreduce(&part[i], f(a, b), n * (k), MPI_DOUBLE, MPI_SUM, comm, &request);\n",
    "c++": "MPI_Iallreduce(&part[i], f(a, b), n * (k), MPI_DOUBLE, MPI_SUM, comm, &request);\n",
    "fortran": "call MPI_Iallreduce(part(1, i), total, n, MPI_REAL, MPI_SUM, comm, request, err)\n",
    "python": "self.comm.Iallreduce([parts['a, b'], MPI.DOUBLE], total[:, 0], op=MPI.SUM)\n",
}
PLANNED = {
    "c": "comm, MPI_INFO_NULL, &request);",
    "fortran": "MPI_SUM, comm, MPI_INFO_NULL, request, err)",
    "python": "self.comm.Allreduce_init([parts['a, b'], MPI.DOUBLE], total[:, 0], op=MPI.SUM)",
}
PLANNED["c++"] = PLANNED["c"]
SUFFIXES = {"c": "c", "c++": "cc", "fortran": "f90", "python": "py"}


def site_of(path: Path, lines: list[str], call: str = "MPI_Allreduce") -> sites.Site:
    """Returns the site of a call in line 3 of a source file with these lines."""
    path.write_text("\n".join(["", "", *lines]) + "\n")
    stored = made(call, [(0, 0, 10), (1, 0, 10)])
    for row in stored["site"]:
        row["place"] = f"{path}:3:work"
    texts = places.source_lines({(str(path), 3)})
    rows = [{"file": file, "line": n, "text": text} for (file, n), text in texts.items()]
    stored["source"].extend(rows)
    site = analysis.analyse(stored).sites[0]
    # A call through a pointer may be recorded like this.
    site.binding, site.calls, site.repeated = "", 20, 1.0
    return site


@pytest.mark.parametrize("language", STARTED)
def test_fragments_have_the_arguments_of_the_call(language, tmp_path):
    site = site_of(tmp_path / f"a.{SUFFIXES[language]}", LINES[language])
    assert site.source == LINES[language][0].strip()
    text = fragments.fragment(site)
    assert STARTED[language] in text and "arguments" not in text
    assert PLANNED[language] in fragments.planned(site)
    assert ", ".join(site.arguments.words) in fragments.in_a_loop(site)
    waits = [line for line in text.splitlines() if line.startswith("call MPI_Wait")]
    assert all(line.endswith("MPI_STATUS_IGNORE, err)") for line in waits)


@pytest.mark.parametrize("language", STARTED)
def test_no_two_requests_of_a_fragment_receive_into_one_buffer(language, tmp_path):
    """Neither may names of two functions stand side by side."""
    into = {"c": "f(a, b)", "fortran": "total", "python": "total[:, 0]"}
    into["c++"] = into["c"]
    path = tmp_path / f"a.{SUFFIXES[language]}"
    other_lines = [line.replace(into[language], "more") for line in LINES[language]]
    site = site_of(path, LINES[language])
    other = site_of(path, other_lines)
    assert other.arguments.received_into == "more" != site.arguments.received_into
    words = [", ".join(one.arguments.words) for one in (site, other)]
    assert all(one in fragments.together(site, other) for one in words)
    assert "…" in fragments.together(site, site) and words[0] not in fragments.together(site, site)
    other.frames = [places.Frame("elsewhere", other.frames[0].file, 3)]
    assert not any(one in fragments.together(site, other) for one in words)


def test_a_call_without_an_error_has_none(tmp_path):
    site = site_of(tmp_path / "a.f90", ["call MPI_Barrier(comm)"], "MPI_Barrier")
    text = fragments.fragment(site)
    assert "call MPI_Ibarrier(comm, request)\n" in text
    assert "call MPI_Wait(request, MPI_STATUS_IGNORE)\n" in text


def test_a_call_without_arguments_has_none(tmp_path):
    site = site_of(tmp_path / "a.py", ["world.Barrier()"], "MPI_Barrier")
    assert "request = world.Ibarrier()\n" in fragments.fragment(site)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("MPI_Iallreduce", "MPI_Iallreduce(a, b, 1, MPI_INT, MPI_SUM, c, &r);"),
        ("MPI_Allreduce_init", "MPI_Allreduce_init(a, b, 1, MPI_INT, MPI_SUM, c, info, &r);"),
        ("MPI_Allreduce_c", "PMPI_Allreduce_c(a, b, 1, MPI_INT, MPI_SUM, c);"),
        ("MPI_Allreduce", "/* MPI( */ MPI_Allreduce(a, b, 1 /* , */, MPI_INT, MPI_SUM, c);"),
    ],
)
def test_all_forms_of_a_call_are_read(call, line):
    assert arguments.arguments(line, call, "c").words == ["a", "b", "1", "MPI_INT", "MPI_SUM", "c"]


ODD = {
    "another line of the statement": ("c", "a, b, 1, MPI_INT, MPI_SUM, c);"),
    "a macro's": ("c", "MPI_Allreduce(ARGUMENTS);"),
    "an empty one": ("c", "MPI_Allreduce(a, b, , MPI_INT, MPI_SUM, c);"),
    "no end": ("c", "MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, c"),
    "two": ("c", f"{C} {C}"),
    "in parts": ("c", "MPI_Allreduce(a, b, 1,\n#ifdef X\nMPI_INT,\n#endif\nMPI_SUM, c);"),
    "by name": ("fortran", "call MPI_Allreduce(a, b, 1, MPI_REAL, op=MPI_SUM, comm=c)"),
    "fixed form": ("fortran", "call MPI_Allreduce(a, b, 1, MPI_REAL,\n1 MPI_SUM, c, err)"),
    "fixed form, by a mark": ("fortran", "call MPI_Allreduce(a, b,\n$ 1, MPI_REAL, MPI_SUM, c, e)"),
    "fixed form, by a sign": ("fortran", "call MPI_Allreduce(a, b,\n+ 1, MPI_REAL, MPI_SUM, c, e)"),
    "an object's": ("python", "self.grids[0].comm.Allreduce(a, b)"),
    "a result's": ("python", "find(name).comm.Allreduce(a, b)"),
    "a function of the module": ("python", "reduce(comm.Allreduce)"),
    "another's": ("c", "my_MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, c);"),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_cannot_be_read_is_left_out(odd, tmp_path):
    language, text = ODD[odd]
    site = site_of(tmp_path / f"a.{SUFFIXES[language]}", text.split("\n"))
    assert site.arguments is None
    text = fragments.fragment(site)
    assert "…" in text and "the same arguments as before" in text


def test_a_statement_that_never_ends_is_left(tmp_path):
    path = tmp_path / "a.c"
    path.write_text("MPI_Allreduce(a,\n" + "b,\n" * 100)
    assert len(places.source_lines({(str(path), 1)})) == arguments.MOST_LINES
