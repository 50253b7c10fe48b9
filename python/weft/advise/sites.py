"""A call site: a place in the program that calls a collective, with the measurements of all ranks
and the possible gain of a change."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import comb, inf
from pathlib import Path
from statistics import median

from weft.advise.arguments import Arguments, arguments
from weft.advise.names import base_name, language_of
from weft.advise.places import Frame
from weft.advise.record import UNKNOWNS

# These methods of mpi4py's communicators take any object, and pickle it.
OBJECT_METHODS = (
    *("allgather", "allreduce", "alltoall", "bcast", "exscan", "gather", "neighbor_allgather"),
    *("neighbor_alltoall", "reduce", "scan", "scatter"),
)
METHOD = re.compile(rf"\.({'|'.join(OBJECT_METHODS)})\(")


def is_vector(name: str) -> bool:
    """Returns whether the function of this base name has a count for each rank."""
    return name.removeprefix("neighbor_") in ("allgatherv", "alltoallv", "gatherv", "scatterv")


# These are names of a replay's results in the record: the gain by Weft without a change, and the
# additional gain by the change.
FREE, WITH_CHANGE = "free", "changed"
CERTAINTY = 0.95  # confidence of all intervals shown
# The samples may be judged sufficient at most this often (verify.py), each time with a chance of
# error.
LOOKS = 2


@dataclass
class Spread:
    """The median of samples and its 95 % confidence interval, in microseconds of one rank over the
    run."""

    low: float
    median: float
    high: float
    samples: int


def spread(values: list[float], calls: int) -> Spread:
    """Returns the median and its confidence interval by the order of the samples, whatever their
    distribution.

    The interval ends at samples so far from the median that it has the required confidence. With
    fewer than ten samples it reaches from the least to the greatest. With fewer than seven the
    confidence is lower than required."""
    ordered, n = sorted(values), len(values)
    # `off` is the number of samples outside each end. `below` counts those of the 2^n arrangements
    # around the median that have at most this number on one side.
    off, below = 0, 1
    while 2 * (below + comb(n, off + 1)) <= (1 - CERTAINTY) / LOOKS * 2**n:
        off += 1
        below += comb(n, off)
    ends = ordered[off], median(ordered), ordered[n - 1 - off]
    return Spread(*(end * calls for end in ends), n)


# Bounds that differ by less than this, in us or as a share, are shown as one figure.
LITTLE_US, PART = 20.0, 0.02


@dataclass(frozen=True)
class Windows:
    """The idle times of a buffer on one side of a site's calls, in microseconds, each with a proven
    lower and upper bound."""

    least: list[float] = field(default_factory=list)
    most: list[float | None] = field(default_factory=list)  # upper bounds; None if there is none

    @property
    def bounds(self) -> tuple[float, float | None] | None:
        """Returns the bounds of the median of the best known idle times, at least half of all."""
        if not self.least:
            return None
        pairs = [(low, inf if high is None else high) for low, high in zip(self.least, self.most)]
        width = median(high - low for low, high in pairs)
        lows, highs = zip(*((low, high) for low, high in pairs if high - low <= width))
        most = median(highs)
        return median(lows), None if most == inf else most

    def is_none(self, observing_us: float) -> bool:
        """Returns whether the time between a call and the access to its buffer is, at the median,
        at most the cost of observing an access. Then the result is used at once, or the sent data
        is written right before the call."""
        if self.bounds is None:
            return False
        most = self.bounds[1]
        return most is not None and most <= observing_us

    @property
    def exact_us(self) -> float | None:
        if self.bounds is None or self.bounds[1] is None:
            return None
        least, most = self.bounds
        return most if most - least <= max(LITTLE_US, PART * most) else None


@dataclass(frozen=True)
class Toucher:
    """A place in the program that ends the idle time after a call, or begins the one before."""

    frame: Frame
    source: str  # the source line; an empty string if it is not known
    windows: int = 0  # approximate number of idle times that the place ends or begins
    of: int = 0  # number of idle times that were measured

    @property
    def place(self) -> str:
        frame = self.frame
        return f"{Path(frame.file).name}:{frame.line}" if frame.file else frame.name


@dataclass(frozen=True)
class Outer:
    """A function on the call stack between the program's main function and a call."""

    frame: Frame
    own: bool  # the function belongs to the program, not to a library


@dataclass
class MessageWait:
    """A place that completes messages which were started elsewhere. The figures are those of the
    average rank."""

    frames: list[Frame]
    call: str
    source: str
    binding: str
    waits: float  # number of calls that completed messages
    messages: float
    bytes: float  # bytes of one message
    # This is the average time from the start of the first message to the call that completed it.
    between_us: float
    waited_us: float  # average time in the completing call
    tests: float  # number of tests for one message
    share: float  # share of the run time

    @property
    def language(self) -> str:
        return language_of(self.frames[0].file, self.binding)


@dataclass
class Site:
    """A call site in the program, with the measurements of all ranks."""

    frames: list[Frame]
    call: str
    communicator: str
    comm_size: int
    nodes: int
    bytes: float  # bytes of one call
    calls: int  # calls of one rank
    time_us: float  # time of one rank in all its calls
    share: float  # share of the run time
    # This is the share of that time spent waiting for other ranks; None if it is not known.
    waiting: float | None
    arrivals: int  # number of calls from which the share was computed
    after: Windows
    before: Windows
    unknown: dict[str, dict[str, int]]  # reasons for unknown idle times with their counts, by side
    # This is the upper bound in us of one rank's gain over the run; None if it is not known.
    gain_high_us: float | None
    why_no_gain: str
    # These are the times in us of non-blocking calls. The first is that from the start to the
    # completing call.
    between_us: float | None = None
    waited_us: float | None = None
    tests: float = 0
    repeated: float = 0  # share of the calls with the same arguments as the one before; 1 means all
    # Each entry has a rank, and the number that the site has on it.
    members: set[tuple[int, int]] = field(default_factory=set)
    changed: Spread | None = None  # gain by the change in the replay, in addition to `unchanged`
    unchanged: Spread | None = None  # gain by Weft in the replay without a change
    earlier_us: float = 0  # part of gain_high_us that only an earlier start can gain
    source: str = ""  # the source line; an empty string if it is not known
    statement: str = ""  # the source line with those that continue it
    op: str = ""  # operator of the reduction, one of record.OPERATORS
    with_weft: bool = False  # threads of Weft ran in the recorded job
    # These are places that access its result first, the most frequent first.
    users: list[Toucher] = field(default_factory=list)
    writers: list[Toucher] = field(default_factory=list)  # places that write its send buffer last
    binding: str = ""  # one of record.BINDINGS
    own: bool = True  # the call is in the program itself, not in a library
    # This is the shortest time until the sent data was written again; None if that was not seen.
    unwritten_us: float | None = None
    # This is the call stack of the call, the innermost function first.
    outer: list[Outer] = field(default_factory=list)
    all_calls: int = 0  # calls of all ranks
    # This counts calls of all ranks after which the result was watched, whether its idle time was
    # found or not.
    watched: int = 0
    told_by: int = 0  # number of frames that distinguish this site from others at the same line

    @property
    def callers(self) -> list[Frame]:
        """Returns the calling lines that distinguish this site from others at its line, or that
        lead to the program's own code."""
        needed = next((i + 1 for i, one in enumerate(self.outer) if one.own), 0)
        most = self.told_by if self.own else max(self.told_by, needed)
        return [one.frame for one in self.outer[:most] if one.own or not needed]

    @property
    def function(self) -> str:
        return self.frames[0].function

    @property
    def place(self) -> str:
        frame = self.frames[0]
        return f"{frame.file}:{frame.line}" if frame.file else ""

    @property
    def window_us(self) -> float | None:
        """Returns the time in us from the return to the first access of the result; None if it is
        not known precisely."""
        return self.after.exact_us

    @property
    def is_sent_again(self) -> bool:
        """Returns whether the call's sent data is overwritten before its result is used, as far as
        that is known."""
        known = [window for window in self.after.least if window > 0]
        return self.unwritten_us is not None and bool(known) and self.unwritten_us < min(known)

    def can_run_us(self, window_us: float) -> float:
        """Returns for how many us a call may still be in flight after it would have returned, if
        its result is left alone for this time."""
        return window_us if self.unwritten_us is None else min(window_us, self.unwritten_us)

    @property
    def wait_later_us(self) -> float | None:
        """Returns how many us of a non-blocking call's wait are certainly hidden if the wait comes
        later; None if it is not known how long the result is left alone after the wait."""
        if self.waited_us is None or self.after.bounds is None:
            return None
        return min(self.after.bounds[0], self.waited_us)

    @property
    def gain_low_us(self) -> float | None:
        return max(0.0, self.changed.low) if self.changed else None

    @property
    def transfer_us(self) -> float | None:
        """Returns the transfer time of one call in us; None if it is not known."""
        if self.waiting is None or not self.calls:
            return None
        return self.time_us / self.calls * (1 - self.waiting)

    def why_unknown(self, side: str) -> str:
        """Returns the most frequent reason why the idle time of the buffer is unknown. That a rank
        has no buffer is returned only if there is no other reason."""
        found = self.unknown.get(side, {})
        whys = sorted(found.items(), key=lambda one: (one[0] != UNKNOWNS[3], one[1]))
        return whys[-1][0] if whys else "its calls were too few or too long to be sampled"

    @property
    def language(self) -> str:
        return language_of(self.frames[0].file, self.binding)

    @property
    def arguments(self) -> Arguments | None:
        """Returns the call's arguments as they are written in the source; None if they cannot be
        read."""
        return arguments(self.statement or self.source, self.call, self.language)

    @property
    def object_method(self) -> str:
        """Returns mpi4py's method that pickled the objects of this call; an empty string if the
        call was given buffers."""
        upper = self.call.removeprefix("MPI_").removesuffix("_c")
        if self.language != "python" or f".{upper}(" in self.source:
            return ""
        found = METHOD.findall(self.source)
        # mpi4py sends an object's length and the object itself in two calls, such as allgather and
        # allgatherv.
        name = base_name(self.call)
        return next((one for one in found if name.startswith(one)), found[0] if found else "")

    def add_replay(self, won: dict[str, list[float]]) -> None:
        """Stores the gains of a replay. `won` has the samples in us of one call, by FREE and
        WITH_CHANGE. Samples of one position were measured side by side, and share their
        disturbances."""

        def of_run(form: str) -> Spread | None:
            # A call cannot gain more than its own time, whatever disturbed the machine. Without a
            # change it cannot gain the time that it waits for other ranks.
            most = self.time_us / max(1, self.calls)
            if form == FREE and self.transfer_us is not None:
                most = self.transfer_us
            found = [min(us, most) for us in won.get(form, [])]
            return spread(found, self.calls) if len(found) > 1 else None

        self.unchanged = of_run(FREE)
        if self.gain_high_us is None:
            return
        self.changed = of_run(WITH_CHANGE)
        if self.changed:
            # The upper bound was computed from the recorded run. It is adjusted so that it does not
            # contradict the replay.
            seen = self.changed
            self.gain_high_us = max(0.0, seen.median, min(self.gain_high_us, seen.high))
