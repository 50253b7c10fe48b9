"""Judges published findings by the presets' results: whether each holds, holds in part, or does not
hold, and why.

The presets themselves only say what to run. One time is less than another if their intervals do not
overlap (weft.measurements.statistics)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from weft.measurements import effect
from weft.measurements.decisions import Decision, every, is_shorter, some, some_shorter
from weft.measurements.effect import duration, listing, percent
from weft.measurements.kernels import BLOCKING, Run
from weft.measurements.result import Result, Statistic
from weft.measurements.statistics import leads

HOLDS, IN_DIRECTION, IN_PART = "holds", "holds in direction", "holds in part"
DOES_NOT_HOLD, OPEN = "does not hold", "open"
Verdict = Literal["holds", "holds in direction", "holds in part", "does not hold", "open"]


class Judgement(str):
    """The text of a judgement on a finding. `verdict` is one of five words."""

    verdict: Verdict

    def __new__(cls, verdict: Verdict, text: str) -> Judgement:
        made = super().__new__(cls, text)
        made.verdict = verdict
        return made


UNDECIDED = "is not decided"
# Bytes that a link of the lab transfers at full speed before its rate limit applies.
LAB_BURST_BYTES = 256_000
ELEMENTS = 10000  # number of elements in the kernel of three arrays
NORMAL = "Normal"
# Maps the names of cases in the study jh250041 (figures 1 to 4) to the number of progress threads
# that share a core.
THREADS = {"Prog1": 1, "Prog2": 2, "Prog4": 4}


def of_parts(parts: Sequence[Decision], whole: Verdict = HOLDS) -> Verdict:
    """Combines the decisions on the parts of a statement. A part that fails refutes the whole."""
    if False in parts:
        return IN_PART if True in parts else DOES_NOT_HOLD
    return OPEN if None in parts or not parts else whole


WORDS: dict[Verdict, str] = {
    HOLDS: "holds",
    IN_DIRECTION: "holds in direction",
    IN_PART: "holds in part",
    DOES_NOT_HOLD: "does not show beyond the spread",
    OPEN: UNDECIDED,
}


# These are the published cases by the labels of gemv_alltoall, with their speedups over no overlap.
TCC_CASES = {"overlapped, call per row, function": 1.346, "thread": 1.127, "tcc": 1.166}


IN_FLIGHT = re.compile(r"\b(\d+) in flight")


def in_flight(run: Run) -> int:
    """Returns how many collectives of gemv_alltoall are in flight at once."""
    found = IN_FLIGHT.search(run.problem)
    return int(found[1]) if found else 1


def judge_tcc(run: Run) -> Judgement:
    return _judge_several(run) if in_flight(run) > 1 else _judge_cases(run)


def _judge_several(run: Run) -> Judgement:
    """Judges whether TCC carries out several collectives in flight one after the other."""
    thread, tcc = run.times_us.get("thread"), run.times_us.get("tcc")
    if not thread or not tcc:
        return Judgement(OPEN, f"Not decided ({run.title}): thread and tcc were not both measured.")
    verdict = of_parts([is_shorter(thread, tcc)])
    return Judgement(
        verdict,
        f"That a thread gains more than TCC, with several collectives in flight, {WORDS[verdict]}"
        f" ({run.title}): thread {duration(thread.median)}, tcc {duration(tcc.median)}."
        f" {_share(run)}",
    )


def _judge_cases(run: Run) -> Judgement:
    present = {name: run.times_us[name] for name in TCC_CASES if name in run.times_us}
    gains = {
        name: is_shorter(present[name], run.blocking) if name in present else None
        for name in TCC_CASES
    }
    verdict = of_parts([*gains.values()], IN_DIRECTION)
    gaining = sorted((name for name in present if gains[name]), key=lambda n: present[n].median)
    if verdict == IN_DIRECTION:
        found = f"function, thread and TCC gain, in the order {listing(gaining)}"
    elif verdict == IN_PART:
        found = f"of the three, {listing(gaining)} gain"
    elif verdict == DOES_NOT_HOLD:
        found = "none of the three gains"
    else:
        unsure = [name if name in present else f"{name} (not measured)" for name in gains]
        found = f"{listing([one for one, gain in zip(unsure, gains.values()) if gain is None])} may"
        found += " gain or not"
    told = [
        f"{name} {run.blocking.median / time.median:.2f} (published {TCC_CASES[name]})"
        for name, time in present.items()
    ]
    measured = f" Times as fast as without overlap: {listing(told)}." if told else ""
    text = f"The finding {WORDS[verdict]}: {found} ({run.title})."
    return Judgement(verdict, f"{text}{measured} {_share(run)}")


def _share(run: Run) -> str:
    """Returns a sentence about the greatest gain by overlap that the measurements permit."""
    if not run.communication_share:
        return "How long the blocking program communicates was not counted."
    hidden = min(run.communication_share, 1 - run.communication_share)
    return (
        f"Blocking, it communicates for {percent(run.communication_share)} of its time, so that"
        f" hiding one behind the other would save up to {percent(hidden)}."
    )


# Maps each series to the fastest case, or to two cases of which the first was faster.
THREADS_PUBLISHED = {
    "16 B, computation 1/2 of communication": ("Prog2",),
    "16 B, computation 2 of communication": (NORMAL,),
    "1 MB, computation 1/2 of communication": ("Prog4",),
    "1 MB, computation 2 of communication": ("Prog4", NORMAL),
}


def judge_threads_per_core(runs: Sequence[Run]) -> Judgement:
    """Judges several series together. The verdict is open, since each series has its own verdict in
    its sentence."""
    sentences = []
    for mpi in dict.fromkeys(run.library for run in runs):
        for series, expected in THREADS_PUBLISHED.items():
            times = {
                run.case: run.blocking if run.case == NORMAL else run.times_us["thread"]
                for run in runs
                if (run.library, run.series) == (mpi, series)
            }
            if times:
                sentences.append(_judge_series(mpi, series, expected, times))
    return sentences[0] if len(sentences) == 1 else Judgement(OPEN, " ".join(sentences))


def _judge_series(
    mpi: str, series: str, expected: tuple[str, ...], times: dict[str, Statistic]
) -> Judgement:
    first = expected[0]
    rivals = expected[1:] or [name for name in (NORMAL, *THREADS) if name in {*times} - {first}]
    claim = f"{first} is faster than {expected[1]}" if expected[1:] else f"{first} is the fastest"
    order = sorted(times, key=lambda name: times[name].median)
    told = listing([f"{name} {duration(times[name].median)}" for name in order])
    if not rivals or not {first, *rivals} <= times.keys():
        verdict, words = OPEN, "cannot be judged here"
    elif all(leads(times[first], times[name]) for name in rivals):
        verdict, words = HOLDS, "holds here"
    elif any(leads(times[name], times[first]) for name in rivals):
        verdict, words = DOES_NOT_HOLD, "does not hold here"
    else:
        verdict, words = OPEN, "is not decided: the times lie within the spread"
    return Judgement(verdict, f"{mpi}, {series}: that {claim} {words} ({told}).")


@dataclass(frozen=True)
class Faster:
    """A published order of two placements, with the ratio of the slow one's time to the fast
    one's."""

    fast: str
    slow: str
    published: int

    def decision(self, times: Mapping[str, Statistic]) -> Decision:
        if not {self.fast, self.slow} <= times.keys():
            return None
        return is_shorter(times[self.fast], times[self.slow])

    def told(self, times: Mapping[str, Statistic]) -> str:
        if not {self.fast, self.slow} <= times.keys():
            return f"{self.slow} and {self.fast} were not both measured"
        found = times[self.slow].median / times[self.fast].median
        return (
            f"{self.slow} takes {found:.2f} times as long as {self.fast} (published:"
            f" {self.published} times)"
        )


NUMA_SLOWER = Faster("bind", "numa", 3)
ODD_EVEN_FASTER = Faster("odd-even", "numa", 2)


def judge_placement(
    result: Result, orders: Sequence[Faster] = (NUMA_SLOWER, ODD_EVEN_FASTER)
) -> Judgement:
    """Judges each MPI library by itself. The judgement's verdict is about all of them."""
    by_mpi: dict[str, dict[str, Statistic]] = {}
    for one in result.alone:
        if one.collective == "scan":
            by_mpi.setdefault(one.mpi, {})[one.placement] = one.immediate_us
    if not by_mpi:
        return Judgement(OPEN, "Not decided: no placement of a scan was measured.")
    decisions, told = [], []
    for mpi, times in by_mpi.items():
        decisions += [order.decision(times) for order in orders]
        said = listing([order.told(times) for order in orders])
        told.append(f"{mpi}: {said}" if len(by_mpi) > 1 else said)
    verdict = of_parts(decisions, IN_DIRECTION)
    text = f"The finding {WORDS[verdict]}: {'; '.join(told)}."
    if verdict == DOES_NOT_HOLD:
        text += (
            " Without a core that has no rank, numa leaves each thread on its rank's core, as bind"
            " does."
        )
    return Judgement(verdict, text)


def judge_nbc_eff(result: Result) -> Judgement:
    cases = effect.cases(result)
    libraries = {curve.mpi for case in cases for curve in case.candidates}
    if len(libraries) < 2:
        return Judgement(OPEN, "Not decided: fewer than two MPI libraries were measured.")
    # `winners` has the names of engines. The MPI libraries in the candidates' names do not count.
    sentences, winners = [], set()
    for case in cases:
        leading = [standing.leader for standing in case.standings if not standing.tied]
        leaders = {curve.name for curve in leading}
        winners |= {curve.mpi for curve in leading}
        if len(leaders) > 1:
            crossing = [c for c in case.crossings if {c.before, c.after} <= leaders]
            where = f", at {listing([duration(c.at_us) for c in crossing])}" if crossing else ""
            text = f"the winner changes with the amount of computation{where}"
        elif leaders:
            text = f"{next(iter(leaders))} wins wherever one leads beyond the spread"
        else:
            text = "no candidate leads beyond the spread at any amount"
        sentences.append(f"{case.title}: {text}.")
    per_node = {case.ranks // case.nodes for case in cases}
    if len(per_node) < 2:
        each = per_node.pop()
        ranks = f"{each} {'rank' if each == 1 else 'ranks'}"
        sentences.append(f"All have {ranks} on a node; a run with another number tells more.")
    if not winners:
        return Judgement(OPEN, "Not decided: " + " ".join(sentences))
    holds = len(winners) > 1
    text = "The finding holds" if holds else "The finding does not hold here"
    return Judgement(_if(holds), f"{text}: " + " ".join(sentences))


def judge_iallreduce_kernel(run: Run) -> Judgement:
    best, blocking = run.best, run.blocking
    saved = 1 - run.engines[best].median / blocking.median
    gain = is_shorter(run.engines[best], blocking)
    if gain is None:
        return Judgement(
            OPEN,
            f"The finding {UNDECIDED} ({run.title}): overlapped with engine {best} the kernel takes"
            f" {_less(run.engines[best], blocking)} than blocking, within the spread.",
        )
    if gain:
        return Judgement(
            IN_DIRECTION,
            f"The finding holds in direction ({run.title}): overlapped with engine {best} the"
            f" kernel takes {percent(saved)} less time than blocking (published: 54 %). Two of the"
            " four reductions overlap, with each other and with one update of an array.",
        )
    if leads(blocking, run.engines[best]):
        found = f"even the best engine, {best}, takes {percent(-saved)} more time than blocking"
    else:
        found = f"the best engine, {best}, makes no difference to blocking beyond the spread"
    text = f"The finding does not hold here ({run.title}): {found}. {_little_to_hide(run)}"
    return Judgement(DOES_NOT_HOLD, text)


def _little_to_hide(run: Run) -> str:
    bytes_each = 8 * ELEMENTS
    if run.network.startswith("lab") and bytes_each < LAB_BURST_BYTES:
        return (
            f"Most of a reduction's {effect.size(bytes_each)} pass the lab's links before their"
            " rate holds (burst), so there is little time to hide."
        )
    return (
        "The update that could hide the reductions is short beside them, so what there was to gain"
        " is two reductions at once."
    )


HALO_ONLY = "halo only"  # pipecg's label of the exchange alone
MASTER = "master thread"  # pipecg's label of the form in which the master thread communicates


def judge_pipecg(run: Run) -> Judgement:
    """Judges a run of pipecg. A run with threads is judged by the form of the master thread, which
    is the published one."""
    whole = {name: time for name, time in run.engines.items() if name != HALO_ONLY}
    if MASTER in whole:
        whole = {MASTER: whole[MASTER]}
    best = min(whole, key=lambda name: whole[name].median)
    halo = run.engines.get(HALO_ONLY)
    fast = run.blocking.median / whole[best].median
    told = [f"{fast:.2f} times as fast as blocking (published: 1.27)"]
    if halo:
        fast = halo.median / whole[best].median
        told.append(f"{fast:.2f} times as fast as with the halo alone (published: 1.06)")
    gains = [
        some_shorter(whole.values(), run.blocking),
        some_shorter(whole.values(), halo) if halo else None,
    ]
    verdict = of_parts(gains, IN_DIRECTION)
    return Judgement(
        verdict,
        f"The finding {WORDS[verdict]} ({run.title}): overlapped, {best}, it is {listing(told)}."
        f" {_share(run)}",
    )


def _if(holds: bool) -> Verdict:
    return HOLDS if holds else DOES_NOT_HOLD


def _less(time: Statistic, other: Statistic) -> str:
    saved = 1 - time.median / other.median
    return f"{percent(abs(saved))} {'less' if saved >= 0 else 'more'} time"


# Communication dominates if it takes at least this share of the time: twice as long as computation.
FAR = 2 / 3


def judge_fft3d(run: Run) -> Judgement:
    best = run.best
    share = run.communication_share
    if not share:
        return Judgement(OPEN, f"Not decided ({run.title}): communication was not counted.")
    if share >= FAR:
        verdict, text = HOLDS, "The finding holds"
    elif share > 0.5:
        verdict, text = IN_PART, "The finding holds in part, as communication is not far longer"
    else:
        verdict, text = DOES_NOT_HOLD, "The finding does not hold here"
    auto = run.times_us.get("auto")
    beside = ""
    if auto is not None:
        slower = leads(run.blocking, auto)
        beside = f" Under auto it is {'' if slower else 'not '}slower than blocking"
        beside += f": {_less(auto, run.blocking)}." if slower else " beyond the spread."
    return Judgement(
        verdict,
        f"{text} ({run.title}): communication is {percent(share)} of the blocking transform."
        f" Overlapped, {best}, it takes {_less(run.engines[best], run.blocking)}.{beside}"
        f" {_share(run)}",
    )


PUBLISHED_STENCILS = {"blocking", "notify", "coop", "graphs"}


def judge_gpu_stencil(run: Run) -> Judgement:
    """Judges the published methods. The other methods are listed beside them."""
    best = run.best
    graphs = run.times_us.get("graphs")
    if graphs is None:
        text = f"Without graphs there is no finding to judge ({run.title}); best is {best}."
        return Judgement(OPEN, text)
    slower_than = [
        name
        for name in sorted(PUBLISHED_STENCILS & run.times_us.keys())
        if name != "graphs" and leads(run.times_us[name], graphs)
    ]
    rivals = sorted(PUBLISHED_STENCILS & run.times_us.keys() - {"graphs"})
    equal = [name for name in rivals if not leads(graphs, run.times_us[name])]
    others = ""
    if slower_than:
        verdict, words, others = DOES_NOT_HOLD, "does not hold", f"; faster: {listing(slower_than)}"
    elif equal:
        verdict, words, others = OPEN, UNDECIDED, f"; within the spread: {listing(equal)}"
    else:
        verdict, words = HOLDS, "holds"
    return Judgement(
        verdict,
        f"The finding {words} ({run.title}): with graphs a step takes {duration(graphs.median)},"
        f" synchronising {duration(run.blocking.median)}{others}.",
    )


def judge_stencil(run: Run) -> Judgement:
    best = run.best
    fast = run.blocking.median / run.engines[best].median
    gain = is_shorter(run.engines[best], run.blocking)
    verdict = of_parts([gain], IN_DIRECTION)
    return Judgement(
        verdict,
        f"The finding {WORDS[verdict]} ({run.title}): with the interior first, {best}, it is"
        f" {fast:.2f} times as fast as blocking (published: about 1.20). {_share(run)}",
    )


# These forms of cpals' exchange use no collective of MPI. Their labels may end with an engine.
OWN_EXCHANGES = ("rows", "messages")


def judge_cpals(run: Run) -> Judgement:
    """Judges a run of cpals. The published statement is understood as follows: an exchange that was
    made for the program is faster than those by MPI's collectives."""
    own = {name: t for name, t in run.times_us.items() if name.split(",")[0] in OWN_EXCHANGES}
    offered = {name: time for name, time in run.times_us.items() if name not in own}
    faster = some(
        every(is_shorter(time, other) for other in offered.values()) for time in own.values()
    )
    verdict = of_parts([faster])
    best = [min(times, key=lambda n: times[n].median) for times in (own, offered) if times]
    told = [f"{name} {duration(run.times_us[name].median)}" for name in best]
    return Judgement(
        verdict,
        f"The finding {WORDS[verdict]} ({run.title}), read as: an exchange made for the rows is"
        f" faster than each by a collective of MPI. The fastest of both: {listing(told)}. It takes"
        f" {_less(run.engines[run.best], run.blocking)} than blocking. {_share(run)}",
    )


# These are labels of atmosphere. Those of variants that overlap end with their engine.
NOTHING_WRITTEN, ROOT_WRITES = "nothing written", "rank 0 writes"
BEHIND_ALL = "behind all three"
BEHIND_STEPS, ROOT_BEHIND_STEPS = "behind steps", "rank 0 behind steps"


def judge_atmosphere(run: Run) -> Judgement:
    if NOTHING_WRITTEN in run.times_us:
        return _judge_output(run)
    whole = {name: time for name, time in run.engines.items() if not name.startswith("behind ")}
    best = min(whole, key=lambda name: whole[name].median)
    together = [name for name in run.engines if name.startswith(BEHIND_ALL)]
    sections = [name for name in run.engines if name.startswith("behind ") and name not in together]
    if not sections:
        return Judgement(OPEN, f"Not decided ({run.title}): no section was measured by itself.")
    told = [f"{name.split(',')[0]} {_less(run.engines[name], run.blocking)}" for name in sections]
    verdict = of_parts([is_shorter(run.engines[name], run.blocking) for name in sections])
    three = "".join(f" with all three {_less(run.engines[n], run.blocking)};" for n in together)
    travelling = _less(whole[best], run.blocking)
    return Judgement(
        verdict,
        f"The finding {WORDS[verdict]} ({run.title}): than blocking, it takes {listing(told)};"
        f"{three} and where the transposes travel, too ({best}), {travelling}. {_share(run)}",
    )


def _judge_output(run: Run) -> Judgement:
    """Judges by how much output behind the next steps saves time, for each way of writing."""
    nothing = run.times_us[NOTHING_WRITTEN]
    gains, told = [], []
    for who, blocking, name in (
        ("all ranks", BLOCKING, BEHIND_STEPS),
        ("rank 0", ROOT_WRITES, ROOT_BEHIND_STEPS),
    ):
        label = next((one for one in run.times_us if one.split(",")[0] == name), None)
        if label is None or blocking not in run.times_us:
            continue
        before, behind = run.times_us[blocking], run.times_us[label]
        cost = 1 - nothing.median / before.median
        gains.append(is_shorter(behind, before))
        told.append(
            f"written by {who}, blocking output is {percent(max(cost, 0.0))} of the time, and"
            f" behind the next steps it takes {_less(behind, before)}"
            + ("" if gains[-1] else ", within the spread" if gains[-1] is None else ", no gain")
        )
    verdict = of_parts(gains)
    words = {
        HOLDS: "holds for the output",
        IN_PART: "holds for the output in part",
        DOES_NOT_HOLD: "does not show for the output",
        OPEN: f"{UNDECIDED} for the output",
    }[verdict]
    found = "; ".join(told) or "no way of writing it was measured"
    return Judgement(verdict, f"The finding {words} ({run.title}): {found}.")
