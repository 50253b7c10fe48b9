"""Scales message sizes and computation with the number of ranks, by powers of the ratio of ranks.

Strong and weak scaling are both powers, and so is a program in between."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weft.advise.sites import Site, is_vector
from weft.data.stored import ResultError

COMPUTATION = "computation"
# These are the powers by which a rank's bytes in one call change. Other collectives keep their
# size.
STRONG = {"alltoall": -1.0, "neighbor_alltoall": -2 / 3, "neighbor_allgather": -2 / 3}
WEAK = dict.fromkeys(("allgather", "gather", "scatter", "reduce_scatter_block"), 1.0)
WEAK["reduce_scatter"] = 1.0
NAMED = {"strong": (-1.0, STRONG), "weak": (0.0, WEAK)}
SAID = {
    "strong": "strong scaling: computation and the parts of an all-to-all are divided by the ratio"
    " of ranks, surfaces by its power of 2/3; reductions and gathered totals keep their size",
    "weak": "weak scaling: a rank computes and sends as much as in the record; gathered totals"
    " grow",
}


def plain(kind: str) -> str:
    """Returns the name of the collective without the v of vector collectives."""
    return kind[:-1] if is_vector(kind) else kind


@dataclass(frozen=True)
class Scale:
    name: str
    computation: float  # the power of a rank's computation
    kinds: Mapping[str, float]
    # Maps the name of a call, or FILE:LINE, to the power by which its bytes change.
    sites: Mapping[str, float] = field(default_factory=dict)

    def of_site(self, site: Site, kind: str) -> float:
        """Returns the power by which a rank's bytes change at this site."""
        frame = site.frames[0]
        place = f"{Path(frame.file).name}:{frame.line}"
        for name in (place, site.call):
            if name in self.sites:
                return self.sites[name]
        return self.kinds.get(plain(kind), 0.0)

    @property
    def words(self) -> str:
        return SAID.get(self.name) or f"scaling by {self.name}"


def named(word: str) -> Scale:
    """Returns the scaling by its name, `strong` or `weak`, or from a file. Raises ResultError for
    anything else."""
    if word in NAMED:
        return Scale(word, *NAMED[word])
    path = Path(word)
    if not path.is_file():
        raise ResultError(f"--scale takes strong, weak, or a JSON file, not '{word}'")
    try:
        found = json.loads(path.read_text())
        base, sites = found.get("base", "weak"), found.get("sites", {})
        computation, kinds = NAMED[base]
        powers = {COMPUTATION: found.get(COMPUTATION, computation), **sites}
        if not all(type(one) in (int, float) and abs(one) <= 3 for one in powers.values()):
            raise ValueError
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        raise ResultError(
            f"{path}: a scale needs base (strong or weak), computation (a power from -3 to 3), and"
            ' sites, such as {"base": "weak", "computation": -1, "sites": {"app.c:19": -0.5}}'
        ) from None
    return Scale(word, float(powers[COMPUTATION]), kinds, sites)
