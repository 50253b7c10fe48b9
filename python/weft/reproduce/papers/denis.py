"""Statements of Denis and others about the placement of progress threads, and about trees that are
split between two kinds of cores."""

from __future__ import annotations

from weft.reproduce.claims import BY_HAND, DENIS, LIBRARIES, Claim, Needs, Published
from weft.reproduce.findings import COMPUTED, MEASURED, SIMULATED

FREE_CORES = Needs(cores=4, cores_for="two of ranks and two of threads")
DRAWN = (COMPUTED,)

FINDINGS = (
    Published(
        name="placement",
        title="Where progress threads run: Iscan of 1 MiB along a chain",
        paper=DENIS,
        claims=(
            Claim(
                "section 4, figure 1",
                "8 cores in two NUMA nodes: 4 ranks lie one free core apart, and 6 leave one core"
                " of each node free",
                ways=DRAWN,
            ),
            Claim(
                "section 4, figure 2",
                "bind: each thread runs on its rank's core",
                ways=DRAWN,
            ),
            Claim(
                "section 4, figure 3",
                "numa: all threads run on the free core of their NUMA node",
                ways=DRAWN,
            ),
            Claim(
                "section 5.1, figure 4",
                "bind: sends and receives of neighbours run at the same time",
                ways=(SIMULATED,),
            ),
            Claim(
                "section 5.1, figure 5",
                "numa: each of two communication cores works half of the time, one after the other",
                ways=(SIMULATED,),
            ),
            Claim(
                "section 5.3, figure 6",
                "odd-even: both communication cores work at once in all exchanges, and not in one"
                " only as with numa",
                ways=(SIMULATED,),
            ),
            Claim(
                "abstract; section 5.1, figure 7; section 8",
                "62 ranks on 64 cores: numa takes 3 times as long as bind",
                ways=BY_HAND,
            ),
            Claim(
                "abstract; section 5.3, figure 7; section 8",
                "bind: what runs on the application's cores hides nothing",
                ways=(SIMULATED,),
            ),
            Claim("section 5.3, figure 7", "odd-even is twice as fast as numa", ways=BY_HAND),
            Claim(
                "section 5.3, figure 7",
                "bind is the fastest without computation",
                ways=BY_HAND,
            ),
            Claim(
                "section 5.3; section 8",
                "with computation odd-even is always the fastest",
                ways=BY_HAND,
            ),
        ),
        preset="placement",
        simulated="62 ranks on knl64",
        computed="weft place",
        needs=Needs(cores=6, cores_for="four of ranks and two of threads"),
    ),
    Published(
        name="split-tree",
        title="Trees split between the application's cores and those for communication",
        paper=DENIS,
        claims=(
            Claim(
                "section 7, figures 17, 18 and 20",
                "2 MB on 64 cores: the best S switches to 1, 2 and 3 at 52, 58 and 62 ranks",
                ways=(SIMULATED,),
            ),
            Claim(
                "section 7, figure 20",
                "on 64 cores (KNL) the least total is at 50 ranks",
                ways=(SIMULATED,),
            ),
            Claim(
                "section 7, figure 21",
                "on 48 cores (Skylake) the least total is at 38 ranks",
                ways=(SIMULATED,),
            ),
            Claim(
                "abstract; section 7, figures 17 to 19",
                "the fewer cores are left to communication, the more levels belong on the"
                " application's cores",
                here=FREE_CORES,
            ),
            Claim(
                "section 7, figures 17 to 19",
                "with enough levels there it is faster than blocking even if one core is left",
                here=FREE_CORES,
            ),
            Claim(
                "section 7, figures 20 and 21",
                "the best total is with fewer ranks than cores",
                here=FREE_CORES,
            ),
            Claim(
                "section 7, figures 20 and 21; section 8",
                "with the model's S it is faster than the MPI library's own (Open MPI, Intel MPI;"
                " except for 46 ranks on 48 cores)",
                here=FREE_CORES,
                ways=(MEASURED,),
                not_simulated=LIBRARIES,
            ),
            Claim(
                "section 7, figures 20 and 21",
                "Intel MPI's variables for asynchronous progress make it slower",
                here=Needs(cores=2),
                ways=(MEASURED,),
                not_simulated=LIBRARIES,
            ),
            Claim(
                "section 8",
                "split trees can be had in any MPI library with progress threads",
                here=Needs(cores=4, cores_for=FREE_CORES.cores_for, mpis=2),
                ways=(MEASURED,),
                not_simulated=LIBRARIES,
            ),
        ),
        program="overlap --collective reduce",
        simulated="knl64 and skylake48, all numbers of ranks",
    ),
    Published(
        name="model",
        title="The model of split trees beside what was measured",
        paper=DENIS,
        claims=(
            Claim(
                "section 6.1, figure 8",
                "a tree of 16 ranks has 8, 4, 2 and 1 messages in its four levels",
                ways=DRAWN,
            ),
            Claim(
                "section 6.1, figure 9",
                "on 2 communication cores all of them take 8 rounds instead of 4",
                ways=DRAWN,
            ),
            Claim(
                "section 6.1, figure 10",
                "with S = 2 they take less than on the communication cores alone",
                ways=DRAWN,
            ),
            Claim(
                "section 6.2, figures 11 and 12",
                "each level has half of the messages of the level before, for 1 to 64 ranks, such"
                " as 23",
                ways=DRAWN,
            ),
            Claim(
                "section 6.2, figure 13",
                "with one communication core of 64 the collective takes long, and the less the"
                " greater S is (to 3)",
                ways=DRAWN,
            ),
            Claim(
                "section 6.2, figure 14",
                "the model's least total on 64 cores is at 51 ranks with S = 0; S = 1 is best at"
                " 57, S = 2 at 60, S = 3 at 62",
                ways=DRAWN,
            ),
            Claim(
                "section 6.2, figures 15 and 16",
                "scatter and gather behave similarly: the best S is 0 where many cores are left,"
                " and greater where few are",
                ways=DRAWN,
            ),
            Claim(
                "section 7, figures 14 and 18; section 8",
                "the best S switches at the same numbers of ranks in the model and in what was"
                " measured (52, 58 and 62)",
                ways=(SIMULATED, COMPUTED),
            ),
        ),
        simulated="knl64, as split-tree",
        computed="weft model --cores 64",
    ),
)
