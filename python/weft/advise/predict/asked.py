"""Checks the options of `weft advise --predict`, and refuses wrong ones with one sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from weft.advise import analysis, store
from weft.advise.analysis import Advice
from weft.advise.predict import prediction, scaling
from weft.advise.predict.costs import Costs
from weft.advise.predict.prediction import Prediction
from weft.advise.predict.replay import Geometry
from weft.data.stored import ResultError
from weft.sim import native
from weft.sim.native import SimError

MOST_RANKS = 1 << 20


@dataclass(frozen=True)
class Asked:
    """The machine and the size of the job for which the user wants a prediction."""

    nodes: int | None
    per_node: int | None
    machine: str | None
    scale: str | None

    def check(self) -> None:
        """Raises ResultError for wrong options, before a program is run in vain."""
        if self.nodes is None or self.nodes < 1:
            raise ResultError("--predict needs the nodes of the machine, such as --nodes 1024")
        if self.per_node is not None and self.per_node < 1:
            raise ResultError(f"--per-node takes a number from 1 on, not {self.per_node}")
        if self.scale is None:
            raise ResultError(
                "--predict needs --scale strong, weak, or a file: how sizes and computation change"
                " with the number of ranks"
            )
        scaling.named(self.scale)
        cores = self.cores()
        if self.per_node and self.per_node > cores:
            raise ResultError(
                f"--per-node {self.per_node}: a node of {self.machine} has {cores} cores"
            )

    def file(self) -> Path:
        if self.machine is None:
            names = ", ".join(native.names_of_machines())
            raise ResultError(
                f"--predict needs --machine: {names}, or a file of weft sim --calibrate"
            )
        try:
            return native.machine_file(self.machine)
        except SimError as error:
            raise ResultError(str(error)) from None

    def cores(self) -> int:
        path = self.file()
        try:
            # The simulator refuses a wrong machine file.
            native.simulate(str(path), collective="bcast", bytes=8, ranks=1)
            return int(json.loads(path.read_text())["cores"])
        except SimError as error:
            raise ResultError(str(error)) from None

    def answered(self, record: Path) -> tuple[Prediction, Advice]:
        stored = store.read(record)
        advice = analysis.analyse(stored)
        geometry = self.geometry(advice)
        costs = Costs(self.file())
        try:
            found = prediction.predict(
                stored, advice, costs, geometry, scaling.named(self.scale or "")
            )
        except SimError as error:
            raise ResultError(str(error)) from None
        return found, advice

    def geometry(self, advice: Advice) -> Geometry:
        per_node = self.per_node or max(1, advice.ranks // max(1, advice.hosts))
        cores = self.cores()
        if per_node > cores:
            raise ResultError(
                f"{per_node} ranks per node, as in the record, do not fit: a node of {self.machine}"
                f" has {cores} cores; name --per-node"
            )
        ranks = (self.nodes or 1) * per_node
        if not 2 <= ranks <= MOST_RANKS:
            raise ResultError(f"--predict takes 2 to {MOST_RANKS:,} ranks, not {ranks:,}")
        return Geometry(advice.ranks, ranks, per_node)
