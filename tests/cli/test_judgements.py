"""Tests that each judge can give each answer: it gets figures for yes, for no, and for
undecided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from reproductions import run
from synthetic import hides, points, result, statistic

from weft.measurements import decisions, kernels, presets
from weft.measurements.kernels import Run
from weft.measurements.result import Alone, Result

HOLDS, DOES_NOT_HOLD, OPEN = "holds", "does not hold", "open"
TIGHT, WIDE = 0.005, 0.5
FUNCTION = "overlapped, call per row, function"


def noisy(**times_us: float) -> Run:
    """Returns a run whose samples vary so much that all intervals overlap."""
    variants = [
        kernels.VariantFigures([time_us * (0.3 + 0.14 * i) for i in range(11)], name)
        for name, time_us in times_us.items()
    ]
    return kernels.run_of(kernels.RunFigures("k", "MPICH 5.0.2", 2, variants, "x"), "here")


def series(make: Callable[..., Run], **times_us: float) -> list[Run]:
    runs = []
    for case, time_us in times_us.items():
        normal = case == "Normal"
        one = make(blocking=time_us if normal else 9e6, thread=9e6 if normal else time_us)
        told = {"series": "16 B, computation 1/2 of communication", "case": case}
        runs.append(replace(one, **told))
    return runs


def placements(spread: float, bind: float, numa: float, odd_even: float) -> Result:
    found = result({"thread": hides(0.5)})
    times = {"bind": bind, "numa": numa, "odd-even": odd_even}
    found.alone = [
        Alone(
            *("mpich 5.0.2", "thread", policy, "quiet", "selected", "scan", 1000000, 2, 2),
            statistic(900.0),
            statistic(time_us, spread),
        )
        for policy, time_us in times.items()
    ]
    return found


def libraries(first: float, second: float, late: float, spread: float = TIGHT) -> Result:
    """Returns a result of two libraries. The first hides more, but has a constant cost, so that the
    second may lead if there is little computation."""
    found = result({"thread": hides(first, late)}, spread)
    found.points += points("thread", hides(second), spread, mpi="openmpi 5.0.10")
    return found


def share(value: float) -> Run:
    return replace(run(blocking=1e3, thread=900.0), communication_share=value)


TCC = {"blocking": 1e3, FUNCTION: 700.0, "thread": 800.0, "tcc": 750.0}
SLOW_TCC = {"blocking": 1e3, FUNCTION: 1e3, "thread": 1e3, "tcc": 1.1e3}
PIPECG = {"blocking": 1e3, "halo only": 900.0, "thread": 700.0}
CPALS = {"blocking": 1e3, "thread": 900.0, "rows, thread": 700.0}
ATMOSPHERE = {"blocking": 1e3, "thread": 700.0, "behind pressure, thread": 800.0}
CORES = {"Normal": 30.0, "Prog1": 30.0, "Prog2": 20.0, "Prog4": 30.0}
GPUS = {"blocking": 100.0, "notify": 80.0, "graphs": 40.0}
# For each preset these are figures for which its statement holds, does not hold, and is undecided.
PLANTED: dict[str, tuple[Any, Any, Any]] = {
    "tcc": (run(**TCC), run(**SLOW_TCC), noisy(**TCC)),
    "threads-per-core": (
        series(run, **CORES),
        series(run, **{**CORES, "Prog4": 10.0}),
        series(noisy, **CORES),
    ),
    "placement": (
        placements(TIGHT, 1000, 3000, 1500),
        placements(TIGHT, 3000, 3000, 3000),
        placements(WIDE, 1000, 2000, 1500),
    ),
    "nbc-eff": (
        libraries(0.9, 0.3, 250.0),
        libraries(0.9, 0.3, 0.0),
        libraries(0.9, 0.3, 250.0, WIDE),
    ),
    "iallreduce-kernel": (
        run(blocking=1e3, thread=500.0),
        run(blocking=1e3, thread=1e3),
        noisy(blocking=1e3, thread=700.0),
    ),
    "pipecg": (run(**PIPECG), run(**{**PIPECG, "thread": 1e3}), noisy(**PIPECG)),
    "fft3d": (share(0.9), share(0.4), share(0.0)),
    "stencil": (
        run(blocking=1e3, thread=800.0),
        run(blocking=1e3, thread=1e3),
        noisy(blocking=1e3, thread=800.0),
    ),
    "cpals": (run(**CPALS), run(**{**CPALS, "rows, thread": 900.0}), noisy(**CPALS)),
    "atmosphere": (
        run(**ATMOSPHERE),
        run(**{**ATMOSPHERE, "behind pressure, thread": 1e3}),
        noisy(**ATMOSPHERE),
    ),
    "gpu-stencil": (run(**GPUS), run(**{**GPUS, "notify": 20.0}), noisy(**GPUS)),
}


def test_every_preset_has_planted_figures():
    assert [name for name, one in presets.presets(16).items() if one.runs] == [*PLANTED]


@pytest.mark.parametrize("name", PLANTED)
def test_each_judge_can_say_yes_no_and_neither(name):
    judge = presets.presets(16)[name].judge
    said = [judge(figures).verdict.removesuffix(" in direction") for figures in PLANTED[name]]
    assert said == [HOLDS, DOES_NOT_HOLD, OPEN]


OUTPUT = {"blocking": 1e3, "thread": 1e3, "behind steps, thread": 800.0, "nothing written": 700.0}


def test_the_atmosphere_s_output_has_a_judge_of_its_own():
    judge = presets.presets(16)["atmosphere"].judge
    slow = {**OUTPUT, "behind steps, thread": 1e3}
    found = [judge(run(**OUTPUT)), judge(run(**slow)), judge(noisy(**OUTPUT))]
    assert [one.verdict for one in found] == [HOLDS, DOES_NOT_HOLD, OPEN]


@pytest.mark.parametrize("name", ["tcc", "pipecg", "atmosphere"])
def test_one_part_that_is_open_leaves_the_whole_open_and_one_that_fails_does_not(name):
    """Each statement has two parts, the first of which holds."""
    parts = {
        "tcc": (TCC, "thread"),
        "pipecg": (PIPECG, "halo only"),
        "atmosphere": (
            {**ATMOSPHERE, "behind transform, thread": 800.0},
            "behind transform, thread",
        ),
    }
    times, second = parts[name]
    judge = presets.presets(16)[name].judge
    wide = noisy(**times).times_us[second]
    good = run(**times)
    assert judge(replace(good, times_us={**good.times_us, second: wide})).verdict == OPEN
    failing = 500.0 if name == "pipecg" else 1100.0
    assert judge(run(**{**times, second: failing})).verdict == "holds in part"


def test_medians_decide_nothing():
    """With equal medians the intervals alone decide."""
    slow = statistic(100.0)
    few = statistic(50.0, n=5)
    assert decisions.is_shorter(statistic(50.0), slow) is True
    assert decisions.is_shorter(statistic(50.0, WIDE), statistic(100.0, WIDE)) is None
    assert decisions.is_shorter(few, slow) is None
    assert decisions.is_shorter(statistic(100.0), slow) is False
    assert [decisions.reaches(statistic(2.0, by), 1.9) for by in (0.01, 0.5)] == [True, None]
    assert decisions.reaches(statistic(1.8, 0.01), 1.9) is False
    assert decisions.every([]) is None and decisions.some([]) is None
    assert decisions.every([True, None, False]) is False and decisions.every([True, None]) is None
    assert decisions.some([None, False]) is None and decisions.some([None, True]) is True
