"""Runs a command without Weft's engines and with them in turn, and says how they compare.

Why in turn: what else the machine does hits all ways of a round alike. So a round's times are
divided by each other, and the interval of the median ratio says whether another round is needed.
The interval is looked at after each round, so each look has a level at which all together are wrong
no more often than WRONG.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO, Optional

from weft.data import stored
from weft.measurements import statistics
from weft.measurements.result import Statistic
from weft.measurements.statistics import FASTER, SAME, SLOWER
from weft.system import installation

PLACE = "{}"
UNDECIDED = "undecided"
SCHEMA = "weft-try/2"
SUMMARY = ("weft-summary/2", "weft-summary/1")
WRONG = 0.025  # how often a trial may call equal ways different, or decide against the truth
LAUNCHERS = ("mpiexec", "mpirun", "srun", "prun", "orterun", "prterun", "aprun", "jsrun", "ibrun")
SHORT_S = 0.1  # below this, starting and ending outweigh what the program does
ENDING_S = 10  # that an interrupted launcher has to end its ranks
MOST_SAID = 1 << 16  # bytes of the output of a run that has failed


class TryError(Exception):
    """seconds that an interrupted launcher has to end its ranks"""


class TookTooLong(TryError):
    """A run was ended, since it had taken longer than it may."""


class CommandFailed(Exception):
    def __init__(self, status: int, said: str, options: Sequence[str]) -> None:
        super().__init__(f"ended with status {status} under {Way(list(options)).title}")
        self.options = options
        self.status = status
        self.said = said


@dataclass(frozen=True)
class Call:
    call: str
    handled: int
    duration_us: int = 0
    waited_for_handled_us: int = 0


@dataclass(frozen=True)
class Summary:
    """The data read from a summary of `weft run`, or from those of several jobs."""

    seconds: float
    calls: list[Call]
    mpi: str = ""
    ranks: Optional[int] = None
    transfers: int = 0  # the program's own messages that Weft looked after
    one_copy_bytes: int = 0
    windows: int = 0  # that Weft looked after, since other ranks may lock them

    @classmethod
    def of_jobs(cls, jobs: Sequence[Summary]) -> Summary:
        """Adds the times of all jobs that a command starts, as a script may do."""
        return cls(
            sum(job.seconds for job in jobs),
            [call for job in jobs for call in job.calls],
            jobs[-1].mpi,
            max((job.ranks for job in jobs if job.ranks is not None), default=None),
            sum(job.transfers for job in jobs),
            sum(job.one_copy_bytes for job in jobs),
            sum(job.windows for job in jobs),
        )

    @property
    def idle(self) -> bool:
        """Weft has carried out nothing of the program's."""
        return not (
            self.transfers
            or self.one_copy_bytes
            or self.windows
            or any(call.handled for call in self.calls)
        )


@dataclass(frozen=True)
class Run:
    """Seconds of the whole command, and of its program from MPI_Init to MPI_Finalize."""

    wall_s: float
    summary: Summary | None = None


@dataclass(frozen=True)
class Setting:
    """The environment of a program that runs elsewhere than this command."""

    folder: Optional[Path] = None
    environment: Optional[dict[str, str]] = None
    printed: Optional[Path] = None  # a file that gets the standard output
    limit_s: Optional[float] = None  # a run that takes longer is ended


HERE = Setting()


@dataclass
class Way:
    """`weft run`'s options, and the runs with them."""

    options: list[str]
    runs: list[Run] = field(default_factory=list)
    label: str = ""  # name if ways differ by more than options

    @property
    def name(self) -> str:
        return self.label or " ".join(self.options) or "weft run"

    @property
    def title(self) -> str:
        return " ".join(["weft run", *self.options])

    @property
    def did_nothing(self) -> bool | None:
        """In none of its runs has Weft carried out anything; None: a run has left no summary."""
        summaries = [run.summary for run in self.runs]
        return all(one.idle for one in summaries if one) if all(summaries) else None


@dataclass
class Trial:
    """The first way is the program without Weft's engines; the others are compared with it."""

    ways: list[Way]
    most: int = 12  # rounds
    budget_s: float = 300.0
    took_s: list[float] = field(default_factory=list)  # each round, with all that starts its runs

    @property
    def rounds(self) -> int:
        return min(len(way.runs) for way in self.ways)

    @property
    def by_summary(self) -> bool:
        """Every run has told its program's own time."""
        return all(run.summary for way in self.ways for run in way.runs)

    def seconds(self, way: Way) -> list[float]:
        runs = way.runs[: self.rounds]
        if self.by_summary:
            return [run.summary.seconds for run in runs if run.summary]
        return [run.wall_s for run in runs]

    @property
    def too_short(self) -> bool:
        """Nothing can be told of so short a program, however many rounds are measured."""
        return self.rounds > 0 and median(self.seconds(self.ways[0])) < SHORT_S

    @property
    def level(self) -> float:
        """Returns the level of the interval at one look: looks and ways share the permitted
        error."""
        return statistics.level_of_a_look(self.most, WRONG / max(1, len(self.ways) - 1))

    @property
    def fewest(self) -> int:
        return statistics.fewest(self.level)

    def gain(self, way: Way) -> Statistic:
        """How many times as fast, by the rounds' ratios; needs one round."""
        base, own = self.seconds(self.ways[0]), self.seconds(way)
        return statistics.of([b / o for b, o in zip(base, own)], self.level)

    def verdict(self, way: Way) -> str:
        gain = self.gain(way)
        if gain.n < self.fewest or self.too_short:
            return UNDECIDED
        least, most = 1 - statistics.NOTICEABLE, 1 + statistics.NOTICEABLE
        if gain.low > least and gain.high < most:
            return SAME
        if gain.low >= most:
            return FASTER
        return SLOWER if gain.high <= least else UNDECIDED

    @property
    def decided(self) -> bool:
        if self.rounds == 0:
            return False
        return all(self.verdict(way) != UNDECIDED for way in self.ways[1:])

    @property
    def ended(self) -> bool:
        """No further round says more."""
        return self.too_short or self.decided

    def to_json(self, command: Sequence[str]) -> dict[str, Any]:
        what = "MPI_Init to MPI_Finalize" if self.by_summary else "the whole command"
        told = next((run.summary for way in self.ways for run in way.runs if run.summary), None)
        headline = {
            "rounds": self.rounds,
            **{
                way.name: {"times_as_fast": self.gain(way).median, "verdict": self.verdict(way)}
                for way in self.ways[1:]
            },
        }
        about = (told.mpi, told.ranks) if told else ()
        return {
            **stored.head(SCHEMA, headline, *about),
            "program": list(command),
            "measured": what,
            "ways": [self.way_to_json(way) for way in self.ways],
        }

    def way_to_json(self, way: Way) -> dict[str, Any]:
        answer: dict[str, Any] = {"options": way.options, "seconds": self.seconds(way)}
        if way is not self.ways[0]:
            gain = self.gain(way)
            answer["times_as_fast"] = {
                "median": gain.median,
                "low": gain.low,
                "high": gain.high,
                "rounds": gain.n,
            }
            answer["verdict"] = self.verdict(way)
            answer["weft_did_nothing"] = way.did_nothing
        return answer


def with_weft(command: Sequence[str], front: Sequence[str]) -> list[str]:
    """The command with `weft run OPTIONS --` where it belongs."""
    words = list(command)
    if PLACE in words:
        at = words.index(PLACE)
        return [*words[:at], *front, *words[at + 1 :]]
    weft = [i for i, word in enumerate(words[:-1]) if Path(word).name == "weft"]
    if any(words[i + 1] == "run" for i in weft):
        raise TryError(
            "leave weft run out of the command: it is put in; name its options by"
            " --with '--engine thread', for example"
        )
    # The program of a lab stands behind its options; in front of it all others are launchers,
    # which hand on what weft run leaves in the environment.
    if any(words[i + 1 : i + 3] == ["lab", "run"] for i in weft):
        if "--" not in words:
            raise TryError("write -- in front of the program: weft lab run --nodes 2 -- ./app")
        at = words.index("--") + 1
        return [*words[:at], *front, *words[at:]]
    return [*front, *words]


def is_launched(command: Sequence[str]) -> bool:
    """The command names a launcher, or has a lab start its ranks."""
    names = [Path(word).name for word in command]
    return "lab" in names or any(name.startswith(LAUNCHERS) for name in names)


def standard_input() -> BinaryIO:
    """A file that was handed on is read anew by each run; all else is nothing."""
    try:
        is_file = stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:  # there is none
        is_file = False
    return Path("/proc/self/fd/0" if is_file else os.devnull).open("rb")


def status_of(process: subprocess.Popen, limit_s: Optional[float] = None) -> int:
    """When it has ended. An interrupt reaches it by itself, and it has time to end its ranks."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        end(process)
        raise TookTooLong(f"ran for over {limit_s:.0f} s") from None
    except KeyboardInterrupt:
        end(process)
        raise


def end(process: subprocess.Popen) -> None:
    try:
        process.wait(ENDING_S)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        process.kill()
        process.wait()


class SummaryFile:
    """Reads each summary that is written there while a command runs: each job replaces the one of
    the job before."""

    LOOK_S = 0.02  # less than a job takes to start

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[Summary] = []
        self.last: tuple[int, int] | None = None  # the file that was read
        self.ended = threading.Event()
        self.error: Optional[stored.ResultError] = None

    def look(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            about = self.path.stat()
            file = (about.st_ino, about.st_mtime_ns)
            if file != self.last:
                self.found.append(stored.read(Summary, self.path, SUMMARY))
                self.last = file

    def watch(self) -> None:
        try:
            while not self.ended.wait(self.LOOK_S):
                self.look()
            self.look()
        except stored.ResultError as error:
            self.error = error

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self.watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.ended.set()
            thread.join()
        if self.error:
            raise self.error

    def summary(self) -> Optional[Summary]:
        """A program without MPI_Finalize leaves none, nor one whose first rank is elsewhere."""
        return Summary.of_jobs(self.found) if self.found else None


def run(
    command: Sequence[str], options: Sequence[str], shown: bool = False, setting: Setting = HERE
) -> Run:
    """Runs the command once; only the first run's output reaches the terminal."""
    with tempfile.TemporaryDirectory() as directory, standard_input() as given:
        summaries, output = (
            SummaryFile(Path(directory) / "summary.json"),
            Path(directory) / "output",
        )
        reported = f"--summary=json:{summaries.path}"
        front = [str(installation.weft_command()), "run", *options, reported, "--"]
        words = with_weft(command, front)
        to = setting.printed or output
        with output.open("ab") as kept, to.open("ab") as printed, summaries.watched():
            begin = time.monotonic()
            # Launchers talk to their ranks by inherited descriptors.
            process = subprocess.Popen(
                words,
                stdin=given,
                stdout=None if shown else printed,
                stderr=None if shown else kept,
                close_fds=False,
                cwd=setting.folder,
                env=setting.environment,
            )
            status = status_of(process, setting.limit_s)
            wall_s = time.monotonic() - begin
        if status:
            said = output.read_bytes()[-MOST_SAID:].decode(errors="replace")
            raise CommandFailed(status if status > 0 else 128 - status, said, options)
        return Run(wall_s, summaries.summary())


class Rounds:
    """All ways once a round, forwards and backwards in turn, so that a drift favours none."""

    def __init__(
        self,
        trial: Trial,
        runner: Callable[[Way], Run],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.trial = trial
        self.runner = runner
        self.clock = clock
        self.begin = clock()

    def measure(self, tell: Callable[[Trial], None]) -> None:
        took = self.trial.took_s
        while not self.trial.ended and self.trial.rounds < self.trial.most:
            began = self.clock()
            if took and began - self.begin + median(took) > self.trial.budget_s:
                return
            order = self.trial.ways if self.trial.rounds % 2 == 0 else self.trial.ways[::-1]
            for way in order:
                way.runs.append(self.runner(way))
            took.append(self.clock() - began)
            tell(self.trial)
