"""`weft advise`: of calls in a row it is told which need each other, and which do not."""

from __future__ import annotations

from weft.advise import analysis, store

ROUNDS = 30


def test_what_may_be_in_flight_together_and_what_not(mpi, program, advise, tmp_path):
    done = advise(mpi, [program(mpi, "advise_order.c"), ROUNDS], "--overhead", "100%")
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "weft-advise.sqlite")
    advice = analysis.analyse(stored)
    found = {(first.function, second.function) for first, second in advice.pairs}
    free = {"free_of_each_other", "free_rows", "free_kinds"}
    assert all(rank["observing_ns"] > 0 for rank in stored["rank"])
    assert found == {(name, name) for name in free}
