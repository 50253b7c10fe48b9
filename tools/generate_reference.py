#!/usr/bin/env python3
"""Writes docs/reference/, packaging/man/ and packaging/completion/ from the programs' own tables.

Man pages, completion and reference therefore never differ from `--help`. The written files are
checked in, so that an installation needs no Python for them. --check tells whether they are up to
date. The preloaded library gets its list of variables from here, too (src/base/misspelt.h). The
tool needs a built Weft, since `weft run` and `weft schedule` print their own options."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from reference import commands, completion, man, names, pages  # noqa: E402

from weft.cli import app  # noqa: E402


def sources() -> list[Path]:
    """Returns the source files that may read an environment variable."""
    trees = (("src", "*.cc"), ("python/weft", "*.py"), ("cmake", "*.in"))
    return sorted(path for folder, names in trees for path in (ROOT / folder).rglob(names))


def rule_tables(command: Path) -> dict[str, str]:
    """Returns the selector's own tables for a small and a large job, by the number of ranks."""
    jobs = (("4", "2"), ("64", "16"))
    return {
        f"{ranks} ranks": commands.said(
            command, "--rule", "--ranks", ranks, "--ranks-per-node", ranks_per_node
        )
        for ranks, ranks_per_node in jobs
    }


def documents(binaries: Path) -> dict[Path, str]:
    """Returns the text of each file."""
    run = commands.asked(binaries / "weft", "run", "--help=json")
    schedule = commands.asked(binaries / "weft-schedule", "--help-json")
    everything = commands.all_commands(app, run, schedule)
    native = next(one for one in everything.commands if one.words == ["weft", "run"])
    variables = pages.described_variables(sources())
    reference = {
        "run.md": pages.run_page(native),
        "commands.md": pages.commands_page(everything),
        "variables.md": pages.variables_page(native, variables),
        "hints.md": pages.hints_page(run["hints"]),
        "algorithms.md": pages.algorithms_page(run["algorithms"]),
        "rule.md": pages.rule_page(rule_tables(binaries / "weft-schedule")),
        "c-interface.md": pages.interface_page(ROOT / "include"),
    }
    reference["index.md"] = pages.index_page(reference)
    folders = {
        "docs/reference": reference,
        "packaging/man": man.pages(everything),
        "packaging/completion": completion.files(everything, run["algorithms"]),
        "src/base/generated": {
            "variable_names.h": names.header(native, variables, run["algorithms"])
        },
    }
    return {
        ROOT / folder / name: text
        for folder, files in folders.items()
        for name, text in files.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build" / "bin")
    arguments = parser.parse_args()
    found = documents(arguments.binaries)
    stale = [path for path, text in found.items() if not path.exists() or path.read_text() != text]
    folders = {path.parent for path in found}
    left = [path for folder in folders for path in folder.glob("*") if path not in found]
    if arguments.check:
        for path in stale + left:
            print(f"{path.relative_to(ROOT)} is out of date; run: make generate", file=sys.stderr)
        return 1 if stale or left else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found[path])
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
