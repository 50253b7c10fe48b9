"""Shows runs of the simulator: as a table, as JSON, and as a page with their timelines side by
side."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft.data import json_file, stored
from weft.sim import native
from weft.sim.native import Run

MOST_DRAWN = 256  # largest number of ranks of a run that is drawn
MOST_SPANS = 5000  # most spans on a page
LEAST_GAIN = 1.01  # a smaller gain is a tie
KINDS = ("computing", "working", "polling", "ready")  # activities that are drawn; sleep is not
DOING = (
    ("computing", "#0f7b6c"),
    ("communication", "#d55e00"),
    ("polling", "#e0c35a"),
    ("ready, without the core", "#9aa5b1"),
)


@dataclass(frozen=True)
class Room:
    """The default number of ranks, and the default placement of their threads."""

    ranks: int  # number of ranks on all nodes
    placement: str

    @classmethod
    def on(cls, machine: str, nodes: int, ranks: int | None, leaves_cores: bool) -> Room:
        """Returns the numbers for a machine. `leaves_cores`: a quarter of the cores has no rank, if
        `ranks` is None."""
        facts = facts_of(machine)
        cores, domains = nodes * facts["cores"], nodes * facts["numa_nodes"]
        found = ranks or cores - (cores // 4 if leaves_cores else 0)
        return cls(found, "numa" if found + domains <= cores else "bind")


def facts_of(machine: str) -> dict[str, int]:
    """Returns the numbers of cores and NUMA nodes of a machine. If its file is wrong, both are 1,
    since the simulator will refuse the file."""
    try:
        facts = json.loads(native.machine_file(machine).read_text())
        return {name: max(1, int(facts[name])) for name in ("cores", "numa_nodes")}
    except (OSError, ValueError, KeyError, TypeError):
        return {"cores": 1, "numa_nodes": 1}


def time_alone(machine: str, words: list[str]) -> float:
    """Returns the time of the collective without computation, in microseconds."""
    text = native.simulate_text(machine, [*words, "--engine", "blocking"])
    return round(stored.parse(Run, text, "weft-sim").communication_us, 1)


@dataclass(frozen=True)
class Answer:
    run: Run
    text: str  # JSON text of the run, unchanged
    # Each span has a core, its begin and end, and an index in KINDS. The list is empty if nothing
    # is drawn.
    spans: list[list[float]]


def name(run: Run) -> str:
    words = [run.engine]
    words += [run.placement] if run.thread_cores or run.nodes > 1 else []
    words += [f"S = {run.split}"] if run.split else []
    return ", ".join(words)


def carry_out(
    machine: str, words: list[str], variants: list[list[str]], trace: Path | None, drawn: bool
) -> list[Answer]:
    return [one(machine, words + variant, trace, drawn) for variant in variants]


def one(machine: str, words: list[str], trace: Path | None, drawn: bool) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        file = trace or (Path(folder) / "trace.json" if drawn else None)
        text = native.simulate_text(machine, words + (["--trace", str(file)] if file else []))
        run = stored.parse(Run, text, "weft-sim")
        can_draw = drawn and file and run.nodes == 1 and run.ranks <= MOST_DRAWN
        return Answer(run, text, spans_of(run, json.loads(file.read_text())) if can_draw else [])


def spans_of(run: Run, trace: dict[str, Any]) -> list[list[float]]:
    """Returns the spans of activity of each core. The run knows the core of each rank and thread in
    the trace."""
    found = []
    for event in trace["traceEvents"]:
        if event["ph"] != "X" or event["name"] not in KINDS:
            continue
        cores = run.thread_cores if event["tid"] else run.rank_cores
        core, begin = cores[event["pid"]], event["ts"]
        found.append([core, begin, begin + event["dur"], KINDS.index(event["name"])])
    return found


def table(runs: list[Run]) -> Table:
    result = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    result.add_column("run")
    for title in ("total\nµs", "collective\nµs", "messages", "switches", "events"):
        result.add_column(title, justify="right", vertical="bottom")
    for run in runs:
        result.add_row(
            name(run),
            f"{run.total_us:,.1f}",
            f"{run.communication_us:,.1f}",
            f"{run.messages:,}",
            f"{run.switches:,}",
            f"{run.events:,}",
        )
    return result


def sentence(runs: list[Run]) -> str:
    """Returns a sentence on the fastest run, compared with the blocking call if that was
    simulated."""
    best = min(runs, key=lambda run: run.total_us)
    blocking = next((run for run in runs if run.engine == "blocking"), None)
    if not blocking or len(runs) == 1:
        beyond = best.total_us - best.compute_us
        cost = f"{beyond:,.1f} µs more than the computation alone" if best.compute_us else "in all"
        total = f"{best.total_us:,.1f} µs"
        return f"{name(best)} takes {total}{', ' if best.compute_us else ' '}{cost}."
    times = blocking.total_us / best.total_us
    if times < LEAST_GAIN:
        return "Nothing takes clearly less time than the blocking call."
    hidden = (blocking.total_us - best.total_us) / blocking.communication_us
    return (
        f"{name(best)} is {times:.2f} times as fast as the blocking call:"
        f" {min(1, hidden):.0%} of the collective runs behind the computation."
    )


def title(run: Run) -> str:
    return (
        f"{run.collective} of {run.bytes:,} bytes by {run.algorithm}, {run.ranks:,} ranks,"
        f" {run.nodes} × {run.machine}, {run.compute_us:,.1f} µs of computation"
    )


def to_json(answers: list[Answer]) -> dict[str, Any]:
    """Returns the runs as a document of the schema weft-sim/1. Times are those of the simulated
    machine."""
    runs = [answer.run for answer in answers]
    best = min(runs, key=lambda run: run.total_us)
    headline = {"best": name(best), "total_us": best.total_us}
    head = stored.head("weft-sim/1", headline, ranks=best.ranks)
    return {**head, "runs": [json.loads(answer.text) for answer in answers]}


def show(answers: list[Answer], file: Path | None, out: Path | None) -> None:
    runs = [answer.run for answer in answers]
    if out:
        write(out, answers)
    if file:
        json_file.write(file, to_json(answers))
    if json_file.is_alone(file):
        return
    console = Console()
    console.print(sentence(runs), style="bold", highlight=False)
    console.print(title(runs[0]), highlight=False)
    console.print(table(runs))
    for note in dict.fromkeys(run.note for run in runs if run.note):
        console.print(note, style="yellow", markup=False, highlight=False)
    if out:
        console.print(f"Page: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)


def write(path: Path, answers: list[Answer]) -> None:
    from weft.data import files
    from weft.report import html

    end_us = max(answer.run.total_us for answer in answers)
    text = html.render(
        "sim.html.j2",
        title=title(answers[0].run),
        runs=[(name(answer.run), answer.run) for answer in answers],
        drawings=drawings(answers, end_us),
        end=end_us,
    )
    files.write_text(path, text)


def drawings(answers: list[Answer], end_us: float) -> list[dict[str, Any]]:
    shown = [answer for answer in answers if answer.spans]
    return [drawing(answer, end_us, MOST_SPANS // len(shown)) for answer in shown]


def drawing(answer: Answer, end_us: float, most_spans: int) -> dict[str, Any]:
    from weft.report.lanes import Rows, Span

    most = max([answer.run.cores, *(int(core) + 1 for core, *_ in answer.spans)])
    cores: list[list[Span]] = [[] for _ in range(most)]
    for core, begin, end, kind in answer.spans:
        cores[int(core)].append(Span(begin, end, int(kind)))
    title = name(answer.run)
    return {
        "name": title,
        "rows": Rows(cores, end_us, "µs since the start", title, DOING, "core", most_spans),
    }


def calibrate(out: Path | None, lab: str | None, mpi: str | None) -> None:
    """Measures this machine and writes its description. Messages are measured if there is an MPI
    library, those between nodes in the lab."""
    from weft.data import files
    from weft.sim.calibration import with_messages
    from weft.system.mpi_libraries import MpiError, chosen

    machine = json.loads(native.calibrate())
    try:
        chosen(mpi)
        with_messages(machine, lab, mpi)
    except (MpiError, native.SimError) as error:
        if mpi or lab:
            raise native.SimError(str(error)) from None
        print(f"weft sim: messages have usual values: {error}", file=sys.stderr)
    text = json.dumps(machine, indent=2)
    if not out:
        print(text)
        return
    files.write_text(out, text + "\n")
    print(f"{out}: use it with weft sim --machine {out}")
