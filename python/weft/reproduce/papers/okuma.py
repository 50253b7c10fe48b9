"""Statements of Okuma and Nanri about ways to carry out a non-blocking collective: by function, by
thread or by TCC."""

from __future__ import annotations

from weft.reproduce.claims import LEFT_OPEN, OKUMA, Claim, Published
from weft.reproduce.findings import MEASURED, SIMULATED

ONE_AT_A_TIME = "The simulator carries out one collective at a time."

FINDINGS = (
    Published(
        name="tcc",
        title="Threaded collective communication beside a progress function and a thread",
        paper=OKUMA,
        claims=(
            Claim(
                "sections V and VI, figure 1",
                "2 nodes, 5 MB, order 4,000: overlap makes the program 1.346 (progress function),"
                " 1.127 (progress thread) and 1.166 (TCC) times as fast",
            ),
            Claim(
                "sections V and VI, figure 2",
                "32 nodes, 500 KB, order 30,000: 1.338, 1.020 and 1.271 times",
                ways=(SIMULATED,),
            ),
            Claim(
                "sections IV-C and V, figures 1 and 2",
                "the progress function is faster than the progress thread, so that it is the better"
                " choice where a good frequency of calls is found easily",
            ),
            Claim(
                "abstract, section V, figures 1 and 2",
                "with one collective in flight TCC, which is simpler, gains more than the progress"
                " thread (published with two algorithms; simulated with one)",
            ),
            Claim(
                "section V",
                "with several collectives in flight the progress thread may gain more than TCC,"
                " which carries out one after the other (no figure)",
                ways=(MEASURED,),
                not_simulated=ONE_AT_A_TIME,
            ),
            Claim(
                "sections IV-A, V and VI",
                "TCC gains more than the progress thread, too, where both carry out one algorithm:"
                " the MPI library's own, or LibNBC's linear one (expected, with one collective in"
                " flight; the paper measured two algorithms)",
                ways=(MEASURED,),
                not_simulated="No MPI library's own algorithm is simulated.",
            ),
            Claim(
                "section V",
                "15 threads that compute and a core for the progress thread, against 16 that share"
                " their cores with it: a trade-off",
                needs=LEFT_OPEN,
                not_simulated="The simulator gives a rank one core, whose threads are not apart.",
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
)
