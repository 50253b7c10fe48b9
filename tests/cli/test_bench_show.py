"""Tests the terminal's table of `weft bench`, whose verdicts are those of the page."""

from dataclasses import replace

from rich.console import Console
from synthetic import blocking, hides, result, statistic

from weft.bench import show
from weft.measurements import effect


def shown(found) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        show.show(console, found)
    return capture.get()


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.lstrip()[:1].isdigit()]


def test_a_lead_within_the_intervals_is_no_lead():
    """The medians differ by 5 %, and the intervals overlap."""
    found = result({"thread": hides(0.9), "tcc": hides(0.8)}, spread=0.1)
    for line in rows(shown(found)):
        assert "≈" in line
    assert "tcc" not in show.best_so_far(found)


def test_a_lead_beyond_the_intervals_is_one():
    found = result({"thread": hides(0.9), "tcc": hides(0.2)})
    (case,) = effect.cases(found)
    leaders = [standing.leader.name for standing in case.standings]
    told = rows(shown(found))
    assert len(told) == 10 and leaders.count("thread") > 5
    for line, standing in zip(told, case.standings):
        names = [curve.name for curve in (standing.leader, *standing.tied)]
        assert [word for word in line if word in ("blocking", "thread", "tcc")] == names
    assert show.best_so_far(found).startswith("thread, at ")


def test_the_gain_over_blocking_is_an_interval():
    assert show.gain(statistic(200.0, 0.01), statistic(100.0, 0.01)) == "2.00 (1.96–2.04)"
    assert show.gain(statistic(200.0, n=3), statistic(100.0)) == "2.00"


def test_the_advice_is_the_page_s():
    found = result({"thread": hides(0.9)})
    found.alone = [blocking()]
    (case,) = effect.cases(found)
    assert effect.advice(case)[1:] in shown(found).replace("\n", " ")


def test_the_table_s_figures_of_a_tie_are_those_of_the_engine_that_is_advised():
    """The thread's median is 1.5 % lower, which does not count as a lead."""
    found = result({"native": hides(0.9, 15.0), "thread": hides(0.9)})
    (case,) = effect.cases(found)
    assert effect.recommended(case).name == "native"
    assert "use MPI_Iallreduce with engine native" in effect.advice(case)
    for amount in case.amounts[3:]:
        native = case.candidates[0].readings[amount].total
        shown_cells = show.cells(case, amount)
        assert shown_cells[2].startswith("native ≈ thread")
        assert shown_cells[3] == show.milliseconds(native.median)
        assert shown_cells[6] == show.gain(case.blocking.readings[amount].total, native)


def test_a_cell_that_cannot_be_decided_is_empty_with_one_footnote():
    """50 µs of computation beside 1 ms are too little for a hidden share or a slowdown. Two samples
    give no interval."""
    found = result({"thread": hides(0.9)})
    first, second, *_ = found.points
    found.points[0] = replace(first, computation_us=50.0, hidden=-2.23, slowdown_of_computation=9.0)
    found.points[1] = replace(second, total_us=replace(second.total_us, n=2))
    (case,) = effect.cases(found)
    assert show.cells(case, 0)[4:6] == ["", ""] and show.cells(case, 1)[2:] == [""] * 5
    assert shown(found).count(show.EMPTY) == 1 and "−223 %" not in shown(found)
    assert show.footnote(effect.cases(result({"thread": hides(0.9)}))[0]) == ""
