"""A sum over a communicator that was split off, whose result is used in the next round."""

from mpi4py import MPI
from work import STEPS, busy, ended, zeros


def main(group):
    part, total = zeros(), zeros()
    answer = 0.0
    for step in range(STEPS):
        answer += busy(1.0)
        answer += total[0]
        part[0] = step
        group.Allreduce(part, total)
    return answer + total[0]


ended(main(MPI.COMM_WORLD.Split(0, -MPI.COMM_WORLD.rank)))
