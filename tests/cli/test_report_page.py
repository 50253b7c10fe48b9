"""Tests the pages of `weft report` and `weft compare`: they are complete and self-contained, and
damaged results are refused."""

import re
from copy import deepcopy
from dataclasses import replace
from html.parser import HTMLParser
from itertools import accumulate
from random import Random
from xml.etree import ElementTree

import pytest
from synthetic import MPI, hides, points, result, sizes, statistic
from typer.testing import CliRunner

from weft.bench import places
from weft.cli import app
from weft.measurements.result import Candidate, Statistic, save_json
from weft.report import effect_page, versus
from weft.report.effect_page import Source
from weft.report.lanes import Lanes, Span, joined_rows
from weft.report.picture import HEIGHT, WIDTH
from weft.report.svg import PALETTE, Axis, course

MOST_BYTES = 150_000
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def several():
    """Returns a result of two engines at three sizes, in which the blocking call is best for small
    messages."""
    every = (1 << 16, 1 << 18, 1 << 20)
    found = sizes(
        {
            "native": dict.fromkeys(every, hides(0.1)),
            "thread": {s: hides(0.9, 2000.0 if s < 1 << 18 else 20.0) for s in every},
        }
    )
    reason = "the library was built without asynchronous progress"
    found.candidates.append(Candidate(MPI, "library-async", status="cannot run", reason=reason))
    return found


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class Page(HTMLParser):
    """The contents of a page: hover texts, other texts, and colours."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tag = ""
        self.hover: list[str] = []
        self.texts: list[str] = []
        self.colours: set[str] = set()
        self.feed(str(text))

    def handle_starttag(self, tag, attributes):
        self.tag = tag
        self.colours |= {v for k, v in attributes if k in ("fill", "stroke") and v}

    def handle_endtag(self, tag):
        self.tag = ""

    def handle_data(self, data):
        (self.hover if self.tag == "title" else self.texts).append(data.strip())


def test_page_holds_the_data_the_machine_and_what_could_not_run(several):
    page = Page(effect_page.render([Source("here.json", several)]))
    said = " ".join(page.texts)
    # The time in us is 1000 + 200 − 180 + 20.
    first = next(text for text in page.hover if "thread: 1.04 ms" in text)
    assert first.startswith("0.2 ms of computation\nblocking: 1.20 ms\n")
    assert first.endswith("thread: 1.04 ms, hides 80 %, slows 2 %")
    times = [text for text in page.hover if re.search(r"thread: [\d.]+ [mµ]s", text)]
    assert len(times) == 3 * 10
    assert {"computation alone, ms", "both together, ms", "computation alone, µs"} <= {*page.texts}
    assert "built without asynchronous progress" in said and "Example" in said


def test_the_map_of_winners_has_a_field_for_each_size_and_amount(several):
    cases = [case for source in [Source("x", several)] for case in source.cases]
    (heat,) = effect_page.heat_maps(cases, effect_page.looks([Source("x", several)]))
    rows = {size: cells for size, _, cells in heat["map"].rows}
    assert list(rows) == ["1 MiB", "256 KiB", "64 KiB"] and len(rows["1 MiB"]) == 10
    assert all(cell.said.startswith("thread, ") for cell in rows["1 MiB"])
    assert not any("thread" in cell.said for cell in rows["64 KiB"])


@pytest.mark.parametrize(
    ("share", "n", "names"), [(0.9, 9, ["thread"]), (-0.3, 9, ["blocking"]), (0.9, 3, [])]
)
def test_the_line_that_is_advised_is_thick_and_none_is_where_nothing_is_decided(share, n, names):
    found = result({"thread": hides(share)})
    found.points = [replace(p, total_us=replace(p.total_us, n=n)) for p in found.points]
    source = Source("x", found)
    (case,) = source.cases
    graph = effect_page.time_graph(case, effect_page.looks([source]))
    assert [line.name for line in graph.lines if line.strong] == names


def test_page_opens_offline_and_is_small(several):
    text = effect_page.render([Source("here.json", several)])
    assert len(text.encode()) < MOST_BYTES
    assert "http" not in text and not re.search(r"<(script|link|img|iframe)|src=", text)


def test_ten_cases_fit_in_a_small_page():
    """The times of five engines have all their digits. Each case has its charts and its table."""
    random = Random(1)

    def measured(share: float):
        line = hides(share, 1000 * random.random())
        return lambda x_us: line(x_us) * random.uniform(0.97, 1.03)

    shares = {"native": 0.1, "function": 0.4, "thread": 0.9, "tcc": 0.7, "assist": 0.8}
    every = [1 << power for power in range(12, 22)]
    found = sizes({engine: {s: measured(share) for s in every} for engine, share in shares.items()})
    found.points = [
        replace(point, slowdown_of_computation=random.uniform(1, 1.5)) for point in found.points
    ]
    text = effect_page.render([Source("here.json", found)])
    page = Page(text)
    assert sum("of computation\nblocking" in hover for hover in page.hover) == 10 * 10
    assert page.texts.count("assist") >= 10 * 10
    assert len(text.encode()) < MOST_BYTES


def test_colours_are_those_of_the_page_so_that_dark_mode_has_its_own(several):
    page = Page(effect_page.render([Source("here.json", several)]))
    values = {colour for colour in page.colours if colour.startswith("#")}
    assert values <= {*PALETTE, "#ffffff", "#000000"} and "var(--text)" in page.colours


def test_a_wide_timeline_is_drawn_in_few_pieces_and_keeps_what_can_be_seen():
    """A long span is followed by many spans that are too short to be distinguished on a screen."""
    short = [Span(100 + i / 100, 100 + i / 100 + 0.005, 1, "MPI_Bcast") for i in range(20000)]
    rows = [("rank 0", [Span(0, 50, 0, "MPI_Allreduce"), *short])]
    ((_, shown),) = joined_rows(rows, 300.0, 600)
    assert len(shown) <= 600 and sum(count for _, count in shown) == 20001
    assert (shown[0][0].begin, shown[0][0].end) == (0, 50)
    lanes = Lanes(rows, 300.0, "ms", "x", [("call", "plain"), ("wait", "bar")], "{} ms".format)
    page = Page(lanes.__html__())
    assert "MPI_Allreduce, call: 50 ms" in page.hover and "rank 0" in page.texts
    assert len(lanes.__html__()) < MOST_BYTES


def test_text_of_a_result_cannot_become_markup(several):
    several.machine = {"name": "<script>alert(1)</script>"}
    assert "<script>alert" not in effect_page.render([Source("x", several)])


def test_report_writes_the_page_and_says_the_advice(tmp_path, several):
    save_json(several, tmp_path / "a.json")
    done = run("report", tmp_path / "a.json", "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "page.html").exists()
    assert "use MPI_Iallreduce with engine thread" in " ".join(done.output.split())


def test_report_of_several_results_names_each(tmp_path, several):
    for name in ("a.json", "b.json"):
        save_json(several, tmp_path / name)
    done = run("report", tmp_path / "a.json", tmp_path / "b.json", "-o", tmp_path / "page.html")
    assert done.exit_code == 0
    text = (tmp_path / "page.html").read_text()
    assert "a.json" in text
    assert "b.json" in text


def spots(path: str) -> list[tuple[float, ...]]:
    """Returns the points of a path that has the distance of each point from the previous one."""
    steps = [float(step) for step in re.findall(r"-?[\d.]+", path)]
    return list(zip(accumulate(steps[::2]), accumulate(steps[1::2])))


def test_a_path_leads_through_its_points_however_they_lie():
    for way in ([(3, 4)], [(0, 0), (10, 0), (10.5, 2), (3, 1.1)], [(7, 9), (7, 9), (0, 20)]):
        assert spots(course(way)) == [pytest.approx(point) for point in way]


def test_a_lone_point_is_marked_whoever_is_fastest():
    found = result({"native": hides(0.1), "thread": hides(0.9)})
    found.points = [point for point in found.points if point.amount == 3]
    source = Source("x", found)
    (case,) = source.cases
    drawn = str(effect_page.chart(case, effect_page.looks([source])).inside())
    # The times have three lines of points, the slowdowns two.
    assert len(re.findall(r'd="m[\d ]+h0"', drawn)) == 3 + 2


def test_an_interval_that_is_far_too_wide_does_not_flatten_the_lines():
    found = result({"native": hides(0.1), "thread": hides(0.9)})
    found.points[3] = replace(found.points[3], total_us=Statistic(1500.0, 1400.0, 90000.0, 9))
    source = Source("x", found)
    (case,) = source.cases
    graph = effect_page.time_graph(case, effect_page.looks([source]))
    assert graph.area().y.last < 2 * max(max(line.y) for line in graph.lines)
    native = next(line for line in graph.lines if line.name == "native")
    assert native.high[3] == pytest.approx(1.5 * 3.0)  # the blocking call takes 1 + 2 ms
    assert "1.40–90.0" in effect_page.render([source])


def test_facts_are_few_and_have_units():
    values = {
        "memory_bytes": 1 << 34,
        "bytes": [4096, 1 << 20],
        "hang_s": 20,
        "time_budget_s": 90.0,
        "fixed_work": False,
        "lab": {},
        "cpu": "x",
    }
    assert effect_page.facts(values) == [
        ("memory", "16 GiB"),
        ("time for measuring, at most", "90 s"),
        ("processor", "x"),
    ]


def test_picture_for_papers(tmp_path, several):
    save_json(several, tmp_path / "a.json")
    picture = tmp_path / "p.svg"
    done = run("report", tmp_path / "a.json", "-o", tmp_path / "p.html", "--svg", picture)
    assert done.exit_code == 0, done.output
    drawn = ElementTree.parse(picture).getroot()
    lines = drawn.findall(f".//{SVG}g[@fill='none']/{SVG}path")
    assert len(lines) == 3 * 4, "ideal, blocking, native and thread, for three sizes"
    for line in lines:
        for x, y in spots(line.get("d")):
            assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT
    said = {text.text for text in drawn.iter(f"{SVG}text")}
    assert {"thread", "computation alone, ms"} <= said
    # The picture contains its colours, since it has no page.
    assert "var(" not in picture.read_text()


def test_ticks_are_round_and_within_the_axis():
    for last in (0.7, 3.0, 47.0, 999.0, 12345.0):
        labels = [float(label.replace(",", "")) for _, label in Axis(last).ticks]
        steps = {round(b - a, 6) for a, b in zip(labels, labels[1:])}
        assert len(steps) == 1 and 3 <= len(labels) <= 7 and labels[-1] <= last


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema": "weft-bench/2",\n "points": [}', "at line 2"),
        ('{"schema": "something"}', "schema weft-bench/2"),
        ('{"schema": "weft-bench/1", "machine": {}, "points": []}', "nothing was measured"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path, content, said):
    path = tmp_path / "bad.json"
    path.write_text(content)
    done = run("report", path, "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "page.html").exists()


def test_a_missing_file_is_named(tmp_path):
    done = run("compare", tmp_path / "none.json", tmp_path / "none.json")
    assert done.exit_code == 2
    assert "none.json" in done.output


def test_a_result_equals_itself(several):
    found = versus.compare(several, several)
    assert found.count("same") == len(found.ratios) == 3 * 3 * 10
    assert found.changes == ()
    assert "The winner changed nowhere" in found.sentence


def test_compare_finds_what_became_faster_and_the_changed_winner():
    before = result({"thread": hides(0.9), "tcc": hides(0.3)})
    after = result({"thread": hides(0.3), "tcc": hides(0.9)})
    found = versus.compare(before, after)
    by_name = {r.name: r for r in found.ratios if r.amount == 4}
    assert by_name["tcc"].times.median == pytest.approx(1100 / 1700)
    assert by_name["tcc"].verdict == "faster"
    assert by_name["tcc"].times.low == pytest.approx(1100 * 0.995 / (1700 * 1.005))
    assert by_name["thread"].verdict == "slower"
    assert by_name["blocking"].verdict == "same"
    change = next(c for c in found.changes if c.computation_us == 1000.0)
    assert (change.before, change.after) == ("thread", "tcc")


def test_runs_with_one_and_with_several_libraries_are_compared():
    one, two = result({"thread": hides(0.9)}), result({"thread": hides(0.9)})
    two.points += points("thread", hides(0.2), mpi="openmpi 5.0.10")
    found = versus.compare(two, one)
    assert found.count("same") == 2 * 10 and found.changes == ()
    assert [name.rpartition(": ")[2] for name in found.only_a] == ["openmpi thread"]
    assert found.only_b == ()


def test_a_difference_within_the_spread_is_none():
    before, after = (result({"thread": hides(s)}, spread=0.05) for s in (0.9, 0.85))
    assert versus.compare(before, after).count("same") == 20


def test_other_amounts_are_read_between_the_points():
    a, b = result({"thread": hides(0.9)}), result({"thread": hides(0.9)})
    b.points = [
        replace(p, computation_us=x_us, total_us=statistic(hides(0.9)(x_us)))
        for p in b.points
        for x_us in (1.04 * p.computation_us,)
    ]
    ratios = [r for r in versus.compare(a, b).ratios if r.name == "thread"]
    assert len(ratios) == 10
    assert all(r.times.median == pytest.approx(1.0, abs=0.004) for r in ratios)


def test_what_only_one_result_has_is_said(several):
    found = versus.compare(several, result({"thread": hides(0.9)}))
    assert any("64 KiB" in name for name in found.only_a)
    assert any(name.endswith(": native") for name in found.only_a)


def test_compare_command_ends_with_zero_and_writes_the_page(tmp_path):
    save_json(result({"thread": hides(0.9)}), tmp_path / "a.json")
    save_json(result({"thread": hides(0.4)}), tmp_path / "b.json")
    page = tmp_path / "page.html"
    done = run("compare", tmp_path / "a.json", tmp_path / "b.json", "-o", page)
    assert done.exit_code == 0, done.output
    assert "slower at 10" in " ".join(done.output.split())
    text = page.read_text()
    assert len(text) < MOST_BYTES
    assert "http" not in text


def test_a_whisker_that_is_far_too_long_is_cut(several):
    wide = deepcopy(several)
    wide.points = [
        replace(point, total_us=replace(point.total_us, high=1e9)) if point.amount == 3 else point
        for point in wide.points
    ]
    for graph in versus.charts(versus.compare(several, wide)).values():
        assert graph.area().y.last < 2


def test_charts_of_a_comparison_have_one_scale_and_one_order(several):
    slower = {1 << 16: hides(0.1), 1 << 20: hides(0.1)}
    found = versus.compare(several, sizes({"native": slower, "thread": slower}))
    axes = [graph.area().y for graph in versus.charts(found).values()]
    assert len(axes) == 2 and len({(axis.first, axis.last) for axis in axes}) == 1
    text = versus.render(found, ["a.json", "b.json"])
    titles = re.findall(r"<tr class=call><td colspan=7>(.*)", text)
    assert titles == re.findall(r"<h3>(.*?)</h3>", text) == list(versus.charts(found))


# ---- Regressions ------------------------------------------------------------------------------


def kept(directory, name: str, share: float, spread=0.005, **machine) -> str:
    found = result({"thread": hides(share)}, spread)
    found.machine = {"cpu": "Example", "cores": 2, **machine}
    path = directory / name
    save_json(found, path)
    return str(path)


@pytest.mark.parametrize(
    ("after", "limit", "status", "said"),
    [
        (0.9, "5%", 0, "Nowhere more than 5 % slower beyond the intervals."),
        (0.4, "5%", 1, "points are more than 5 % slower: MPI_Iallreduce, 1 MiB"),
        (0.4, "60", 0, "Nowhere more than 60 % slower"),
        (0.97, "5%", 0, "Nowhere more than 5 % slower"),  # a faster result is no failure
    ],
)
def test_slower_than_is_allowed_is_a_status(tmp_path, after, limit, status, said):
    old, new = kept(tmp_path, "old.json", 0.9), kept(tmp_path, "new.json", after)
    done = run("compare", old, new, "--fail-if-slower", limit)
    assert done.exit_code == status, done.output
    assert said in " ".join(done.output.split())


def test_what_the_intervals_do_not_decide_is_no_failure_and_is_counted(tmp_path):
    old, new = (kept(tmp_path, f"{s}.json", s, spread=0.2) for s in (0.9, 0.7))
    done = run("compare", old, new, "--fail-if-slower", "5%")
    assert done.exit_code == 0
    assert "10 of 20 points are not decided" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("machine", "limit", "said"),
    [
        ({"cores": 4}, "5%", "needs results of one machine: cores is 2 in"),
        ({}, "much", "--fail-if-slower much: write per cent, such as 5%"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_sentence(tmp_path, machine, limit, said):
    old, new = kept(tmp_path, "old.json", 0.9), kept(tmp_path, "new.json", 0.4, **machine)
    done = run("compare", old, new, "--fail-if-slower", limit)
    assert done.exit_code == 2 and said in done.output and done.output.count("\n") == 1


def of_a_lab(directory, burst: str, network: str) -> str:
    found = result({"thread": hides(0.9)})
    found.machine = {"cpu": "Example", "network": network}
    found.settings = {"lab": {"rate": "200mbit", "burst": burst}}
    path = directory / f"{len(network)}-{burst}.json"
    save_json(found, path)
    return str(path)


OLD_LAB, NEW_LAB = "lab, 200mbit links", "lab, 200mbit links, burst 64kb"


@pytest.mark.parametrize("network", [OLD_LAB, OLD_LAB + ", 1ms late"])
def test_labs_of_another_burst_are_not_one_machine(tmp_path, network):
    """Older results have the burst only among their settings."""
    files = [of_a_lab(tmp_path, burst, network) for burst in ("64kb", "256kb")]
    done = run("compare", *files, "--fail-if-slower", "5%")
    assert done.exit_code == 2 and "network is lab, 200mbit links, burst 64kb" in done.output
    done = run("compare", *files)
    assert done.exit_code == 0
    assert done.output.startswith("not of one machine: network is lab, 200mbit links, burst 64kb")


def test_labs_of_one_burst_are_one_machine_however_they_name_it(tmp_path):
    old, new = of_a_lab(tmp_path, "64kb", OLD_LAB), of_a_lab(tmp_path, "64kb", NEW_LAB)
    assert run("compare", old, new, "--fail-if-slower", "5%").exit_code == 0
    page = tmp_path / "page.html"
    assert run("report", old, "-o", page).exit_code == 0 and NEW_LAB in page.read_text()


def test_a_lab_names_its_burst():
    place = places.LabPlace({"rate": "200mbit", "burst": "64kb"})
    assert place.description == NEW_LAB


def test_one_result_and_nothing_in_common_are_refused(tmp_path):
    old = kept(tmp_path, "old.json", 0.9)
    done = run("compare", old)
    assert done.exit_code == 2 and "name two results or more" in done.output
    other = sizes({"tcc": {1 << 14: hides(0.9)}})
    other.machine = {"cpu": "Example", "cores": 2}
    save_json(other, tmp_path / "other.json")
    done = run("compare", old, tmp_path / "other.json", "--fail-if-slower", "5%")
    assert done.exit_code == 2 and "no candidate was measured in the same case" in done.output


def test_a_result_of_a_newer_schema_says_that_a_newer_weft_wrote_it(tmp_path):
    newer = tmp_path / "newer.json"
    newer.write_text('{"schema": "weft-bench/3", "points": 3}')
    done = run("compare", kept(tmp_path, "old.json", 0.9), newer)
    assert done.exit_code == 2 and "a newer Weft wrote it" in done.output


def test_several_results_are_a_history_with_a_picture(tmp_path):
    """The thread becomes slower in small steps, which exceed the limit in total."""
    shares = (0.9, 0.85, 0.8, 0.75)
    files = [kept(tmp_path, f"{i}.json", share) for i, share in enumerate(shares)]
    page = tmp_path / "history.html"
    done = run("compare", *files, "--fail-if-slower", "5%", "-o", page)
    assert done.exit_code == 1, done.output
    assert run("compare", *files[2:], "--fail-if-slower", "5%").exit_code == 0
    drawn = Page(page.read_text())
    hovers = [text.split("\n") for text in drawn.hover if text.startswith("result ")]
    assert [text[0] for text in hovers] == [f"result {number}" for number in range(1, 5)]
    values = [float(text[-1].removeprefix("thread: ")) for text in hovers]
    assert len(values) == 4 and values == sorted(values) and values[-1] > 1.05
    assert files[3] in drawn.texts and "result, the oldest first" in drawn.texts
    assert any("points are more than 5 % slower" in text for text in drawn.texts)
