"""Denis et al., 2019, sections 6.2 and 7: the model of split trees, and whether it says what is
found.

The model is Weft's own, which the library asks for the number of levels to split; what is found is
the paper's own measurement, and the simulator's curves.
"""

from __future__ import annotations

from weft.cores import native
from weft.reproduce import split_tree
from weft.reproduce.findings import COMPUTED, SIMULATED, Figure, Finding, Line, Part, verdict_if
from weft.reproduce.published import named

CORES = 64
FEWEST = split_tree.FEWEST
LEAST = (51, 0)  # ranks, and S
BEST = {57: 1, 60: 2, 62: 3}  # ranks -> S


def asked() -> native.Model:
    model, _ = native.ask(native.Model, ["model", "--cores", str(CORES)])
    return model


def rows(model: native.Model, fewest: int = FEWEST) -> list[native.Ranks]:
    """As far as there are threads: some cores are left free."""
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
    return named("model").claims[0].found(COMPUTED, "weft model", said, verdict_if(holds))


def beside_the_paper(model: list[int]) -> Finding:
    return compared(COMPUTED, "weft model and the paper's measurement", model, split_tree.SWITCHES)


def beside_the_simulator(collective: str, model: list[int], found: list[int]) -> Finding:
    on = f"weft model and simulated I{collective}, level after level"
    return compared(SIMULATED, on, model, found)


def compared(how: str, on: str, model: list[int], found: list[int]) -> Finding:
    said = f"model {split_tree.numbers(model)}; found {split_tree.numbers(found)}"
    holds = model == found
    why = "" if holds else split_tree.WHY
    return named("model").claims[1].found(how, on, said, verdict_if(holds), why)


def part() -> Part:
    model = asked()
    mine = switches(model)
    findings = [of_the_model(model), beside_the_paper(mine)]
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
