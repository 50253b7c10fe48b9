#!/usr/bin/env python3
"""Writes docs/kernels/scaling.md and its picture from docs/data/scaling.json.

With `--measure` it measures that data anew: strong and weak scaling of kernels between nodes of the
lab.

  tools/generate_scaling.py [--check]
  tools/generate_scaling.py --measure --machine NAME [--rounds 3] [--mpi mpich] [--remark TEXT]

Strong scaling solves the same problem on 1, 2 and 4 ranks, and shows the speedup over the blocking
program on one rank. Weak scaling solves a problem that grows with the ranks, and shows which share
of one rank's speed each keeps. Each round runs every case once, and ratios are formed within a
round, so that a machine that becomes slower changes them little. The page has only what was
measured. `make generate` only writes the page. NAME is one of docs/data/machines.json."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from generate_performance import STYLE, text

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/data/scaling.json"
PAGE = ROOT / "docs/kernels/scaling.md"
PICTURE = ROOT / "docs/images/scaling.svg"

RANKS = (1, 2, 4)
RATE = "200mbit"
# With these truncations a step takes one rank about 1, 2 and 4 times as long. The grid's sizes are
# powers of two.
TRUNCATIONS = {1: 85, 2: 86, 4: 142}
# These are the options of each program, whose work is proportional to the number of ranks.
PROBLEMS = {
    "stencil": lambda ranks: f"--grid {256 * ranks}x96x96 --steps 10",
    "fft3d": lambda ranks: f"--grid {48 * ranks}x64x64",
    "cpals": lambda ranks: (
        f"--dimensions 240x240x240 --entries {1_000_000 * ranks} --rank 8 --iterations 2"
        " --exchange overlapped"
    ),
    # Coupling between the slabs of the ranks is weak, so that the number of iterations does not
    # depend on the number of slabs.
    "pipecg": lambda ranks: (
        f"--grid 72x72x{64 * ranks} --coefficients anisotropic --contrast 100 --tolerance 1e-2"
    ),
    "atmosphere": lambda ranks: f"--truncation {TRUNCATIONS[ranks]} --steps 1",
}
# These are further settings of the lab's links. The page explains them, and the problems, by the
# notes below.
LINKS = {"pipecg": "delay=1ms", "atmosphere": "burst=64kb"}
NOTES = {
    "pipecg": "the links are 1 ms late (`delay=1ms`)",
    "atmosphere": "the links pass no more than 64 kB at full speed (`burst=64kb`). Weak: on 1, 2"
    f" and 4 ranks truncations {', '.join(map(str, TRUNCATIONS.values()))}, whose steps take one"
    " rank about 1, 2 and 4 times as long",
}
STRONG_SIZE = 2  # the strong problem is the weak one for this number of ranks
REPETITIONS = 5
WAYS = ("blocking", "overlapped")
MODES = {
    "strong": "Strong: the same problem, times as fast as blocking on one rank",
    "weak": "Weak: the problem grows with the ranks, share of one rank's speed",
}


# ---- Measurements -----------------------------------------------------------------------------


def cases() -> list[tuple[str, str, int]]:
    return [(name, mode, ranks) for name in PROBLEMS for mode in MODES for ranks in RANKS]


def problem(name: str, mode: str, ranks: int) -> str:
    return PROBLEMS[name](STRONG_SIZE if mode == "strong" else ranks)


def take(name: str, mode: str, ranks: int, mpi: str) -> tuple[str, dict[str, float]]:
    """Returns the name of the MPI library, and the times in ms: blocking, and overlapped with
    engine auto."""
    from weft.bench import kernel_runs

    words = f"{problem(name, mode, ranks)} --repetitions {REPETITIONS}"
    place = ",".join(filter(None, (f"nodes={ranks},rate={RATE}", LINKS.get(name))))
    run = kernel_runs.measure(name, {"arguments": words, "engines": "auto", "lab": place}, mpi)
    times = (run.blocking.median, run.times_us["auto"].median)
    return run.library, {way: round(time / 1000, 3) for way, time in zip(WAYS, times)}


def measure(machine: str, rounds: int, mpi: str, remark: str) -> dict:
    from weft.system import info

    library = ""
    found: dict = {name: {mode: {} for mode in MODES} for name in PROBLEMS}
    for _ in range(rounds):
        for name, mode, ranks in cases():
            entry = found[name][mode].setdefault(str(ranks), {way: [] for way in WAYS})
            library, times_ms = take(name, mode, ranks, mpi)
            for way, time_ms in times_ms.items():
                entry[way].append(time_ms)
            print(name, mode, ranks, {way: entry[way][-1] for way in WAYS}, flush=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return {
        "machine": machine,
        "cores": len(info.whole_cores()),
        "date": datetime.date.today().isoformat(),
        "commit": commit.stdout.strip(),
        "library": library,
        "rate": RATE,
        "remark": remark,
        "command": f"tools/generate_scaling.py --measure --machine {machine} --rounds {rounds}"
        f" --mpi {mpi}",
        "kernels": found,
        "problems": {name: {mode: problem(name, mode, 1) for mode in MODES} for name in PROBLEMS},
    }


# ---- Evaluation -------------------------------------------------------------------------------


def ratios(times: dict, way: str, ranks: int) -> list[float]:
    """Returns one ratio per round. `times`: those of one kernel in one mode, by ranks and way."""
    return [one / here for one, here in zip(times["1"]["blocking"], times[str(ranks)][way])]


def figure(times: dict, way: str, ranks: int) -> tuple[float, float, float]:
    """Returns the median, least and greatest ratio of all rounds."""
    every = ratios(times, way, ranks)
    return median(every), min(every), max(every)


# ---- Page and picture -------------------------------------------------------------------------

WIDTH, PANEL_WIDTH, PANEL_HEIGHT, TOP, LEFT, GAP = 760, 300, 170, 96, 44, 72
COLOURS = {"blocking": "line-without", "overlapped": "line-with"}
LINES = """
  .line-without, .line-with, .ideal { fill: none; stroke-width: 2.5; }
  .line-without { stroke: #57606a; }
  .line-with { stroke: #1a7f5a; }
  .ideal { stroke: #57606a; stroke-width: 1.5; stroke-dasharray: 4 4; }
  .axis { stroke: #57606a; }
  .beyond { fill: #d0d7de; opacity: 0.45; }
  @media (prefers-color-scheme: dark) {
    .line-without, .ideal, .axis { stroke: #9da7b1; }
    .line-with { stroke: #3fb984; }
    .beyond { fill: #3d444d; }
  }"""


def panel(times: dict, mode: str, x: float, y: float, cores: int) -> list[str]:
    """Draws the speed over the number of ranks, which doubles from tick to tick."""
    most = float(RANKS[-1]) if mode == "strong" else 1.25

    def across(ranks: int) -> float:
        return x + PANEL_WIDTH * RANKS.index(ranks) / (len(RANKS) - 1)

    def up(value: float) -> float:
        return y + PANEL_HEIGHT * (1 - value / most)

    def path(values: list[float], kind: str) -> str:
        points = " ".join(f"{across(r):.1f},{up(v):.1f}" for r, v in zip(RANKS, values))
        return f'<polyline class="{kind}" points="{points}"/>'

    lines = []
    if inside := [ranks for ranks in RANKS if ranks <= cores]:
        begin = across(inside[-1])
        width = x + PANEL_WIDTH - begin
        if width > 0:
            lines.append(
                f'<rect class="beyond" x="{begin:.1f}" y="{y}" width="{width:.1f}"'
                f' height="{PANEL_HEIGHT}"/>'
            )
            lines.append(text(begin + 6, y + 14, f"beyond the {cores} cores", "small"))
    base = y + PANEL_HEIGHT
    lines.append(f'<path class="axis" fill="none" d="M{x} {y}V{base}H{x + PANEL_WIDTH}"/>')
    for value in (1, 2, 4) if mode == "strong" else (0.5, 1):
        lines.append(text(x - 8, up(value) + 5, f"{value:g}", "small", end=True))
    lines += [text(across(ranks) - 4, base + 18, str(ranks), "small") for ranks in RANKS]
    lines.append(path([r if mode == "strong" else 1 for r in RANKS], "ideal"))
    for way in WAYS:
        middle = [figure(times, way, ranks)[0] for ranks in RANKS]
        lines.append(path(middle, COLOURS[way]))
        for ranks in RANKS:
            _, least, high = figure(times, way, ranks)
            place = across(ranks)
            lines.append(
                f'<path class="{COLOURS[way]}" d="M{place:.1f} {up(least):.1f}V{up(high):.1f}"/>'
            )
    return lines


def picture(data: dict, machines: dict) -> str:
    lines, y = [], TOP
    for name, modes in data["kernels"].items():
        lines.append(text(0, y - 12, name, "figure"))
        for column, mode in enumerate(MODES):
            x = LEFT + column * (PANEL_WIDTH + GAP)
            lines.append(text(x + 76, y - 12, f"{mode} scaling", "small"))
            lines += panel(modes[mode], mode, x, y, data["cores"])
        y += PANEL_HEIGHT + GAP
    captions = [
        "Across: ranks, one on each node of the lab. Grey: blocking; green: overlapped, engine"
        " auto; dashed: ideal.",
        "Bars: least and most of all rounds. " + f"{data['library']}, links of {data['rate']}.",
        f"Machine: {machines[data['machine']]}; {data['date']}.",
    ]
    height = y + 22 * len(captions)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' width="{WIDTH}" height="{height}" aria-labelledby="title">',
        '<title id="title">Strong and weak scaling of kernels, blocking and overlapped</title>',
        f"<style>\n{STYLE}{LINES}\n</style>",
        text(0, 22, "Strong and weak scaling", "title"),
        text(0, 46, "Left: times as fast as blocking on one rank. Right: share of one rank's speed"
             " that each rank keeps.", "small"),
    ]  # fmt: skip
    foot = [text(0, y - 12 + 22 * i, words, "small") for i, words in enumerate(captions)]
    return "\n".join([*head, *lines, *foot, "</svg>"]) + "\n"


def table(data: dict, mode: str) -> str:
    lines = [f"**{MODES[mode]}**", "", "| kernel | problem on each number of ranks | way | "]
    lines[-1] += " | ".join(f"{ranks} rank{'s' * (ranks > 1)}" for ranks in RANKS) + " |"
    lines.append("|" + " --- |" * (3 + len(RANKS)))
    for name, modes in data["kernels"].items():
        of = "the same" if mode == "strong" else "of one rank"
        words = data["problems"][name][mode]
        for way in WAYS:
            cells = [figure(modes[mode], way, ranks) for ranks in RANKS]
            told = " | ".join(f"{m:.2f} [{a:.2f}–{b:.2f}]" for m, a, b in cells)
            lines.append(f"| `{name}` | {of}: `{words}` | {way} | {told} |")
    return "\n".join(lines) + "\n"


def page(data: dict, machines: dict) -> str:
    rounds = len(data["kernels"]["stencil"]["strong"]["1"]["blocking"])
    notes = "".join(f"- `{name}`: {NOTES[name]}.\n" for name in data["kernels"] if name in NOTES)
    return f"""\
# Strong and weak scaling

<!-- Written from docs/data/scaling.json by tools/generate_scaling.py: `make generate`. -->

Kernels over ranks, each rank on a node of [the lab](../lab.md), whose links carry {data["rate"]}.
The machine has {data["cores"]} cores: with more ranks there is no more power to compute,
so the computation itself cannot become faster. That part of the picture shows what more ranks on
the same cores cost.
One rank sends nothing, so that its overlapped form shows what overlap costs where nothing can hide.

![Strong and weak scaling of kernels, blocking and overlapped](../images/scaling.svg)

{table(data, "strong")}
{table(data, "weak")}
- Rounds: {rounds}; the median, in brackets the least and the most. A round runs every case
  once, with {REPETITIONS} interleaved repetitions of both ways.
- A ratio is made of times of one round.
{notes}\
- Machine: {machines[data["machine"]]}. {data["remark"]}.
- Measured: {data["date"]}; commit `{data["commit"]}`; {data["library"]}, engine `auto`.
- Command: `{data["command"]}`.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    parser.add_argument("--measure", action="store_true", help="measure first: some minutes")
    parser.add_argument("--machine", help="with --measure: a name of docs/data/machines.json")
    parser.add_argument("--rounds", type=int, default=3, help="with --measure")
    parser.add_argument(
        "--remark",
        default="Nothing else ran on it",
        help="with --measure: what else the machine did",
    )
    parser.add_argument("--mpi", default="mpich", help="with --measure: the MPI library")
    chosen = parser.parse_args()
    machines = json.loads((ROOT / "docs/data/machines.json").read_text())
    if chosen.measure:
        if chosen.machine not in machines:
            parser.error(f"--measure needs --machine, one of {', '.join(machines)}")
        if chosen.rounds < 1:
            parser.error("--rounds must be 1 or more")
        found = measure(chosen.machine, chosen.rounds, chosen.mpi, chosen.remark)
        DATA.write_text(json.dumps(found, indent=1) + "\n")
    data = json.loads(DATA.read_text())
    for path, content in {PAGE: page(data, machines), PICTURE: picture(data, machines)}.items():
        if path.exists() and path.read_text() == content:
            continue
        if chosen.check:
            print(f"{path.relative_to(ROOT)} is not what docs/data says: run make generate")
            return 1
        path.write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
