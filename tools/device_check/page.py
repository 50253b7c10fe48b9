"""What docs/performance.md shows of device-check.json: docs/data/performance/12-papers.json, from
which `make generate` writes the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from device_check import programs
from device_check.cores import HEADING, HEADINGS, PAPERS

OUT = programs.ROOT / "docs" / "data" / "performance" / "12-papers.json"
TITLES = {
    "iallreduce": "Intel's kernel: two reductions of 10,000 doubles behind an update",
    "shared": "Allreduce in shared memory: time of the MPI library's own in the same form",
    "tcc": "Alltoall behind a matrix-vector product, two ranks",
    "threads": "Threads per core: Iallgather over as many matrix products in all cases",
    "masters": "Pipelined CG, two threads a rank: sums and halo on the master thread",
    "placements": "Iscan of 1 MiB along a chain, by placement",
    "splits": "Trees of 2 MiB split at S levels, engine thread",
}


def write(file: str, machine: str, out: Path = OUT) -> int:
    """machine: as docs/data/machines.json calls it."""
    path = Path(file)
    found = json.loads(path.read_text())
    rows = [row for row in found["rows"] if row["group"] in PAPERS and row["of_native"]]
    if not rows:
        print(f"device-check: {path} has no row of the papers' experiments", file=sys.stderr)
        return 1
    there = {row["group"] for row in rows}
    tables = [table(group, rows, found, machine) for group in PAPERS if group in there]
    document = {
        "title": "The papers' experiments on many cores",
        "says": f"One node. All output lies in `docs/data/device` (`{path.name}`).",
        "measurements": tables,
    }
    out.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(f"{out}: {len(tables)} tables")
    return 0


def table(group: str, rows: list[dict], found: dict, machine: str) -> dict:
    """A row for each measurement, with a column for each share."""
    mine = [row for row in rows if row["group"] == group]
    names = list(dict.fromkeys(name for row in mine for name in row["of_native"]))
    names = [name for name in names if name != "native"]
    cells = [
        [
            row["collective"],
            row["words"],
            row["size"],
            str(row["ranks"]),
            f"{row['native_us']:,.1f}",
            *(
                f"{row['of_native'][name]:.2f}" if name in row["of_native"] else ""
                for name in names
            ),
        ]
        for row in mine
    ]
    return {
        "what": f"{TITLES[group]}: {HEADINGS.get(group, HEADING)}",
        "machine": machine,
        "date": found["date"],
        "commit": found["commit"],
        "libraries": found["libraries"],
        "command": "tools/device-check",
        "spread": "medians of seven repetitions in one job each",
        "columns": ["program", "case", "bytes", "ranks", "µs", *names],
        "rows": cells,
        "notes": [],
    }
