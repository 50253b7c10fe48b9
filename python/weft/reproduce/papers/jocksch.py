"""Statements of Jocksch and Piccinali about a persistent allreduce in the memory of a node. The
figures of their poster have titles but no numbers."""

from __future__ import annotations

from weft.reproduce.claims import BY_HAND, JOCKSCH, LIBRARIES, Claim, Needs, Published
from weft.reproduce.findings import MEASURED, SIMULATED

ONE_NODE = 'benchmarks, figure "Allreduce, 128 MPI tasks on one node"; conclusions'

FINDINGS = (
    Published(
        name="shm-allreduce",
        title="Allreduce through shared memory: short, long, prime numbers of ranks",
        paper=JOCKSCH,
        claims=(
            Claim(
                ONE_NODE,
                "short messages, 128 ranks: mostly faster than the MPI library (HPE's)",
                ways=(MEASURED,),
                not_simulated=LIBRARIES,
            ),
            Claim(
                ONE_NODE,
                "long messages, 128 ranks: mostly faster than the MPI library (HPE's)",
                ways=(MEASURED,),
                not_simulated=LIBRARIES,
            ),
            Claim(
                "benchmarks, one node",
                "127 ranks, a prime number: not ideal",
                here=Needs(cores=4, cores_for="so that there are three and four ranks"),
                ways=BY_HAND,
            ),
            Claim(
                "conclusions",
                "the persistent interface allows for the more efficient algorithms",
                ways=(MEASURED,),
                not_simulated="The simulator leaves out what a call costs before its first step.",
            ),
            Claim(
                'algorithms, figure "Copy in"',
                "long messages: in chunks, which all tasks reduce, it is faster than by one task",
                ways=(SIMULATED,),
            ),
            Claim(
                'algorithms, figure "Tree reduction"',
                "short messages: a tree in shared memory is faster than one task that reduces all",
                ways=(SIMULATED,),
            ),
            Claim(
                "benchmarks, one node",
                "short messages are faster with one shared segment for all sockets, long ones with"
                " a segment for each socket",
                here=Needs(cores=4, cores_for="two in each of two NUMA domains", domains=2),
                ways=(MEASURED,),
                not_simulated="The simulator charges as much for the other socket's segment as for"
                " the own one.",
            ),
            Claim(
                'benchmarks, figure "Allreduce, 64 MPI tasks on one node with four NVIDIA A100";'
                " conclusions",
                "very efficient on one node with four GPUs",
                needs="four GPUs of one node with 64 ranks, and HPE's MPI library",
                not_simulated="The simulator has no GPUs.",
            ),
            Claim(
                'benchmarks, figure "Allreduce, 8 and 128 nodes each with 128 MPI tasks"',
                "slow on several nodes with several ranks each, since the MPI library's messages"
                " are slow beside shared memory",
                needs="8 nodes of 128 cores with HPE's MPI library, whose messages are the reason",
                not_simulated=LIBRARIES,
            ),
            Claim(
                'benchmarks, figure "Allreduce, 4 nodes each with 64 MPI tasks on four NVIDIA'
                ' A100"; conclusions',
                "very efficient on several nodes with four GPUs each",
                needs="four nodes with four GPUs each, and HPE's MPI library",
                not_simulated="The simulator has no GPUs.",
            ),
            Claim(
                "conclusions",
                "the algorithm could speed up the product of a matrix and a vector (BLAS)",
                needs="a product by this algorithm, of which the poster has no result",
                not_simulated="The simulator carries out collectives, and no products.",
            ),
        ),
        program="latency --collective allreduce",
        simulated="61 and 64 ranks on knl64, 48 on skylake48",
    ),
)
