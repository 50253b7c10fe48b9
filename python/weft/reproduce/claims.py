"""Published findings: their statements, the requirements of each, and the tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from weft.reproduce.findings import (
    CANNOT,
    COMPUTED,
    MEASURED,
    SIMULATED,
    Finding,
    Verdict,
)

OKUMA = "Okuma, Nanri"
STUDY = "Nanri et al., jh250041"
DENIS = "Denis et al. 2019"
INTEL = "Intel"
JOCKSCH = "Jocksch, Piccinali"
SOURCES = {
    OKUMA: "Okuma, Nanri: Performance Study of Non-blocking Collective Communication"
    " Implementations Toward Adaptive Selection",
    STUDY: "Nanri et al.: Study on the real effect of non-blocking collective communications,"
    " report of JHPCN project jh250041",
    DENIS: "Denis, Jaeger, Jeannot, Pérache, Taboada: Study on progress threads placement and"
    " dedicated cores for overlapping MPI nonblocking collectives on manycore processor, IJHPCA"
    " 33(6), 2019",
    INTEL: "Intel: Improving Performance with MPI-3 Non-Blocking Collectives",
    JOCKSCH: "Jocksch, Piccinali (CSCS): poster on a persistent allreduce in shared memory",
}
EVERY_WAY = (MEASURED, SIMULATED, COMPUTED)
BY_HAND = (MEASURED, SIMULATED)
LEFT_OPEN = "a statement that could come out false: the paper leaves it open"
LIBRARIES = "The simulator carries out Weft's algorithms, and no MPI library's own."
SHARP = "InfiniBand switches with SHARP, and HPC-X, for which Weft has no experiment"


@dataclass(frozen=True)
class Needs:
    """The requirements of a measurement on this machine."""

    cores: int = 2
    cores_for: str = "one for each rank"
    gpu: bool = False
    mpis: int = 1
    domains: int = 1  # NUMA domains of the node's memory

    @property
    def cores_in_words(self) -> str:
        return f"needs {self.cores} cores, {self.cores_for}"

    @property
    def words(self) -> str:
        parts = [f"{self.cores} cores"] if self.cores > 1 else []
        parts += ["a GPU"] if self.gpu else []
        parts += [f"{self.domains} NUMA domains"] if self.domains > 1 else []
        parts += [f"{self.mpis} MPI libraries"] if self.mpis > 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    `needs`: what no machine that Weft measures on has; then it is tested nowhere. `here`: what its
    measurement needs of this machine, where that is more than the others of its experiment need.
    `ways`: those of its experiment that say something about it. `not_simulated`: why, where the
    simulator says nothing of it; empty: as its experiment says.
    """

    where: str  # section or figure
    words: str
    needs: str = ""
    here: Optional[Needs] = None
    ways: tuple[str, ...] = EVERY_WAY
    not_simulated: str = ""

    def found(self, how: str, on: str, here: str, verdict: Verdict, why: str = "") -> Finding:
        return Finding(self.where, self.words, how, on, here, verdict, why)

    def untested(self, how: str, why: str) -> Finding:
        return self.found(how, "", "", CANNOT, why)


@dataclass(frozen=True)
class Published:
    """A finding: its statements, and the experiment that puts them to the test.

    `preset`: of `weft bench`; `program`: of kernels/ or bench/, where no preset runs it;
    `simulated`: at which size; `computed`: by which command. `not_simulated`: a sentence that says
    why, where nothing is.
    """

    name: str
    title: str
    paper: str
    claims: tuple[Claim, ...]
    preset: str = ""
    program: str = ""
    simulated: str = ""
    computed: str = ""
    needs: Needs = Needs()
    not_simulated: str = ""

    @property
    def measured(self) -> str:
        """The command; empty: nothing of it can be measured."""
        return f"weft bench --preset {self.preset}" if self.preset else self.program

    @property
    def source(self) -> str:
        return SOURCES[self.paper]

    def claims_by(self, *ways: str) -> list[Claim]:
        """Those that are put to the test in one of these ways."""
        return [claim for claim in self.claims if set(ways) & set(self.tests_of(claim))]

    def tests_of(self, claim: Claim) -> dict[str, str]:
        """How it is tested -> by what, or at which size."""
        if claim.needs:
            return {}
        found = {MEASURED: self.measured, SIMULATED: self.simulated, COMPUTED: self.computed}
        return {how: by for how, by in found.items() if by and how in claim.ways}

    def not_simulated_since(self, claim: Claim) -> str:
        """Empty: it is simulated, or computed by the model."""
        if {SIMULATED, COMPUTED} & set(self.tests_of(claim)):
            return ""
        return claim.not_simulated or self.not_simulated

    def needs_of(self, claim: Claim) -> str:
        if claim.needs:
            return claim.needs
        here = claim.here or self.needs
        return here.words if MEASURED in self.tests_of(claim) else ""

    def to_json(self) -> dict[str, Any]:
        statements = [
            {
                "where": claim.where,
                "published": claim.words,
                "tested": self.tests_of(claim),
                "needs": self.needs_of(claim),
                "not_simulated": self.not_simulated_since(claim),
            }
            for claim in self.claims
        ]
        about = {"name": self.name, "title": self.title, "paper": self.paper}
        return {**about, "source": self.source, "statements": statements}
