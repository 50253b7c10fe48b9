"""A place in the program that calls a collective: what was measured there over all ranks, and what
a change could win."""

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

# These methods of mpi4py's communicators take any object, which they pickle.
OBJECT_METHODS = (
    *("allgather", "allreduce", "alltoall", "bcast", "exscan", "gather", "neighbor_allgather"),
    *("neighbor_alltoall", "reduce", "scan", "scatter"),
)
METHOD = re.compile(rf"\.({'|'.join(OBJECT_METHODS)})\(")


def is_vector(name: str) -> bool:
    """Returns whether the function of this base name has a count for each rank."""
    return name.removeprefix("neighbor_") in ("allgatherv", "alltoallv", "gatherv", "scatterv")


# These are a replay's results as the record names them: the gain by Weft without a change, and the
# further gain by the change.
FREE, WITH_CHANGE = "free", "changed"
CERTAINTY = 0.95  # confidence of all intervals shown
LOOKS = 2  # at most, after which the samples may be enough (verify.py): each may be wrong


@dataclass
class Spread:
    """The median of samples, in microseconds of one rank over the run, and its 95 % confidence
    interval."""

    low: float
    median: float
    high: float
    samples: int


def spread(values: list[float], calls: int) -> Spread:
    """By the order of the samples, however they are distributed: so many lie on either side of the
    median with that certainty. Of fewer than ten the least and the greatest; of fewer than seven
    these have less."""
    ordered, n = sorted(values), len(values)
    off, below = 0, 1  # samples beyond each end; of the 2^n ways to lie, those with so many below
    while 2 * (below + comb(n, off + 1)) <= (1 - CERTAINTY) / LOOKS * 2**n:
        off += 1
        below += comb(n, off)
    ends = ordered[off], median(ordered), ordered[n - 1 - off]
    return Spread(*(end * calls for end in ends), n)


LITTLE_US, PART = 20.0, 0.02  # bounds that are so close, or so close in proportion, are one figure


@dataclass(frozen=True)
class Windows:
    """On one side of a site's calls, in microseconds: what is proven of each that was measured."""

    least: list[float] = field(default_factory=list)
    most: list[float | None] = field(default_factory=list)  # None: not known

    @property
    def bounds(self) -> tuple[float, float | None] | None:
        """Returns the bounds of the median of the best known windows, at least half of all."""
        if not self.least:
            return None
        pairs = [(low, inf if high is None else high) for low, high in zip(self.least, self.most)]
        width = median(high - low for low, high in pairs)
        lows, highs = zip(*((low, high) for low, high in pairs if high - low <= width))
        most = median(highs)
        return median(lows), None if most == inf else most

    def is_none(self, observing_us: float) -> bool:
        """Whether they may be as short as observing them takes: then the result is used at once, or
        what is sent is written right before the call."""
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
    """A place in the program that ends windows after a call, or begins those before it."""

    frame: Frame
    source: str  # the line; "": not known
    windows: int = 0  # approximate number of windows that it ends or begins
    of: int = 0  # number of windows that were measured

    @property
    def place(self) -> str:
        frame = self.frame
        return f"{Path(frame.file).name}:{frame.line}" if frame.file else frame.name


@dataclass(frozen=True)
class Outer:
    """A function that called the one before, on the way from the program to a call."""

    frame: Frame
    own: bool  # belongs to the program, not to a library


@dataclass
class MessageWait:
    """A place that completes messages which were started before; of the average rank."""

    frames: list[Frame]
    call: str
    source: str
    binding: str
    waits: float  # calls that completed some
    messages: float
    bytes: float  # bytes of one message
    between_us: float  # from the start of the first to the call that completed it, on average
    waited_us: float  # inside that call, on average
    tests: float  # tests for one message
    share: float  # share of the run time

    @property
    def language(self) -> str:
        return language_of(self.frames[0].file, self.binding)


@dataclass
class Site:
    """A place in the program, over all ranks."""

    frames: list[Frame]
    call: str
    communicator: str
    comm_size: int
    nodes: int
    bytes: float  # bytes of one call
    calls: int  # calls of one rank
    time_us: float  # time of one rank in all its calls
    share: float  # share of the run time
    waiting: float | None  # part of the time spent waiting for others to come
    arrivals: int  # calls from which that is known
    after: Windows
    before: Windows
    unknown: dict[str, dict[str, int]]  # for each side
    gain_high_us: float | None  # upper bound of one rank's gain over the run
    why_no_gain: str
    # For non-blocking calls: time from the start to the completing call.
    between_us: float | None = None
    waited_us: float | None = None
    tests: float = 0
    repeated: float = 0  # part of the calls with the arguments of the one before; 1: always
    members: set[tuple[int, int]] = field(default_factory=set)  # rank and its site
    changed: Spread | None = None  # gain by the change in the replay, in addition to `unchanged`
    unchanged: Spread | None = None  # gain by Weft in the replay without a change
    earlier_us: float = 0  # part of gain_high_us that only starting it earlier can win
    source: str = ""  # the line of the program; "": not known
    statement: str = ""  # with the lines that continue it
    op: str = ""  # one of record.OPERATORS
    with_weft: bool = False  # threads of Weft's ran
    users: list[Toucher] = field(default_factory=list)  # places that mostly touch its result first
    writers: list[Toucher] = field(default_factory=list)  # places that write its send buffer last
    binding: str = ""  # one of record.BINDINGS
    own: bool = True  # the call stands in the program, not in a library
    unwritten_us: float | None = None  # the shortest time until what it sent was written again
    outer: list[Outer] = field(default_factory=list)  # the way there, the innermost first
    all_calls: int = 0  # calls of all ranks
    watched: int = 0  # calls among these after which a window was looked for, found or not
    told_by: int = 0  # number of frames that distinguish the call from others at its place

    @property
    def callers(self) -> list[Frame]:
        """Lines that the call has to be told from others at its place, or of the program's own."""
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
        """From the return to the first touch of the result, where that is known well."""
        return self.after.exact_us

    @property
    def is_sent_again(self) -> bool:
        """Whether what it sends is written before its result is used, as far as is known."""
        known = [window for window in self.after.least if window > 0]
        return self.unwritten_us is not None and bool(known) and self.unwritten_us < min(known)

    def can_run_us(self, window_us: float) -> float:
        """So long after a call with this window it may still be in flight."""
        return window_us if self.unwritten_us is None else min(window_us, self.unwritten_us)

    @property
    def wait_later_us(self) -> float | None:
        """Returns how much of a non-blocking call's wait a later one certainly hides; None if the
        window after the wait is not known."""
        if self.waited_us is None or self.after.bounds is None:
            return None
        return min(self.after.bounds[0], self.waited_us)

    @property
    def gain_low_us(self) -> float | None:
        return max(0.0, self.changed.low) if self.changed else None

    @property
    def transfer_us(self) -> float | None:
        """Returns the transfer time of one call."""
        if self.waiting is None or not self.calls:
            return None
        return self.time_us / self.calls * (1 - self.waiting)

    def why_unknown(self, side: str) -> str:
        """The commonest reason, but that a rank has no buffer only where there is no other."""
        found = self.unknown.get(side, {})
        whys = sorted(found.items(), key=lambda one: (one[0] != UNKNOWNS[3], one[1]))
        return whys[-1][0] if whys else "its calls were too few or too long to be sampled"

    @property
    def language(self) -> str:
        return language_of(self.frames[0].file, self.binding)

    @property
    def arguments(self) -> Arguments | None:
        """As they stand in the source; None: they cannot be read there."""
        return arguments(self.statement or self.source, self.call, self.language)

    @property
    def object_method(self) -> str:
        """The method of mpi4py that pickled what this call carries; "": it was given buffers."""
        upper = self.call.removeprefix("MPI_").removesuffix("_c")
        if self.language != "python" or f".{upper}(" in self.source:
            return ""
        found = METHOD.findall(self.source)
        # An object's length and the object itself are two calls, as of allgather and allgatherv.
        name = base_name(self.call)
        return next((one for one in found if name.startswith(one)), found[0] if found else "")

    def add_replay(self, won: dict[str, list[float]]) -> None:
        """won: of one call, by FREE and WITH_CHANGE, sample by sample, since what disturbs one form
        disturbs those beside it."""

        def of_run(form: str) -> Spread | None:
            # More than the call's time cannot be won, whatever disturbed the machine; nor, without
            # a change, what it waits for others.
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
            # The bound rests on the recorded run: it must not deny what was seen since, nor promise
            # what was not.
            seen = self.changed
            self.gain_high_us = max(0.0, seen.median, min(self.gain_high_us, seen.high))
