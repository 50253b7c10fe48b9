#!/usr/bin/env python3
"""Writes the tables of docs/check.md from docs/data/check.json.

Why data and not text: each table stands with the machine and the day that it comes from, and the
page cannot leave these out. A table's place on the page is between two comments with its name.
`make generate` runs this; `--check` says whether the page has the tables of the data.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from generate_performance import cell, read

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/data/check.json"
PAGE = ROOT / "docs/check.md"


def table(one: dict, machines: dict) -> str:
    lines = [f"{one['what']} ({machines[one['machine']]}; {one['date']}):", ""]
    lines.append("| " + " | ".join(one["columns"]) + " |")
    lines.append("|" + " --- |" * len(one["columns"]))
    for row in one["rows"]:
        if len(row) != len(one["columns"]):
            raise SystemExit(f"{DATA}: '{row[0]}' lacks a cell")
        lines.append("| " + " | ".join(map(cell, row)) + " |")
    return "\n".join(lines)


def page(before: str, data: dict, machines: dict) -> str:
    for name, one in data.items():
        begin, end = f"<!-- table {name}: tools/generate_check.py -->", f"<!-- end of {name} -->"
        inside = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        text = f"{begin}\n{table(one, machines)}\n{end}"
        before, count = inside.subn(lambda _, text=text: text, before)
        if count != 1:
            raise SystemExit(f"{PAGE}: there is no place for the table '{name}'")
    return before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    before = PAGE.read_text()
    machines = json.loads((ROOT / "docs/data/machines.json").read_text())
    after = page(before, read(DATA), machines)
    if not arguments.check:
        PAGE.write_text(after)
    elif after != before:
        print(f"{PAGE} is not of {DATA}: run make generate")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
