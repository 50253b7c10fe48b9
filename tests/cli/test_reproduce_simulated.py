"""Tests the findings of `weft reproduce` that are simulated, and those that are computed by the
model."""

from __future__ import annotations

import pytest
from python_weft import weft
from reproductions import verdicts

from weft.cores import native as cores
from weft.data import stored
from weft.reproduce import (
    carry_out,
    findings,
    model,
    placement,
    shm_allreduce,
    split_tree,
    threaded_collectives,
    threads_per_core,
)
from weft.reproduce.findings import DOES_NOT_HOLD, HOLDS
from weft.reproduce.published import named
from weft.reproduce.threaded_collectives import LITTLE
from weft.system import installation

needs_simulator = pytest.mark.skipif(
    not installation.native_part("weft-sim").exists(), reason="needs make build"
)


# ---- Simulated findings -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "expected"),
    [((10, 30, 15), [True, True, True]), ((10, 20, 19), [False, False, True])],
)
def test_verdicts_follow_the_figures(times, expected):
    assert [finding.holds for finding in placement.findings(2, *times)] == expected


def test_switches_of_the_best_split_are_where_it_stays():
    by_split = {0: [1, 1, 9, 9], 1: [2, 2, 2, 9], 2: [3, 3, 3, 3], 3: [4, 4, 4, 4]}
    assert split_tree.switches([50, 51, 52, 53], by_split) == [52, 53, 0]
    assert split_tree.least_at([50, 51, 52, 53], {**by_split, 0: [2, 1, 9, 9]}) == 51


def test_split_trees_are_judged_by_switches_and_least_total():
    assert split_tree.of_switches("x", [52, 58, 62]).verdict == HOLDS
    found = split_tree.of_switches("x", [52, 57, 0])
    assert found.verdict == DOES_NOT_HOLD and found.here == "52, 57, never"
    assert [split_tree.of_least("x", 64, at).verdict for at in (50, 51, 53)] == [
        HOLDS,
        HOLDS,
        DOES_NOT_HOLD,
    ]
    assert "Skylake" in split_tree.of_least("x", 48, 38).published


def test_threads_per_core_is_judged_by_the_order():
    times = {"Normal": 4.0, "Prog1": 3.0, "Prog2": 1.0, "Prog4": 2.0}
    found = [
        threads_per_core.finding("x", size, ratio, times)
        for size in ("16", "1MiB")
        for ratio in (0.5, 2.0)
    ]
    assert verdicts(found) == [HOLDS, DOES_NOT_HOLD, DOES_NOT_HOLD, HOLDS]
    assert [one.where.split("figure ")[1] for one in found] == ["1", "2", "3", "4"]
    assert threads_per_core.switches("x", times).verdict == HOLDS
    assert threads_per_core.switches("x", {**times, "Prog4": 1.01}).verdict == DOES_NOT_HOLD


@pytest.mark.skipif(not installation.native_part("weft-cores").exists(), reason="needs make build")
def test_the_model_is_the_papers():
    found = model.asked()
    assert isinstance(found, cores.Model)
    assert model.of_the_model(found).verdict == HOLDS
    assert model.switches(found) == split_tree.SWITCHES
    assert model.beside_the_paper([52, 58, 62]).verdict == HOLDS
    apart = model.beside_the_simulator("reduce", [52, 58, 62], [52, 57, 0])
    assert apart.verdict == DOES_NOT_HOLD
    assert apart.here == "model 52, 58, 62; found 52, 57, never"


def test_a_prime_number_of_simulated_ranks_is_not_ideal_where_it_takes_longer():
    assert shm_allreduce.simulated_prime(8, 20.0, 18.0).verdict == HOLDS
    assert shm_allreduce.simulated_prime(8, 18.1, 18.0).verdict == DOES_NOT_HOLD


TIMES = {"blocking": 200, "no calls": 125, "call per row": 100, "inner calls": 101}
TIMES |= {"thread": 110, "TCC": 120}


def test_threaded_collectives_are_judged_by_what_all_three_gain_and_by_the_order(monkeypatch):
    claim, _, order, *_ = named("tcc").claims

    def gains(**times: float) -> findings.Finding:
        case = threaded_collectives.FIGURE_1
        return threaded_collectives.gains(claim, case, "x", {**TIMES, **times})

    monkeypatch.setattr(threaded_collectives, "product_us", lambda case: 90)
    found = gains()
    assert (found.verdict, found.here) == (HOLDS, "function 2.00, thread 1.82, TCC 1.67 times")
    assert "in direction" in found.why
    assert (gains(TCC=199).verdict, gains(blocking=99).why) == (DOES_NOT_HOLD, LITTLE)

    def in_order(fast: str, slow: str) -> findings.Finding:
        return threaded_collectives.order(order, "x", TIMES, fast, slow)

    assert verdicts([in_order("call per row", "thread"), in_order("thread", "call per row")]) == [
        HOLDS,
        DOES_NOT_HOLD,
    ]
    near = in_order("call per row", "inner calls")
    assert (near.verdict, near.why) == (DOES_NOT_HOLD, "No noticeable difference.")


def test_calls_matter_on_two_nodes_and_not_on_32():
    two, many, _ = named("progress-calls").claims
    for times, expected in ((TIMES, [HOLDS, DOES_NOT_HOLD]), ({**TIMES, "no calls": 104}, None)):
        found = [
            threaded_collectives.calls(claim, case, "x", times)
            for claim, case in zip((two, many), threaded_collectives.CASES)
        ]
        assert verdicts(found) == (expected or [DOES_NOT_HOLD, HOLDS])


@needs_simulator
def test_what_hides_an_alltoall_is_simulated_for_both_numbers_of_nodes():
    tcc, calls = threaded_collectives.part(), threaded_collectives.part_of_calls()
    for part, name in ((tcc, "tcc"), (calls, "progress-calls")):
        assert {one.published for one in part.findings} == {
            claim.words for claim in named(name).claims_by("simulated")
        }
        assert (
            len(part.findings) == {"tcc": 12}.get(name, 8)
            and "does not say which" in part.conditions
        )
    found = threaded_collectives.times(threaded_collectives.FIGURE_1, "all blocks together")
    product_us = threaded_collectives.product_us(threaded_collectives.FIGURE_1)
    assert product_us < found["call per row"] < 1.01 * found["blocking"]
    assert product_us * 16 / 15 <= found["thread"] < found["blocking"]


@needs_simulator
def test_what_does_not_hold_in_the_simulator_says_why():
    quick = ("tcc", "progress-calls", "sharp", "placement", "shm-allreduce")
    found = [one for name in quick for one in carry_out.SIMULATIONS[name]().findings]
    assert [one for one in found if one.verdict == DOES_NOT_HOLD and not one.why] == []


@needs_simulator
def test_placements_of_the_paper_are_simulated_with_a_verdict(tmp_path):
    written = tmp_path / "placement.html"
    done = weft("reproduce", "placement", "--only", "simulated", "--json", "--out", written)
    assert done.returncode == 0, done.stderr
    found = stored.parse(findings.Reproduction, done.stdout, "found", findings.SCHEMA)
    assert [line.name for line in found.figures[0].lines] == [
        "messages of one copy",
        "messages of two copies",
        "published",
    ]
    assert set(verdicts(found.findings)) <= {HOLDS, DOES_NOT_HOLD} and len(found.findings) == 16
    shown = written.read_text()
    assert "<title>messages of one copy: " in shown and "<script" not in shown
    assert "https://" not in shown.split("<main>")[1]
