"""Shows a placement: the node's cores with ranks and threads, and how to launch such a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cores.native import Placement
from weft.data import files

WIDEST = 8  # most cells in a row
CELL, MARGIN = 18, 14  # characters
LAUNCHERS = (
    ("MPICH", "mpiexec -n {ranks} -bind-to user:{cores}"),
    ("Open MPI 5", "mpiexec -n {ranks} --map-by pe-list={cores}:ordered"),
    ("Intel MPI", "mpiexec -n {ranks} -genv I_MPI_PIN_PROCESSOR_LIST={cores}"),
    ("Slurm", "srun -n {ranks} --cpu-bind=map_cpu:{cores}"),
)


def spans(numbers: Sequence[int]) -> str:
    """Returns numbers as text: `0–2, 5`, or `0, 2, …, 60` if their distances are equal."""
    steps = {b - a for a, b in zip(numbers, numbers[1:])}
    if len(numbers) > 3 and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}, {numbers[1]}, …, {numbers[-1]}"
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in found)


def threads_on(placement: Placement) -> dict[int, list[int]]:
    """Returns the ranks whose threads run on each core."""
    found: dict[int, list[int]] = {}
    for rank, core in enumerate(placement.threads):
        found.setdefault(core, []).append(rank)
    return found


def cell(core: int, rank: int | None, threads: list[int]) -> Text:
    """Returns a core's contents: a rank, the number of threads of other ranks, or nothing."""
    parts = [] if rank is None else [f"rank {rank}"]
    if [rank] != threads and threads:
        parts.append(f"{len(threads)} thread{'' if len(threads) == 1 else 's'}")
    style = "bold green" if threads and rank is None else "" if parts else "dim"
    return Text(f"{core}: {', '.join(parts) or 'free'}", style=style)


def picture(placement: Placement, width: int) -> Table:
    """Returns a table of the cores of each NUMA node, in rows of 8, or of fewer if `width`
    characters hold fewer."""
    in_a_row = next((n for n in (WIDEST, 4, 2) if MARGIN + n * CELL <= width), 1)
    table = Table(box=None, padding=(0, 3, 0, 0), show_header=False)
    table.add_column("", style="dim", no_wrap=True)
    for _ in range(in_a_row):
        table.add_column("", no_wrap=True)
    rank_of = {core: rank for rank, core in enumerate(placement.ranks)}
    threads = threads_on(placement)
    for node in dict.fromkeys(placement.numa_nodes):
        cores = [c for c, its in zip(placement.cores, placement.numa_nodes) if its == node]
        for begin in range(0, len(cores), in_a_row):
            cells = [
                cell(core, rank_of.get(core), threads.get(core, []))
                for core in cores[begin : begin + in_a_row]
            ]
            table.add_row(f"NUMA node {node}" if begin == 0 else "", *cells)
    return table


GAP, LEFT, TOP, LINE, LETTER = 8, 112, 40, 16, 7  # sizes in the drawing, in pixels
STYLE = """
:root { background: #fbfbfa; color-scheme: light dark }
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.core { fill: #f6f8fa; stroke: #8c959f }
.rank { fill: #ddf4ff; stroke: #0969da }
.threads { fill: #dafbe1; stroke: #1a7f37 }
.title { font-weight: 600 }
@media (prefers-color-scheme: dark) {
  :root { background: #14171a }
  text { fill: #e6edf3 }
  .core { fill: #161b22; stroke: #6e7681 }
  .rank { fill: #0c2d6b; stroke: #4493f8 }
  .threads { fill: #033a16; stroke: #3fb950 }
}
"""


def carried(core: int, rank: int | None, threads: list[int]) -> list[str]:
    """Returns the lines of text in a core's box: its number, its rank, and the ranks whose threads
    run there."""
    lines = [f"core {core}"]
    lines += [f"rank {rank}"] if rank is not None else []
    lines += [f"threads of {spans(threads)}"] if threads and threads != [rank] else []
    lines += ["its thread"] if threads == [rank] else []
    return lines if len(lines) > 1 else [*lines, "free"]


def drawing(placement: Placement) -> str:
    """Returns an SVG of the node: a box for each core, in rows of 8 for each NUMA node."""
    from weft.report.svg import said, tag

    rank_of = {core: rank for rank, core in enumerate(placement.ranks)}
    threads = threads_on(placement)
    lines = {c: carried(c, rank_of.get(c), threads.get(c, [])) for c in placement.cores}
    box = 20 + LETTER * max(len(line) for texts in lines.values() for line in texts)

    def drawn(core: int, x: int, y: int) -> str:
        kind = "rank" if core in rank_of else "threads" if core in threads else "core"
        texts = [
            tag("text", line, x=x + 8, y=y + (n + 1) * LINE + 2)
            for n, line in enumerate(lines[core])
        ]
        shape = tag("rect", class_=kind, x=x, y=y, width=box, height=4 * LINE - 6, rx=4)
        return tag("g", shape, *texts, said(", ".join(lines[core])))

    parts, y = [], TOP
    for node in dict.fromkeys(placement.numa_nodes):
        cores = [c for c, its in zip(placement.cores, placement.numa_nodes) if its == node]
        parts.append(tag("text", f"NUMA node {node}", class_="title", x=8, y=y + 18))
        for place, core in enumerate(cores):
            if place and place % WIDEST == 0:
                y += 4 * LINE
            parts.append(drawn(core, LEFT + place % WIDEST * (box + GAP), y))
        y += 4 * LINE + GAP
    width = LEFT + min(WIDEST, len(placement.cores)) * (box + GAP)
    head = f"{len(placement.ranks)} ranks on {len(placement.cores)} cores, {placement.policy}"
    size = {"viewBox": f"0 0 {width} {y}", "width": width, "height": y}
    title = tag("text", head, class_="title", x=8, y=22)
    style = tag("style", STYLE)
    return tag("svg", style, title, *parts, xmlns="http://www.w3.org/2000/svg", **size) + "\n"


def show(placement: Placement, out: Path | None = None) -> None:
    console = Console()
    if out:
        files.write_text(out, drawing(placement))
    console.print(picture(placement, console.width))
    if placement.note:
        console.print(placement.note, style="yellow", markup=False, highlight=False)
    taken = set(placement.ranks)
    for core, ranks in sorted(threads_on(placement).items()):
        if core not in taken:
            console.print(f"core {core}: threads of ranks {spans(ranks)}", highlight=False)
    words = {"ranks": len(placement.ranks), "cores": ",".join(map(str, placement.ranks))}
    console.print("The ranks' cores, by the launcher's option:", style="dim")
    for name, command in LAUNCHERS:
        text = f"  {name}: {command.format(**words)}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if out:
        console.print(f"Drawing: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)
