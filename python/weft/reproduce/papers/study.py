"""Statements of Nanri et al. (project jh250041) about the benefit of non-blocking collectives, from
a benchmark to a solver."""

from __future__ import annotations

from weft.reproduce.claims import LIBRARIES, SHARP, STUDY, Claim, Needs, Published
from weft.reproduce.findings import SIMULATED

ITERATION = (
    "An iteration's sum and halo depend on each other, and the simulator carries out one collective"
    " among ranks that are all alike; how long its product takes on 2,048 nodes is not published."
)

FINDINGS = (
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
                "abstract; topic 1, figure 3",
                "1 MB, computation 1/2 of communication: Prog4 (four threads on a core) is the"
                " fastest",
            ),
            Claim(
                "abstract; topic 1, figure 4",
                "1 MB, computation 2 of communication: Prog4 is faster than Normal",
            ),
            Claim(
                "topic 1, figure 1; section 6",
                "16 B: switches between threads are the bottleneck, so that Prog4 is slower than"
                " Prog2",
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
            Claim(
                "abstract; topic 2; section 6",
                "the benchmark finds by itself ten amounts of computation that show the effect of"
                " all candidates",
            ),
            Claim(
                "section 4",
                "the share of overlap by OSU's benchmark on each machine, of the year before",
                needs="its figures, which this report does not give; weft bench --preset osu prints"
                " those of this machine",
            ),
        ),
        preset="nbc-eff",
        needs=Needs(mpis=2),
        not_simulated=LIBRARIES,
    ),
    Published(
        name="sharp",
        title="Two levels of communication, and SHARP on the world communicator only",
        paper=STUDY,
        claims=(
            Claim(
                "topic 1, hierarchical algorithms; section 6",
                "the MPI library uses SHARP for MPI_COMM_WORLD only, so that communicators made of"
                " it gain nothing from it",
                needs=SHARP,
            ),
            Claim(
                "topic 1, hierarchical algorithms",
                "without SHARP: two levels, where one process of a node communicates with other"
                " nodes, are faster (an expectation, no figure)",
                ways=(SIMULATED,),
            ),
        ),
        simulated="bcast and allreduce on 32 × sapphire120",
        not_simulated="The simulator's switches pass messages on, and reduce nothing.",
    ),
    Published(
        name="gpu-stencil",
        title="Four methods of communication between GPUs",
        paper=STUDY,
        claims=(
            Claim(
                "topic 1, figure 5; section 6",
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
            Claim(
                "section 4",
                "in mixed and single precision, rounding spoils pipelined CG more than CG",
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
                "abstract; topic 3, CG, Aug. 2025",
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
)
