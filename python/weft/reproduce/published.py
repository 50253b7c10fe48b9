"""All findings of the papers that Weft builds on, and where each is put to the test.

Why a list of its own: it also names what cannot be tested on this kind of machine, with the reason,
so that no finding is passed over in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

OKUMA = "Okuma, Nanri"
STUDY = "Nanri et al., jh250041"
DENIS = "Denis et al. 2019"
INTEL = "Intel"
JOCKSCH = "Jocksch, Piccinali"


@dataclass(frozen=True)
class Published:
    """`tested`: the command that tests it here; `lacks`: what of it cannot be tested, and why."""

    source: str
    finding: str
    tested: str = ""
    lacks: str = ""


def all_findings() -> list[Published]:
    return [
        Published(
            OKUMA,
            "progress function, progress thread and TCC make an Ialltoall program 1.346, 1.127 and"
            " 1.166 times as fast (2 nodes)",
            "weft bench --preset tcc",
        ),
        Published(
            OKUMA,
            "the same, 1.338, 1.020 and 1.271 times (32 nodes)",
            lacks="needs 32 nodes; the lab's nodes share one machine",
        ),
        Published(
            OKUMA,
            "whether the progress function is called, once per row, makes a large difference on 2"
            " nodes, and none on 32",
            "weft bench --preset tcc",
        ),
        Published(
            STUDY,
            "two, or with 1 MB four, progress threads share a core best (Figures 1 to 4)",
            "weft reproduce threads-per-core",
            "simulated at its size, which needs nodes with 120 cores; weft bench --preset"
            " threads-per-core measures what this machine's cores permit",
        ),
        Published(
            STUDY,
            "which MPI library hides an allreduce best depends on the ranks per node (NBC-Eff)",
            "weft bench --preset nbc-eff",
            "HPC-X is not at hand",
        ),
        Published(
            STUDY,
            "with one rank per node SHARP is the fastest; MPI uses it on the world communicator"
            " only",
            lacks="needs InfiniBand switches with SHARP",
        ),
        Published(
            STUDY,
            "of four methods for a stencil on four GPUs, CUDA graphs that notify are the fastest",
            "weft bench --preset gpu-stencil",
            "four GPUs; the command needs one",
        ),
        Published(
            STUDY,
            "halo exchange behind the interior points pays",
            "weft bench --preset stencil",
        ),
        Published(
            STUDY,
            "the exchange of rows in sparse tensor codes is not directly supported by MPI",
            "weft bench --preset cpals",
        ),
        Published(
            STUDY,
            "mixed precision with residual replacement needs nearly the iterations of double",
            "build/bin/mpich/pipecg --what study",
        ),
        Published(
            STUDY,
            "single precision with refinement is twice as fast per iteration when well conditioned,"
            " and worse than mixed with replacement when not",
            "build/bin/mpich/pipecg --what study --coefficients heterogeneous",
        ),
        Published(
            STUDY,
            "refinement with replacement is better when well conditioned, worse when not",
            "build/bin/mpich/pipecg --what study --coefficients heterogeneous",
        ),
        Published(
            STUDY,
            "pipelined CG gains 27 % by overlap on the master thread, 6 % over the halo's alone",
            "weft bench --preset pipecg",
            "2,048 nodes, and a second core for each rank, without which an engine takes the"
            " master thread's part",
        ),
        Published(
            STUDY,
            "communication far exceeds computation in a 3-D FFT, which limits overlap",
            "weft bench --preset fft3d",
            "it was published for GPUs",
        ),
        Published(
            STUDY,
            "pressure, advection and transform of an atmospheric code can hide Allgather",
            "weft bench --preset atmosphere",
        ),
        Published(
            STUDY,
            "output can be overlapped with the next steps of an atmospheric code",
            "weft bench --preset atmosphere",
        ),
        Published(
            DENIS,
            "placement numa takes 3 times as long as bind, odd-even half of numa (64 cores)",
            "weft reproduce placement",
            "measured at its size it needs 64 cores: it is simulated",
        ),
        Published(
            DENIS,
            "the split tree's best S switches at 52, 58 and 62 ranks; the least total is at 50 of"
            " 64 and 38 of 48 cores",
            "weft reproduce split-tree",
            "measured at its size it needs 48 and 64 cores: it is simulated",
        ),
        Published(
            DENIS,
            "the model of split trees has the same switches of S as what was measured",
            "weft reproduce split-tree",
            "what is compared is the model's curve and the simulator's, not a measurement",
        ),
        Published(
            INTEL,
            "Iallreduce behind an update of three arrays saves 54 % of the time (12 ranks)",
            "weft bench --preset iallreduce-kernel",
        ),
        Published(
            JOCKSCH,
            "an allreduce through shared memory mostly beats HPE's MPI, short and long; with a"
            " prime number of ranks it is not ideal (128 and 127 tasks on one node)",
            lacks="needs a node with 128 cores, and HPE's MPI",
        ),
    ]


def show() -> None:
    console = Console()
    source = ""
    for one in all_findings():
        if one.source != source:
            source = one.source
            console.print(source, style="bold", highlight=False)
        console.print(f"  {one.finding}", markup=False, highlight=False)
        if one.tested:
            console.print(f"    {one.tested}", style="green", markup=False, highlight=False)
        if one.lacks:
            words = "not here" if one.tested else "cannot be tested here"
            console.print(f"    {words}: {one.lacks}", style="yellow", highlight=False)
