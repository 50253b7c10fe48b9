"""The demo: what its figures say, and the page it writes."""

import json
import re

import pytest

from weft import demo, mpi_libraries
from weft.report import overlap, page


def statistic(median: float, spread: float = 100.0) -> dict:
    return {"median": median, "low": median - spread, "high": median + spread, "n": 7}


def run(totals_us: dict[str, float], communication_us=80000.0, computation_us=80000.0) -> dict:
    def hidden(total):
        saved = communication_us + computation_us - total
        return {"median": saved / min(communication_us, computation_us)}

    engines = [
        {"engine": name, "total_us": statistic(total), "hidden": hidden(total)}
        for name, total in totals_us.items()
    ]
    return {
        "schema": "weft-overlap/1",
        "collective": "allreduce",
        "bytes": 2 << 20,
        "ranks": 2,
        "mpi": "MPICH Version:      5.0.2",
        "repetitions": 7,
        "communication_us": communication_us,
        "computation_us": statistic(computation_us),
        "engines": engines,
    }


@pytest.fixture
def gain() -> overlap.Comparison:
    return overlap.compare(run({"native": 112000.0}), run({"native": 110000.0, "thread": 82000.0}))


def test_speed_up_is_against_the_program_without_weft(gain):
    assert [row.name for row in gain.rows] == ["without Weft", "native", "thread"]
    thread = gain.rows[2]
    assert thread.against_without == pytest.approx(112 / 82)
    assert thread.against_native == pytest.approx(110 / 82)
    assert thread.hidden == pytest.approx(78 / 80)
    assert (gain.ideal_ms, gain.sum_ms) == (80.0, 160.0)
    assert gain.best.name == "thread"
    assert "1.37 times as fast" in gain.sentence


def test_native_wins_where_no_engine_is_noticeably_faster():
    same = overlap.compare(run({"native": 81000.0}), run({"native": 81000.0, "thread": 80500.0}))
    assert same.best.name == "native"
    assert "nothing to add" in same.sentence


def test_a_gain_within_the_spread_is_none():
    weft = run({"native": 90000.0, "thread": 84000.0})
    for engine in weft["engines"]:
        engine["total_us"] = statistic(engine["total_us"]["median"], 5000.0)
    compared = overlap.compare(run({"native": 90000.0}), weft)
    assert compared.best.name == "native"
    assert "engine thread took 84 ms" in compared.sentence
    assert "nothing to add" not in compared.sentence


def test_hidden_share_may_be_negative():
    slow = overlap.compare(run({"native": 248000.0}), run({"native": 248000.0, "thread": 85000.0}))
    assert slow.without.hidden == pytest.approx(-1.1)
    assert overlap.percent(slow.without.hidden) == "−110 %"
    assert "hides nothing" in slow.sentence


def test_more_than_all_hidden_asks_to_measure_again(gain):
    assert "measure again" not in gain.sentence
    weft = run({"native": 110000.0, "thread": 70000.0})
    sentence = overlap.compare(run({"native": 112000.0}), weft).sentence
    assert "thread cannot hide 112 %" in sentence and sentence.endswith(overlap.MEASURE_AGAIN)
    for engine in weft["engines"]:
        engine["total_us"] = statistic(engine["total_us"]["median"], 50000.0)
    sentence = overlap.compare(run({"native": 112000.0}), weft).sentence
    assert "cannot hide" in sentence and sentence.count(overlap.MEASURE_AGAIN) == 1


def test_page_needs_nothing_from_outside(gain, tmp_path):
    path = tmp_path / "out" / "demo.html"
    page.write(path, [gain], "a link of 200 Mbit/s")
    text = path.read_text()
    assert not re.search(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=", text)
    assert "Plotly.react" in text and len(text) > 1_000_000  # the drawing library is inside
    assert gain.sentence in text and "a link of 200 Mbit/s" in text
    assert "prefers-color-scheme: dark" in text
    data = json.loads(re.search(r"const charts = (\[.*\]);", text)[1])
    assert data[0]["totals"] == [112.0, 110.0, 82.0]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"schema": "something/1"}')
    with pytest.raises(ValueError, match="weft-overlap/1"):
        overlap.read(path)


def test_unknown_mpi_names_the_choices(capsys):
    assert demo.run(mpi="lam") == 2
    assert "mpich, openmpi, intelmpi" in capsys.readouterr().err


@pytest.mark.skipif(
    not mpi_libraries.implementation("mpich").program("overlap").exists(), reason="needs a build"
)
def test_one_comparison_from_end_to_end():
    """In shared memory, a tiny message: only that everything fits together."""
    place = demo.SharedMemory(mpi_libraries.implementation("mpich"), size="64KiB")
    without = demo.measure(place, "mpich", "bcast", None, 1)
    weft = demo.measure(place, "mpich", "bcast", without, 1)
    assert without["weft"] is None and weft["weft"]
    assert without["wrong"] == weft["wrong"] == 0
    assert weft["iterations"] == without["iterations"]
    comparison = overlap.compare(without, weft)
    assert [row.name for row in comparison.engines] == list(demo.ENGINES)
