"""Compares the preloaded libraries with the table of calls and include/weft.h.

A call that is exported but not in the table would hide the MPI library's own. One that is in the
table but not exported, by either of its names, would not be intercepted. An undefined MPI symbol
would keep programs from starting that have no MPI library, or another one."""

import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIB = pathlib.Path(os.environ.get("WEFT_BUILD_DIR", ROOT / "build")) / "lib"
MPI = pathlib.Path(os.environ.get("WEFT_MPI_DIR", ROOT / ".mpi"))
CALLS = json.loads((ROOT / "api" / "calls.json").read_text())["calls"]
HEADERS = {
    "mpich": "mpich/include/mpi_proto.h",
    "openmpi": "openmpi/include/mpi.h",
    "abi": "mpich/include/mpi_abi.h",
}
# These functions of the C library may leave an MPI call without returning from it.
JUMPS = {"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"}
# The table must have these calls: every collective in every form, and every completion.
MUST_INTERCEPT = re.compile(
    r"MPI_(I(?!nit|nfo|s_|ntercomm)\w*(?:barrier|bcast|gather|scatter|reduce|alltoall|scan)\w*"
    r"|(?:Wait|Test)(?:all|any|some)?|Request_get_status\w*"
    r"|(?:Allgatherv?|Allreduce|Alltoall[vw]?|Barrier|Bcast|Exscan|Gatherv?|Reduce|Scan|Scatterv?"
    r"|Reduce_scatter(?:_block)?|Neighbor_\w+)(?:_init)?(?:_c)?)"
)
LOOK_UPS = {"dlopen", "dlsym"}
# MPI 3.0 has removed this function. Open MPI's header declares it only so that a compiler refuses
# it.
REMOVED = {"MPI_Errhandler_create"}


@pytest.fixture(params=sorted(HEADERS))
def family(request):
    if not (MPI / HEADERS[request.param]).exists():
        pytest.skip(f"no {MPI / HEADERS[request.param]}; make mpis sets it up")
    return request.param


def nm(library, *options):
    """Returns (type, name) of the library's dynamic symbols, without the version behind @."""
    listing = subprocess.run(
        ["nm", "-D", "-P", *options, library], capture_output=True, text=True, check=True
    ).stdout
    fields = [line.split() for line in listing.splitlines()]
    return [(f[1], f[0].split("@")[0]) for f in fields]


def library(family):
    path = LIB / f"libweft-{family}.so"
    assert path.exists(), f"{path} is not built; run make build (or set WEFT_BUILD_DIR)"
    return path


def expected_calls(family):
    return {call["name"] for call in CALLS if family not in call.get("absent", [])}


def declared_in_weft_h():
    header = (ROOT / "include" / "weft.h").read_text()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.DOTALL)
    return set(re.findall(r"\b(weft_\w+)\s*\(", text))


def declared_in(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return set(re.findall(r"\b(MPI_[A-Z]\w*)\s*\(", text))


def test_exports_equal_the_table(family):
    exported = {name for _, name in nm(library(family), "--defined-only")}
    calls = expected_calls(family)
    names = calls | {f"P{name}" for name in calls}
    expected = names | LOOK_UPS | JUMPS | declared_in_weft_h()
    assert sorted(exported - expected) == [], "exported, but neither in the table nor in weft.h"
    assert sorted(expected - exported) == [], "in the table or weft.h, but not exported"


def test_exports_are_functions(family):
    odd = [(kind, name) for kind, name in nm(library(family), "--defined-only") if kind != "T"]
    assert odd == []


def test_no_mpi_symbol_is_needed(family):
    needed = [
        name
        for kind, name in nm(library(family), "--undefined-only")
        if kind == "U" and re.match(r"P?MPI|[op]mpi_|PMIx_|MPIR_|MPIX_", name)
    ]
    assert needed == []


def test_no_mpi_or_cxx_library_is_needed(family):
    listing = subprocess.run(
        ["readelf", "-d", library(family)], capture_output=True, text=True, check=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", listing)
    assert [n for n in needed if re.match(r"libmpi|libstdc\+\+|libgcc", n)] == []


def test_table_agrees_with_the_header(family):
    declared = declared_in(MPI / HEADERS[family])
    assert sorted(expected_calls(family) - declared) == [], "add the family to 'absent'"
    absent = {call["name"] for call in CALLS} - expected_calls(family)
    assert sorted((absent & declared) - REMOVED) == [], (
        "the header has it; take the family out of 'absent'"
    )


def test_table_is_complete(family):
    must = {name for name in declared_in(MPI / HEADERS[family]) if MUST_INTERCEPT.fullmatch(name)}
    assert len(must) >= 3 * 21 + 9, "the pattern or the header no longer fits"
    assert sorted(must - expected_calls(family)) == []


# The advisor's libraries -------------------------------------------------------------------------

THREADS_AND_SIGNALS = {
    *("pthread_create", "pthread_sigmask", "sigprocmask", "sigaction", "sigaltstack", "signal"),
    *("fork", "system", "popen", "posix_spawn", "posix_spawnp"),
}


def test_the_advisor_exports_the_table(family):
    exported = {name for _, name in nm(LIB / f"libweft-advise-{family}.so", "--defined-only")}
    calls = expected_calls(family)
    ours = calls | {f"P{name}" for name in calls} | THREADS_AND_SIGNALS | JUMPS | LOOK_UPS
    assert exported == ours


def test_the_advisor_needs_no_mpi_symbol(family):
    names = [name for _, name in nm(LIB / f"libweft-advise-{family}.so", "--undefined-only")]
    assert [name for name in names if re.match(r"P?MPI|[op]mpi_|PMIx_|MPIR_|MPIX_", name)] == []


def test_looking_up_takes_no_lock(family):
    """The runtime of a sanitizer calls dlsym before its own pthread_mutex_lock works. Some
    compilers guard the initialisation of static variables by a mutex."""
    listing = subprocess.run(
        ["nm", "-C", library(family)], capture_output=True, text=True, check=True
    ).stdout
    guarded = re.findall(r"guard variable for weft::(.*)", listing)
    assert guarded, "the library has symbols of its own"
    assert [name for name in guarded if re.search(r"\b(linker|own_object)\(\)", name)] == []
