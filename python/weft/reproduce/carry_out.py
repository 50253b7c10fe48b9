"""Tests one finding in all possible ways. A test that fails is reported with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from weft.reproduce import (
    measured,
    model,
    placement,
    precision,
    shm_allreduce,
    split_tree,
    split_tree_measured,
    threaded_collectives,
    threads_per_core,
    two_levels,
)
from weft.reproduce.claims import Published
from weft.reproduce.findings import (
    COMPUTED,
    MEASURED,
    SIMULATED,
    Finding,
    Part,
    Reproduction,
)
from weft.reproduce.here import Machine, lacking
from weft.reproduce.measured import ERRORS, Bench

# These experiments are programs that no preset of weft bench runs.
PROGRAMS: dict[str, Callable[[Bench], Part]] = {
    "precision": precision.part,
    "shm-allreduce": shm_allreduce.measured,
    "split-tree": split_tree_measured.part,
}
SIMULATIONS: dict[str, Callable[[], Part]] = {
    "tcc": threaded_collectives.part,
    "progress-calls": threaded_collectives.part_of_calls,
    "placement": placement.part,
    "sharp": two_levels.part,
    "split-tree": split_tree.part,
    "threads-per-core": threads_per_core.part,
    "model": model.part,
    "shm-allreduce": shm_allreduce.simulated,
}


def ways_of(one: Published) -> tuple[str, ...]:
    """Returns the ways in which the finding's experiment can be requested. Computed findings belong
    to the simulated ones."""
    simulated = (SIMULATED,) if one.name in SIMULATIONS else ()
    return (MEASURED, *simulated) if one.measured else simulated


def takes_a_budget(one: Published, bench: Bench) -> bool:
    return bool(one.preset) and not bench.preset(one.preset).program


def reproduce(
    one: Published, bench: Bench, machine: Machine, only: Optional[str] = None
) -> Reproduction:
    parts = [carried_out(one, how, bench, machine) for how in ways_of(one) if only in (None, how)]
    findings = [finding for part in parts for finding in part.findings]
    if only is None:
        findings += untestable(one)
    return Reproduction(
        name=one.name,
        title=one.title,
        paper=one.source,
        findings=in_order(one, findings),
        figures=[figure for part in parts for figure in part.figures],
        conditions=[part.conditions for part in parts if part.conditions],
    )


def carried_out(one: Published, how: str, bench: Bench, machine: Machine) -> Part:
    """Carries out an experiment in one way; if that is impossible, each statement says why."""
    simulated = how == SIMULATED
    claims = one.claims_by(SIMULATED, COMPUTED) if simulated else one.claims_by(MEASURED)
    why = "" if simulated else lacking(one.needs, machine)
    if not why:
        try:
            return SIMULATIONS[one.name]() if simulated else measurement(one, bench)
        except ERRORS as error:
            why = f"it failed: {' '.join(str(error).split())}"
    return Part([claim.untested(how, why) for claim in claims])


def measurement(one: Published, bench: Bench) -> Part:
    if one.name in PROGRAMS:
        return PROGRAMS[one.name](bench)
    return measured.part(one, bench)


def untestable(one: Published) -> list[Finding]:
    """Returns the statements that no machine can test on which Weft is measured."""
    return [claim.untested("", f"needs {claim.needs}") for claim in one.claims if claim.needs]


def in_order(one: Published, findings: list[Finding]) -> list[Finding]:
    """Returns the findings in the order of the paper's statements."""
    places = {(claim.where, claim.words): place for place, claim in enumerate(one.claims)}
    return sorted(findings, key=lambda finding: places[finding.where, finding.published])
