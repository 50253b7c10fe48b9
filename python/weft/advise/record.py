"""Reads the files that the ranks have written: the structures of src/advise/record.h, rank after
rank.

The ranks store plain structures in a mapped file, so that a crash loses nothing. ctypes reads
them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import Structure, c_char, c_double, c_int32, c_int64, c_uint16, c_uint32, c_uint64
from dataclasses import dataclass
from pathlib import Path

from weft.data.stored import ResultError

MAGIC = b"weftadv\0"
LAYOUT = 9
OPERATORS = ("other", "sum", "min", "max", "prod")
# These reasons say why the idle time of a buffer is not known. Their order is that of `enum class
# Unknown`.
UNKNOWNS = (
    "",
    "windows were not asked for",
    "this processor or kernel has no Syscall User Dispatch (Linux 5.11 on x86-64 has)",
    "this rank gets no result",
    "the call does not say how long its result is",
    "the result is on the stack",
    "the result shares a page with memory that a pending operation or one-sided communication uses",
    "the result is in memory that cannot be guarded",
    "the program holds back signals that are needed",
    "other threads may use memory beside the result, or are not known",
    "the system permits no hardware breakpoints",
    "too many accesses right beside the result",
    "a system call ended the observation",
    "an MPI call ended the observation",
    "the result was not touched before the end",
    "the program had a fault of its own",
    "observing it any longer would have cost too much",
)
# These reasons end an observation that had begun. They are counted for records without a count of
# their own.
BROKEN_OFF = UNKNOWNS[UNKNOWNS.index("too many accesses right beside the result") :]
# The order is that of `enum class Binding`.
BINDINGS = ("", "fortran", "python")
PATH, WHERE, OUTERS, WINDOWS, TOUCHES = 256, 512, 6, 32, 4
# These are the numbers of entries for which the file of an unfinished rank has room.
SITES, MODULES, ARRIVALS, MESSAGE_WAITS = 1024, 64, 8192, 128
NO_END = -1
# The order is that of `enum class What`.
CALL, IN_FLIGHT, WAIT, AFTER, BEFORE, SENT = *range(5), 16


class CallTotal(Structure):
    _fields_ = (
        ("name", c_char * 40),
        ("calls", c_uint64),
        ("ns", c_uint64),
        ("timed", c_uint64),
        ("variance_ns2", c_double),
    )


class Bounds(Structure):
    _fields_ = (("least_ns", c_int64), ("most_ns", c_int64))


class Touch(Structure):
    """An instruction that accessed a result first, or wrote sent data last."""

    _fields_ = (
        ("address", c_uint64),
        ("returns_to", c_uint64),
        ("offset", c_uint64),
        ("module", c_uint32),  # number of the module plus 1; 0 if it is not known
        ("count", c_uint32),
    )


class Windows(Structure):
    """The idle times of the buffers before or after the calls of a site."""

    _fields_ = (
        ("measured", c_uint64),
        ("broken_off", c_uint64),  # observations that had begun, but could not be finished
        ("unknown", c_uint64 * len(UNKNOWNS)),
        ("kept", Bounds * WINDOWS),
        ("touches", Touch * TOUCHES),
    )

    def bounds(self) -> list[tuple[int, int]]:
        kept = self.kept[: min(self.measured, WINDOWS)]
        return [(one.least_ns, one.most_ns) for one in kept]


class OuterPlace(Structure):
    """A function on the call stack between the program's main function and a call."""

    _fields_ = (
        ("offset", c_uint64),
        ("module", c_uint32),  # number of the module plus 1; 0 if there is none
        ("line", c_uint32),  # line in an interpreted source file, which is then the module
        ("own", c_uint32),
        ("unused", c_uint32),
    )


class Site(Structure):
    _fields_ = (
        ("address", c_uint64),
        ("offset", c_uint64),
        ("module", c_uint32),
        ("call", c_uint32),
        ("comm_size", c_uint32),
        ("comm_nodes", c_uint32),
        ("comm_kind", c_uint32),
        ("size_class", c_uint32),
        ("binding", c_uint32),  # index in BINDINGS
        ("where", c_char * WHERE),
        ("outer", OuterPlace * OUTERS),
        ("own", c_uint64),
        ("calls", c_uint64),
        ("bytes", c_uint64),
        ("ns", c_uint64),
        ("after", Windows),
        ("before", Windows),
        ("completed", c_uint64),
        ("between_ns", c_uint64),
        ("waited_ns", c_uint64),
        ("tests", c_uint64),
        ("repeated", c_uint64),
        ("arguments", c_uint64),
        ("next_window", c_uint64),
        ("samples", c_uint64),
        ("left_ns", c_int64),
        ("gap_ns", c_int64),
        ("quiet_ns", c_int64),
        ("again_ns", c_int64),
        ("op", c_uint64),  # index in OPERATORS
    )


class MessageWait(Structure):
    """A place whose call completes messages that were started by other calls."""

    _fields_ = (
        ("address", c_uint64),
        ("offset", c_uint64),
        ("module", c_uint32),
        ("call", c_uint32),
        ("binding", c_uint32),  # index in BINDINGS
        ("where", c_char * WHERE),
        ("waits", c_uint64),
        ("messages", c_uint64),
        ("bytes", c_uint64),
        ("between_ns", c_uint64),
        ("waited_ns", c_uint64),
        ("tests", c_uint64),
    )


class Arrival(Structure):
    _fields_ = (
        ("comm", c_uint64),
        ("sequence", c_uint32),
        ("site", c_uint32),
        ("arrived_ns", c_int64),
        ("left_ns", c_int64),
        ("comm_rank", c_int32),
        ("root", c_int32),
    )


class Event(Structure):
    _fields_ = (
        ("began_ns", c_int64),
        ("ended_ns", c_int64),
        ("site", c_uint32),
        ("what", c_uint16),
        ("apart", c_uint16),
    )


class Head(Structure):
    _fields_ = (
        ("magic", c_char * 8),
        *(
            (name, c_uint32)
            for name in (
                *("layout", "calls", "rank", "ranks", "finalized", "sites", "arrivals"),
                *("modules", "message_waits", "nodes", "cores", "threads", "node_ranks"),
                *("windows_off", "event_room"),
            )
        ),
        *(
            (name, c_int64)
            for name in (
                *("began_ns", "ended_ns", "in_mpi_ns", "guarding_ns", "clock_ns"),
                *("clock_error_ns", "copy_bytes_per_ms", "observing_ns"),
            )
        ),
        ("events", c_uint64),
        ("node", c_uint64),
        ("host", c_char * 64),
        ("program", c_char * PATH),
        ("library", c_char * PATH),
    )


@dataclass
class RankRecord:
    head: Head
    totals: list[CallTotal]
    modules: list[str]
    sites: list[Site]
    message_waits: list[MessageWait]
    arrivals: list[Arrival]
    events: list[Event]


def text(raw: bytes) -> str:
    return raw.decode(errors="replace")


class Cursor:
    """A cursor that reads consecutive structures from the bytes of a file."""

    def __init__(self, data: bytes, path: Path):
        self.data, self.path, self.at = data, path, 0

    def take(self, kind: type, count: int) -> list:
        size = ctypes.sizeof(kind)
        end = self.at + count * size
        if end > len(self.data):
            raise ResultError(f"{self.path}: it ends in the middle of a rank's record")
        found = [kind.from_buffer_copy(self.data, self.at + i * size) for i in range(count)]
        self.at = end
        return found

    def skip(self, kind: type, count: int) -> None:
        self.at += ctypes.sizeof(kind) * count


def rank_record(cursor: Cursor, whole: bool) -> RankRecord:
    """Reads the record of one rank. `whole`: the rank has not finished, and each table in its file
    has its full size."""
    head = cursor.take(Head, 1)[0]
    if head.magic != MAGIC.rstrip(b"\0") or head.layout != LAYOUT:
        raise ResultError(f"{cursor.path}: it is no record of this version of Weft")
    totals = cursor.take(CallTotal, head.calls)
    modules = cursor.take(c_char * PATH, head.modules)
    if whole:
        cursor.skip(c_char * PATH, MODULES - head.modules)
    sites = cursor.take(Site, head.sites)
    if whole:
        cursor.skip(Site, SITES - head.sites)
    waits = cursor.take(MessageWait, head.message_waits)
    if whole:
        cursor.skip(MessageWait, MESSAGE_WAITS - head.message_waits)
    arrivals = cursor.take(Arrival, head.arrivals)
    if whole:
        cursor.skip(Arrival, ARRIVALS - head.arrivals)
    events = cursor.take(Event, min(head.events, head.event_room))
    names = [text(module.value) for module in modules]
    return RankRecord(head, totals, names, sites, waits, arrivals, events)


def read_job(path: Path) -> Iterator[RankRecord]:
    cursor = Cursor(path.read_bytes(), path)
    while cursor.at < len(cursor.data):
        yield rank_record(cursor, whole=False)


def read_unfinished(directory: Path) -> Iterator[RankRecord]:
    """Yields the records of ranks that have not reached the end of MPI_Finalize."""
    for path in sorted(directory.glob("rank-*")):
        try:
            record = rank_record(Cursor(path.read_bytes(), path), whole=True)
        except ResultError:
            continue  # the rank ended before it left MPI_Init
        yield record


def read_directory(directory: Path) -> list[RankRecord]:
    """Returns the record of all ranks of the job. If the job did not finish, these are the ranks
    that have left a file."""
    job = directory / "job"
    found = list(read_job(job) if job.exists() else read_unfinished(directory))
    return sorted(found, key=lambda one: one.head.rank)
