"""Weft's results as data, and its lab, for scripts and notebooks.

    import weft

    tried = weft.load("tried.json")      # a file that weft try --json wrote
    tried.facts["headline"]              # the figures of its first sentence
    tried.columns()                      # a dict of lists: pandas.DataFrame(tried.columns())
    tried.columns("runs")["seconds"]     # another table; tried.tables names them all
    tried.figure()                       # a picture, which notebooks show
    tried.figure().save("tried.svg")

load(path)  reads results of weft try, bench, advise, learned and sim, and summaries of weft run:
            JSON, and the SQLite files of weft bench and weft advise.
Lab(nodes)  runs MPI jobs on nodes of this machine that are joined by slow links.

Names of columns end in their units: _us are microseconds, seconds are seconds, bytes are bytes.
Shares and ratios are plain numbers: a share of 1 is all, and a ratio of 1 means equally fast.

The command line (weft --help) is also written in Python, except the commands that run once per
rank (src/launch)."""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"
__all__ = ["Figure", "Lab", "Result", "ResultError", "load"]
# These names are imported at their first use, so that `import weft` and the command line start
# quickly.
PLACES = {
    "Figure": "weft.results",
    "Lab": "weft.lab",
    "Result": "weft.results",
    "ResultError": "weft.data.stored",
    "load": "weft.results",
}


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    return getattr(import_module(PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *PLACES])
