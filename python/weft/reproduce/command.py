"""`weft reproduce`: its options, and what it shows."""

import sys
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

What = Literal["placement", "split-tree", "threads-per-core"]


def reproduce(
    what: Annotated[
        Optional[What],
        typer.Argument(help="Which paper's figures.", metavar="WHAT", show_default=False),
    ] = None,
    listed: Annotated[
        bool,
        typer.Option("--list", help="All findings of the papers, and where each is tested."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    out: Annotated[
        Optional[Path],
        typer.Option("-o", "--out", help="Also write a page with the figures.", metavar="FILE"),
    ] = None,
) -> None:
    """Draw a paper's figures from the simulator: placement, split-tree or threads-per-core."""
    import json
    from dataclasses import asdict

    from weft.reproduce import page, placement, published, split_tree, threads_per_core
    from weft.sim.native import SimError
    from weft.stored import ResultError

    if listed == (what is not None) or (listed and out):
        print("weft reproduce: give WHAT, or --list alone or with --json", file=sys.stderr)
        raise typer.Exit(2)
    if listed:
        if as_json:
            print(json.dumps([asdict(one) for one in published.all_findings()], indent=2))
        else:
            published.show()
        return
    papers = {
        "placement": placement.reproduce,
        "split-tree": split_tree.reproduce,
        "threads-per-core": threads_per_core.reproduce,
    }
    try:
        found = papers[what]()
        if out:
            page.write(out, found)
        if as_json:
            facts = asdict(found)
            for row, finding in zip(facts["findings"], found.findings):
                row["verdict"] = finding.verdict
            print(json.dumps(facts, indent=2))
        else:
            page.show(found, out)
    except (SimError, ResultError, OSError) as error:
        print(f"weft reproduce: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
