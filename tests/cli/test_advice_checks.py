"""Tests that shown fragments compile for the job's MPI library, or that the library has at least
their call."""

from __future__ import annotations

import subprocess

import pytest
from advise_runs import made

from weft.advise import analysis, fragments, places, show, sites
from weft.advise.arguments import SIGNATURES
from weft.advise.checked import Checks
from weft.system import mpi_libraries

SUFFIXES = {"c": "c", "c++": "cc", "fortran": "f90", "python": "py"}
FRAGMENTS = (
    (fragments.fragment, 1),
    (fragments.together, 2),
    (fragments.in_a_loop, 1),
    (fragments.planned, 1),
)


def site_of(call: str = "MPI_Allreduce", language: str = "c") -> sites.Site:
    site = analysis.analyse(made(call, [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.frames = [places.Frame("work", f"a.{SUFFIXES[language]}", 3)]
    site.calls, site.repeated = 20, 1.0
    return site


@pytest.mark.parametrize("language", SUFFIXES)
def test_each_kind_of_fragment_is_right(mpi, language):
    checks, site = Checks(str(mpi.library)), site_of(language=language)
    assert language not in ("c", "c++") or checks.wrapper(language)
    for fragment, count in FRAGMENTS:
        assert checks.permit(fragment, *[site] * count), fragment.__name__


def test_each_collective_compiles():
    checks = Checks(str(mpi_libraries.implementation("mpich").library))
    for name in SIGNATURES:
        for large in ("", "_c") if name != "barrier" else ("",):
            site = site_of(f"MPI_{name.capitalize()}{large}")
            assert checks.permit(fragments.fragment, site), name
            assert not fragments.persistent(site) or checks.permit(fragments.planned, site), name


WRONG = {
    "an unknown name": ("c", ("started++", "other")),
    "a call of none": ("c", ("Iallreduce", "Iallsum")),
    "too few arguments": ("c", ("comm0, ", "")),
    "no end": ("c++", (");", "")),
    "another language": ("python", ("requests = []", "MPI_Request requests[n];")),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_fragment_is_not_shown(what):
    language, (right, wrong) = WRONG[what]
    advice = analysis.analyse(made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)]))
    advice.checks = Checks(str(mpi_libraries.implementation("mpich").library))

    def fragment(site: sites.Site) -> str:
        return fragments.in_a_loop(site).replace(right, wrong)

    assert show.code(advice, fragments.in_a_loop, site_of(language=language))
    assert show.code(advice, fragment, site_of(language=language)) == ""


def test_what_the_library_lacks_is_not_proposed(tmp_path):
    """Libraries before MPI 4, for example, have no persistent collectives. There is no compiler
    wrapper here."""
    source, library = tmp_path / "a.c", tmp_path / "libmpi.so.12"
    source.write_text("int MPI_Iallreduce(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True, timeout=60)
    checks = Checks(str(library))
    for language in SUFFIXES:
        site = site_of(language=language)
        assert checks.permit(fragments.fragment, site)
        assert not checks.permit(fragments.planned, site)
    stored = made("MPI_Allreduce", [(0, 0, 10), (1, 0, 10)])
    for rank in stored["rank"]:
        rank["library"] = str(library)
    advice = analysis.analyse(stored)
    advice.sites[0].calls, advice.sites[0].repeated = 20, 1.0
    assert show.changes(advice) == []


def test_large_counts_are_proposed_where_the_library_has_them(mpi):
    site, checks = site_of("MPI_Allreduce_c"), Checks(str(mpi.library))
    assert checks.permit(fragments.fragment, site) == ("MPI_Iallreduce_c" in checks.calls)


def test_elsewhere_nothing_is_known_against_a_fragment():
    assert Checks("/none/libmpi.so.12").permit(fragments.planned, site_of())
