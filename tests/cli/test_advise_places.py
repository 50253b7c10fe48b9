"""Tests the places that `weft advise` names for the first use of results and the last write of sent
data, and which calls it counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from advise_runs import sites

from weft.advise import analysis, fragments, store
from weft.system import mpi_libraries

SOURCE = Path(__file__).parent / "programs" / "advise_places.c"
CALLS = 20


def line_of(text: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture
def found(mpi, program, advise, tmp_path):
    command = [program(mpi, SOURCE.name), CALLS]
    done = advise(mpi, command, "--overhead", "100%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    found = sites(tmp_path / "s.json")
    return {name.split()[0]: one for name, one in found.items() if not name.endswith("MPI_Reduce")}


@pytest.mark.one_library
def test_places_and_calls(found, tmp_path):
    """The place of a copy is that of its caller. The place of a result that is passed to MPI is
    that call."""
    for name, used in (("read_case", "used"), ("copy_case", "copied"), ("mpi_case", "given")):
        first, *others = found[name]["first_use"]
        assert (Path(first["file"]).name, first["line"]) == (SOURCE.name, line_of(f"{used} here"))
        assert f"{used} here" in first["source"] and first["windows"] > 1
        assert not others, name
    writer = found["read_case"]["last_write"][0]
    assert writer["line"] == line_of("written here")

    advice = analysis.analyse(store.read(tmp_path / "weft-advise.sqlite"))
    site = {one.function: one for one in advice.sites}
    fragment = fragments.fragment(site["read_case"])
    assert f"advise_places.c:{line_of('used here')}, return values[0];" in fragment
    assert fragments.use(site["copy_case"]).startswith(
        f"Its result is first used at advise_places.c:{line_of('copied here')} ("
    )
    # One site's calls have different roots, the other's always the same one.
    assert fragments.persistent(site["roots_case"]) == ""
    assert fragments.persistent(site["same_case"]) == "MPI_Bcast_init"
    # A wait for one collective and three messages counts for a quarter.
    waits = {name: us for name, calls, us in advice.calls}["MPI_Waitall"]
    one = site["wait_case"]
    assert one.waited_us * one.calls == pytest.approx(waits / 4, rel=0.05)


def test_persistent_collectives_are_sites(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    command = [program(mpi, SOURCE.name), CALLS, "planned"]
    done = advise(mpi, command, "--verify", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    site = sites(tmp_path / "s.json")["planned_case MPI_Allreduce_init"]
    assert (site["calls"], site["line"]) == (CALLS, line_of("MPI_Allreduce_init"))
    assert site["bytes"] == 160_000 and site["time_us"] > 0
    assert isinstance(site["free_us"], float)
    stored = store.read(tmp_path / "weft-advise.sqlite")
    one, freed = analysis.analyse(stored).sites
    assert (freed.call, freed.calls) == ("MPI_Bcast_init", 1)
    assert one.between_us > 1000
    assert fragments.persistent(one) == ""
    # A persistent request outlives its communicator.
    assert len(stored["arrival"]) == 2 * (CALLS + 1)


@pytest.mark.one_library
def test_waits_for_messages_have_places(mpi, program, advise, tmp_path):
    """The program completes messages by one wait for two messages, by tests, and by a wait for each
    persistent one."""
    command = [program(mpi, SOURCE.name), CALLS, "halo"]
    done = advise(mpi, command, "--json", "s.json")
    assert done.returncode == 0, done.stderr
    waits = json.loads((tmp_path / "s.json").read_text())["message_waits"]
    lines = {line_of(f"/* {what} */"): what for what in ("at once", "tested", "planned", "short")}
    found = {lines[one["line"]]: one for one in waits}
    assert set(found) == set(lines.values())
    assert all(Path(one["file"]).name == SOURCE.name for one in waits)
    assert {name: (one["messages"], one["bytes"]) for name, one in found.items()} == {
        "at once": (2 * CALLS, 160_000),
        "tested": (2 * CALLS, 160_000),
        "planned": (2 * CALLS, 800),
        "short": (8 * CALLS, 8),
    }
    assert (found["at once"]["waits"], found["planned"]["waits"]) == (CALLS, 2 * CALLS)
    assert (found["at once"]["call"], found["tested"]["call"]) == ("MPI_Waitall", "MPI_Testall")
    # Rank 1 waits for rank 0 each time, and rank 0 never waits.
    assert found["at once"]["waited_us"] > 1000 > found["at once"]["between_us"]
    assert found["tested"]["tests"] > 0 and found["at once"]["tests"] == 0
    assert found["planned"]["between_us"] > 1000
    said = " ".join(done.stdout.split())
    assert "MPI_Waitall waits for 2 messages of 156.2 KiB" in said
    assert "Compute meanwhile what needs no neighbour." in said
