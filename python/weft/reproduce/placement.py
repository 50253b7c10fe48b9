"""Denis et al., 2019, figure 7: a chain's time where threads share cores in different ways."""

from __future__ import annotations

from weft.reproduce.findings import Figure, Finding, Line, Reproduction
from weft.sim import native

PLACEMENTS = ("bind", "numa", "odd-even")
WAYS = {1: "one copy", 2: "two copies"}
NUMA_SLOWER = (2.5, 3.5)
ODD_EVEN_HALF = (0.4, 0.6)


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
    how = f"messages of {WAYS[copies]}"
    slower, half = numa / bind, odd_even / numa
    serial = (
        "Where the receiver alone moves a message, a hop of the chain needs one core at a time, so"
        " that a shared core costs switches and looks only."
        if copies == 1
        else "A send and its receive take turns on a shared core, cell by cell, and between the"
        " turns all other threads of that core look for work. But the reduction, more than half"
        " of a hop, takes as long on any core."
    )
    return [
        Finding(
            f"numa is 3 times slower than bind ({how})",
            f"{slower:.2f} times",
            NUMA_SLOWER[0] <= slower <= NUMA_SLOWER[1],
            serial,
        ),
        Finding(
            f"odd-even takes half the time of numa ({how})",
            f"{half:.2f} of it",
            ODD_EVEN_HALF[0] <= half <= ODD_EVEN_HALF[1],
            serial,
        ),
        Finding(
            f"bind is the fastest without computation ({how})",
            f"bind {bind:,.0f}, odd-even {odd_even:,.0f}, numa {numa:,.0f} µs",
            bind < min(numa, odd_even),
        ),
    ]


def with_computation(copies: int, bind: float, numa: float, odd_even: float) -> Finding:
    return Finding(
        f"with computation odd-even is the fastest (messages of {WAYS[copies]})",
        f"bind {bind:,.0f}, odd-even {odd_even:,.0f}, numa {numa:,.0f} µs",
        odd_even < min(bind, numa),
        "The computation takes as long as bind's communication.",
    )


def reproduce(machine: str = "knl64", ranks: int = 62) -> Reproduction:
    alone, together, found = [], [], []
    for copies, words in WAYS.items():
        values = times(machine, ranks, copies)
        alone.append(Line(words, [], values))
        found += findings(copies, *values)
        values = times(machine, ranks, copies, compute_us=values[0])
        together.append(Line(words, [], values))
        found.append(with_computation(copies, *values))
    names = list(PLACEMENTS)
    return Reproduction(
        what="placement",
        title="Iscan of 1 MiB along a chain",
        source="Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 5, figure 7",
        figures=[
            Figure("Without computation", "", "µs", alone, bars=True, names=names),
            Figure("With computation", "", "µs", together, bars=True, names=names),
        ],
        findings=found,
        conditions=f"{machine}, {ranks} ranks; callers sleep and leave the collective to the"
        " threads, which yield after a look that found nothing. The paper does not say by how many"
        " copies a message goes, so both are shown.",
    )
