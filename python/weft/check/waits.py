"""Finds the call that each rank is in, from the files that ranks map (structures of
src/advise/waits.cc)."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from ctypes import Structure, c_char, c_int64, c_uint32, c_uint64
from dataclasses import dataclass, field
from pathlib import Path

from weft.advise.record import WHERE, text
from weft.check.findings import Finding, Place

# A rank that only tests makes many more tests per second, and a rank that computes makes fewer.
TESTS_PER_S = 1000
LATEST_TEST_S = 1.0
NS = 1e9


SHOWN = 64  # calls whose lines a rank keeps


class Shown(Structure):
    _fields_ = (
        ("offset", c_uint64),
        ("call", c_char * 40),
        ("file", c_char * 256),
        ("where", c_char * WHERE),
    )


class Waits(Structure):
    _fields_ = (
        ("rank", c_uint32),
        ("ranks", c_uint32),
        # This is the number of calls that began or ended, and of tests that completed something.
        ("calls", c_uint64),
        # This is the start of the call, or of the first of a series of unsuccessful tests. It is 0
        # outside of calls.
        ("began_ns", c_int64),
        ("polled_ns", c_int64),  # time of the last unsuccessful test; 0 if the call blocks
        ("polls", c_uint64),
        ("which", c_uint64),  # the call that the rank is in, of `lines`
        ("lines", Shown * SHOWN),
    )

    def stands_for(self, now_ns: int) -> float:
        """Returns for how many seconds the rank has been in this call, or has made nothing but
        unsuccessful tests."""
        if not self.began_ns:
            return 0
        stands_s = (now_ns - self.began_ns) / NS
        if not self.polled_ns:
            return stands_s
        tests = self.polls > TESTS_PER_S * stands_s
        return stands_s if tests and (now_ns - self.polled_ns) / NS < LATEST_TEST_S else 0


def read(directory: Path) -> Iterator[Waits]:
    for path in directory.glob("waits-*"):
        data = path.read_bytes()
        if len(data) >= ctypes.sizeof(Waits):
            yield Waits.from_buffer_copy(data)


@dataclass
class Watchdog:
    """Reports the calls in which all ranks wait once no rank has made progress for the given
    time."""

    seconds: float
    # This is the number of calls of each rank, and the time in ns since which it has not changed.
    calls: dict[int, tuple[int, int]] = field(default_factory=dict)

    def looks(self, directory: Path) -> list[tuple[int, Finding]]:
        """Returns the waiting calls of all ranks if no rank makes progress; otherwise nothing. Must
        be called repeatedly."""
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        ranks = list(read(directory))
        hangs = len(ranks) > 0 and len(ranks) == ranks[0].ranks
        for one in ranks:
            calls, since_ns = self.calls.setdefault(one.rank, (one.calls, now_ns))
            if calls != one.calls:
                self.calls[one.rank] = one.calls, now_ns
            still_s = (now_ns - since_ns) / NS if calls == one.calls else 0
            hangs &= min(still_s, one.stands_for(now_ns)) >= self.seconds
        return [(one.rank, finding(one)) for one in ranks] if hangs else []


def finding(one: Waits) -> Finding:
    line = one.lines[one.which % SHOWN]
    place = Place(text(line.file), line.offset, text(line.where))
    return Finding("hang", line.call.decode(), place, Place())
