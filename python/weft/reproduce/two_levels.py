"""JHPCN jh250041, topic 1: collectives in two levels, without switches that reduce."""

from __future__ import annotations

from weft.measurements.statistics import NOTICEABLE
from weft.reproduce.findings import SIMULATED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.published import named
from weft.sim import native

MACHINE, NODES, CORES = "sapphire120", 32, 120
SIZES = {8: "8 B", 1 << 20: "1 MiB"}
# Maps each size to the algorithm of one level that suits it.
ONE_LEVEL = {
    ("bcast", 8): "binomial",
    ("bcast", 1 << 20): "binomial",
    ("allreduce", 8): "recursive-doubling",
    ("allreduce", 1 << 20): "rabenseifner",
}
TWO_LEVELS = "hierarchical"
AS_MANY_STEPS = (
    "Where ranks fill one node after the other, a binomial tree has as many steps between nodes as"
    " two levels have."
)


def time_us(collective: str, bytes_: int, algorithm: str) -> float:
    return native.simulate(
        MACHINE,
        collective=collective,
        algorithm=algorithm,
        nodes=NODES,
        ranks=NODES * CORES,
        bytes=bytes_,
        engine="blocking",
    ).total_us


def finding(collective: str, bytes_: int, one: float, two: float) -> Finding:
    claim = named("sharp").claims[1]
    on = f"{collective}, {SIZES[bytes_]}, {NODES} × {MACHINE}"
    here = f"two levels {two:,.0f} µs; {ONE_LEVEL[collective, bytes_]} {one:,.0f} µs"
    holds = two < (1 - NOTICEABLE) * one
    return claim.found(SIMULATED, on, here, verdict_if(holds), "" if holds else AS_MANY_STEPS)


def part() -> Part:
    findings, shares, names = [], [], []
    for (collective, bytes_), algorithm in ONE_LEVEL.items():
        one = time_us(collective, bytes_, algorithm)
        two = time_us(collective, bytes_, TWO_LEVELS)
        findings.append(finding(collective, bytes_, one, two))
        names.append(f"{collective}, {SIZES[bytes_]}")
        shares.append(two / one)
    drawn = [Line("two levels", [], [*shares])]
    title = "Two levels, in the time of one level"
    return Part(
        findings=findings,
        figures=[Figure(title, "", "share", drawn, True, names)],
        conditions=f"Simulated: {NODES} × {MACHINE}, {CORES} ranks on each, Weft's algorithms."
        " In two levels the ranks of a node use its memory; in one level they send messages.",
    )
