"""Tests vector collectives inside a node, each against the library's own call."""

import json

import pytest
from under_weft import library_at_hand, printed_under_weft

pytestmark = pytest.mark.covering

LIMIT_S = 200
NAMES = ("alltoallv", "allgatherv", "gatherv", "scatterv", "alltoallw")
CALLS = {
    "blocking": [f"MPI_{name.capitalize()}" for name in NAMES],
    "non-blocking": [f"MPI_I{name}" for name in NAMES],
    "persistent": [f"MPI_{name.capitalize()}_init" for name in NAMES],
}


@pytest.mark.parametrize(
    ("mpi", "ranks", "options"),
    [
        ("mpich", 2, "auto"),
        ("mpich", 3, "auto --learn switch"),
        ("mpich", 4, "auto --init-budget 0"),
        ("mpich", 3, "thread --blocking"),
        pytest.param("mpich", 2, "native", marks=pytest.mark.long),
        ("openmpi", 3, "auto"),
        pytest.param("openmpi", 2, "auto --learn switch", marks=pytest.mark.long),
        pytest.param("openmpi", 2, "thread --blocking", marks=pytest.mark.long),
        ("intelmpi", 2, "auto --learn switch"),
    ],
)
def test_each_form_gives_what_the_librarys_own_call_gives(
    mpi, ranks, options, compiled_for, tmp_path
):
    library = library_at_hand(mpi)
    program = compiled_for(library, "irregular")
    summary = tmp_path / "summary.json"
    engine = ["--engine", *options.split(), "--plan-cache", "none", f"--summary=json:{summary}"]
    printed = printed_under_weft(library, ranks, engine, [program], LIMIT_S)
    assert "0 wrong" in printed, printed
    calls = {entry["call"]: entry for entry in json.loads(summary.read_text())["calls"]}
    for names in CALLS.values():
        for name in names:
            assert calls[name]["seen"] > 0
    if options == "native" or mpi == "intelmpi":
        return
    # Engine auto may find the library's call faster, but it must have tried its own.
    for form in ("non-blocking", "persistent") if options != "auto" else ("persistent",):
        for name in CALLS[form]:
            assert calls[name]["in_memory"] > 0, calls[name]
    if "switch" in options or "--blocking" in options:
        for name in CALLS["blocking"]:
            assert calls[name]["in_memory"] > 0, calls[name]
