"""Runs a command alternately without Weft's engines and with them, and compares the times.

Other load on the machine affects all variants of a round alike. The times of a round are therefore
divided by each other, and the interval of the median ratio decides whether another round is needed.
It is computed after each round. Its level is chosen so that all these intervals together are wrong
with a probability of at most WRONG."""

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
# This is the probability with which a trial may call equal variants different, or decide against
# the truth.
WRONG = 0.025
LAUNCHERS = ("mpiexec", "mpirun", "srun", "prun", "orterun", "prterun", "aprun", "jsrun", "ibrun")
SHORT_S = 0.1  # time of a program below which its start and end dominate
ENDING_S = 10  # seconds that an interrupted launcher has to end its ranks
MOST_SAID = 1 << 16  # most bytes that are shown of a failed run's output


class TryError(Exception):
    """Raised if the trial cannot go on; the message says why."""


class TookTooLong(TryError):
    """Raised if a run was ended since it exceeded its time limit."""


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
    transfers: int = 0  # number of the program's own messages that Weft progressed
    one_copy_bytes: int = 0
    windows: int = 0  # number of windows that Weft progressed, since other ranks may lock them

    @classmethod
    def of_jobs(cls, jobs: Sequence[Summary]) -> Summary:
        """Adds up the summaries of all jobs that a command starts, as a script may do."""
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
        """Returns whether Weft has carried out nothing in the program."""
        return not (
            self.transfers
            or self.one_copy_bytes
            or self.windows
            or any(call.handled for call in self.calls)
        )


@dataclass(frozen=True)
class Run:
    """The times of one run in seconds: of the whole command, and of its program from MPI_Init to
    MPI_Finalize."""

    wall_s: float
    summary: Summary | None = None


@dataclass(frozen=True)
class Setting:
    """The environment in which a program runs, if it is not that of this command."""

    folder: Optional[Path] = None
    environment: Optional[dict[str, str]] = None
    printed: Optional[Path] = None  # file that receives the standard output
    limit_s: Optional[float] = None  # time limit of a run, which is then ended


HERE = Setting()


@dataclass
class Way:
    """A way to run the program: options of `weft run`, and the runs with them."""

    options: list[str]
    runs: list[Run] = field(default_factory=list)
    label: str = ""  # name of the way if it does not follow from its options

    @property
    def name(self) -> str:
        return self.label or " ".join(self.options) or "weft run"

    @property
    def title(self) -> str:
        return " ".join(["weft run", *self.options])

    @property
    def did_nothing(self) -> bool | None:
        """Returns whether Weft has carried out nothing in all runs; None if a run has left no
        summary."""
        summaries = [run.summary for run in self.runs]
        return all(one.idle for one in summaries if one) if all(summaries) else None


@dataclass
class Trial:
    """A trial of several ways. The first is the program without Weft's engines; the others are
    compared with it."""

    ways: list[Way]
    most: int = 12  # greatest number of rounds
    budget_s: float = 300.0
    # This is the duration of each round, including the start of its runs.
    took_s: list[float] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        return min(len(way.runs) for way in self.ways)

    @property
    def by_summary(self) -> bool:
        """Returns whether every run has a summary with the program's own time."""
        return all(run.summary for way in self.ways for run in way.runs)

    def seconds(self, way: Way) -> list[float]:
        runs = way.runs[: self.rounds]
        if self.by_summary:
            return [run.summary.seconds for run in runs if run.summary]
        return [run.wall_s for run in runs]

    @property
    def too_short(self) -> bool:
        """Returns whether the program is so short that no number of rounds would give a result."""
        return self.rounds > 0 and median(self.seconds(self.ways[0])) < SHORT_S

    @property
    def level(self) -> float:
        """Returns the level of the interval after each round. All intervals of all ways share the
        permitted error."""
        return statistics.level_of_a_look(self.most, WRONG / max(1, len(self.ways) - 1))

    @property
    def fewest(self) -> int:
        return statistics.fewest(self.level)

    def gain(self, way: Way) -> Statistic:
        """Returns the speedup over the first way, from the ratios in each round. Needs at least one
        round."""
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
        """Returns whether further rounds would add nothing."""
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
    """Returns the command with `weft run OPTIONS --` inserted. Raises TryError if the command has
    `weft run` already."""
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
    # In a lab, `weft run` stands in front of the program, behind the lab's options. All other
    # launchers pass on the environment that `weft run` sets, so that it stands in front of them.
    if any(words[i + 1 : i + 3] == ["lab", "run"] for i in weft):
        if "--" not in words:
            raise TryError("write -- in front of the program: weft lab run --nodes 2 -- ./app")
        at = words.index("--") + 1
        return [*words[:at], *front, *words[at:]]
    return [*front, *words]


def is_launched(command: Sequence[str]) -> bool:
    """Returns whether the command names a launcher, or a lab that starts its ranks."""
    names = [Path(word).name for word in command]
    return "lab" in names or any(name.startswith(LAUNCHERS) for name in names)


def standard_input() -> BinaryIO:
    """Returns the standard input for a run. A redirected file is read anew by each run; everything
    else is replaced by an empty input."""
    try:
        is_file = stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:  # standard input is closed
        is_file = False
    return Path("/proc/self/fd/0" if is_file else os.devnull).open("rb")


def status_of(process: subprocess.Popen, limit_s: Optional[float] = None) -> int:
    """Waits for the process and returns its exit status. An interrupt reaches the process by
    itself; it then has time to end its ranks. Raises TookTooLong after the time limit."""
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
    """Reads each summary that is written to a file while a command runs. Each job replaces the
    summary of the previous one."""

    LOOK_S = 0.02  # time between two looks at the file; a job takes longer to start

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[Summary] = []
        self.last: tuple[int, int] | None = None  # identity of the file that was read last
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
        """Returns the sum of all summaries; None if there are none. There are none if the program
        does not call MPI_Finalize, or if rank 0 runs on another machine."""
        return Summary.of_jobs(self.found) if self.found else None


def run(
    command: Sequence[str], options: Sequence[str], shown: bool = False, setting: Setting = HERE
) -> Run:
    """Runs the command once, and returns its times. The output is shown only if `shown`."""
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
            # Launchers talk to their ranks through inherited file descriptors, which must stay
            # open.
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
    """Runs all ways once in each round. The order is reversed in every other round, so that a drift
    favours none."""

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
