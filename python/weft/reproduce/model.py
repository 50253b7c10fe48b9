"""Denis et al., 2019, sections 6.2 and 7: tests whether the model of split trees agrees with
measurements.

The model is Weft's own, by which the library chooses the number of levels to split. It is compared
with the paper's measurements and with the simulator's curves."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cores import native
from weft.reproduce import split_tree
from weft.reproduce.findings import COMPUTED, SIMULATED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.published import named

CORES = 64
ON = "weft model"
FEWEST = split_tree.FEWEST
LEAST = (51, 0)  # number of ranks, and S
BEST = {57: 1, 60: 2, 62: 3}  # S by number of ranks


def asked() -> native.Model:
    model, _ = native.ask(native.Model, ["model", "--cores", str(CORES)])
    return model


def rows(model: native.Model, fewest: int = FEWEST) -> list[native.Ranks]:
    """Returns the rows of the model in which some cores are left for threads."""
    return [row for row in model.by_ranks if fewest <= row.ranks < CORES]


def by_split(model: native.Model, fewest: int = FEWEST) -> split_tree.Totals:
    found = [{one.S: one.total for one in row.splits} for row in rows(model, fewest)]
    return {split: [totals[split] for totals in found] for split in split_tree.SPLITS}


def switches(model: native.Model) -> list[int]:
    return split_tree.switches([row.ranks for row in rows(model)], by_split(model))


def of_the_model(model: native.Model) -> Finding:
    best = min(model.by_ranks, key=lambda row: row.total)
    here = {row.ranks: row.S for row in model.by_ranks if row.ranks in BEST}
    said = f"least {best.total:.2f} at {best.ranks} ranks with S = {best.S}; S = "
    said += ", ".join(f"{split} at {ranks}" for ranks, split in here.items())
    holds = (best.ranks, best.S) == LEAST and here == BEST
    return named("model").claims[5].found(COMPUTED, ON, said, verdict_if(holds))


# ---- Figures 8 to 13, 15 and 16: trees and their costs -------------------------------------------

DRAWN_RANKS = 16
ROUNDS = {"folded": 8.0, "blocking": 4.0}  # rounds of figure 9, on two communication cores
COLLECTIVES_THAT_GROW = ("scatter", "gather")
SPLIT = 2  # S in figure 10


def tree(ranks: int, free: int, collective: str = "reduce") -> native.Model:
    words = ["model", "--cores", str(ranks + free), "--ranks", str(ranks)]
    return native.ask(native.Model, [*words, "--collective", collective])[0]


def messages(model: native.Model) -> list[float]:
    """Returns the time of each level if one core carries out all of them, one after the other."""
    left = [split.communication for split in model.splits]
    return [before - after for before, after in zip(left, left[1:])]


def drawn_trees() -> list[Finding]:
    by_ranks = {ranks: messages(tree(ranks, 1)) for ranks in range(2, CORES + 1)}
    return [
        *of_sixteen(by_ranks[DRAWN_RANKS], tree(DRAWN_RANKS, 2)),
        of_levels(by_ranks),
        of_costs(tree(CORES - 1, 1)),
        of_growing({name: growing(name) for name in COLLECTIVES_THAT_GROW}),
    ]


def of_sixteen(levels: list[float], folded: native.Model) -> list[Finding]:
    in_levels, in_rounds, in_two, *_ = named("model").claims
    rounds = [split.application + split.communication for split in folded.splits]
    said = f"{rounds[0]:.0f} rounds; blocking {folded.blocking:.0f}"
    as_drawn = {"folded": rounds[0], "blocking": folded.blocking} == ROUNDS
    parted = f"{rounds[SPLIT]:.0f} rounds with S = {SPLIT}, {rounds[0]:.0f} with S = 0"
    return [
        in_levels.found(COMPUTED, ON, numbers_of(levels), verdict_if(levels == [8, 4, 2, 1])),
        in_rounds.found(COMPUTED, ON, said, verdict_if(as_drawn)),
        in_two.found(COMPUTED, ON, parted, verdict_if(rounds[SPLIT] < rounds[0])),
    ]


def of_levels(by_ranks: dict[int, list[float]]) -> Finding:
    """Returns the finding on whether the time halves at each level. Half of an odd number may be
    rounded either way."""
    claim = named("model").claims[3]
    wrong = [
        ranks
        for ranks, levels in by_ranks.items()
        if any(abs(2 * after - before) > 1 for before, after in zip(levels, levels[1:]))
    ]
    here = f"23 ranks: {numbers_of(by_ranks[23])}; "
    here += f"not so for {numbers_of(wrong)}" if wrong else f"so for 2 to {max(by_ranks)} ranks"
    return claim.found(COMPUTED, ON, here, verdict_if(not wrong))


def of_costs(model: native.Model) -> Finding:
    claim = named("model").claims[4]
    costs = [model.splits[s].application + model.splits[s].communication for s in split_tree.SPLITS]
    here = f"S = 0 to 3: {numbers_of(costs)} transfers; blocking {model.blocking:.0f}"
    less = all(after < before for before, after in zip(costs, costs[1:]))
    return claim.found(COMPUTED, ON, here, verdict_if(less and costs[0] > model.blocking))


def growing(collective: str) -> list[int]:
    """Returns the best S for numbers of ranks from half of the cores on."""
    words = ["model", "--cores", str(CORES), "--collective", collective]
    model, _ = native.ask(native.Model, words)
    return [row.S for row in rows(model, CORES // 2)]


def of_growing(best: dict[str, list[int]]) -> Finding:
    claim = named("model").claims[6]
    here = "; ".join(
        f"{name}: S = {splits[0]} at {CORES // 2} ranks, {splits[-1]} at {CORES - 1}"
        for name, splits in best.items()
    )
    holds = all(splits[0] == 0 and splits[-1] > 0 for splits in best.values())
    return claim.found(COMPUTED, ON, here, verdict_if(holds))


def numbers_of(found: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in found)


# ---- Comparison with measurements ----------------------------------------------------------------


def beside_the_paper(model: list[int]) -> Finding:
    return compared(COMPUTED, "weft model and the paper's measurement", model, split_tree.SWITCHES)


def beside_the_simulator(collective: str, model: list[int], found: list[int]) -> Finding:
    on = f"weft model and simulated I{collective}, level after level"
    return compared(SIMULATED, on, model, found)


def compared(how: str, on: str, model: list[int], found: list[int]) -> Finding:
    said = f"model {split_tree.numbers(model)}; found {split_tree.numbers(found)}"
    holds = model == found
    why = "" if holds else split_tree.REDUCE
    return named("model").claims[-1].found(how, on, said, verdict_if(holds), why)


def part() -> Part:
    model = asked()
    mine = switches(model)
    findings = [*drawn_trees(), of_the_model(model), beside_the_paper(mine)]
    drawn = [Line("published", [], [*split_tree.SWITCHES]), Line("model", [], [*mine])]
    for collective in ("bcast", "reduce"):
        ranks, times, _ = split_tree.totals("knl64", collective, CORES, FEWEST, "levels")
        found = split_tree.switches(ranks, times)
        findings.append(beside_the_simulator(collective, mine, found))
        drawn.append(Line(f"simulated I{collective}", [], [n or None for n in found]))
    names = ["S = 1 from", "S = 2 from", "S = 3 from"]
    x = [float(row.ranks) for row in rows(model)]
    totals = [Line(f"S = {split}", x, [*y]) for split, y in by_split(model).items()]
    totals.append(Line("blocking", x, [row.blocking_total for row in rows(model)]))
    return Part(
        findings=findings,
        figures=[
            Figure("Published and found, 64 cores", "", "ranks", drawn, True, names),
            Figure("The model, 64 cores", "ranks", "transfers, with computation", totals),
        ],
        conditions="Computed: weft model, in transfers of the buffer from core to core. What it is"
        " compared with is what the paper measured, and the simulator's curves on knl64.",
    )
