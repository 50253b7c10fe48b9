"""Tests `weft advise` on memory that other ranks may access, and on code that is loaded and
unloaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise_runs import sites

from weft.advise import analysis, store

pytestmark = pytest.mark.covering

SOURCES = Path(__file__).parent / "programs"
BUSY_MS, CALLS = 3, 8
PRIVATE = ("alloc_case", "alloc_number")
SHARED = ("mapped_case", "mapped_number", "window_case", "window_number")


@pytest.mark.parametrize("heap", [False, True], ids=["alone", "shared-heap"])
def test_what_other_ranks_may_touch_is_unknown(mpi, weft, program, advise, tmp_path, heap):
    """Other ranks access the memory in the middle of each window, which this rank's page guards do
    not notice."""
    with_heap = [weft, "run", "--shared-heap=4096", "--"] if heap else []
    command = [*with_heap, program(mpi, "advise_shared.c"), BUSY_MS, CALLS, tmp_path / "mapped"]
    done = advise(mpi, command, "--overhead", "100%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    found = {name.split()[0]: site for name, site in sites(tmp_path / "s.json").items()}
    windows = ("window_after_us", "window_after_bounds_us", "window_before_us")
    for name in SHARED:
        assert [found[name][window] for window in windows] == [None] * 3, name
    advice = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    why = {one.function: " ".join(one.unknown["after"]) for one in advice.sites}
    assert "cannot be guarded" in why["mapped_case"] and "one-sided" in why["window_case"]
    said = [line.split() for line in done.stderr.splitlines() if line.startswith(PRIVATE)]
    own = {name: (float(least), float(most)) for name, least, most in said}
    if not heap and mpi.name == "mpich":  # MPICH's MPI_Alloc_mem returns memory of the rank alone
        assert found["alloc_case"]["window_after_us"]
    for name in PRIVATE:
        least, most = own[name]
        window = found[name]["window_after_us"]
        assert window is None or least - 0.01 <= window["median"] <= most + 0.01, name


@pytest.mark.one_library
def test_code_that_is_loaded_for_each_call(mpi, program, advise, tmp_path):
    """The call's line, and the function inlined around it, are known although the code has been
    unloaded."""
    source = SOURCES / "advise_plugin.c"
    plugin = program(mpi, source.name, "-DPLUGIN", "-shared", "-fPIC")
    command = [program(mpi, source.name), plugin, BUSY_MS, CALLS]
    done = advise(mpi, command, "--overhead", "100%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    lines = source.read_text().splitlines()
    site = sites(tmp_path / "s.json")["reduce MPI_Allreduce"]
    assert site["calls"] == CALLS and Path(site["file"]).name == source.name
    assert "MPI_Allreduce" in lines[site["line"] - 1]
    assert site["window_after_us"]["median"] >= BUSY_MS * 1e3
    stored = store.read(tmp_path / "weft-advise.sqlite")
    (one,) = (one for one in analysis.analyse(stored).sites if one.function == "reduce")
    assert [frame.function for frame in one.frames] == ["reduce", "work"]
