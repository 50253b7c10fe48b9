"""Denis et al., 2019, figures 1 to 7: the placement of threads, and the time of a chain with
each."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.cores import native as cores
from weft.reproduce.claims import Claim
from weft.reproduce.findings import COMPUTED, SIMULATED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.hangs import NOWHERE, Range, would_hold
from weft.reproduce.published import named
from weft.sim import native

PLACEMENTS = ("bind", "numa", "odd-even")
# These sentences explain why a shared core costs little, by the number of copies of a message.
TURNS = {
    1: "Where the receiver alone moves a message, a hop of the chain needs one core at a time, so"
    " that a shared core costs switches and looks only.",
    2: "A send and its receive take turns on a shared core, cell by cell, and between the turns all"
    " other threads of that core look for work. But the reduction, more than half of a hop, takes"
    " as long on any core.",
}
THREE_TIMES = (
    Range("knl64", "core.switch_us", low=7.5, high=15.5),
    Range("knl64", "message.cell_bytes", high=37_000),
    Range("knl64", "copy.reduce", low=12_200),
)
FASTEST = (Range("knl64", "core.switch_us", high=0.69),)
HIDDEN = (Range("knl64", "core.slice_us", low=3500),)
HANGS_OF_THREE_TIMES = {1: NOWHERE, 2: would_hold(*THREE_TIMES)}
WAYS = {1: "messages of one copy", 2: "messages of two copies"}
NUMA_SLOWER = (2.5, 3.5)
ODD_EVEN_HALF = (0.4, 0.6)
PUBLISHED = (1.0, 3.0, 1.5)  # times as long as bind
TWO_NODES = "numa:2 core:4 pu:1"  # figures 1 to 3: two NUMA nodes of four cores
HALF = (0.4, 0.6)  # range of the share of the time
NOTHING = 0.1  # greatest share that counts as not hidden
SOME = (
    "More than a tenth is hidden, in the slices of time that the system gives a rank's thread"
    " beside its computation; MPC schedules threads itself, in user space."
)
AT_ONCE = 2.0  # times as often as with numa: neighbours' exchanges overlap


def times(machine: str, ranks: int, copies: int, compute_us: float = 0) -> list[float]:
    runs = [chain(machine, ranks, copies, policy, compute=compute_us) for policy in PLACEMENTS]
    return [run.total_us for run in runs]


def chain(machine: str, ranks: int, copies: int, policy: str, **options: object) -> native.Run:
    return native.simulate(
        machine,
        collective="scan",
        algorithm="chain",
        ranks=ranks,
        bytes="1MiB",
        placement=policy,
        callers="leave",
        copies=copies,
        **options,
    )


def findings(copies: int, bind: float, numa: float, odd_even: float) -> list[Finding]:
    *_, three_times, _, half_of_numa, fastest, _ = named("placement").claims
    slower, half = numa / bind, odd_even / numa
    as_slow = NUMA_SLOWER[0] <= slower <= NUMA_SLOWER[1]
    as_fast = ODD_EVEN_HALF[0] <= half <= ODD_EVEN_HALF[1]
    serial = TURNS[copies]
    return [
        three_times.found(
            SIMULATED,
            WAYS[copies],
            f"{slower:.2f} times",
            verdict_if(as_slow),
            "" if as_slow else f"{serial} {HANGS_OF_THREE_TIMES[copies]}",
        ),
        half_of_numa.found(
            SIMULATED,
            WAYS[copies],
            f"odd-even takes {half:.2f} of numa's time",
            verdict_if(as_fast),
            "" if as_fast else f"{serial} {NOWHERE}",
        ),
        fastest.found(
            SIMULATED,
            WAYS[copies],
            in_words(bind, numa, odd_even),
            verdict_if(bind < min(numa, odd_even)),
        ),
    ]


# ---- Figures 1 to 3: placement of ranks and threads ----------------------------------------------


def placed(ranks: int, policy: str) -> cores.Placement:
    words = ["place", "--machine", TWO_NODES, "--ranks", str(ranks), "--policy", policy]
    return cores.ask(cores.Placement, words)[0]


def drawn() -> list[Finding]:
    return of_cores(placed(4, "bind"), placed(6, "bind"), placed(6, "numa"))


def of_cores(four: cores.Placement, six: cores.Placement, numa: cores.Placement) -> list[Finding]:
    apart, beside, on_free, *_ = named("placement").claims
    free = [core for core in six.cores if core not in six.ranks]
    by_node = dict(zip(numa.cores, numa.numa_nodes))
    free_of = {by_node[core]: core for core in numa.cores if core not in numa.ranks}
    spaced = all(second - first > 1 for first, second in zip(four.ranks, four.ranks[1:]))
    shared = [free_of.get(by_node[rank]) for rank in numa.ranks] == numa.threads
    on = "weft place, 8 cores"
    return [
        apart.found(
            COMPUTED,
            on,
            f"4 ranks on {listed(four.ranks)}; 6 leave {listed(free)} free",
            verdict_if(spaced and sorted(by_node[core] for core in free) == [0, 1]),
        ),
        beside.found(
            COMPUTED,
            on,
            f"ranks on {listed(six.ranks)}, threads on {listed(six.threads)}",
            verdict_if(six.ranks == six.threads),
        ),
        on_free.found(COMPUTED, on, f"threads on {listed(numa.threads)}", verdict_if(shared)),
    ]


def listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


# ---- Figures 4 to 6: activity of the cores -------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """The shares of the time in which each core of a thread works, and in which two of them work at
    once."""

    each: list[float]
    at_once: float


def work(intervals: Sequence[tuple[int, float, float]], total_us: float) -> Work:
    """Returns the shares from the core, beginning and end of each piece of work."""
    names = sorted({core for core, _, _ in intervals})
    busy: dict[int, float] = dict.fromkeys(names, 0.0)
    steps = [(begin, 1, core) for core, begin, _ in intervals]
    steps += [(end, -1, core) for core, _, end in intervals]
    running: Counter[int] = Counter()
    last = at_once = 0.0
    for moment, change, core in sorted(steps):
        working = [name for name in names if running[name]]
        for name in working:
            busy[name] += moment - last
        at_once += (moment - last) * (len(working) > 1)
        running[core] += change
        last = moment
    return Work([busy[name] / total_us for name in names], at_once / total_us)


def traced(machine: str, ranks: int, policy: str) -> Work:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "trace.json"
        run = chain(machine, ranks, 2, policy, trace=file)
        events = json.loads(file.read_text())
    intervals = [
        (run.thread_cores[event["pid"]], event["ts"], event["ts"] + event["dur"])
        for event in (events if isinstance(events, list) else events["traceEvents"])
        if event["name"] == "working"
    ]
    return work(intervals, run.total_us)


def of_work(bind: Work, numa: Work, odd_even: Work) -> list[Finding]:
    *_, at_once, half, both = named("placement").claims[:6]

    def overlapping(claim: Claim, found: Work) -> Finding:
        here = f"two cores at once {found.at_once:.0%} of the time, with numa {numa.at_once:.0%}"
        often = found.at_once >= AT_ONCE * numa.at_once
        return claim.found(SIMULATED, WAYS[2], here, verdict_if(often))

    here = f"{' and '.join(f'{share:.0%}' for share in numa.each)} of the time"
    halves = len(numa.each) == 2 and all(HALF[0] <= share <= HALF[1] for share in numa.each)
    return [
        overlapping(at_once, bind),
        half.found(SIMULATED, WAYS[2], here, verdict_if(halves)),
        overlapping(both, odd_even),
    ]


# ---- Figure 7: times ----------------------------------------------------------------------------


def in_words(bind: float, numa: float, odd_even: float) -> str:
    return f"bind {bind:,.0f}, odd-even {odd_even:,.0f}, numa {numa:,.0f} µs"


def hidden(copies: int, alone_us: float, computation_us: float, both_us: float) -> Finding:
    """Returns the finding on placement bind, in which a rank's thread shares the rank's core."""
    claim = named("placement").claims[-4]
    share = (alone_us + computation_us - both_us) / min(alone_us, computation_us)
    here = f"{share:.0%} of what could be hidden"
    holds = share <= NOTHING
    reason = "" if holds else f"{SOME} {would_hold(*HIDDEN)}"
    return claim.found(SIMULATED, WAYS[copies], here, verdict_if(holds), reason)


def with_computation(copies: int, bind: float, numa: float, odd_even: float) -> Finding:
    claim = named("placement").claims[-1]
    return claim.found(
        SIMULATED,
        WAYS[copies],
        in_words(bind, numa, odd_even),
        verdict_if(odd_even < min(bind, numa)),
        "" if odd_even < min(bind, numa) else f"{TURNS[copies]} {would_hold(*FASTEST)}",
    )


def part(machine: str = "knl64", ranks: int = 62) -> Part:
    alone, together, relative = [], [], []
    found = drawn() + of_work(*(traced(machine, ranks, policy) for policy in PLACEMENTS))
    for copies, words in WAYS.items():
        values = times(machine, ranks, copies)
        alone.append(Line(words, [], [*values]))
        relative.append(Line(words, [], [value / values[0] for value in values]))
        found += findings(copies, *values)
        bind_us = values[0]
        values = times(machine, ranks, copies, compute_us=bind_us)
        found.append(hidden(copies, bind_us, bind_us, values[0]))
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
        conditions=f"Computed: weft place. Simulated: {machine}, {ranks} ranks; callers sleep"
        " and leave the collective to"
        " the threads, which yield after a look that found nothing. The computation takes as long"
        " as bind's communication. The paper does not say by how many copies a message goes, so"
        " both are shown.",
    )
