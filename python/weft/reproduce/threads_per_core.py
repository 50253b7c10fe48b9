"""JHPCN jh250041, topic 1, figures 1 to 4: several progress threads on one core."""

from __future__ import annotations

from dataclasses import dataclass

from weft.measurements.statistics import NOTICEABLE
from weft.reproduce.findings import SIMULATED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.hangs import NOWHERE, Range, would_hold
from weft.reproduce.published import named
from weft.sim import native

# Maps the name of a case to the number of progress threads on a core; 0 means none.
CASES = {"Normal": 0, "Prog1": 1, "Prog2": 2, "Prog4": 4}
SIZES = {"16": "16 B", "1MiB": "1 MiB"}
RATIOS = (0.5, 2.0)  # ratios of computation to communication, both as in case Normal
PUBLISHED = {
    ("16", 0.5): "Prog2 is the fastest",
    ("16", 2.0): "Normal is the fastest",
    ("1MiB", 0.5): "Prog4 is the fastest",
    ("1MiB", 2.0): "Prog4 is faster than Normal",
}
WHY = {
    "16": "All times are a few rounds of messages. Who wins depends on how long a round takes"
    " compared with a switch of threads, and neither is known of the study's machine.",
    "1MiB": "With more threads on a core, fewer cores move the data: Prog4 leads where these alone"
    " use up the memory's bandwidth, so that it hangs on how many times a core's it is.",
}
# The key names the machine, the case and the published figure.
RANGES = {
    ("sapphire120", "16", 2.0): (Range("sapphire120", "core.switch_us", low=20.5),),
    ("knl64", "1MiB", 0.5): (
        Range("knl64", "copy.core", low=11_100),
        Range("knl64", "copy.numa_node", high=99_000),
    ),
    ("sapphire120", "1MiB", 0.5): (
        Range("sapphire120", "copy.core", low=8000),
        Range("sapphire120", "copy.numa_node", high=89_000),
    ),
}
OF_ONE_NODE = (
    "On one node the whole allgather is over after 17 µs, about as long as a thread needs to wake"
    " up."
)
ALL_HIDDEN = (
    "Where the threads hide all of the communication, four a core leave it 96 of 120 cores, so that"
    " Prog4 takes 2.5 times the communication and Normal 3 times."
)


@dataclass(frozen=True)
class Place:
    machine: str
    cores: int
    nodes: int
    size: str

    @property
    def words(self) -> str:
        return f"{self.nodes} × {self.machine}"


PLACES = (
    Place("knl64", 64, 1, "16"),
    Place("knl64", 64, 1, "1MiB"),
    Place("sapphire120", 120, 32, "16"),
    Place("sapphire120", 120, 1, "1MiB"),
)


def ranks_of(threads: int, cores: int) -> int:
    """Returns the largest number of ranks that leaves enough cores for their threads."""
    return cores if threads == 0 else cores * threads // (threads + 1)


def simulated(
    machine: str, cores: int, nodes: int, size: str, threads: int, work_us: float
) -> native.Run:
    ranks = ranks_of(threads, cores) * nodes
    return native.simulate(
        machine,
        collective="allgather",
        algorithm="bruck" if size == "16" else "ring",
        bytes=size,
        nodes=nodes,
        ranks=ranks,
        transport="mpi",
        callers="leave",
        engine="thread" if threads else "blocking",
        placement=f"pack:{threads}" if threads else "bind",
        compute=work_us / ranks,
    )


def totals(machine: str, cores: int, nodes: int, size: str, ratio: float) -> dict[str, float]:
    alone = simulated(machine, cores, nodes, size, 0, 0).communication_us
    work_us = ratio * alone * cores * nodes
    return {
        name: simulated(machine, cores, nodes, size, threads, work_us).total_us
        for name, threads in CASES.items()
    }


def why(machine: str, size: str, ratio: float) -> str:
    """Returns what in the model contradicts the statement, and on which of the model's parameters
    that depends."""
    if (machine, size, ratio) == ("knl64", "16", 0.5):
        return f"{OF_ONE_NODE} {NOWHERE}"
    reason = ALL_HIDDEN if (size, ratio) == ("16", 2.0) else WHY[size]
    ranges = RANGES.get((machine, size, ratio), ())
    return f"{reason} {would_hold(*ranges)}" if ranges else reason


def finding(
    where: str, size: str, ratio: float, times: dict[str, float], machine: str = ""
) -> Finding:
    order = sorted(times, key=lambda name: times[name])
    number, holds = {
        ("16", True): (0, order[0] == "Prog2"),
        ("16", False): (1, order[0] == "Normal"),
        ("1MiB", True): (2, order[0] == "Prog4"),
        ("1MiB", False): (3, times["Prog4"] < times["Normal"]),
    }[size, ratio < 1]
    claim = named("threads-per-core").claims[number]
    said = f"from the fastest on: {', '.join(order)}"
    reason = "" if holds else why(machine, size, ratio)
    return claim.found(SIMULATED, where, said, verdict_if(holds), reason)


def switches(where: str, times: dict[str, float]) -> Finding:
    claim = named("threads-per-core").claims[4]
    said = f"Prog2 {times['Prog2']:,.1f}, Prog4 {times['Prog4']:,.1f} µs"
    slower = times["Prog2"] < (1 - NOTICEABLE) * times["Prog4"]
    return claim.found(SIMULATED, where, said, verdict_if(slower), "" if slower else WHY["16"])


def ratio_in_words(ratio: float) -> str:
    return "1/2" if ratio < 1 else "2"


def figure(where: str, size: str, ratio: float, times: dict[str, float]) -> Figure:
    return Figure(
        f"Iallgather of {SIZES[size]}, computation {ratio_in_words(ratio)}, {where} (published:"
        f" {PUBLISHED[size, ratio]})",
        "",
        "µs, with computation",
        [Line("total", [], list(times.values()))],
        bars=True,
        names=list(times),
    )


def part(places: tuple[Place, ...] = PLACES) -> Part:
    figures, findings = [], []
    for place in places:
        for ratio in RATIOS:
            times = totals(place.machine, place.cores, place.nodes, place.size, ratio)
            figures.append(figure(place.words, place.size, ratio, times))
            findings.append(finding(place.words, place.size, ratio, times, place.machine))
            if place.size == "16" and ratio < 1:
                findings.append(switches(place.words, times))
    return Part(
        figures=figures,
        findings=findings,
        conditions="Simulated: all the computation together is the same in all cases, and callers"
        " leave the collective to the threads, which yield after a look that found nothing."
        " Allgather by bruck for 16 B and by ring for 1 MiB. Long messages are simulated on one"
        " node, since a ring over 32 has 15 million messages. The report gives an order, and no"
        " figures.",
    )
