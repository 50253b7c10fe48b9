"""A performance check, which is one entry of table.py, and the verdict on its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.bench.settings import SettingsError
from weft.measurements.result import Statistic
from weft.system import mpi_libraries

from .jobs import At, JobFailed, Session, Where

MET, WITHIN, MISSED, UNKNOWN = "met", "met within the spread", "missed", "cannot tell"
NO_LIMIT = "no limit"


def holds(limit: str, figure: float) -> bool:
    """Returns whether a figure meets a limit such as `≤ 5 ms` or `≥ 0.95`."""
    sign, value, *_ = limit.split()
    return figure >= float(value) if sign == "≥" else figure <= float(value)


@dataclass(frozen=True)
class Figure:
    """The result of a check: a median with its interval, a number that was counted, or None if it
    is not known."""

    quantity: str  # name of the quantity, by which the check has its limit
    value: Statistic | float | None
    of: str = ""
    note: str = ""
    at: str = ""
    limit: str = ""

    @property
    def ends(self) -> tuple[float | None, ...]:
        """Returns the figure and the ends of its interval."""
        one = self.value
        return (one.median, one.low, one.high) if isinstance(one, Statistic) else (one,) * 3

    @property
    def verdict(self) -> str:
        """Returns the verdict. A limit is met, or missed, only if the whole interval is on one side
        of it."""
        if not self.limit:
            return NO_LIMIT
        if self.value is None or (isinstance(self.value, Statistic) and not self.value.is_certain):
            return UNKNOWN
        held = [holds(self.limit, end) for end in self.ends[1:]]
        return MET if all(held) else WITHIN if any(held) else MISSED

    @property
    def what(self) -> str:
        return ", ".join(filter(None, (self.at, self.of, self.quantity)))

    def __str__(self) -> str:
        figure, *ends = ("–" if end is None else f"{end:.3g}" for end in self.ends)
        interval = f" [{', '.join(ends)}]" if isinstance(self.value, Statistic) else ""
        note = f" ({self.note})" if self.note else ""
        limit = f", limit {self.limit}" if self.limit else ""
        return f"{self.verdict}: {self.what}: {figure}{interval}{limit}{note}"


@dataclass(frozen=True)
class Check:
    """A performance check. Several checks may share the name that --only selects."""

    name: str
    measures: str
    where: Sequence[Where]
    function: Callable[[At], Iterator[Figure]]
    limits: Mapping[str, str]  # by quantity
    libraries: Sequence[str] = mpi_libraries.IMPLEMENTATIONS
    together: bool = False  # the function measures all places in one call

    def figures(self, session: Session) -> Iterator[Figure]:
        """Yields the figures under each MPI library in each place."""
        places = [self.where] if self.together else [[one] for one in self.where]
        for mpi in [mpi for mpi in session.libraries if mpi in self.libraries]:
            for where in places:
                with At(session, self.name, mpi, where) as at:
                    for one in self.figures_at(at):
                        yield replace(one, at=str(at), limit=self.limits.get(one.quantity, ""))

    def figures_at(self, at: At) -> Iterator[Figure]:
        """Yields the figures in some places. If a job fails, the quantities that were not measured
        are unknown."""
        missing = dict.fromkeys(self.limits)
        try:
            for figure in self.function(at):
                missing.pop(figure.quantity, None)
                yield figure
        except (JobFailed, SettingsError) as failure:
            for quantity in missing or list(self.limits)[:1]:
                yield Figure(quantity, None, self.measures, str(failure))
