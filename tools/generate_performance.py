#!/usr/bin/env python3
"""Writes docs/performance.md and two pictures from the figures in docs/data/.

Each figure is stored once, as data, with its machine, day, commit and command, so that the page
cannot leave these out. `make generate` runs this tool. `--check` tells whether the page and the
pictures agree with the data."""

from __future__ import annotations

import argparse
import html
import json
import sys
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/data"
PAGE = ROOT / "docs/performance.md"
IMAGES = ROOT / "docs/images"
NEEDED = ("what", "machine", "date", "libraries", "command", "spread", "columns", "rows")

HEAD = """\
# Performance

<!-- Written from docs/data by tools/generate_performance.py: `make generate`. -->

Every table names the machine, the day, the commit, the command and the spread of its figures.
Where the commit of the measured code was not recorded, the commit that entered the figures is named
instead.
All machines are virtual ones, with two cores but for one with sixteen: no other has been at hand.
No figure of a fast network, of a machine with several NUMA domains, or of a cluster is known yet.
[Decisions](decisions.md) tells what was tried and not kept.
"""


def read(path: Path):
    """Reads data. Figures keep the digits with which they were written: 0.40 does not become
    0.4."""
    return json.loads(path.read_text(), parse_float=Decimal)


def claims() -> list[dict]:
    found = [read(path) for path in sorted((DATA / "performance").glob("*.json"))]
    for claim in found:
        for measurement in claim["measurements"]:
            missing = [name for name in NEEDED if name not in measurement]
            missing += [] if "commit" in measurement or "entered" in measurement else ["commit"]
            widths = {len(row) for row in measurement["rows"]} - {len(measurement["columns"])}
            if missing or widths:
                what = measurement.get("what", claim["title"])
                raise SystemExit(f"docs/data: '{what}' lacks {missing or 'cells in a row'}")
    return found


def cell(value) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        median, least, most = value
        return f"{median} [{least}, {most}]"
    return str(value)


def commit(measurement: dict) -> str:
    """Returns the commit of a measurement. Older figures have none; for these it is the commit that
    added them to the repository."""
    if "commit" in measurement:
        return f"commit `{measurement['commit']}`"
    return f"commit not recorded, figures entered in `{measurement['entered']}`"


def table(measurement: dict, machines: dict) -> str:
    columns = measurement["columns"]
    lines = [f"**{measurement['what']}**", ""]
    lines += ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in measurement["rows"]]
    machine = machines.get(measurement["machine"], "any, since nothing is timed")
    lines += [
        "",
        f"- Machine: {machine}.",
        f"- Measured: {measurement['date']}; {commit(measurement)}.",
        f"- Libraries: {measurement['libraries']}.",
        f"- Command: `{measurement['command']}`.",
        f"- Spread: {measurement['spread']}.",
    ]
    lines += [f"- {note}" for note in measurement.get("notes", [])]
    return "\n".join(lines) + "\n"


def page(all_claims: list[dict], machines: dict) -> str:
    parts = [HEAD]
    for claim in all_claims:
        parts.append(f"## {claim['title']}\n\n{claim['says']}\n")
        parts += [table(measurement, machines) for measurement in claim["measurements"]]
    return "\n".join(parts)


def named(all_claims: list[dict], name: str) -> dict:
    every = [m for claim in all_claims for m in claim["measurements"]]
    return next(measurement for measurement in every if measurement.get("name") == name)


STYLE = """\
  text { font: 15px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
  .title { font-size: 18px; font-weight: 600; }
  .small { font-size: 13px; fill: #57606a; }
  .figure { font-weight: 600; }
  .without { fill: #d0d7de; }
  .with { fill: #1a7f5a; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .small { fill: #9da7b1; }
    .without { fill: #3d444d; }
    .with { fill: #3fb984; }
  }"""
WIDTH, LEFT, BAR, ROW, TOP = 760, 200, 440, 26, 84


def text(x: float, y: float, words: str, kind: str = "", end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{style}{anchor}>{html.escape(words)}</text>'


def bars(rows: list[tuple[str, str, Decimal]]) -> tuple[list[str], int]:
    """Returns one bar per row. The whole bar is the time without Weft, its coloured part the time
    with it."""
    lines, y, last = [], TOP, ""
    for library, collective, ratio in rows:
        if library != last:
            y += 12 if last else 0
            lines.append(text(0, y + 16, library, "figure"))
            last = library
        lines.append(text(LEFT - 10, y + 16, collective, end=True))
        lines.append(f'<rect class="without" x="{LEFT}" y="{y + 3}" width="{BAR}" height="17"/>')
        part = f"{float(min(ratio, Decimal(1))) * BAR:.0f}"
        lines.append(f'<rect class="with" x="{LEFT}" y="{y + 3}" width="{part}" height="17"/>')
        lines.append(text(LEFT + BAR + 12, y + 16, f"{round(ratio * 100)} %", "figure"))
        y += ROW
    return lines, y


def picture(title: str, rows: list[tuple[str, str, Decimal]], captions: list[str]) -> str:
    """Returns an SVG of bars, with a title above and captions below."""
    lines, bottom = bars(rows)
    height = bottom + 22 * len(captions) + 18
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' width="{WIDTH}" height="{height}" aria-labelledby="title">',
        f'<title id="title">{html.escape(title)}, in per cent of the time without it</title>',
        f"<style>\n{STYLE}\n</style>",
        text(0, 22, title, "title"),
        text(0, 50, "Full bar: the same program without Weft. Coloured: under “weft run”, nothing"
             " else changed.", "small"),
    ]  # fmt: skip
    foot = [text(0, bottom + 28 + 22 * i, words, "small") for i, words in enumerate(captions)]
    return "\n".join([*head, *lines, *foot, "</svg>"]) + "\n"


def between_nodes(measurement: dict, machines: dict) -> str:
    of_native = measurement["columns"].index("`auto` of native")
    rows = [(row[0], row[1].strip("`")[4:], row[of_native]) for row in measurement["rows"]]
    captions = [
        "Two nodes of the lab, joined at 200 Mbit/s, 2 MiB, computation as long as communication.",
        f"Machine: {machines[measurement['machine']]}; {measurement['date']}.",
        f"Medians. {measurement['libraries']}.",
    ]
    return picture("Communication and computation together: time with Weft", rows, captions)


def real_programs(measurement: dict, machines: dict) -> str:
    ratio = measurement["columns"].index("time with `weft run`")
    rows = [(row[0].strip("`"), row[1], row[ratio][0]) for row in measurement["rows"]]
    captions = [
        "Two ranks on one node, and on two nodes of the lab joined at 1 Gbit/s.",
        f"Machine: {machines[measurement['machine']]}; {measurement['date']}.",
        "Medians of the times that the programs say themselves.",
    ]
    return picture("Real programs that were not changed: time with Weft", rows, captions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    only_check = parser.parse_args().check
    machines, all_claims = read(DATA / "machines.json"), claims()
    wanted = {
        PAGE: page(all_claims, machines),
        IMAGES / "between-nodes.svg": between_nodes(named(all_claims, "two-nodes"), machines),
        IMAGES / "real-programs.svg": real_programs(named(all_claims, "real-programs"), machines),
    }
    for path, content in wanted.items():
        if path.exists() and path.read_text() == content:
            continue
        if only_check:
            print(f"{path.relative_to(ROOT)} is not what docs/data says: run make generate")
            return 1
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
