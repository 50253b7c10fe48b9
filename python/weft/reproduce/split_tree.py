"""Denis et al., 2019, figures 14 and 17 to 19: trees that are split between both kinds of cores."""

from __future__ import annotations

from functools import cache

from weft.reproduce.findings import SIMULATED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.hangs import Range, would_hold
from weft.reproduce.published import named
from weft.sim import native

FEWEST = 44  # smallest number of ranks in the figures
SPLITS = (0, 1, 2, 3)
SWITCHES = [52, 58, 62]  # the first numbers of ranks at which S = 1, 2, 3 is best, on 64 cores
WHY = (
    "The model counts equal transfers and shares them out evenly; here threads stay where they were"
    " placed, wait for their turn, and share the memory's bandwidth."
)
# The machine's switch and wake-up are those of the system; MPC's threads switch in user space.
SWITCHES_HOLD = (
    Range("knl64", "core.switch_us", high=2.8),
    Range("knl64", "core.wake_us", high=13),
)
REDUCE = (
    "S = 1 and S = 2 take nearly as long with 57 ranks, and switches of threads decide: here the"
    f" system's, in MPC those of user space. {would_hold(*SWITCHES_HOLD)}"
)
LEAST = {64: 50, 48: 38}  # ranks with the least total, as measured by the paper


def blocking_us(machine: str, collective: str, ranks: int) -> float:
    return simulated(machine, collective, ranks, engine="blocking").communication_us


def simulated(machine: str, collective: str, ranks: int, **options: object) -> native.Run:
    return native.simulate(
        machine,
        collective=collective,
        algorithm="binomial",
        ranks=ranks,
        bytes="2MiB",
        transport="mpi",
        placement="numa",
        callers="leave",
        **options,
    )


Totals = dict[int, list[float]]


@cache
def totals(
    machine: str, collective: str, cores: int, fewest: int, order: str
) -> tuple[list[int], Totals, list[float]]:
    """Returns the numbers of ranks, and the total time of collective and computation for each: by
    split, and with the blocking collective."""
    ranks = list(range(fewest, cores))
    work_us = blocking_us(machine, collective, cores) * cores
    by_split = {
        split: [
            simulated(
                machine, collective, n, split=split, order=order, compute=work_us / n
            ).total_us
            for n in ranks
        ]
        for split in SPLITS
    }
    blocking = [blocking_us(machine, collective, n) + work_us / n for n in ranks]
    return ranks, by_split, blocking


def switches(ranks: list[int], by_split: Totals) -> list[int]:
    """Returns the first numbers of ranks from which S is at least 1, 2 and 3 in the best split; 0
    if there is none."""
    best = [min(SPLITS, key=lambda s: by_split[s][i]) for i in range(len(ranks))]
    return [
        next((n for i, n in enumerate(ranks) if min(best[i:]) >= split), 0) for split in SPLITS[1:]
    ]


def title(machine: str, collective: str, order: str) -> str:
    how = "level after level" if order == "levels" else "as soon as each message can go"
    return f"I{collective} on {machine}, {how}"


def lines(ranks: list[int], by_split: Totals, blocking: list[float]) -> list[Line]:
    x = [*map(float, ranks)]
    found = [Line(f"S = {split}", x, [*by_split[split]]) for split in SPLITS]
    return [*found, Line("blocking", x, [*blocking])]


def judged(
    machine: str, collective: str, order: str, cores: int, fewest: int
) -> tuple[Figure, list[Finding]]:
    """Returns the figure, and the findings in it. Nothing was published for trees without an order
    of levels."""
    ranks, by_split, blocking = totals(machine, collective, cores, fewest, order)
    found = []
    on = f"I{collective} on {cores} cores"
    if order == "levels" and cores == 64:
        found.append(of_switches(on, switches(ranks, by_split)))
    if order == "levels":
        found.append(of_least(on, cores, least_at(ranks, by_split)))
        # The computation takes as long as the collective.
        all_cores = 2 * blocking_us(machine, collective, cores)
        found += of_shape(on, by_split, blocking[-1], all_cores)
    drawn = lines(ranks, by_split, blocking)
    return Figure(title(machine, collective, order), "ranks", "µs, with computation", drawn), found


def least_at(ranks: list[int], by_split: Totals) -> int:
    return min(range(len(ranks)), key=lambda i: min(by_split[s][i] for s in SPLITS)) + ranks[0]


def of_switches(on: str, here: list[int]) -> Finding:
    holds = here == SWITCHES
    claim = named("split-tree").claims[0]
    said = numbers(here)
    return claim.found(SIMULATED, on, said, verdict_if(holds), "" if holds else REDUCE)


def of_least(on: str, cores: int, at: int) -> Finding:
    claim = named("split-tree").claims[1 if cores == 64 else 2]
    near = abs(at - LEAST[cores]) <= 1
    flat = "One more or less is taken for the same, since the curve is flat there."
    return claim.found(
        SIMULATED, on, f"at {at}", verdict_if(near), flat if near and at != LEAST[cores] else ""
    )


def of_shape(on: str, by_split: Totals, blocking: float, all_cores: float) -> list[Finding]:
    """Returns the findings on the curves' shapes, which do not depend on the numbers of ranks.
    `blocking`: total time with the blocking collective and one core free."""
    grows, beats_blocking, fewer, *_ = named("split-tree").claims[3:]
    best = [min(SPLITS, key=lambda s: by_split[s][i]) for i in range(len(by_split[0]))]
    rises = best[0] < best[-1] and all(a <= b for a, b in zip(best, best[1:]))
    last = by_split[best[-1]][-1]
    least = min(min(totals) for totals in by_split.values())
    return [
        grows.found(
            SIMULATED,
            on,
            f"best S from {best[0]} to {best[-1]}",
            verdict_if(rises),
            "" if rises else WHY,
        ),
        beats_blocking.found(
            SIMULATED,
            on,
            f"S = {best[-1]} {last:,.0f} µs, blocking {blocking:,.0f} µs",
            verdict_if(last < blocking),
        ),
        fewer.found(
            SIMULATED,
            on,
            f"{least:,.0f} µs, with ranks on all cores {all_cores:,.0f} µs",
            verdict_if(least < all_cores),
        ),
    ]


def numbers(found: list[int]) -> str:
    return ", ".join(str(n) if n else "never" for n in found)


def part(fewest: int = FEWEST) -> Part:
    cases = [
        ("knl64", "bcast", "levels", 64, fewest),
        ("knl64", "reduce", "levels", 64, fewest),
        ("knl64", "reduce", "dataflow", 64, fewest),
        ("skylake48", "reduce", "levels", 48, max(2, fewest - 12)),
    ]
    figures, findings = [], []
    for case in cases:
        drawn, found = judged(*case)
        figures.append(drawn)
        findings += found
    return Part(
        figures=[beside(cases), *figures],
        findings=findings,
        conditions="Simulated: messages of 2 MiB along a binomial tree, one rank on a core, threads"
        " by numa. The computation on all cores takes as long as the blocking collective there;"
        " with fewer ranks each computes more.",
    )


def beside(cases: list[tuple[str, str, str, int, int]]) -> Figure:
    """Returns a figure of the published and the simulated numbers of ranks, for trees of 64 cores,
    level after level."""
    drawn = [Line("published", [], [*SWITCHES, LEAST[64]])]
    for machine, collective, order, cores, fewest in cases:
        if (order, cores) == ("levels", 64):
            ranks, by_split, _ = totals(machine, collective, cores, fewest, order)
            found = [*switches(ranks, by_split), least_at(ranks, by_split)]
            drawn.append(Line(f"I{collective}", [], [n or None for n in found]))
    names = ["S = 1 from", "S = 2 from", "S = 3 from", "least total"]
    return Figure("Published and found, 64 cores", "", "ranks", drawn, True, names)
