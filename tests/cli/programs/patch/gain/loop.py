"""A sum in a loop, whose arguments stay the same."""

from mpi4py import MPI
from work import STEPS, busy, ended, zeros


def main(comm):
    part, total = zeros(), zeros()
    answer = 0.0
    for step in range(STEPS):
        part[0] = step
        comm.Allreduce(part, total, op=MPI.SUM)
        answer += busy(1.0)
        answer += total[0]
    return answer


ended(main(MPI.COMM_WORLD))
