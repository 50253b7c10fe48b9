"""The terminal's table of `weft bench`: its verdicts are those of the page."""

from rich.console import Console
from synthetic import blocking, hides, result, statistic

from weft.bench import show
from weft.report import effect


def shown(found) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        show.show(console, found)
    return capture.get()


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.lstrip()[:1].isdigit()]


def test_a_lead_within_the_intervals_is_no_lead():
    """The medians are 5 % apart, and the intervals overlap."""
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
