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
    """The requirements of a measurement on the machine."""

    cores: int = 2
    cores_for: str = "one for each rank"
    gpu: bool = False
    mpis: int = 1
    domains: int = 1  # number of NUMA domains of the node's memory

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
    """A statement of a paper. `needs` names a requirement that no machine meets on which Weft is
    measured. Such a claim is not tested. `here` has the requirements of the claim's measurement, if
    they exceed those of its experiment. `ways` names the ways of the experiment that test this
    claim. `not_simulated` says why the simulator cannot test it. If that is empty, the experiment's
    own reason holds."""

    where: str  # section or figure of the paper
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
    """A published finding: its statements, and the experiment that tests them.

    `preset` is a preset of `weft bench`. `program` is a program of kernels/ or bench/, if no preset
    runs it. `simulated` is the size of the simulation, and `computed` the command that computes it.
    `not_simulated` is a sentence that says why nothing is simulated."""

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
        """Returns the command that measures the finding; an empty string if nothing of it can be
        measured."""
        return f"weft bench --preset {self.preset}" if self.preset else self.program

    @property
    def source(self) -> str:
        return SOURCES[self.paper]

    def claims_by(self, *ways: str) -> list[Claim]:
        """Returns the claims that are tested in one of these ways."""
        return [claim for claim in self.claims if set(ways) & set(self.tests_of(claim))]

    def tests_of(self, claim: Claim) -> dict[str, str]:
        """Returns the ways in which the claim is tested, each with the command or the size."""
        if claim.needs:
            return {}
        found = {MEASURED: self.measured, SIMULATED: self.simulated, COMPUTED: self.computed}
        return {how: by for how, by in found.items() if by and how in claim.ways}

    def not_simulated_since(self, claim: Claim) -> str:
        """Returns why the claim is not simulated; an empty string if it is simulated or computed by
        the model."""
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
