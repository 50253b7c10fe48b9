"""Says on which value of a machine's parameter a verdict of the simulator depends: the range in
which a statement would hold. Each range was found by halving, with all other parameters as
described. Nothing is fitted: the machine keeps its value, and the reason of the verdict says how
far away the other one is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Optional

from weft.sim import native


@dataclass(frozen=True)
class Range:
    """`low` and `high` bound the range; None if it has no end there."""

    machine: str
    parameter: str  # group and name in the machine's file, such as core.switch_us
    low: Optional[float] = None
    high: Optional[float] = None

    @property
    def described(self) -> float:
        group, name = self.parameter.split(".")
        return json.loads(native.machine_file(self.machine).read_text())[group][name]

    @property
    def words(self) -> str:
        ends = [f"from {self.low:,g}" if self.low is not None else ""]
        ends.append(f"up to {self.high:,g}" if self.high is not None else "")
        within = " ".join(filter(None, ends))
        return f"{self.parameter} {within} ({self.machine} has {self.described:,g})"


def would_hold(*ranges: Range) -> str:
    """Returns a sentence for the reason of a verdict."""
    return f"It would hold with {' or '.join(one.words for one in ranges)}."


# No range is known here. Each parameter of the machine was varied from an eighth of its value to
# eight times as much.
NOWHERE = (
    "It would not hold with an eighth to eight times of any one of the machine's parameters either."
)
