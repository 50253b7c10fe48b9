"""Tests what the report of a benchmark derives from points: crossings, ties, the winner and the
advice."""

from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from synthetic import hides, points, result, statistic

from weft.measurements import effect
from weft.measurements.result import FEWEST, Point, hidden_share
from weft.report import effect_page


def only_case(found) -> effect.Case:
    (case,) = effect.cases(found)
    return case


def with_overhead(**lines) -> effect.Case:
    return only_case(result(lines))


def test_crossing_is_exact():
    # The blocking call takes 1000 + x, and the thread 1000 + x − 0.9·x + 450. They meet at x = 500.
    case = with_overhead(thread=hides(0.9, 450.0))
    (crossing,) = case.crossings
    assert (crossing.before, crossing.after) == ("blocking", "thread")
    assert crossing.at_us == pytest.approx(500.0)
    assert crossing.low_us < 500.0 < crossing.high_us
    # Both take 1500 µs there. The intervals are ±5 µs (0.5 % of the call) and ±7.5 µs.
    assert crossing.low_us == pytest.approx(500.0 - 12.5 / 0.9, abs=1.0)
    assert crossing.high_us == pytest.approx(500.0 + 12.5 / 0.9, abs=1.0)


def test_without_spread_the_crossing_is_a_point():
    case = only_case(result({"thread": hides(0.9, 450.0)}, spread=0.0))
    exact = replace(case, curves=(exactly(case.blocking), case.candidates[0]))
    (crossing,) = exact.crossings
    assert crossing.low_us == pytest.approx(500.0)
    assert crossing.high_us == pytest.approx(500.0)


def exactly(curve: effect.Curve) -> effect.Curve:
    readings = {
        amount: replace(reading, total=statistic(reading.total.median, 0.0))
        for amount, reading in curve.readings.items()
    }
    return replace(curve, readings=readings)


def test_lines_that_cross_by_chance_are_not_listed():
    wiggle = {"thread": lambda x: 1000.0 + x / 10 + x % 400 / 100, "tcc": lambda x: 1001.0 + x / 10}
    case = with_overhead(**wiggle)
    assert len(effect.crossings(*case.candidates, case.computation_us)) > 3
    assert case.crossings == ()


def test_lines_that_touch_do_not_cross():
    case = with_overhead(thread=lambda x: 1000.0 + x + abs(x - 600.0))
    assert case.crossings == ()


def test_lines_that_are_equal_for_a_while_cross_in_the_middle():
    def late(x):
        return 1000.0 + x + (600 - x if x < 600 else 0) - max(0.0, x - 1000)

    (crossing,) = with_overhead(thread=late).crossings
    assert crossing.at_us == pytest.approx(800.0)


def test_advice_names_the_engine_and_where_it_begins_to_pay():
    advice = effect.advice(with_overhead(native=hides(0.0, 10.0), thread=hides(0.9, 450.0)))
    assert advice.startswith(
        "use MPI_Iallreduce with engine thread from 0.5 ms of computation on; below, blocking is"
        " faster."
    )
    assert "saves up to 22 % of the time, at 1 ms" in advice


def test_advice_where_it_pays_everywhere():
    advice = effect.advice(with_overhead(thread=hides(0.9)))
    assert "faster than blocking at every amount measured (0.2 ms to 2 ms" in advice


def test_a_lead_within_the_spread_is_none():
    case = only_case(result({"thread": hides(0.15)}, spread=0.08))
    case = replace(case, curves=(case.blocking, case.candidates[0]))
    assert all(standing.undecided for standing in case.standings)
    assert "no difference" in effect.advice(case)
    assert "stay with the blocking call" in effect.advice(case)


def test_a_tie_below_becomes_no_difference():
    advice = effect.advice(with_overhead(thread=hides(0.9, 180.0)))
    assert "from 0.4 ms of computation on; below, there is no difference to blocking" in advice


def test_two_amounts_say_nothing_of_those_between():
    """At the first amount there is no difference, so that no lines cross. The advice is about the
    second amount only."""
    found = result({"thread": hides(0.9, 180.0)})
    amounts = sorted({point.amount for point in found.points})
    kept = [point for point in found.points if point.amount in (amounts[0], amounts[-1])]
    case = only_case(replace(found, points=kept))
    assert case.crossings == ()
    advice = effect.advice(case)
    assert " at 2 ms of computation (measured at 0.2 ms and 2 ms only); below, there is" in advice


def test_blocking_where_nothing_pays():
    advice = effect.advice(with_overhead(native=hides(-0.5), thread=hides(-0.3, 100.0)))
    assert advice.startswith("stay with MPI_Allreduce: it is faster than every non-blocking")


def test_a_gain_that_ends_is_bounded_on_both_sides():
    def middle(x):
        return 1000.0 + x + (300.0 if x < 500 or x > 1500 else -300.0)

    advice = effect.advice(with_overhead(thread=middle))
    assert "from 0.5 ms to 1.5 ms of computation; below, blocking is faster; above, bl" in advice


def test_what_leads_nowhere_is_not_recommended():
    """The candidate with the better medians has a wide interval."""
    found = result({"thread": hides(0.2)})
    found.points += points("tcc", hides(0.3), spread=0.2)
    case = only_case(found)
    assert effect.recommended(case).name == "thread"
    assert "with engine thread" in effect.advice(case)


def test_native_is_recommended_where_it_is_as_fast():
    case = with_overhead(thread=hides(0.9), native=hides(0.895))
    assert effect.recommended(case).name == "native"
    assert "As fast within the spread: thread." in effect.advice(case)


def test_another_engine_ahead_at_some_amounts_is_named():
    case = with_overhead(thread=hides(0.95, 60.0), assist=hides(0.3, 0.0))
    assert effect.recommended(case).name == "thread"
    assert "Engine assist" not in effect.advice(case)
    case = with_overhead(thread=hides(0.95, 130.0), assist=lambda x: 1000 + x - min(150.0, x))
    assert "Engine assist is faster still at 0.2 ms." in effect.advice(case)


def test_negative_overlap_is_kept():
    case = with_overhead(native=hides(-0.25))
    assert case.candidates[0].readings[4].hidden == pytest.approx(-0.25)


def test_an_amount_that_a_candidate_lacks_is_left_out():
    found = result({"thread": hides(0.9), "tcc": hides(0.5)})
    found.points = [p for p in found.points if p.engine != "tcc" or p.amount < 3]
    case = only_case(found)
    assert [len(curve.readings) for curve in case.candidates] == [10, 3]
    assert effect.recommended(case).name == "thread"
    assert case.standings[5].leader.name == "thread"


def test_the_fastest_librarys_blocking_call_is_the_one_to_beat():
    found = result({"thread": hides(0.9)})
    found.points += points("thread", hides(0.2), mpi="openmpi 5.0.10")
    found.alone.append(synthetic.blocking(communication_us=1300.0, mpi="openmpi 5.0.10"))
    case = only_case(found)
    assert case.blocking.name == "mpich blocking"
    assert [curve.name for curve in case.candidates] == ["mpich thread", "openmpi thread"]
    assert "with mpich thread" in effect.advice(case)


def test_blocking_measured_as_a_candidate_replaces_the_sum():
    found = result({"blocking": lambda x: 1100.0 + x, "thread": hides(0.9)})
    case = only_case(found)
    assert case.blocking.readings[0].total.median == 1300.0
    assert [curve.name for curve in case.candidates] == ["thread"]


def test_points_of_other_tools_without_numbers_are_ordered_by_computation():
    found = result({"thread": hides(0.9)})
    found.points = [replace(point, amount=0) for point in reversed(found.points)]
    case = only_case(found)
    assert case.computation_us == pytest.approx(synthetic.AMOUNTS_US)


def test_kernels_and_sizes_are_cases_of_their_own():
    found = result({"thread": hides(0.9)})
    found.points += points("thread", hides(0.5), kernel="stencil")
    found.points += points("thread", hides(0.5), bytes=1 << 10)
    assert len(effect.cases(found)) == 3
    assert all(isinstance(point, Point) for point in found.points)


@pytest.mark.parametrize(
    ("us", "text"),
    [(0.4, "0.4 µs"), (12.0, "12 µs"), (400.0, "0.4 ms"), (999600.0, "1 s"), (1.25e6, "1.25 s")],
)
def test_durations_have_units(us, text):
    assert effect.duration(us) == text


def test_the_worked_example_of_the_documentation_is_right():
    text = (Path(__file__).parents[2] / "docs" / "benchmarking.md").read_text()
    osu, imb = 1 - (130 - 115) / 120, (120 + 115 - 130) / min(120, 115)
    shares = (
        f"{100 * osu:.1f} %",
        f"{100 * imb:.1f} %",
        f"{100 * hidden_share(100, 100, 130):.0f} %:",
    )
    assert f"| {' | '.join(shares)} the program takes 130" in text
    below = f"{100 * hidden_share(100, 100, 230):.0f} %: the program became 30 slower"
    assert below.replace("-", "−") in text
    assert f"| {100 * hidden_share(100, 100, 160):.0f} %: the next step begins after 160" in text


def test_shares_have_no_negative_zero():
    assert (effect.percent(-0.001), effect.percent(-0.301)) == ("0 %", "−30 %")


def test_too_few_samples_decide_nothing():
    found = result({"thread": hides(0.9)})
    found.points = [
        replace(point, total_us=replace(point.total_us, n=FEWEST - 1)) for point in found.points
    ]
    case = only_case(found)
    assert {effect.verdict(case.candidates[0], case.blocking, a) for a in case.amounts} == {"same"}
    assert effect.advice(case).startswith("not decided: some have fewer than 6 samples")
    assert case.crossings == ()


def test_the_heat_map_does_not_call_too_few_samples_a_tie():
    found = synthetic.sizes({"thread": {1 << 20: hides(0.9), 1 << 21: hides(0.9)}})
    found.points = [
        replace(point, total_us=replace(point.total_us, n=2)) if point.bytes == 1 << 21 else point
        for point in found.points
    ]
    winners = [
        {effect_page.winner(case, amount) for amount in case.amounts}
        for case in effect.cases(found)
    ]
    assert winners == [{"thread"}, {effect_page.NOT_DECIDED}]
