"""Tests `weft advise --predict`, which simulates recorded calls on another machine."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from weft.advise import analysis, store
from weft.advise.predict import prediction, scaling
from weft.advise.predict.asked import Asked
from weft.advise.predict.costs import Costs, Operation, Places
from weft.advise.predict.replay import Geometry
from weft.data.stored import ResultError
from weft.sim import native

STEPS, COMPUTATION_US, RECORDED_US = 20, 5000, 400
BYTES = 4096


def record(path: Path, late_us: int = 0, computation_us: int = COMPUTATION_US) -> Path:
    """Writes a record of two ranks that compute and call an allreduce in each step. The last rank
    arrives later by `late_us`."""
    database = sqlite3.connect(path)
    with database:
        database.executescript(store.TABLES)
        about = {"schema": store.SCHEMA, "command": ["./app"], "addr2line": "addr2line"}
        rows = [(name, json.dumps(value)) for name, value in about.items()]
        database.executemany("INSERT INTO about VALUES (?, ?)", rows)
        step_us = computation_us + late_us + RECORDED_US
        for rank in (0, 1):
            database.execute(
                "INSERT INTO rank (rank, host, ranks, nodes, cores, elapsed_ns, mpi_ns)"
                " VALUES (?, ?, 2, 2, 2, ?, ?)",
                (rank, f"n{rank}", STEPS * step_us * 1000, STEPS * RECORDED_US * 1000),
            )
            own_us = RECORDED_US + (0 if rank else late_us)
            database.execute(
                "INSERT INTO site (rank, site, call, comm_size, comm_nodes, calls, bytes, ns,"
                " completed, between_ns, waited_ns, tests)"
                " VALUES (?, 0, 'MPI_Allreduce', 2, 2, ?, ?, ?, 0, 0, 0, 0)",
                (rank, STEPS, STEPS * BYTES, STEPS * own_us * 1000),
            )
            for number in range(STEPS):
                left_us = (number + 1) * step_us
                arrived = (left_us - own_us) * 1000
                row = (rank, number, arrived, left_us * 1000, rank)
                database.execute("INSERT INTO arrival VALUES (?, 0, 'world', ?, ?, ?, ?, 0)", row)
    database.close()
    return path


@pytest.fixture(scope="module")
def costs() -> Costs:
    return Costs(native.machine_file("skylake48"))


def predicted(path: Path, costs: Costs, geometry: Geometry, scale: str = "weak"):
    stored = store.read(path)
    advice = analysis.analyse(stored)
    return prediction.predict(stored, advice, costs, geometry, scaling.named(scale))


def test_weak_scaling_of_an_allreduce_per_step_is_computation_and_the_models_time(tmp_path, costs):
    found = predicted(record(tmp_path / "r"), costs, Geometry(2, 64, 4))
    cost_us = costs.library(Operation("allreduce", BYTES, Places(64, 16))).us
    assert found.collective_us.expected == pytest.approx(STEPS * cost_us)
    assert found.elapsed_us.expected == pytest.approx(STEPS * (COMPUTATION_US + cost_us))
    low, high = (1 - prediction.MODEL) * STEPS * cost_us, (1 + prediction.MODEL) * STEPS * cost_us
    assert found.collective_us.low == pytest.approx(low)
    assert found.collective_us.high == pytest.approx(high)


def test_strong_scaling_divides_computation_and_keeps_what_is_reduced(tmp_path, costs):
    found = predicted(record(tmp_path / "r"), costs, Geometry(2, 64, 4), "strong")
    cost_us = costs.library(Operation("allreduce", BYTES, Places(64, 16))).us
    expected_us = STEPS * (COMPUTATION_US / 32 + cost_us)
    assert found.elapsed_us.expected == pytest.approx(expected_us)
    assert found.sites[0].bytes == BYTES and found.sites[0].ranks == 64


def test_who_comes_first_waits_and_with_more_ranks_longer(tmp_path, costs):
    late_us = 1000
    path = record(tmp_path / "r", late_us)
    same, more = (predicted(path, costs, Geometry(2, ranks, 1)) for ranks in (2, 64))
    cost_us = costs.library(Operation("allreduce", BYTES, Places(2, 2))).us
    # The computation before the first call is not known.
    waits_us = (STEPS - 1) * late_us / 2
    assert same.collective_us.expected == pytest.approx(waits_us + STEPS * cost_us)
    assert more.sites[0].waiting_us > same.sites[0].waiting_us
    assert more.collective_us.low < more.collective_us.expected < more.collective_us.high


def test_a_collective_takes_no_less_time_with_more_ranks_or_bytes(costs):
    sizes = [
        costs.library(Operation("allreduce", n, Places(64, 16))).us for n in (8, 4096, 1 << 20)
    ]
    ranks = [
        costs.library(Operation("alltoall", 1024, Places(nodes * 8, nodes))).us
        for nodes in (2, 8, 64, 1024)
    ]
    assert sizes == sorted(sizes) and ranks == sorted(ranks)
    assert not costs.library(Operation("alltoall", 1024, Places(8192, 1024))).is_exact


def test_shared_links_and_empty_buckets_take_longer(tmp_path, costs):
    facts = json.loads(costs.path.read_text())
    facts["network"] |= {"bytes_per_us": 25, "burst_bytes": 1 << 18, "burst_bytes_per_us": 2000}
    file = tmp_path / "lab.json"
    file.write_text(json.dumps(facts))
    lab = Costs(file)
    alone = Operation("allreduce", 1 << 18, Places(4, 4))
    full, half, empty = (lab.library(alone, fill).us for fill in (1.0, 0.25, 0.0))
    assert full < half < empty
    shared = alone._replace(places=Places(4, 4, 2))
    assert lab.library(shared, 0.0).us > 1.5 * empty


def test_communicators_grow_as_all_ranks_do():
    grid = Geometry(16, 256, 16)
    # The communicator is a row of a grid of ranks.
    assert grid.places([0, 1, 2, 3]) == Places(16, 1)
    # The communicator is a column, and other columns use the same nodes.
    assert grid.places([0, 4, 8, 12]) == Places(16, 16, 16)
    assert Geometry(4, 4, 1).places([0, 2]) == Places(2, 2, 1)


def test_a_file_scales_sites_of_its_own(tmp_path, costs):
    file = tmp_path / "scale.json"
    file.write_text(json.dumps({"base": "weak", "computation": -1, "sites": {"MPI_Allreduce": 1}}))
    found = predicted(record(tmp_path / "r"), costs, Geometry(2, 8, 1), str(file))
    assert found.sites[0].bytes == 4 * BYTES
    file.write_text('{"base": "sideways"}')
    with pytest.raises(ResultError, match="a scale needs base"):
        scaling.named(str(file))


ASKED = Asked(nodes=8, per_node=4, machine="skylake48", scale="weak")


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"nodes": 0}, "--predict needs the nodes"),
        ({"per_node": 0}, "--per-node takes a number from 1 on"),
        ({"per_node": 49}, "--per-node 49: a node of skylake48 has 48 cores"),
        ({"machine": "abacus"}, "no machine 'abacus'; there are knl64"),
        ({"machine": None}, "--predict needs --machine: knl64"),
        ({"scale": None}, "--predict needs --scale strong"),
        ({"scale": "sideways"}, "--scale takes strong, weak, or a JSON file, not 'sideways'"),
    ],
)
def test_what_is_asked_wrongly_is_refused_in_a_sentence(wrong, says):
    with pytest.raises(ResultError) as refused:
        replace(ASKED, **wrong).check()
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_a_record_that_says_nothing_is_refused(tmp_path):
    with pytest.raises(ResultError, match="no computation between collectives"):
        ASKED.answered(record(tmp_path / "idle", computation_us=0))
    newer = record(tmp_path / "newer")
    with sqlite3.connect(newer) as database:
        database.execute(
            "UPDATE about SET value = ? WHERE name = 'schema'", ('"weft-advise-record/99"',)
        )
    with pytest.raises(ResultError, match="needs a record of this Weft's schema"):
        ASKED.answered(newer)


def test_the_command_says_it_and_writes_json(call, tmp_path):
    kept, answer = record(tmp_path / "kept"), tmp_path / "p.json"
    words = ["--predict", "--nodes", 8, "--per-node", 4, "--machine", "skylake48", "--from", kept]
    done = call("advise", *words, "--scale", "weak", "--json", answer)
    assert done.returncode == 0, done.stderr
    assert "On 32 ranks on 8 nodes of skylake48" in " ".join(done.stdout.split())
    found = json.loads(answer.read_text())
    assert found["schema"] == "weft-advise-prediction/1" and found["ranks"] == 32
    assert found["time_us"]["low"] <= found["time_us"]["expected"] <= found["time_us"]["high"]
    assert found["assumptions"] and found["sites"][0]["call"] == "MPI_Allreduce"
    done = call("advise", "--nodes", 8, "--from", kept)
    assert done.returncode == 2 and "need --predict" in done.stderr
