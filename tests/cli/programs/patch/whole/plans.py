"""Calls in loops, whose arguments stay the same or do not, and results of the round before.

FILE _work.py
EXPECT kept: changed: planned once
EXPECT described: changed: planned once
EXPECT half: changed: planned once
EXPECT outermost: changed: planned once
EXPECT in_place: changed: planned once
EXPECT rebound: changed: not planned, since part may stand for another object
EXPECT grown: changed: not planned, since count may stand for another object
EXPECT member: changed: not planned, since self.part may be another object
EXPECT listed: changed: not planned, since spec is a list
EXPECT by_indices: changed: not planned, since its index where may be an array
EXPECT of_others: changed: not planned, since another function may give shared another value
EXPECT left_early: changed: not planned, since its loop may be left before its end
EXPECT lagged: changed: waited for in the next round
EXPECT lagged_while: changed: waited for in the next round
EXPECT lagged_generator: changed: does not go to the next round, since its loop runs over
EXPECT lagged_away: changed: not planned, since its loop may be left
"""

import numpy
from _work import N, busy, comm, pair
from mpi4py import MPI

shared = numpy.ones(N)


def renew():
    global shared
    shared = shared + 1


def kept(part, total):
    result = 0.0
    for step in range(4):
        part[:] = step
        comm.Allreduce(part, total, op=MPI.SUM)  # CALL kept
        result += busy()
        result += total[step]
    return result


def described():
    part, total = pair()
    result = 0.0
    for step in range(4):
        part[step] = 1
        comm.Allreduce([part, N // 2, MPI.DOUBLE], [total, N // 2, MPI.DOUBLE])  # CALL described
        result += busy()
        result += total[step]
    return result


def half():
    part, total = numpy.ones(N), numpy.zeros(N)
    result, middle = 0.0, N // 2
    for step in range(4):
        part[middle] = step
        comm.Allreduce(part[middle:], total[: N - middle])  # CALL half
        result += busy()
        result += total[step]
    return result


def outermost(group):
    part, total = pair()
    result = 0.0
    for first in range(2):
        for second in range(2):
            part[0] = first + second
            group.Allreduce(part, total)  # CALL outermost
            result += busy()
            result += total[0]
    return result


def in_place():
    part, total = numpy.ones(N), numpy.zeros(N)
    result = 0.0
    for step in range(4):
        part += step
        comm.Allreduce(part, total)  # CALL in_place
        result += busy()
        result += total[step]
    return result


def rebound():
    part, total = pair()
    result = 0.0
    for step in range(4):
        part = numpy.full(N, step, dtype="d")
        comm.Allreduce(part, total)  # CALL rebound
        result += busy()
        result += total[step]
    return result


def grown():
    part, total = pair()
    result, count = 0.0, 10
    for step in range(4):
        comm.Allreduce([part, count, MPI.DOUBLE], [total, count, MPI.DOUBLE])  # CALL grown
        result += busy()
        result += total[step]
        count += 1
    return result


class Field:
    def __init__(self):
        self.part, self.total = pair()

    def member(self):
        result = 0.0
        for step in range(4):
            comm.Allreduce(self.part, self.total)  # CALL member
            for i in range(300):
                result = 0.5 * result + i
            result += self.total[step]
            self.part = self.part + 1
        return result


def listed():
    part, total = pair()
    other, spec = numpy.ones(N), [part, MPI.DOUBLE]
    result = 0.0
    for step in range(4):
        comm.Allreduce(spec, total)  # CALL listed
        result += busy()
        result += total[step]
        spec[0] = other
    return result


def by_indices(where):
    part, total = numpy.ones(N), numpy.zeros(N)
    result = 0.0
    for step in range(4):
        part[step] = 3
        comm.Allreduce(part[where], total[:3])  # CALL by_indices
        result += busy()
        result += total[1]
    return result


def of_others():
    total = numpy.zeros(N)
    result = 0.0
    for step in range(4):
        comm.Allreduce(shared, total)  # CALL of_others
        for i in range(300):
            result = 0.5 * result + i
        result += total[step]
        renew()
    return result


def left_early(part, total):
    result = 0.0
    for step in range(4):
        part[:] = step
        comm.Allreduce(part, total)  # CALL left_early
        result += busy()
        if step == 2:
            return result + total[0]
        result += total[step]
    return result


def lagged():
    part, total = pair()
    result = 0.0
    for step in range(4):
        result += busy()
        result += total[step]
        part[:] = step
        comm.Allreduce(part, total)  # CALL lagged
    return result + total[0]


def lagged_while():
    total = numpy.zeros(N)
    result, step = 0.0, 0
    while step < 4:
        step += 1
        result += busy()
        if step == 2:
            continue
        result += total[step]
        total[:] = step
        comm.Bcast(total)  # CALL lagged_while
    return result + total[0]


def steps(part):
    for step in range(4):
        part[0] = step
        yield step


def lagged_generator():
    part, total = pair()
    result = 0.0
    for step in steps(part):
        result += total[step]
        part[1] = step
        comm.Allreduce(part, total)  # CALL lagged_generator
        result += busy()
    return result + total[0]


def lagged_away():
    part, total = pair()
    result = 0.0
    for step in range(4):
        result += total[step]
        part[:] = step
        comm.Allreduce(part, total)  # CALL lagged_away
        result += busy()
        if step == 3:
            return result
    return result + total[0]


field, group = Field(), comm.Split(0, comm.rank)
for _ in range(6):
    results = [kept(*pair()), described(), half(), outermost(group), in_place(), rebound()]
    results += [grown(), field.member(), listed(), by_indices(numpy.array([1, 5, 2]))]
    results += [of_others(), left_early(*pair()), lagged(), lagged_while(), lagged_generator()]
    results += [lagged_away()]
if comm.rank == 0:
    print(*results)
