"""Prints the model's answer as a table, and draws the figures of its paper for this node on a
page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft.cores.native import Model, Ranks, Split

AROUND = 6  # numbers of ranks that are shown on each side of the chosen one
SPLITS = 5  # number of curves on the page, for S = 0 to 4
CHOSEN = "← this one"
LIMITS = (
    "The model counts transfers and takes each for equally long: it knows no latency, no caches, no"
    " memory bandwidth that cores share, and no cost of switching threads; the computation scales"
    " with the ranks."
)


def sentence(model: Model) -> str:
    best = min(model.by_ranks, key=lambda row: row.total)
    free = model.cores - model.ranks
    text = (
        f"{model.ranks} ranks on {model.cores} cores leave {free} for communication;"
        f" {model.collective} with S = {model.S} takes {model.total:.2f} transfers together with"
        f" the computation, blocking {model.blocking_total:.2f}."
    )
    if best.ranks != model.ranks:
        text += f" The best number of ranks is {best.ranks}: {best.total:.2f} with S = {best.S}."
    return text


def rows_around(model: Model) -> list[Ranks]:
    return [row for row in model.by_ranks if abs(row.ranks - model.ranks) <= AROUND]


def table(model: Model) -> Table:
    shown = min(SPLITS, max(len(row.splits) for row in rows_around(model)))
    result = Table(
        box=None,
        header_style="dim",
        padding=(0, 2, 0, 0),
        title="time in transfers",
        title_style="dim",
        title_justify="left",
    )
    for title in (
        "ranks",
        "free\ncores",
        "blocking",
        *(f"S = {s}" for s in range(shown)),
        "best S",
    ):
        result.add_column(title, justify="right", vertical="bottom")
    result.add_column("", no_wrap=True)
    for row in rows_around(model):
        totals = {split.S: f"{split.total:.2f}" for split in row.splits}
        result.add_row(
            str(row.ranks),
            str(model.cores - row.ranks),
            f"{row.blocking_total:.2f}",
            *(totals.get(s, "") for s in range(shown)),
            str(row.S),
            CHOSEN if row.ranks == model.ranks else "",
            style="green" if row.ranks == model.ranks else None,
        )
    return result


def show(model: Model, out: Path | None) -> None:
    console = Console()
    console.print(sentence(model), highlight=False)
    console.print(table(model))
    console.print(
        "Times are those of communication and computation together. One transfer is the time that"
        " the collective's buffer takes from core to core. S: levels of the tree, those with the"
        f" most messages, that the application's cores carry out. {LIMITS}",
        style="dim",
        highlight=False,
    )
    if out:
        write(out, model)
        console.print(f"Page: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)


def lines(model: Model) -> dict:
    """Returns the curves of the page: times over the number of ranks, with one line per S."""
    shown = min(SPLITS, max(len(row.splits) for row in model.by_ranks))

    def line(split: int, value: Callable[[Split], float]) -> list[float | None]:
        found = [{s.S: value(s) for s in row.splits} for row in model.by_ranks]
        return [times.get(split) for times in found]

    return {
        "ranks": [row.ranks for row in model.by_ranks],
        "chosen": model.ranks,
        "blocking": [row.blocking for row in model.by_ranks],
        "blocking_total": [row.blocking_total for row in model.by_ranks],
        "computation": [row.computation for row in model.by_ranks],
        "communication": [
            line(s, lambda one: one.application + one.communication) for s in range(shown)
        ],
        "totals": [line(s, lambda one: one.total) for s in range(shown)],
        "top": 3 * model.by_ranks[-1].blocking_total,
    }


def write(path: Path, model: Model) -> None:
    from weft.data import files
    from weft.report import html
    from weft.report.svg import DASHED, DOTTED, Graph, Line, Look, look

    found = lines(model)
    ranks = found["ranks"]

    def splits(name: str) -> list[Line]:
        every = enumerate(found[name])
        return [line(f"S = {s}", replace(look(s), symbol=""), y) for s, y in every if any(y)]

    def line(name: str, shown: Look, y: list[float | None]) -> Line:
        said = [f"{name}: {value:.3g}" if value else "" for value in y]
        return Line(name, shown, ranks, y, said=said)

    def graph(shown: list[Line], name: str) -> Graph:
        chosen, top = found["chosen"], found["top"]
        return Graph(shown, "ranks", "transfers", name, top=top, upright=chosen)

    plain = line("blocking", Look("text", DASHED), found["blocking"])
    both = line("blocking, then computation", plain.look, found["blocking_total"])
    work = line("computation", Look("faint", DOTTED), found["computation"])
    communication = [*splits("communication"), plain, work]
    text = html.render(
        "model.html.j2",
        model=model,
        sentence=sentence(model),
        limits=LIMITS,
        rows=model.by_ranks,
        communication=graph(communication, "Time of communication over the ranks"),
        totals=graph([*splits("totals"), both], "Time of both over the ranks"),
    )
    files.write_text(path, text)
