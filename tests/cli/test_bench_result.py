"""Tests results of benchmarks: statistics, the range of computation, merging, files, and damaged
files."""

from __future__ import annotations

import csv
import json
import math
import random
import sqlite3
from dataclasses import replace

import pytest

from weft.bench import settings
from weft.bench.settings import SettingsError
from weft.data.stored import ResultError
from weft.measurements import result, statistics, store
from weft.measurements.result import Candidate, Statistic

NATIVE = Candidate("mpich 5.0.2", "native")
HALF = Candidate("mpich 5.0.2", "half", "bind", "quiet")
CASE = ("allreduce", 1 << 20, 2, 2)


def test_interval_encloses_the_median_with_95_percent():
    for n in (*range(statistics.FEWEST, 60), 1100, 3000):
        place = statistics.interval_place(n)
        outside = 2 * sum(math.comb(n, k) for k in range(place + 1)) / 2**n
        wider = 2 * sum(math.comb(n, k) for k in range(place + 2)) / 2**n
        assert outside <= 0.05 < wider


def test_interval_covers_the_true_median():
    source = random.Random(1)
    hits = 0
    for _ in range(400):
        found = statistics.of([source.expovariate(1.0) for _ in range(15)])
        hits += found.low <= math.log(2) <= found.high
    assert hits / 400 > 0.93


def test_a_share_that_the_spread_drowns_is_not_known(half):
    point = half.points[0]
    assert point.known_share == point.hidden
    wide = replace(point, total_us=Statistic(60000.0, 20000.0, 120000.0, 9))
    assert wide.known_share is None
    assert replace(point, communication_us=5.0).known_share is None
    once = replace(point, total_us=Statistic(60000.0, 60000.0, 60000.0, 1))
    assert once.known_share is None


def test_settled_needs_samples_and_a_narrow_interval():
    assert not statistics.settled([100.0] * 5)
    assert statistics.settled([100.0] * 6)
    assert not statistics.settled([90.0, 95, 100, 100, 105, 110])
    assert statistics.settled([99.0, 99.5, 100, 100, 100.5, 101])


def test_amounts_reach_from_the_fastest_to_the_slowest_candidate():
    found = statistics.amounts_us([40.0, 100.0, 60.0], 10)
    assert (len(found), found[0], found[-1]) == (10, 4.0, 200.0)
    steps = [b - a for a, b in zip(found, found[1:])]
    assert max(steps) == pytest.approx(min(steps))
    assert statistics.amounts_us([40.0, 100.0], 1) == [40.0]


def test_amounts_may_be_named():
    assert settings.amounts_us("0.5x,2x", [40.0, 100.0]) == [20.0, 80.0]
    assert settings.amounts_us("40ms,1ms", [40.0]) == [1000.0, 40000.0]


def fill(path, complete=True) -> None:
    """Writes two jobs to a store, with 40 ms of communication, and 20 and 80 ms of computation.
    Engine `half` hides exactly half."""
    with store.Store(path) as file:
        run = file.new_run({"cpu": "x"}, {"seed": 1})
        ids = {c: file.candidate(run, c) for c in (NATIVE, HALF)}
        case = file.case(run, CASE, "gemm", [100, 400])
        for number in (1, 2):
            job = file.job(run, case, NATIVE.mpi, False, number)
            rows = [(None, "blocking", None, 40000.0 + number, None)]
            rows += [(ids[c], "immediate", None, 40000.0, None) for c in ids]
            for amount, work in enumerate((20000.0, 80000.0)):
                rows.append((None, "computation", amount, work, None))
                for c, share in ((NATIVE, -0.25), (HALF, 0.5)):
                    total = 40000.0 + work - share * min(40000.0, work)
                    rows += [(ids[c], "overlapped", amount, total + d, work) for d in (-9, 0, 9)]
            file.samples(job, rows)
        file.complete(run, complete)


@pytest.fixture
def half(tmp_path) -> result.Result:
    fill(tmp_path / "half.sqlite")
    return store.load(tmp_path / "half.sqlite")


def test_samples_of_all_rounds_make_a_point(half):
    points = {(p.engine, p.amount): p for p in half.points}
    assert len(points) == 4
    assert points["half", 0].hidden == pytest.approx(0.5)
    assert points["half", 1].hidden == pytest.approx(0.5)
    assert points["native", 0].hidden == pytest.approx(-0.25), "signed, not clamped"
    assert {p.communication_us for p in half.points} == {40000.0}
    assert points["half", 1].total_us == Statistic(100000.0, 99991.0, 100009.0, 6)
    assert points["half", 1].slowdown_of_computation == 1.0
    assert half.alone[0].blocking_us.median == 40001.5


def test_json_is_what_the_documentation_says(half, tmp_path):
    path = tmp_path / "x.json"
    result.save_json(half, path)
    data = json.loads(path.read_text())
    assert data["schema"] == "weft-bench/2"
    names = {"mpi", "engine", "placement", "backoff", "algorithm", "collective", "bytes", "ranks"}
    names |= {"nodes", "computation_us", "communication_us", "total_us", "hidden"}
    names |= {"slowdown_of_computation"}
    for point in data["points"]:
        assert names <= set(point)
        assert set(point["total_us"]) == {"median", "low", "high", "n"}
        saved = point["communication_us"] + point["computation_us"] - point["total_us"]["median"]
        smaller = min(point["communication_us"], point["computation_us"])
        assert point["hidden"] == pytest.approx(saved / smaller)
    assert result.load_json(path) == half == store.load(path)


def test_csv_has_a_line_per_point(half, tmp_path):
    path = tmp_path / "x.csv"
    result.save_csv(half, path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert float(rows[0]["total_us_median"]) == half.points[0].total_us.median


def test_runs_are_appended(tmp_path):
    path = tmp_path / "x.sqlite"
    fill(path)
    fill(path, complete=False)
    assert store.load_sqlite(path, 1).complete
    assert not store.load_sqlite(path).complete
    assert len(store.load_sqlite(path).points) == 4


def test_wrong_results_give_no_points(tmp_path):
    path = tmp_path / "x.sqlite"
    fill(path)
    with store.Store(path) as file:
        failed = Candidate(*HALF.key, status=result.FAILED, reason="a wrong result")
        file.candidate(1, failed)
    found = store.load(path)
    assert {p.engine for p in found.points} == {"native"}
    assert found.candidates[1].reason == "a wrong result"


def damage(path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("DROP TABLE sample", "table sample is missing"),
        ("UPDATE sample SET kind = 'x' WHERE id = 7", "table sample, row 7"),
        ("UPDATE sample SET us = 'y' WHERE id = 8", "table sample, row 8"),
        ("UPDATE about SET value = 'weft-bench-sqlite/9'", "weft-bench-sqlite/9"),
        ("UPDATE run SET machine = '{'", "table run, row 1"),
        ("DELETE FROM run", "table run"),
    ],
)
def test_a_damaged_database_is_refused_with_the_place(tmp_path, statement, names):
    path = tmp_path / "x.sqlite"
    fill(path)
    damage(path, statement)
    with pytest.raises(ResultError, match=names):
        store.load(path)


def test_a_cut_database_is_refused(tmp_path):
    path = tmp_path / "x.sqlite"
    fill(path)
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(ResultError, match="damaged"):
        store.load(path)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda t: t[: t.rindex('"half"')], r"no JSON: .* at line \d+"),
        (lambda t: t.replace("weft-bench/2", "weft-overlap/1"), "schema weft-bench/2 is needed"),
        (lambda t: t.replace('"ranks": 2', '"ranks": "two"', 1), r"points\[0\]\.ranks should be"),
        (lambda t: t.replace('"hidden"', '"hiden"', 1), r"points\[0\]\.hidden is missing"),
        (lambda t: t.replace('"status": "measured"', '"status": "lost"', 1), r"\.status should be"),
        (lambda t: "[]", "the whole should be"),
    ],
)
def test_damaged_json_is_refused_with_the_place(half, tmp_path, change, names):
    path = tmp_path / "x.json"
    result.save_json(half, path)
    path.write_text(change(path.read_text()))
    with pytest.raises(ResultError, match=names):
        store.load(path)


def test_no_file(tmp_path):
    with pytest.raises(ResultError, match=r"nothing\.json: cannot be read"):
        store.load(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: settings.size_bytes("--bytes", "1Mib"), "KiB, MiB"),
        (lambda: settings.size_bytes("--bytes", "0"), "at least 8B|between 8B"),
        (lambda: settings.seconds("--time-budget", "2m"), "min"),
        (lambda: settings.lab_words("nodes=2,rate=200Mb/s"), "bit, kbit, mbit or gbit"),
        (lambda: settings.lab_words("node=2"), "nodes=…, per-node=…"),
        (lambda: settings.lab_words("nodes=two"), "whole number"),
        (lambda: settings.check_amounts("ten"), "0.5x,2x"),
        (lambda: settings.check_amounts("0"), "between 1"),
        (lambda: settings.words("--engines", "thred", settings.ENGINES), "library-async"),
        (lambda: settings.counts("--ranks", "2,x"), "whole numbers"),
    ],
)
def test_refusals_name_what_would_be_right(call, names):
    with pytest.raises(SettingsError, match=names):
        call()


def test_words_keep_lists_of_cores_together():
    assert settings.words("--placements", "bind,list:0,1,numa") == ["bind", "list:0,1", "numa"]
    assert settings.size_bytes("--bytes", "1MiB") == 1 << 20
    assert settings.seconds("--time-budget", "2min") == 120
