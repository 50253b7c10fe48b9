"""Makes up machines and runs of programs for tests of `weft reproduce`."""

from __future__ import annotations

from weft.measurements import kernels
from weft.measurements.kernels import Run
from weft.reproduce import (
    findings,
    here,
)

LARGE = here.Machine(cores=16, gpu_problem="", mpis=("mpich", "openmpi"))
SMALL = here.Machine(cores=2, gpu_problem="no GPU here", mpis=("mpich",))


def run(network: str = "lab, 200mbit links", **times_us: float) -> Run:
    """Returns a run of a program with these variants, whose times vary little."""
    variants = [
        kernels.VariantFigures([time * (1 + 0.001 * i) for i in range(-5, 6)], name)
        for name, time in times_us.items()
    ]
    figures = kernels.RunFigures("k", "MPICH 5.0.2", 2, variants, "a problem", network=network)
    return kernels.run_of(figures, "here")


def verdicts(found: list[findings.Finding]) -> list[str]:
    return [finding.verdict for finding in found]
