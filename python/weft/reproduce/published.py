"""All findings of the papers that Weft builds on: where they stand, what they say, what tests them.

Why a list of its own: it also names what cannot be tested on this kind of machine, with the reason,
so that no finding is passed over in silence.
"""

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
LIBRARIES = "The simulator carries out Weft's algorithms, and no MPI library's own."
ITERATION = (
    "An iteration's sum and halo depend on each other, and the simulator carries out one collective"
    " among ranks that are all alike; how long its product takes on 2,048 nodes is not published."
)
SHARP = "InfiniBand switches with SHARP, and HPC-X, for which Weft has no experiment"


@dataclass(frozen=True)
class Needs:
    """What the measurement needs of this machine."""

    cores: int = 2
    cores_for: str = "one for each rank"
    gpu: bool = False
    mpis: int = 1

    @property
    def cores_in_words(self) -> str:
        return f"needs {self.cores} cores, {self.cores_for}"

    @property
    def words(self) -> str:
        parts = [f"{self.cores} cores"] if self.cores > 1 else []
        parts += ["a GPU"] if self.gpu else []
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


def named(name: str) -> Published:
    return next(one for one in all_findings() if one.name == name)


def all_findings() -> tuple[Published, ...]:
    return FINDINGS


FINDINGS = (
    Published(
        name="tcc",
        title="Threaded collective communication beside a progress function and a thread",
        paper=OKUMA,
        claims=(
            Claim(
                "section V, figure 1",
                "2 nodes, 5 MB, order 4,000: overlap makes the program 1.346 (progress function),"
                " 1.127 (progress thread) and 1.166 (TCC) times as fast",
            ),
            Claim(
                "section V, figure 2",
                "32 nodes, 500 KB, order 30,000: 1.338, 1.020 and 1.271 times",
                ways=(SIMULATED,),
            ),
            Claim(
                "section IV-C, figures 1 and 2",
                "the progress function is faster than the progress thread",
            ),
        ),
        preset="tcc",
        simulated="2 and 32 × sandybridge16",
    ),
    Published(
        name="progress-calls",
        title="How often the progress function must be called",
        paper=OKUMA,
        claims=(
            Claim(
                "section IV-C, figure 1",
                "2 nodes: whether the function is called, once per row, makes a large difference",
            ),
            Claim(
                "section IV-C, figure 2",
                "32 nodes: it makes nearly none",
                ways=(SIMULATED,),
            ),
            Claim(
                "section V",
                "of calls per row and calls in the inner loop, those per row are better",
            ),
        ),
        preset="tcc",
        simulated="2 and 32 × sandybridge16",
    ),
    Published(
        name="threads-per-core",
        title="Several progress threads on one core: Iallgather over matrix products",
        paper=STUDY,
        claims=(
            Claim(
                "topic 1, figure 1",
                "16 B, computation 1/2 of communication: Prog2 (two threads on a core) is the"
                " fastest",
            ),
            Claim(
                "topic 1, figure 2",
                "16 B, computation 2 of communication: Normal (no overlap) is the fastest",
            ),
            Claim(
                "topic 1, figure 3",
                "1 MB, computation 1/2 of communication: Prog4 (four threads on a core) is the"
                " fastest",
            ),
            Claim(
                "topic 1, figure 4",
                "1 MB, computation 2 of communication: Prog4 is faster than Normal",
            ),
        ),
        preset="threads-per-core",
        simulated="32 × sapphire120, long messages on 1; 1 × knl64",
        needs=Needs(cores=5, cores_for="four of ranks and one of their four threads"),
    ),
    Published(
        name="nbc-eff",
        title="Which MPI library hides an allreduce best, by ranks per node",
        paper=STUDY,
        claims=(
            Claim("topic 2, figure 6", "1 rank per node: HPC-X with SHARP is fastest", needs=SHARP),
            Claim(
                "topic 2, figure 7",
                "8 ranks per node: SHARP has no significant advantage",
                needs=SHARP,
            ),
            Claim(
                "topic 2, figure 7",
                "which library is the fastest changes as the computation grows (8 ranks per node:"
                " from HPC-X to Intel MPI)",
            ),
            Claim(
                "topic 2, figures 6 and 7",
                "which library is the fastest depends on the ranks per node (1 and 8)",
                here=Needs(cores=4, cores_for="two ranks for each of two nodes", mpis=2),
            ),
        ),
        preset="nbc-eff",
        needs=Needs(mpis=2),
        not_simulated=LIBRARIES,
    ),
    Published(
        name="sharp",
        title="SHARP on the world communicator only",
        paper=STUDY,
        claims=(
            Claim(
                "topic 1, hierarchical algorithms",
                "the MPI library uses SHARP for MPI_COMM_WORLD only, so that communicators made of"
                " it gain nothing from it",
                needs=SHARP,
            ),
        ),
        not_simulated="The simulator's switches pass messages on, and reduce nothing.",
    ),
    Published(
        name="gpu-stencil",
        title="Four methods of communication between GPUs",
        paper=STUDY,
        claims=(
            Claim(
                "topic 1, figure 5",
                "4-point stencil of N × N on 4 GPUs: of default, notify, cooperative groups and"
                " CUDA graphs with notification, the last is the fastest for all N",
            ),
        ),
        preset="gpu-stencil",
        needs=Needs(gpu=True),
        not_simulated="The simulator has no GPUs.",
    ),
    Published(
        name="precision",
        title="Pipelined CG in mixed and single precision",
        paper=STUDY,
        claims=(
            Claim(
                "topic 3, CG, May 2025",
                "well conditioned: mixed precision with residual replacement needs nearly the"
                " inner iterations of double",
            ),
            Claim(
                "topic 3, CG, May 2025",
                "single precision with refinement is about twice as efficient per iteration when"
                " well conditioned, and inferior to mixed with replacement (about 1.33) when ill"
                " conditioned",
            ),
            Claim(
                "topic 3, CG, May 2025",
                "single precision with refinement and replacement is better than with refinement"
                " when well conditioned, and worse when ill conditioned",
            ),
        ),
        program="pipecg --what study",
        needs=Needs(cores=1),
        not_simulated="It is a matter of arithmetic on one rank, where nothing is communicated.",
    ),
    Published(
        name="pipecg",
        title="Pipelined CG: communication on the master thread behind the product",
        paper=STUDY,
        claims=(
            Claim(
                "topic 3, CG, Aug. 2025",
                "inner products and halo behind the product of the interior rows improve"
                " performance by 27 % over no overlap and by 6 % over the halo's alone (2,048"
                " nodes)",
            ),
            Claim(
                "topic 3, CG, Aug. 2025",
                "so they do on the master thread, while the other threads multiply (2,048 nodes)",
                here=Needs(cores=4, cores_for="two threads for each of two ranks"),
            ),
        ),
        preset="pipecg",
        not_simulated=ITERATION,
    ),
    Published(
        name="stencil",
        title="Halo exchange behind the interior points",
        paper=STUDY,
        claims=(
            Claim(
                "topic 3, CG, Aug. 2025",
                "the halo's overlap alone improves performance by about 20 % (27 % over none are"
                " 6 % over the halo's alone, 2,048 nodes)",
            ),
        ),
        preset="stencil",
        not_simulated=ITERATION,
    ),
    Published(
        name="fft3d",
        title="3-D FFT: transposes behind the transform",
        paper=STUDY,
        claims=(
            Claim(
                "topic 3, FFT",
                "communication far exceeds computation, which limits overlap (GPUs, no figure)",
            ),
        ),
        preset="fft3d",
        not_simulated="The paper names no size, no machine and no time, and speaks of GPUs, which"
        " the simulator has not.",
    ),
    Published(
        name="cpals",
        title="Sparse tensors: the exchange of rows behind products",
        paper=STUDY,
        claims=(
            Claim(
                "topic 3, sparse tensors",
                "the exchange of rows for MTTKRP (SPLATT) is not directly supported by MPI's"
                " collectives; implementations are being examined (no figure)",
            ),
        ),
        preset="cpals",
        not_simulated="It is a statement about what MPI offers, and the exchange of rows is"
        " irregular, which the simulator's collectives are not.",
    ),
    Published(
        name="atmosphere",
        title="Which sections of an atmospheric code hide Allgather, and its output",
        paper=STUDY,
        claims=(
            Claim(
                "topic 3, atmosphere",
                "pressure, advection and the transform to wave numbers can hide Allgather (no"
                " figure)",
            ),
            Claim(
                "topic 3, atmosphere",
                "the output can be overlapped, too, with a certain benefit (no figure)",
            ),
        ),
        preset="atmosphere",
        not_simulated="The paper names no size and no time of a section, so that a simulation would"
        " give back what it was given; files are not simulated.",
    ),
    Published(
        name="placement",
        title="Where progress threads run: Iscan of 1 MiB along a chain",
        paper=DENIS,
        claims=(
            Claim(
                "section 5.1, figure 7",
                "62 ranks on 64 cores: numa takes 3 times as long as bind",
            ),
            Claim("section 5.3, figure 7", "odd-even is twice as fast as numa"),
            Claim(
                "section 5.3, figure 7",
                "bind is the fastest without computation",
                ways=(SIMULATED,),
            ),
            Claim(
                "section 5.3",
                "with computation odd-even is always the fastest",
                ways=(SIMULATED,),
            ),
        ),
        preset="placement",
        simulated="62 ranks on knl64",
        needs=Needs(cores=4, cores_for="two of ranks and two of threads"),
    ),
    Published(
        name="split-tree",
        title="Trees split between the application's cores and those for communication",
        paper=DENIS,
        claims=(
            Claim(
                "section 7, figures 17, 18 and 20",
                "2 MB on 64 cores: the best S switches to 1, 2 and 3 at 52, 58 and 62 ranks",
            ),
            Claim("section 7, figure 20", "on 64 cores (KNL) the least total is at 50 ranks"),
            Claim("section 7, figure 21", "on 48 cores (Skylake) the least total is at 38 ranks"),
        ),
        simulated="knl64 and skylake48, all numbers of ranks",
    ),
    Published(
        name="model",
        title="The model of split trees beside what was measured",
        paper=DENIS,
        claims=(
            Claim(
                "section 6.2, figure 14",
                "the model's least total on 64 cores is at 51 ranks with S = 0; S = 1 is best at"
                " 57, S = 2 at 60, S = 3 at 62",
                ways=(COMPUTED,),
            ),
            Claim(
                "section 7, figures 14 and 18",
                "the best S switches at the same numbers of ranks in the model and in what was"
                " measured (52, 58 and 62)",
            ),
        ),
        simulated="knl64, as split-tree",
        computed="weft model --cores 64",
    ),
    Published(
        name="iallreduce-kernel",
        title="Three arrays: minimum and maximum reduced behind an update",
        paper=INTEL,
        claims=(
            Claim(
                "example usage with MPI_Iallreduce",
                "12 ranks in shared memory, 10,000 doubles: the non-blocking version takes 54 %"
                " less time",
            ),
        ),
        preset="iallreduce-kernel",
        not_simulated="Its two reductions are under way at once, behind one update; the simulator"
        " carries out one collective.",
    ),
    Published(
        name="shm-allreduce",
        title="Allreduce through shared memory: short, long, prime numbers of ranks",
        paper=JOCKSCH,
        claims=(
            Claim(
                "benchmarks, one node",
                "short messages, 128 ranks: mostly faster than the MPI library (HPE's)",
                ways=(MEASURED,),
                not_simulated=LIBRARIES,
            ),
            Claim(
                "benchmarks, one node",
                "long messages, 128 ranks: mostly faster than the MPI library (HPE's)",
                ways=(MEASURED,),
                not_simulated=LIBRARIES,
            ),
            Claim(
                "benchmarks, one node",
                "127 ranks, a prime number: not ideal",
                here=Needs(cores=4, cores_for="so that there are three and four ranks"),
            ),
        ),
        program="latency --collective allreduce",
        simulated="61 and 64 ranks on knl64",
    ),
)
