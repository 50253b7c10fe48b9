"""Uses results of collectives in ways that the advisor's observation must not disturb. Prints a
checksum of each case, of which the advisor must not change a digit. Called as
advise_safety.py [CASE …].
"""

import array
import ctypes
import faulthandler
import gc
import hashlib
import mmap
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
from multiprocessing import shared_memory

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
COUNT = 40_000
ROUNDS = 2  # number of rounds; in each case one result and one send buffer are observed
send = np.arange(COUNT, dtype="d") % 17


def reduced(result):
    comm.Allreduce([send, result.size, MPI.DOUBLE], result)
    return result


def fresh():
    return reduced(np.empty(COUNT))


def an_array():
    return fresh().sum()


def a_view():
    whole = np.zeros(3 * COUNT)
    part = whole[COUNT : 2 * COUNT]
    reduced(part)
    return whole.sum() + part[::7].sum()


def a_column():
    table = np.zeros((200, 50))
    column = MPI.DOUBLE.Create_vector(200, 1, 50).Commit()
    comm.Bcast([table, 1, column], root=0)
    column.Free()
    table[:, 1] = 2
    return table


def a_transposed_matrix():
    matrix = np.empty((200, 200))
    reduced(matrix)
    return np.linalg.norm(matrix.T @ matrix)


def freed_at_once():
    fresh()
    gc.collect()
    return np.ones(COUNT).sum()


def freed_in_a_cycle():
    cycle = [fresh()]
    cycle.append(cycle)
    del cycle
    gc.collect()
    return np.zeros(COUNT).sum()


def freed_after_the_wait():
    result = np.empty(COUNT)
    request = comm.Iallreduce(send, result)
    request.Wait()
    del request, result
    gc.collect()
    return np.ones(COUNT).sum()


def waited_for():
    result = np.empty(COUNT)
    comm.Iallreduce(send, result).Wait()
    return result


def tested():
    result = np.empty(COUNT)
    request = comm.Iallreduce(send, result)
    while not request.Test():
        pass
    return result


def several():
    results = [np.empty(COUNT) for _ in range(12)]
    MPI.Request.Waitall([comm.Iallreduce(send, one) for one in results])
    return np.concatenate(results)


def small_ones():
    results = np.zeros(64)
    for i in range(64):
        comm.Iallreduce(send[i : i + 1], results[i : i + 1]).Wait()
    return results


def planned():
    if MPI.Get_version() < (4, 0):
        return 0
    result = np.empty(COUNT)
    request = comm.Allreduce_init(send, result)
    total = 0
    for _ in range(3):
        request.Start()
        request.Wait()
        total += result.sum()
    request.Start()
    request.Wait()
    request.Free()
    return total


def of_a_file():
    with tempfile.NamedTemporaryFile() as file:
        mapped = np.memmap(file.name, dtype="d", mode="w+", shape=COUNT)
        reduced(mapped)
        mapped.flush()
        return np.fromfile(file.name)


def copied_on_write():
    with tempfile.NamedTemporaryFile() as file:
        np.zeros(COUNT).tofile(file.name)
        mapped = np.memmap(file.name, dtype="d", mode="c", shape=COUNT)
        reduced(mapped)
        return mapped.sum() + np.fromfile(file.name).sum()


def shared():
    memory = shared_memory.SharedMemory(create=True, size=COUNT * 8)
    other = shared_memory.SharedMemory(memory.name)
    result, again = (np.frombuffer(one.buf, "d", COUNT) for one in (memory, other))
    reduced(result)
    total = again.sum()
    del result, again
    other.close()
    memory.close()
    memory.unlink()
    return total


def unmapped():
    memory = mmap.mmap(-1, COUNT * 8)
    result = np.frombuffer(memory, "d")
    reduced(result)
    del result
    memory.close()
    return mmap.mmap(-1, COUNT * 8)[:4096]


def resized():
    memory = mmap.mmap(-1, COUNT * 8, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    result = np.frombuffer(memory, "d")
    reduced(result)
    del result
    memory.resize(COUNT * 16)
    return bytes(memory)


def grown():
    result = array.array("d", bytes(8 * COUNT))
    comm.Allreduce(send, result)
    result.extend(send)
    return result.tobytes()


def grown_by_numpy():
    result = fresh()
    result.resize(2 * COUNT, refcheck=False)
    return result


def of_bytes():
    result = bytearray(8 * COUNT)
    comm.Allreduce([send, MPI.DOUBLE], [result, MPI.DOUBLE])
    with memoryview(result) as view:
        return bytes(view[:4000])


def written_to_a_file():
    result = fresh()
    with tempfile.TemporaryFile() as file:
        result.tofile(file)
        file.seek(0)
        return file.read()


def read_from_a_file():
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(range(256)) * 100)
        result = fresh()
        file.seek(0)
        file.readinto(memoryview(result).cast("B"))
        return result.tobytes()


def read_by_parts():
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 10_000)
        file.flush()
        bytes_of = memoryview(fresh()).cast("B")
        os.preadv(file.fileno(), [bytes_of[:3000], bytes_of[9000:9100]], 5)
        return bytes_of


def sent_by_a_socket():
    one, other = socket.socketpair()
    with one, other:
        one.send(memoryview(fresh()).cast("B")[:2000])
        back = fresh()
        other.recv_into(memoryview(back).cast("B")[100:], 2000)
        return back


def pickled():
    return pickle.loads(pickle.dumps(fresh(), protocol=5))


def by_ctypes():
    result = fresh()
    other = np.empty(COUNT)
    ctypes.memmove(other.ctypes.data, result.ctypes.data, 8 * COUNT)
    return other


def by_a_thread():
    result, found = fresh(), []
    threads = [threading.Thread(target=lambda: found.append(result.sum())) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return sum(found)


def by_a_child():
    result = fresh()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writable, result[:500].tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(readable, 4000)
    os.close(readable)
    os.close(writable)
    return said


def by_a_program():
    result = fresh()
    done = subprocess.run(["cat"], input=memoryview(result).cast("B")[:5000], capture_output=True)
    return done.stdout + result.tobytes()


def by_a_finalizer():
    class Holder:
        def __init__(self):
            self.result = fresh()

        def __del__(self):
            seen.append(self.result.sum())

    seen = []
    Holder()
    gc.collect()
    return sum(seen)


def of_objects():
    return sum(part[3] for part in comm.allgather(list(range(2000))))


def after_an_error():
    result = fresh()
    try:
        result[COUNT]
    except IndexError:
        return result


faulthandler.enable()
CASES = {
    name: case
    for name, case in list(globals().items())
    if getattr(case, "__module__", "") == "__main__" and name not in ("reduced", "fresh")
}
for name in sys.argv[1:] or CASES:
    digest = hashlib.sha256()
    for _ in range(ROUNDS):
        found = CASES[name]()
        digest.update(
            np.ascontiguousarray(found)
            if isinstance(found, np.ndarray)
            else found
            if isinstance(found, (bytes, memoryview))
            else str(found).encode()
        )
    if comm.rank == 0:
        print(name, digest.hexdigest()[:12])
        sys.stdout.flush()
