"""Denis et al., 2019, figure 7: a chain's time where threads share cores in different ways."""

from __future__ import annotations

from weft.reproduce.findings import SIMULATED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.published import named
from weft.sim import native

PLACEMENTS = ("bind", "numa", "odd-even")
WAYS = {1: "messages of one copy", 2: "messages of two copies"}
NUMA_SLOWER = (2.5, 3.5)
ODD_EVEN_HALF = (0.4, 0.6)
PUBLISHED = (1.0, 3.0, 1.5)  # times as long as bind


def times(machine: str, ranks: int, copies: int, compute_us: float = 0) -> list[float]:
    runs = [
        native.simulate(
            machine,
            collective="scan",
            algorithm="chain",
            ranks=ranks,
            bytes="1MiB",
            placement=placement,
            callers="leave",
            copies=copies,
            compute=compute_us,
        )
        for placement in PLACEMENTS
    ]
    return [run.total_us for run in runs]


def findings(copies: int, bind: float, numa: float, odd_even: float) -> list[Finding]:
    three_times, half_of_numa, fastest, _ = named("placement").claims
    slower, half = numa / bind, odd_even / numa
    as_slow = NUMA_SLOWER[0] <= slower <= NUMA_SLOWER[1]
    as_fast = ODD_EVEN_HALF[0] <= half <= ODD_EVEN_HALF[1]
    serial = (
        "Where the receiver alone moves a message, a hop of the chain needs one core at a time, so"
        " that a shared core costs switches and looks only."
        if copies == 1
        else "A send and its receive take turns on a shared core, cell by cell, and between the"
        " turns all other threads of that core look for work. But the reduction, more than half"
        " of a hop, takes as long on any core."
    )
    return [
        three_times.found(
            SIMULATED,
            WAYS[copies],
            f"{slower:.2f} times",
            verdict_if(as_slow),
            "" if as_slow else serial,
        ),
        half_of_numa.found(
            SIMULATED,
            WAYS[copies],
            f"odd-even takes {half:.2f} of numa's time",
            verdict_if(as_fast),
            "" if as_fast else serial,
        ),
        fastest.found(
            SIMULATED,
            WAYS[copies],
            in_words(bind, numa, odd_even),
            verdict_if(bind < min(numa, odd_even)),
        ),
    ]


def in_words(bind: float, numa: float, odd_even: float) -> str:
    return f"bind {bind:,.0f}, odd-even {odd_even:,.0f}, numa {numa:,.0f} µs"


def with_computation(copies: int, bind: float, numa: float, odd_even: float) -> Finding:
    claim = named("placement").claims[3]
    return claim.found(
        SIMULATED,
        WAYS[copies],
        in_words(bind, numa, odd_even),
        verdict_if(odd_even < min(bind, numa)),
    )


def part(machine: str = "knl64", ranks: int = 62) -> Part:
    alone, together, relative, found = [], [], [], []
    for copies, words in WAYS.items():
        values = times(machine, ranks, copies)
        alone.append(Line(words, [], [*values]))
        relative.append(Line(words, [], [value / values[0] for value in values]))
        found += findings(copies, *values)
        values = times(machine, ranks, copies, compute_us=values[0])
        together.append(Line(words, [], [*values]))
        found.append(with_computation(copies, *values))
    relative.append(Line("published", [], [*PUBLISHED]))
    names = list(PLACEMENTS)
    return Part(
        figures=[
            Figure("Published and found", "", "times as long as bind", relative, True, names),
            Figure("Without computation", "", "µs", alone, True, names),
            Figure("With computation", "", "µs", together, True, names),
        ],
        findings=found,
        conditions=f"Simulated: {machine}, {ranks} ranks; callers sleep and leave the collective to"
        " the threads, which yield after a look that found nothing. The computation takes as long"
        " as bind's communication. The paper does not say by how many copies a message goes, so"
        " both are shown.",
    )
