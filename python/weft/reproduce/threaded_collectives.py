"""Okuma, Nanri, figures 1 and 2: an Ialltoall overlapped with a matrix-vector product.

The paper does not say how long its product takes. It is derived here from the memory's bandwidth.
Nor does the paper say whether its message size is that of one block or of all blocks together. Both
readings are simulated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from weft.measurements.statistics import NOTICEABLE
from weft.reproduce.claims import Claim
from weft.reproduce.findings import (
    SIMULATED,
    Figure,
    Finding,
    Line,
    Part,
    Verdict,
    verdict_if,
)
from weft.reproduce.measured import LARGE
from weft.reproduce.published import named
from weft.sim import native

MACHINE = "sandybridge16"
THREADS = 16  # threads of a rank; the first one polls after each of its rows
COLUMNS = 512  # columns of the inner loop between two polls
PER_ROW, INNER, NO_CALLS = "call per row", "inner calls", "no calls"
FUNCTION, THREAD, TCC, BLOCKING = PER_ROW, "thread", "TCC", "blocking"
# This is the ratio of times up to which calls for progress count as having hardly any effect.
NEARLY_NONE = 1.05
READINGS = ("blocks", "all blocks together")
DIRECTION = "It holds in direction; the paper does not say how long its product takes."
OWN_BLOCK = (
    "A rank's block for itself is copied by whoever carries the collective out: where no thread"
    " does, by the caller before its product, while the messages move by themselves."
)
ONE_ALGORITHM = (
    "Here both carry out one algorithm, whose construction costs nothing in the simulator, so that"
    " the carrier alone makes no difference."
)
# A smaller share of the time without overlap counts as little.
LITTLE, TO_HIDE = "There is little to hide.", 0.1
BY_THEMSELVES = (
    "All messages leave at once, and the network cards move them by themselves, so that calls have"
    " nothing to do: the paper expected that, too, and could not explain its 2 nodes."
)


@dataclass(frozen=True)
class Case:
    nodes: int
    bytes: int
    order: int
    published: tuple[float, float, float]  # published speedups of function, thread and TCC

    @property
    def rows(self) -> int:
        return self.order // self.nodes // THREADS

    def block(self, reading: str) -> int:
        return self.bytes if reading == READINGS[0] else self.bytes // self.nodes

    def on(self, reading: str) -> str:
        return f"{self.nodes} × {MACHINE}, {reading} of {self.bytes // 1000:,} KB"


FIGURE_1 = Case(2, 5_000_000, 4_000, (1.346, 1.127, 1.166))
FIGURE_2 = Case(32, 500_000, 30_000, (1.338, 1.020, 1.271))
CASES = (FIGURE_1, FIGURE_2)
Times = dict[str, float]  # time in us by variant


def product_us(case: Case) -> float:
    """Returns the time of a node's part of the product in us: the matrix is read once. The
    bandwidth is twice that of a copy, which reads and writes."""
    facts = json.loads(native.machine_file(MACHINE).read_text())
    bytes_per_us = 2 * facts["copy"]["numa_node"] * facts["numa_nodes"]
    return 8 * case.order**2 / case.nodes / bytes_per_us


@cache
def times(case: Case, reading: str) -> Times:
    """Simulates a case. If a thread communicates, one thread fewer computes."""

    def total_us(engine: str, **more: object) -> float:
        threads = THREADS - (engine in ("thread", "tcc"))
        return native.simulate(
            MACHINE,
            collective="alltoall",
            algorithm="linear",
            nodes=case.nodes,
            ranks=case.nodes,
            bytes=case.block(reading),
            engine=engine,
            callers="leave",
            compute=product_us(case) * THREADS / threads,
            **more,
        ).total_us

    return {
        BLOCKING: total_us("blocking"),
        NO_CALLS: total_us("function"),
        PER_ROW: total_us("function", calls=case.rows),
        INNER: total_us("function", calls=case.rows * (case.order // COLUMNS)),
        THREAD: total_us("thread"),
        TCC: total_us("tcc"),
    }


def factors(found: Times) -> list[float]:
    return [found[BLOCKING] / found[way] for way in (FUNCTION, THREAD, TCC)]


def gains(claim: Claim, case: Case, on: str, found: Times) -> Finding:
    function, thread, tcc = faster = factors(found)
    here = f"function {function:.2f}, thread {thread:.2f}, TCC {tcc:.2f} times"
    holds = min(faster) > 1 / (1 - NOTICEABLE)
    hidden_at_most = 1 - product_us(case) / found[BLOCKING]
    why = DIRECTION if holds else LITTLE if hidden_at_most < TO_HIDE else OWN_BLOCK
    return claim.found(SIMULATED, on, here, verdict_if(holds), why)


EQUAL = "No noticeable difference."


def order(
    claim: Claim,
    on: str,
    found: Times,
    fast: str,
    slow: str,
    equal: str = EQUAL,
    slower: str = "",
) -> Finding:
    """Returns the finding on whether `fast` is faster than `slow`. `equal` and `slower` are the
    reasons if it is not."""
    here = f"{fast} {found[fast]:,.0f} µs, {slow} {found[slow]:,.0f} µs"
    holds = found[fast] < (1 - NOTICEABLE) * found[slow]
    is_slower = found[slow] < (1 - NOTICEABLE) * found[fast]
    why = "" if holds else slower if is_slower else equal
    return claim.found(SIMULATED, on, here, verdict_if(holds), why)


def calls(claim: Claim, case: Case, on: str, found: Times) -> Finding:
    longer = found[NO_CALLS] / found[PER_ROW]
    verdict: Verdict = verdict_if(longer > LARGE if case is FIGURE_1 else longer < NEARLY_NONE)
    why = BY_THEMSELVES if case is FIGURE_1 and longer < NEARLY_NONE else ""
    return claim.found(SIMULATED, on, f"without calls {longer:.2f} times as long", verdict, why)


CONDITIONS = (
    f"Simulated: {MACHINE}, a rank of {THREADS} threads on each node. Alltoall sends all blocks at"
    " once, as the paper's LibNBC does. The product takes as long as its matrix needs from the"
    " memory, and 16/15 of that where one thread communicates. Message size: of a block, and of all"
    " blocks together, since the paper does not say which."
)


def part() -> Part:
    """Returns the findings and figures of experiment tcc."""
    of_case = dict(zip(CASES, named("tcc").claims))
    _, _, function_first, tcc_first, *_ = named("tcc").claims
    findings, figures = [], []
    for case in CASES:
        drawn = [Line("published", [], [*case.published])]
        for reading in READINGS:
            found, on = times(case, reading), case.on(reading)
            findings.append(gains(of_case[case], case, on, found))
            findings.append(order(function_first, on, found, FUNCTION, THREAD, slower=OWN_BLOCK))
            findings.append(order(tcc_first, on, found, TCC, THREAD, ONE_ALGORITHM))
            drawn.append(Line(reading, [], [*factors(found)]))
        title = f"{case.nodes} nodes, {case.bytes // 1000:,} KB, order {case.order:,}"
        names = ["function, call per row", THREAD, TCC]
        figures.append(Figure(title, "", "times as fast as blocking", drawn, True, names))
    return Part(findings, figures, CONDITIONS)


def part_of_calls() -> Part:
    """Returns the findings and figures of experiment progress-calls."""
    *of_nodes, where = named("progress-calls").claims
    findings = []
    for case, claim in zip(CASES, of_nodes):
        for reading in READINGS:
            found, on = times(case, reading), case.on(reading)
            findings.append(calls(claim, case, on, found))
            findings.append(order(where, on, found, PER_ROW, INNER))
    names = [NO_CALLS, PER_ROW, INNER]
    figures = [
        Figure(
            case.on(reading),
            "",
            "µs, with computation",
            [Line("function", [], [times(case, reading)[name] for name in names])],
            True,
            names,
        )
        for case in CASES
        for reading in READINGS
    ]
    return Part(findings, figures, CONDITIONS)
