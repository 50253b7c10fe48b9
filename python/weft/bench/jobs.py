"""Follows a job of `weft bench`: reads its samples line by line, and stops it if it hangs.

All samples before a crash, a hang or Ctrl-C are thus kept, and the last line tells which candidate
was being measured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weft.bench.places import Job

START_SECONDS = 60  # limit for the first line: the launcher's time and MPI_Init
POLL_SECONDS = 0.1
PATIENCE = 20  # a job counts as hung after this multiple of its longest measurement so far


@dataclass
class Outcome:
    status: str  # "done", "hung" or "failed"
    said: str = ""
    # This is the engine that was being measured when the job hung or failed; an empty string if
    # none was.
    engine: str = ""
    doing: str = ""


class Lines:
    """Reads the complete lines that were appended to a growing JSON Lines file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0

    def new(self) -> list[dict]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self.place)
            block = file.read()
        end = block.rfind(b"\n") + 1
        self.place += end
        return [json.loads(line) for line in block[:end].splitlines()]


class Watch:
    """Follows one job to its end."""

    def __init__(self, job: Job, path: Path, hang_s: float, take: Callable[[dict], None]) -> None:
        self.job = job
        self.lines = Lines(path)
        self.hang_s = hang_s
        self.take = take
        self.limit_s = START_SECONDS
        self.longest_s = 0.0
        self.last = time.monotonic()
        self.engine = ""
        self.doing = "start-up"
        self.ended = False

    def read(self) -> None:
        for line in self.lines.new():
            self.last = time.monotonic()
            self.longest_s = max(self.longest_s, line.get("us", 0.0) / 1e6)
            self.limit_s = max(self.hang_s, PATIENCE * self.longest_s)
            if "begin" in line:
                self.engine = line.get("engine", "")
                words = [line["begin"]]
                if "iterations" in line:
                    words.append(f"{line['iterations']} iterations")
                self.doing = ", ".join(words)
            elif "end" in line:
                self.ended = True
                self.engine, self.doing = "", "MPI_Finalize"
            self.take(line)

    def follow(self, tick: Callable[[], None]) -> Outcome:
        """Follows the job until it ends or hangs. On KeyboardInterrupt it stops the job and raises
        the exception again."""
        try:
            return self.wait(tick)
        except BaseException:
            self.job.stop()
            self.read()
            raise

    def wait(self, tick: Callable[[], None]) -> Outcome:
        while (status := self.job.status()) is None:
            self.read()
            tick()
            if time.monotonic() - self.last > self.limit_s:
                self.job.stop()
                said = f"no answer within {self.limit_s:g} s"
                return Outcome("hung", said, self.engine, self.doing)
            time.sleep(POLL_SECONDS)
        self.read()
        # The job has finished; if its results were wrong, the samples have recorded that.
        if self.ended:
            return Outcome("done")
        return Outcome("failed", reason(self.job.said(), status), self.engine, self.doing)


def reason(said: str, status: int) -> str:
    """Returns the most informative line of a job's output: the first that Weft's own programs
    printed, or else the first line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(("nbceff:", "planted:", "weft"))]
    text = (own or lines or [""])[0]
    return f"{text} (exit status {status})" if text else f"exit status {status}"
