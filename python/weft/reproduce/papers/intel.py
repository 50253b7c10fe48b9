"""Statements of Intel about a kernel of three arrays, and about when non-blocking collectives
help."""

from __future__ import annotations

from weft.reproduce.claims import INTEL, Claim, Published

FINDINGS = (
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
            Claim(
                "introduction; when to use",
                "where all cores are in use already there is no benefit, and possibly a loss",
            ),
        ),
        preset="iallreduce-kernel",
        not_simulated="Its two reductions are under way at once, behind one update; the simulator"
        " carries out one collective.",
    ),
)
