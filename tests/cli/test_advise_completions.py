"""Tests windows after the completion of non-blocking collectives. They are compared with the
program's own clock, since the load of the machine decides how long they are."""

from __future__ import annotations

import pytest
from advise_runs import sites


def measured(mpi, program, advise, tmp_path, *arguments) -> tuple[dict, dict]:
    """Returns what the program prints about each function, and the sites by function and call."""
    command = [program(mpi, "advise_completions.c", "-pthread"), 6, *arguments]
    done = advise(mpi, command, "--overhead", "100%", "--json", "s.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("checksum ")
    said = [line.split() for line in done.stderr.splitlines() if len(line.split()) == 3]
    own = {name: (float(least), float(most)) for name, least, most in said}
    return own, sites(tmp_path / "s.json")


def is_within(site: dict, own: tuple[float, float]) -> bool:
    least, most = own
    window = site["window_after_us"]
    return least - 0.01 <= window["median"] <= most + 0.01


def test_windows_after_a_wait(mpi, program, advise, tmp_path):
    own, found = measured(mpi, program, advise, tmp_path)
    for name in ("waits", "at_once", "tests", "both", "started", "mailed"):
        assert is_within(found[f"{name} MPI_Iallreduce"], own[name]), name
    assert own["waits"][0] >= 5000 > own["at_once"][0]
    assert is_within(found["plan_it MPI_Allreduce_init"], own["planned"])
    uses = {name: found[f"{name} MPI_Iallreduce"]["first_use"][0] for name in ("started", "mailed")}
    assert "MPI_Start(&sending)" in uses["started"]["source"]
    assert "MPI_Startall" in uses["mailed"]["source"]
    # If the system permits no hardware breakpoint, the window is unknown.
    number = found["number MPI_Iallreduce"]
    assert number["window_after_us"] is None or is_within(number, own["number"])
    assert found["stack MPI_Iallreduce"]["window_after_us"] is None
    assert found["gaps MPI_Iallgatherv"]["window_after_us"] is None


@pytest.mark.one_library
def test_a_window_after_the_wait_of_another_thread(mpi, program, advise, tmp_path):
    own, found = measured(mpi, program, advise, tmp_path, "thread")
    assert is_within(found["thread MPI_Iallreduce"], own["thread"])
