"""Tests `weft schedule --rule`, which prints the selector's rule as tables."""

import pytest


def rows(text: str) -> dict[str, list[str]]:
    """Returns the further cells of each row by its first cell, from all tables."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| ") and "---" not in line:
            first, *others = (cell.strip() for cell in line.strip("|").split("|"))
            for kind in first.split(", "):
                found.setdefault(kind, []).extend(others)
    return found


def test_the_rule_says_sizes_engines_and_algorithms(call):
    done = call("schedule", "--rule", "--ranks", "4", "--ranks-per-node", "2")
    assert done.returncode == 0, done.stderr
    table = rows(done.stdout)
    assert table["allreduce"] == [
        "`function` up to 2 KiB, `native` below 128 KiB, `thread`",
        "`function` below 128 KiB, `thread`",
        "`native` below 128 KiB, `thread`",
        "`native` below 8 KiB, `function` below 128 KiB, `thread`",
        "`native` below 128 KiB, `thread`",
        "`function` below 128 KiB, `thread`",
        "`node-flat` up to 1 KiB, `node-ring`",
        "`recursive-doubling` up to 64 KiB, `rabenseifner`",
        "`hierarchical`",
    ]
    assert table["alltoallw"][:6] == ["`thread`"] * 6
    assert len({len(cells) for cells in table.values()}) == 1


@pytest.mark.parametrize("ranks_per_node", ["1", "4", "x"])
def test_ranks_that_do_not_make_several_nodes_are_refused(call, ranks_per_node):
    words = ["--rule", "--ranks", "4", "--ranks-per-node", ranks_per_node]
    done = call("schedule", *words)
    assert done.returncode != 0
    assert "--ranks-per-node" in done.stderr
