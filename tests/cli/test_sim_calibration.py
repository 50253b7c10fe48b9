"""Tests what --calibrate derives from times of messages, and the comparison of measured with
simulated times."""

from __future__ import annotations

import json

import pytest
from python_weft import weft

from weft.sim import against, calibration, native
from weft.sim.native import SimError
from weft.system import installation

SIZES = (8, 1024, 4096, 16384, 65536, 131072, 262144, 1 << 20, 2 << 20, 4 << 20)
LATENCY, OVERHEAD, GAP, EAGER = 20.0, 2.0, 0.5, 16384


def way_us(size: int, rate: float, burst: float = 0, peak: float = 0) -> float:
    """Returns a message's time by the model: a token bucket, and a handshake before long
    messages."""
    asks = 2 * LATENCY + OVERHEAD if size > EAGER else 0
    fast = min(size, burst / (1 - rate / peak)) if burst else 0
    moving = fast / peak if fast else 0
    return LATENCY + 2 * OVERHEAD + GAP + asks + moving + (size - fast) / rate


def figures(rate: float, burst: float = 0, peak: float = 0, **other) -> calibration.PingPong:
    facts = {
        "gap_us": GAP,
        "send_us": OVERHEAD,
        "receive_us": OVERHEAD,
        "poll_us": 0.4,
        "eager_bytes": EAGER,
        "left_us": 1.0,
        "unlooked_us": 1.0,
        "one_way": [[size, way_us(size, rate, burst, peak)] for size in SIZES],
        "exchange": [[size, way_us(size, rate, burst, peak)] for size in SIZES],
        "core_bytes": 196608,
        "sender_core_us": 1.0,
        # With RDMA the receiver's core does nothing; noise makes the figure negative.
        "receiver_core_us": -5.0,
    }
    return calibration.parsed(json.dumps(facts | other))


def test_a_plain_network_is_found_again():
    found = calibration.network_of(figures(rate=1000))
    assert found["latency_us"] == pytest.approx(LATENCY, abs=0.1)
    assert found["overhead_us"] == OVERHEAD and found["gap_us"] == GAP
    assert found["bytes_per_us"] == pytest.approx(1000, rel=0.01)
    assert found["eager_bytes"] == EAGER
    assert found["burst_bytes"] == found["burst_bytes_per_us"] == found["window_bytes"] == 0
    assert found["send_us_per_kib"] == found["recv_us_per_kib"] == 0


def test_the_burst_of_a_rate_limiter_is_found_again():
    found = calibration.network_of(figures(rate=25, burst=256000, peak=1000))
    assert found["bytes_per_us"] == pytest.approx(25, rel=0.01)
    assert found["burst_bytes"] == pytest.approx(256000, rel=0.03)
    assert found["burst_bytes_per_us"] == pytest.approx(1000, rel=0.05)


def test_core_time_is_a_messages_less_its_overhead_and_no_longer_than_an_exchange():
    core = {"sender_core_us": OVERHEAD + 192 * 0.5, "receiver_core_us": OVERHEAD + 192 * 1.0}
    found = calibration.network_of(figures(rate=25, **core))
    assert found["send_us_per_kib"] == pytest.approx(0.5)
    assert found["recv_us_per_kib"] == pytest.approx(1.0)
    # In an exchange each KiB takes 1024 / 1000 us.
    found = calibration.network_of(figures(rate=1000, **core))
    assert found["send_us_per_kib"] == pytest.approx(1.024 / 3, rel=0.01)
    assert found["recv_us_per_kib"] == pytest.approx(2 * 1.024 / 3, rel=0.01)
    found = calibration.network_of(figures(rate=25, burst=256000, peak=1000, **core))
    assert found["recv_us_per_kib"] == pytest.approx(2 * 1.024 / 3, rel=0.05)


def test_what_has_moved_without_a_look_is_the_window():
    left = 3 * (1 << 20) / 25
    found = calibration.network_of(figures(rate=25, left_us=left, unlooked_us=4 * left / 3))
    assert found["window_bytes"] == pytest.approx(1 << 20, rel=0.01)
    # The message moves by itself once both sides have agreed, which needs polling.
    found = calibration.network_of(figures(rate=25, unlooked_us=4 * left / 3))
    assert found["window_bytes"] == calibration.WHOLE


@pytest.mark.parametrize("text", ["", "{}", '{"gap_us": 1}', "[1]"])
def test_other_output_is_refused(text):
    with pytest.raises(SimError, match="what pingpong has printed: "):
        calibration.parsed(text)


def test_too_few_lengths_are_refused():
    with pytest.raises(SimError, match="fewer than two lengths"):
        figures(rate=25, one_way=[[8, 1.0], [1 << 20, 2.0]])


def row(simulated: float, crowded: bool = False) -> against.Row:
    return against.Row("allreduce", 8, 2, 2, "thread", 0.0, 100.0, simulated, crowded)


def test_shares_are_counted_apart_for_crowded_cores():
    rows = [row(100), row(118), row(121), row(79), row(300, crowded=True)]
    assert [one.is_near for one in rows] == [True, True, False, False, False]
    assert against.summary(rows) == [
        "no more ranks than cores: 2 of 4 within 20% (50%); the median ratio is 1.09",
        "more ranks than cores: 0 of 1 within 20% (0%); the median ratio is 3.00",
    ]


class NoLab:
    """Replaces a lab. Its jobs are not run."""

    def __init__(self, *_, **__) -> None:
        pass

    def __enter__(self) -> NoLab:
        return self

    def __exit__(self, *_) -> None:
        pass


@pytest.mark.parametrize(("nodes", "rests"), [(1, False), (2, True)])
def test_only_between_nodes_a_measurement_rests(monkeypatch, tmp_path, nodes, rests):
    result, asked = tmp_path / "overlap.json", []

    def said_by(_mpi, command, *_) -> str:
        asked.extend(command)
        result.write_text("{}")
        return ""

    monkeypatch.setattr(calibration, "said_by", said_by)
    monkeypatch.setattr(calibration, "program_of", lambda _mpi, name: name)
    case = against.Case("allreduce", 8, nodes, 2, ("thread",))
    assert against.measured(None, case, None, result) == {}
    assert ("--pause-us" in asked) is not rests


@pytest.mark.skipif(not installation.native_part("weft-sim").exists(), reason="needs make build")
def test_measured_cases_are_simulated_with_their_computation(monkeypatch):
    def measured(_mpi, case, _lab, _result) -> dict:
        if case.collective == "bcast":
            raise native.SimError("overlap failed")
        engine = {"immediate_us": {"median": 100.0}, "total_us": {"median": 1000.0}}
        engines = [{"engine": name, **engine} for name in case.engines]
        return {"computation_us": {"median": 900.0}, "engines": engines}

    monkeypatch.setattr(against, "measured", measured)
    monkeypatch.setattr(against, "Lab", NoLab)
    monkeypatch.setattr(against.os, "sched_getaffinity", lambda _: {0, 1})
    machine = json.loads(native.machine_file("skylake48").read_text())
    # The machine has more NUMA nodes than a node of the lab has cores.
    assert machine["numa_nodes"] > 1
    words = {"rate": "200mbit", "burst": "256kb", "delay": "0"}
    cases = [
        against.Case("allreduce", 65536, 1, 2, ("function", "thread")),
        against.Case("bcast", 65536, 4, 4, ("tcc",)),
        against.Case("alltoall", 65536, 4, 4, ("tcc",)),
    ]
    missing: list[str] = []
    rows = list(against.compare(machine, words, None, cases, missing.append))
    assert missing == ["bcast of 65,536 bytes on 4 nodes: overlap failed"]
    assert [(row.engine, row.compute_us) for row in rows] == [
        *(("function", 0.0), ("function", 900.0), ("thread", 0.0), ("thread", 900.0)),
        *(("tcc", 0.0), ("tcc", 900.0)),
    ]
    assert [row.crowded for row in rows] == [False] * 4 + [True] * 2
    assert all(row.simulated_us > row.compute_us for row in rows)
    assert [row.measured_us for row in rows] == [100.0, 1000.0] * 3


def test_a_busy_machine_is_told_of():
    assert against.busy_note(0.1, 2) == ""
    assert "load 3.0 on 2 cores" in against.busy_note(3.0, 2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--lab", "nodes=2"), "needs --calibrate or --against-measured"),
        (("--calibrate", "--mpi", "moon"), "moon"),
    ],
)
def test_the_command_refuses_in_one_sentence(words, says):
    done = weft("sim", *words)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("weft sim: ") and done.stderr.count("\n") == 1
    assert says in done.stderr
