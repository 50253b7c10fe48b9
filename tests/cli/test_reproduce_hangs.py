"""What simulated verdicts hang on: at the ends of a range the statement holds, and with the
machine as it is described it does not."""

from __future__ import annotations

import json

import pytest

from weft.reproduce import placement, split_tree, threads_per_core
from weft.reproduce.findings import DOES_NOT_HOLD
from weft.reproduce.hangs import Range, would_hold
from weft.sim import native
from weft.system import installation

pytestmark = pytest.mark.skipif(
    not installation.native_part("weft-sim").exists(), reason="needs make build"
)
RANKS = 62


def three_times(machine: str) -> bool:
    first, *_ = placement.findings(2, *placement.times(machine, RANKS, 2))
    return first.holds


def hidden(machine: str) -> bool:
    bind_us = placement.times(machine, RANKS, 1)[0]
    both_us = placement.times(machine, RANKS, 1, compute_us=bind_us)[0]
    return placement.hidden(1, bind_us, bind_us, both_us).holds


def fastest(machine: str) -> bool:
    bind_us = placement.times(machine, RANKS, 1)[0]
    times = placement.times(machine, RANKS, 1, compute_us=bind_us)
    return placement.with_computation(1, *times).holds


def switches(machine: str) -> bool:
    ranks, totals, _ = split_tree.totals(machine, "reduce", 64, split_tree.FEWEST, "levels")
    return split_tree.of_switches("", split_tree.switches(ranks, totals)).holds


def order(size: str, ratio: float, of: str):
    (place,) = [one for one in threads_per_core.PLACES if (one.machine, one.size) == (of, size)]

    def holds(machine: str) -> bool:
        words = (place.cores, place.nodes, place.size, ratio)
        times = threads_per_core.totals(machine, *words)
        return threads_per_core.finding("", size, ratio, times).holds

    return holds


CASES = {
    "numa takes three times as long": (placement.THREE_TIMES, three_times),
    "bind hides nothing": (placement.HIDDEN, hidden),
    "odd-even is the fastest": (placement.FASTEST, fastest),
    "Ireduce switches at 52, 58 and 62": (split_tree.SWITCHES_HOLD, switches),
    **{
        f"threads per core, {size}, {ratio}, {machine}": (ranges, order(size, ratio, machine))
        for (machine, size, ratio), ranges in threads_per_core.RANGES.items()
    },
}


@pytest.mark.parametrize("what", CASES)
def test_it_holds_at_the_ends_of_each_range_and_not_as_described(what, tmp_path):
    ranges, holds = CASES[what]
    assert not holds(ranges[0].machine)
    for one in ranges:
        group, name = one.parameter.split(".")
        for end in (one.low, one.high):
            if end is None:
                continue
            facts = json.loads(native.machine_file(one.machine).read_text())
            facts[group][name] = end
            file = tmp_path / f"{one.parameter}-{end}.json"
            file.write_text(json.dumps(facts))
            assert holds(str(file)), (one.parameter, end)


def test_a_range_is_told_with_the_machines_own_value():
    one = Range("knl64", "core.switch_us", low=7.5, high=15.5)
    said = would_hold(one, Range("knl64", "copy.numa_node", high=99_000))
    assert said == (
        "It would hold with core.switch_us from 7.5 up to 15.5 (knl64 has 3) or copy.numa_node up"
        " to 99,000 (knl64 has 160,000)."
    )


def test_refusals_of_threads_placements_and_trees_name_what_they_hang_on():
    found = [*threads_per_core.part().findings, *placement.part().findings]
    found += split_tree.part().findings
    refused = [one for one in found if one.verdict == DOES_NOT_HOLD]
    assert len(refused) >= 8
    for one in refused:
        assert "It would hold with " in one.why or "It would not hold with " in one.why, one
