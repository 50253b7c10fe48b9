"""Makes mistakes with operations in flight. A comment at each wrong call names the rule that it
violates. With an argument the program makes no mistakes."""

import sys
from array import array

from mpi4py import MPI

COUNT = 8192
comm = MPI.COMM_WORLD
wrong = len(sys.argv) < 2
peer = 1 - comm.rank
sent, received, third = (array("d", [1]) * COUNT for _ in range(3))


def send_written():
    into = comm.Irecv(received, peer)
    request = comm.Isend(sent, peer)  # send-written MPI_Isend
    if wrong:
        sent[5] = 2
    MPI.Request.Waitall([into, request])


def receive_read():
    into = comm.Irecv(received, peer)  # receive-touched MPI_Irecv
    request = comm.Isend(sent, peer)
    if wrong:
        received[COUNT // 2]
    MPI.Request.Waitall([into, request])


def collective_sent():
    request = comm.Iallreduce(sent, received)  # send-written MPI_Iallreduce
    if wrong:
        sent[7] = 4
    request.Wait()


def overlapping():
    one = comm.Irecv(received, peer)
    other = comm.Irecv(received if wrong else third, peer)  # overlap MPI_Irecv
    comm.Send(sent, peer)
    comm.Send(sent, peer)
    MPI.Request.Waitall([one, other])


def other_root():
    comm.gather(None, root=peer if wrong else 0)  # order MPI_Gather


send_written()
receive_read()
collective_sent()
overlapping()
other_root()
