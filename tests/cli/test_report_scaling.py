"""Tests strong scaling in the report: which number of ranks ends first, and when no answer is
given."""

from dataclasses import replace

import pytest
from synthetic import points, statistic

from weft.measurements import effect
from weft.measurements.result import Alone, Candidate, Result
from weft.report import effect_page, scaling, svg

MPI = "mpich 5.0.2"


def alone(ranks: int, communication_us: float) -> Alone:
    where = (MPI, "thread", "bind", "quiet", "selected", "allreduce", 1 << 20, ranks, 4)
    time = statistic(communication_us)
    return Alone(*where, time, time)


def fixed_work(times_us: dict[int, float], spread=0.005, **settings) -> Result:
    """Returns a result with one amount of computation. `times_us` has the time by number of ranks.
    The blocking call takes 300 µs more everywhere."""
    found = Result(machine={}, settings={"fixed_work": True, **settings})
    for ranks, total_us in times_us.items():
        # This is the amount with 1 ms of computation.
        line = points("thread", lambda _, t=total_us: t, spread, ranks=ranks)[4:5]
        found.points += [type(p)(**{**p.__dict__, "amount": 0}) for p in line]
        found.alone.append(alone(ranks, total_us - 700.0))
    found.candidates = [Candidate(MPI, "thread")]
    return found


def only(found: Result) -> scaling.Scaling:
    (one,) = scaling.scalings(found, effect.cases(found))
    return one


def test_the_best_number_of_ranks_is_named_with_what_it_saves():
    one = only(fixed_work({2: 1900.0, 3: 1200.0, 4: 1500.0}))
    assert [case.ranks for case in one.cases] == [2, 3, 4]
    assert one.finding(0) == (
        "1 ms of computation on 4 ranks: 3 ranks with thread take 1.2 ms, 20 % less than the best"
        " on all 4, thread."
    )


def test_the_most_ranks_may_be_best():
    assert "4 ranks with thread take 1.2 ms, the least" in only(
        fixed_work({2: 1900.0, 4: 1200.0})
    ).finding(0)


def test_a_lead_within_the_spread_is_none():
    said = only(fixed_work({2: 1190.0, 4: 1200.0})).finding(0)
    assert said.endswith("the best on all 4, thread, is as fast within the spread.")


def test_amounts_that_some_ranks_lack_are_left_out():
    """Amounts are identified by their numbers, not by their order."""
    found = fixed_work({2: 1900.0, 3: 1200.0, 4: 1500.0})
    found.points += [replace(p, amount=2, computation_us=2000.0) for p in found.points]
    found.points = [p for p in found.points if p.ranks != 2 or p.amount == 2]
    one = only(found)
    assert one.amounts == [2]
    assert "2 ms of computation on 4 ranks" in one.finding(2)


def test_work_that_is_not_fixed_has_no_such_curve():
    found = fixed_work({2: 1190.0, 4: 1200.0})
    found.settings["fixed_work"] = False
    assert scaling.scalings(found, effect.cases(found)) == []
    one_number = fixed_work({2: 1190.0})
    assert scaling.scalings(one_number, effect.cases(one_number)) == []


def test_the_page_draws_a_line_per_candidate_over_the_ranks():
    found = fixed_work({2: 1900.0, 3: 1200.0, 4: 1500.0})
    page = effect_page.render([effect_page.Source("x", found)])
    assert "The same work on fewer ranks" in page
    (graph,) = (
        chart["graph"]
        for entry in scaling.section(found, effect.cases(found), lambda name: svg.look(0))
        for chart in entry["charts"]
    )
    lines = {line.name: (line.x, line.y) for line in graph.lines}
    assert lines["thread"] == ([2, 3, 4], pytest.approx([1.9, 1.2, 1.5]))
    assert lines["blocking"] == ([2, 3, 4], pytest.approx([2.2, 1.5, 1.8]))
    # Communication alone takes 1 ms on all numbers of ranks, as in all synthetic points, so that
    # the ideal is 1 ms.
    assert lines["ideal"] == ([2, 3, 4], [1.0] * 3)
    assert (graph.x_title, graph.y_title) == ("application ranks", "both together, ms")
    assert [label for _, label in graph.area().x.ticks] == ["2", "3", "4"]


def test_charts_side_by_side_have_one_scale():
    found = fixed_work({2: 1900.0, 3: 1200.0, 4: 1500.0})
    found.points += [
        replace(p, amount=1, computation_us=2000.0, total_us=statistic(9000.0))
        for p in found.points
    ]
    (entry,) = scaling.section(found, effect.cases(found), lambda name: svg.look(0))
    tops = {chart["graph"].area().y.last for chart in entry["charts"]}
    assert len(entry["charts"]) == 2 and len(tops) == 1
