"""`weft reproduce --list`: what each figure, abstract and conclusion of the five texts says.

The texts are not part of the repository; their figures are named here. None has a table with a
number.
"""

from __future__ import annotations

import re

import pytest

from weft.reproduce import published

# By paper and figure: what it is, and words of the statement that stands for it.
FIGURES = {
    ("Okuma, Nanri", "1"): ("cases on 2 nodes", "1.346 .* 1.127 .* 1.166"),
    ("Okuma, Nanri", "2"): ("cases on 32 nodes", "1.338, 1.020 and 1.271"),
    ("Nanri et al., jh250041", "1"): ("16 B, computation 1/2", "Prog2 .* is the fastest"),
    ("Nanri et al., jh250041", "2"): ("16 B, computation 2", "Normal .* is the fastest"),
    ("Nanri et al., jh250041", "3"): ("1 MB, computation 1/2", "Prog4 .* is the fastest"),
    ("Nanri et al., jh250041", "4"): ("1 MB, computation 2", "Prog4 is faster than Normal"),
    ("Nanri et al., jh250041", "5"): ("stencil on GPUs", "CUDA graphs .* fastest for all N"),
    ("Nanri et al., jh250041", "6"): ("Allreduce, 1 process a node", "SHARP is fastest"),
    ("Nanri et al., jh250041", "7"): ("Allreduce, 8 processes a node", "no significant advantage"),
    ("Denis et al. 2019", "1"): ("placement of tasks", "6 leave one core of each node free"),
    ("Denis et al. 2019", "2"): ("placement bind", "bind: each thread runs on its rank's core"),
    ("Denis et al. 2019", "3"): ("placement numa", "numa: all threads run on the free core"),
    ("Denis et al. 2019", "4"): ("trace with bind", "neighbours run at the same time"),
    ("Denis et al. 2019", "5"): ("trace with numa", "half of the time, one after the other"),
    ("Denis et al. 2019", "6"): ("trace with odd-even", "both communication cores work at once"),
    ("Denis et al. 2019", "7"): ("times of Iscan", "numa takes 3 times as long as bind"),
    ("Denis et al. 2019", "8"): ("tree of 16 tasks", "8, 4, 2 and 1 messages"),
    ("Denis et al. 2019", "9"): ("on two cores", "8 rounds instead of 4"),
    ("Denis et al. 2019", "10"): ("split at S = 2", "with S = 2 they take less"),
    ("Denis et al. 2019", "11"): ("tree of 23 tasks", "half of the messages .* such as 23"),
    ("Denis et al. 2019", "12"): ("messages by level, 1 to 64", "half of the messages .* 1 to 64"),
    ("Denis et al. 2019", "13"): ("model, time of bcast", "the less the greater S is"),
    ("Denis et al. 2019", "14"): ("model, total of bcast", "least total .* 51 ranks with S = 0"),
    ("Denis et al. 2019", "15"): ("model, time of scatter", "scatter and gather behave similarly"),
    ("Denis et al. 2019", "16"): ("model, total of scatter", "scatter and gather behave similarly"),
    ("Denis et al. 2019", "17"): ("Ibcast, 64 cores", "switches to 1, 2 and 3 at 52, 58 and 62"),
    ("Denis et al. 2019", "18"): ("Ireduce, 64 cores", "switches to 1, 2 and 3 at 52, 58 and 62"),
    ("Denis et al. 2019", "19"): ("Ireduce, 48 cores", "faster than blocking even if one core"),
    ("Denis et al. 2019", "20"): (
        "MPI libraries, 64 cores",
        "asynchronous progress make it slower",
    ),
    ("Denis et al. 2019", "21"): (
        "MPI libraries, 48 cores",
        "asynchronous progress make it slower",
    ),
    ("Jocksch, Piccinali", "Copy in"): ("long messages", "in chunks, which all tasks reduce"),
    ("Jocksch, Piccinali", "Tree reduction"): ("short messages", "a tree in shared memory"),
    ("Jocksch, Piccinali", "Allreduce, 128 MPI tasks on one node"): ("a node", "128 ranks: mostly"),
    ("Jocksch, Piccinali", "Allreduce, 64 MPI tasks on one node with four NVIDIA A100"): (
        "a node with GPUs",
        "one node with four GPUs",
    ),
    ("Jocksch, Piccinali", "Allreduce, 8 and 128 nodes each with 128 MPI tasks"): (
        "nodes",
        "slow on several nodes",
    ),
    ("Jocksch, Piccinali", "Allreduce, 4 nodes each with 64 MPI tasks on four NVIDIA A100"): (
        "nodes with GPUs",
        "several nodes with four GPUs each",
    ),
}
# What the texts claim beside their figures.
CLAIMS = {
    ("Okuma, Nanri", "abstract"): "TCC, which is simpler, gains more",
    ("Okuma, Nanri", "section V"): "several collectives in flight",
    ("Okuma, Nanri", "V and VI"): "both carry out one algorithm",
    ("Okuma, Nanri", "sections? V"): "15 threads .* against 16 that share their cores",
    ("Nanri et al., jh250041", "abstract"): "ten amounts of computation",
    ("Nanri et al., jh250041", "topic 1"): "two levels, where one process of a node",
    ("Nanri et al., jh250041", "section 6"): "SHARP for MPI_COMM_WORLD only",
    ("Nanri et al., jh250041", "section 4"): "share of overlap by OSU's benchmark",
    ("Nanri et al., jh250041", "abstract; topic 3"): "27 % over no overlap and by 6 %",
    ("Denis et al. 2019", "abstract; section 7"): "the more levels belong on the application's",
    ("Denis et al. 2019", "section 8"): "in any MPI library with progress threads",
    ("Denis et al. 2019", "figures 20 and 21; section 8"): "faster than the MPI library's own",
    ("Denis et al. 2019", "figures 14 and 18; section 8"): "in the model and in what was measured",
    ("Intel", "example"): "12 ranks in shared memory.* 54 % less time",
    ("Intel", "when to use"): "all cores are in use already there is no benefit",
    ("Jocksch, Piccinali", "one node"): "127 ranks, a prime number: not ideal",
    (
        "Jocksch, Piccinali",
        "benchmarks, one node",
    ): "one shared segment .* a segment for each socket",
    ("Jocksch, Piccinali", "conclusions"): "persistent interface allows",
}


def statements(paper: str) -> list[tuple[str, str]]:
    return [
        (claim.where, claim.words)
        for one in published.FINDINGS
        if one.paper == paper
        for claim in one.claims
    ]


def figures_in(where: str) -> set[str]:
    """By number, as in "figures 1, 3 and 5 to 7", or by title."""
    found = set(re.findall(r'figure "([^"]+)"', where))
    for numbers in re.findall(r"figures? (\d[\d, andto]*)", where):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers):
            found |= {*map(str, range(int(first), int(last or first) + 1))}
    return found


def test_figures_are_read_from_where_a_statement_stands():
    listed = figures_in("section 7, figures 2, 4 and 17 to 19; section 8")
    assert listed == {"2", "4", "17", "18", "19"}
    assert figures_in('algorithms, figure "Copy in"; conclusions') == {"Copy in"}
    assert figures_in("sections 5 to 7, 62 ranks") == set()


@pytest.mark.parametrize(("paper", "figure"), FIGURES)
def test_a_statement_stands_for_each_figure(paper, figure):
    _, words = FIGURES[paper, figure]
    about = [said for where, said in statements(paper) if figure in figures_in(where)]
    assert any(re.search(words, said) for said in about), about


def test_no_statement_names_a_figure_that_is_not_there():
    named = {
        (one.paper, figure)
        for one in published.FINDINGS
        for claim in one.claims
        for figure in figures_in(claim.where)
    }
    assert named == set(FIGURES)


@pytest.mark.parametrize(("paper", "place"), CLAIMS)
def test_what_a_text_claims_is_listed_once(paper, place):
    words = CLAIMS[paper, place]
    found = [w for w, said in statements(paper) if re.search(words, said) and re.search(place, w)]
    assert len(found) == 1, found
