"""Tests the comparison of two records of a program, before and after a change: table, page and
JSON. Most records are made here, and no program runs."""

from __future__ import annotations

import json

import pytest
from advise_runs import made

from weft.advise import analysis, compare, page, store


def named(name: str, call: str, *times_us: int) -> store.Stored:
    """Returns a record of one site in this function, with this time in us of each rank."""
    stored = made(call, [(rank, 0, us * 1000) for rank, us in enumerate(times_us)])
    for row in stored["site"]:
        row["place"] = f"f.c:7:{name}"
    return stored


def compared(before: store.Stored, after: store.Stored) -> compare.Comparison:
    return compare.compare(analysis.analyse(before), analysis.analyse(after))


def test_another_form_and_line_are_the_same_collective():
    found = compared(
        named("work", "MPI_Allreduce", 900, 700), named("work", "MPI_Iallreduce", 300, 100)
    )
    (change,) = found.changes
    assert (change.name, change.kind) == ("allreduce in work", compare.SHORTER)
    assert (change.before.us, change.after.us, change.us) == (800, 200, -600)
    assert compare.forms(change) == "MPI_Allreduce → MPI_Iallreduce"
    assert compare.sentences(found) == ["Shorter: allreduce in work (800 µs → 200 µs)."]


@pytest.mark.parametrize(
    ("after_ns", "said"),
    [
        (7_000_000, "30.0 % shorter"),
        (12_000_000, "20.0 % longer"),
        (10_001_000, "as long as before"),
    ],
)
def test_the_headline_says_what_became_of_the_run_time(after_ns, said):
    before, after = (named("work", "MPI_Bcast", 900, 700) for _ in range(2))
    for row in after["rank"]:
        row["elapsed_ns"] = after_ns
    assert compare.headline(compared(before, after)).endswith(f" after: {said}")


def test_a_site_of_one_rank_counts_for_its_part():
    stored = named("work", "MPI_Gather", 1000, 200)
    stored["site"][1]["size_class"] = 3
    (change,) = compared(stored, stored).changes
    assert change.before.us == 600 and change.before.calls == 1
    assert change.kind == compare.ALIKE


def test_what_is_new_and_what_is_gone_is_told():
    found = compared(named("one", "MPI_Allreduce", 500, 500), named("two", "MPI_Bcast", 900, 900))
    assert {one.name: one.kind for one in found.changes} == {
        "bcast in two": compare.NEW,
        "allreduce in one": compare.GONE,
    }
    assert found.changes[0].name == "bcast in two"  # the change of the longest call is first
    assert compare.sentences(found) == [
        "New: bcast in two (900 µs).",
        "Gone: allreduce in one (500 µs).",
    ]


def test_noise_is_no_change():
    found = compared(
        named("work", "MPI_Allreduce", 500, 500), named("work", "MPI_Allreduce", 540, 540)
    )
    assert found.changes[0].kind == compare.ALIKE  # 50 µs count little in a run of 10 ms
    assert compare.sentences(found) == [
        "No collective takes noticeably more or less time than before."
    ]


def test_runs_that_are_not_alike_are_told():
    found = compared(named("work", "MPI_Bcast", 5, 5), named("work", "MPI_Bcast", 5, 5, 5))
    assert "not alike: 2 ranks on 2 nodes before, 3 ranks on 3" in compare.notes(found)[0]


def test_the_json_of_a_comparison():
    before = named("work", "MPI_Allreduce", 900, 900)
    after = named("work", "MPI_Iallreduce", 300, 300)
    for row in after["rank"]:
        row["elapsed_ns"] = 5_000_000
    document = compare.as_json(compared(before, after))
    assert document["schema"] == "weft-advise-comparison/2"
    assert (document["before"]["run_us"], document["after"]["run_us"]) == (10_000, 5_000)
    assert document["run_change"] == pytest.approx(-0.5)
    (one,) = document["collectives"]
    assert one["after"]["forms"] == ["MPI_Iallreduce"]
    assert (one["change"], one["change_us"]) == ("shorter", -600)
    assert one["before"]["share"] == pytest.approx(0.09)


def test_the_page_of_a_comparison(tmp_path):
    path = tmp_path / "p.html"
    before = named("a<b>", "MPI_Allreduce", 900, 900)
    page.write_comparison(path, compared(before, named("two", "MPI_Bcast", 300, 300)))
    text = path.read_text()
    assert "<h1>10.0 ms before, 10.0 ms after: as long as before</h1>" in text
    assert "allreduce in a&lt;b&gt;" in text and "a<b>" not in text
    assert "A cell is empty where the run has no such call" in text and 'id="comparison"' in text


@pytest.fixture
def empty(tmp_path):
    """Returns a record of a program that called no collective."""
    stored = named("work", "MPI_Bcast", 5, 5)
    for table in ("site", "time_window", "arrival"):
        stored[table].clear()
    return stored


def test_a_page_without_sites_says_so(empty, tmp_path):
    path = tmp_path / "p.html"
    page.write(path, analysis.analyse(empty))
    text = path.read_text()
    assert "called no collective: there is nothing to advise on" in text
    assert "There is none: no rank called a collective." in text
    assert 'id="time"' not in text and "weft run" not in text.partition("<script")[0]


def test_a_comparison_without_collectives_says_so(empty, tmp_path):
    path = tmp_path / "p.html"
    found = compared(empty, empty)
    assert compare.sentences(found) == ["Neither run called a collective."]
    page.write_comparison(path, found)
    assert "Neither run called a collective." in path.read_text()


def test_two_records_are_compared(kept, call, tmp_path):
    page, data = tmp_path / "c.html", tmp_path / "c.json"
    done = call("advise", "--from", kept, "--before", kept, "-o", page, "--json", data)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "after: as long as before; one run each" in said and "allreduce in heap_case" in said
    assert "No collective takes noticeably more or less time" in said
    assert f"page: {page}" in said
    found = json.loads(data.read_text())
    assert {one["change"] for one in found["collectives"]} == {"alike"}
    assert "allreduce in heap_case" in page.read_text()


def test_a_comparison_that_cannot_be_written_is_shown(kept, call):
    done = call("advise", "--from", kept, "--before", kept, "-o", "/nowhere/c.html")
    assert "weft advise: /nowhere/c.html: No such file" in done.stderr
    assert "allreduce in heap_case" in done.stdout
