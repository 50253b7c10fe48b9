"""Tests each kind of advice on one call, on programs for which it is right and on programs for
which it would be wrong.

Advice on several calls in flight is tested in test_advise_order.py. Advice on messages is tested in
test_advise_places.py and test_advice_changes.py, and advice on pickled objects in the latter."""

from __future__ import annotations

import pytest

from weft.advise import analysis, fragments, show, store

BUSY_MS, ROUNDS = 3, 24
HALF_US = BUSY_MS * 1e3 / 2


def planted_in(site) -> str:
    """Returns the name of the function in the program that contains the case."""
    names = [site.function, *(one.frame.function for one in site.outer)]
    kinds = ("room", "none", "plan", "noplan", "later", "notlater")
    return next(name for name in names if name.startswith(kinds))


def may_run_us(site) -> float:
    """Returns for how many us the call may be in flight after its return, or after its wait, as far
    as the advisor knows."""
    bounds = site.after.bounds
    return 0.0 if bounds is None else site.can_run_us(bounds[0])


@pytest.mark.one_library
def test_each_kind_of_advice_where_it_is_right_and_where_not(mpi, program, advise, tmp_path):
    command = [program(mpi, "advise_kinds.c"), BUSY_MS, ROUNDS]
    done = advise(mpi, command, "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    for rank in stored["rank"]:
        rank["cores"] = 8  # leaves free cores beside the program
    advice = analysis.analyse(stored)
    found = {planted_in(site): site for site in advice.sites if site.call != "MPI_Reduce"}
    assert len(found) == 18

    for name, site in found.items():
        if name.startswith(("room", "none")):
            assert (may_run_us(site) > HALF_US) == name.startswith("room"), name
        if name.startswith(("plan", "noplan")):
            assert bool(fragments.persistent(site)) == name.startswith("plan"), name
    used_at = fragments.fragment(found["room_after"]).splitlines()[-1]
    assert "first use of the result: advise_kinds.c:" in used_at
    written = fragments.fragment(found["none_sent_again"]).splitlines()[-1]
    assert "what it sends is written again" in written

    for name, later in (("later_wait", True), ("notlater_used_at_once", False)):
        site = found[name]
        assert (site.wait_later_us >= min(HALF_US, site.waited_us)) == later, name
        site.waited_us, site.tests = HALF_US, 0  # the site is changed as if it had been waited for
        site.between_us = 1.0
        said = fragments.of_nonblocking(site)
        assert ("right before the result is used (" in said) == later, said
    # This test does not ask which of these calls are consecutive and independent of each other.
    planned = {planted_in(site) for site in advice.sites if fragments.persistent(site)}
    assert "plan_the_same" in planned and not any(name.startswith("noplan") for name in planned)
    assert all(code for text, code in show.changes(advice) if "always has the same" in text)
