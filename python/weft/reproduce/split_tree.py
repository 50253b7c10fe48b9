"""Denis et al., 2019, figures 14 and 17 to 19: trees that are split between both kinds of cores."""

from __future__ import annotations

from weft.reproduce.findings import Figure, Finding, Line, Reproduction
from weft.sim import native

SPLITS = (0, 1, 2, 3)
SWITCHES = [52, 58, 62]  # the first numbers of ranks at which S = 1, 2, 3 is best, on 64 cores
WHY = (
    "The model counts equal transfers and shares them out evenly; here threads stay where they were"
    " placed, wait for their turn, and share the memory's bandwidth."
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


def totals(
    machine: str, collective: str, cores: int, fewest: int, order: str
) -> tuple[list[int], Totals, list[float]]:
    """By number of ranks the time of collective and computation together: for each split, and
    where the collective blocks."""
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
    """The first number of ranks from which on S is at least 1, 2, 3 in the best split."""
    best = [min(SPLITS, key=lambda s: by_split[s][i]) for i in range(len(ranks))]
    return [
        next((n for i, n in enumerate(ranks) if min(best[i:]) >= split), 0) for split in SPLITS[1:]
    ]


def title(machine: str, collective: str, order: str) -> str:
    how = "level after level" if order == "levels" else "as soon as each message can go"
    return f"I{collective} on {machine}, {how}"


def lines(ranks: list[int], by_split: Totals, blocking: list[float]) -> list[Line]:
    x = [*map(float, ranks)]
    found = [Line(f"S = {split}", x, by_split[split]) for split in SPLITS]
    return [*found, Line("blocking", x, blocking)]


def judged(
    machine: str, collective: str, order: str, cores: int, fewest: int
) -> tuple[Figure, list[Finding]]:
    ranks, by_split, blocking = totals(machine, collective, cores, fewest, order)
    least = min(min(times) for times in by_split.values())
    at = next(n for i, n in enumerate(ranks) if least in [by_split[s][i] for s in SPLITS])
    found = []
    words = f"I{collective} on {cores} cores"
    if order == "levels" and cores == 64:
        here = switches(ranks, by_split)
        found.append(
            Finding(
                f"{words}: the best S switches at {', '.join(map(str, SWITCHES))} ranks",
                ", ".join(str(n) if n else "never" for n in here),
                here == SWITCHES,
                "" if here == SWITCHES else WHY,
            )
        )
    if order == "levels":
        found.append(
            Finding(
                f"{words}: the least total is at {LEAST[cores]} ranks",
                f"at {at}",
                abs(at - LEAST[cores]) <= 1,
                "One more or less is taken for the same, since the curve is flat there.",
            )
        )
    drawn = lines(ranks, by_split, blocking)
    return Figure(title(machine, collective, order), "ranks", "µs, with computation", drawn), found


def reproduce(fewest: int = 44) -> Reproduction:
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
    return Reproduction(
        what="split-tree",
        title="Trees split between the application's cores and those for communication",
        source="Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, sections 6 and 7,"
        " figures 14 and 17 to 19",
        figures=figures,
        findings=findings,
        conditions="Messages of 2 MiB along a binomial tree, one rank on a core, threads by numa."
        " The computation on all cores takes as long as the blocking collective there; with fewer"
        " ranks each computes more.",
    )
