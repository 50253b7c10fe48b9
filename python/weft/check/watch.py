"""Prints findings while the program runs, and the calls in which ranks wait if none makes
progress."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from weft.check import findings
from weft.check.waits import Watchdog

# This is the time between two reads of the findings; ranks tend to make mistakes at the same time.
LOOKS_S = 0.5


class Watch(threading.Thread):
    """A thread that runs during its `with` block. Afterwards `found` has all findings."""

    def __init__(self, directory: Path, watchdog: Watchdog, show: Callable[[list[dict]], None]):
        super().__init__(daemon=True)
        self.directory, self.watchdog, self.show = directory, watchdog, show
        self.ended = threading.Event()
        self.known: dict[tuple, dict] = {}  # findings that were printed, by their keys
        self.found: list[dict] = []

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join()
        self.look()

    def run(self) -> None:
        while not self.ended.wait(LOOKS_S):
            self.look()

    def look(self) -> None:
        hang = self.watchdog.looks(self.directory)
        all_now = findings.gathered([*findings.told(self.directory), *hang])
        new = [one for one in all_now if one.key() not in self.known]
        shown = findings.as_data(new)
        self.known |= dict(zip((one.key() for one in new), shown))
        self.found = [self.known[one.key()] | {"ranks": one.ranks} for one in all_now]
        if shown:
            self.show(shown)
