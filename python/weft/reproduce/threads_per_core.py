"""JHPCN jh250041, Topic 1, figures 1 to 4: several progress threads on one core."""

from __future__ import annotations

from dataclasses import dataclass

from weft import info
from weft.bench.presets import threads_missing
from weft.reproduce.findings import Figure, Finding, Line, Reproduction
from weft.sim import native

CASES = {"Normal": 0, "Prog1": 1, "Prog2": 2, "Prog4": 4}  # threads on a core; 0: none
SIZES = {"16": "16 B", "1MiB": "1 MiB"}
RATIOS = (0.5, 2.0)  # computation over communication, both of Normal
WHY = {
    "16": "All times are a few rounds of messages. Who wins depends on how long a round takes"
    " compared with a switch of threads, and neither is known of the study's machine.",
    "1MiB": "With more threads on a core, each core moves more data; where the ring takes longer"
    " than the computation, that decides. Between the study's nodes a network card moves them.",
}


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
    """As many ranks as leave enough cores for their threads."""
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


def finding(where: str, size: str, ratio: float, times: dict[str, float]) -> Finding:
    order = sorted(times, key=lambda name: times[name])
    half = ratio < 1
    expected, holds = {
        ("16", True): ("Prog2 is the fastest", order[0] == "Prog2"),
        ("16", False): ("Normal is the fastest", order[0] == "Normal"),
        ("1MiB", True): ("Prog4 is the fastest", order[0] == "Prog4"),
        ("1MiB", False): ("Prog4 is faster than Normal", times["Prog4"] < times["Normal"]),
    }[size, half]
    return Finding(
        f"{SIZES[size]}, computation {ratio_in_words(ratio)} of communication: {expected}",
        f"{where}, from the fastest on: {', '.join(order)}",
        holds,
        "" if holds else WHY[size],
    )


def ratio_in_words(ratio: float) -> str:
    return "1/2" if ratio < 1 else "2"


def figure(where: str, size: str, ratio: float, times: dict[str, float]) -> Figure:
    return Figure(
        f"Iallgather of {SIZES[size]}, computation {ratio_in_words(ratio)}, {where}",
        "",
        "µs, with computation",
        [Line("total", [], list(times.values()))],
        bars=True,
        names=list(times),
    )


def reproduce(places: tuple[Place, ...] = PLACES) -> Reproduction:
    figures, findings = [], []
    for place in places:
        for ratio in RATIOS:
            times = totals(place.machine, place.cores, place.nodes, place.size, ratio)
            figures.append(figure(place.words, place.size, ratio, times))
            findings.append(finding(place.words, place.size, ratio, times))
    return Reproduction(
        what="threads-per-core",
        title="Several progress threads on one core",
        source="Nanri et al., JHPCN jh250041, Topic 1, figures 1 to 4 (32 nodes of 120 cores)",
        figures=figures,
        findings=findings,
        conditions="All the computation together is the same in all cases, and callers leave the"
        " collective to the threads, which yield after a look that found nothing. Allgather by"
        " bruck for 16 B and by ring for 1 MiB. Long messages are simulated on one node, since a"
        " ring over 32 has 15 million messages. `weft bench --preset threads-per-core` measures the"
        " same on this machine's cores. It lacks here: "
        f"{threads_missing(len(info.whole_cores()))}",
    )
