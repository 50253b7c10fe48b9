"""Shows findings while the program runs, and what the ranks wait in where none of them gets on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from weft.check import findings
from weft.check.waits import Watchdog

LOOKS_S = 0.5  # time between two looks: ranks make most mistakes together


class Watch(threading.Thread):
    """Runs as long as its `with`; then `found` has all that was found."""

    def __init__(self, directory: Path, watchdog: Watchdog, show: Callable[[list[dict]], None]):
        super().__init__(daemon=True)
        self.directory, self.watchdog, self.show = directory, watchdog, show
        self.ended = threading.Event()
        self.known: dict[tuple, dict] = {}  # shown, by findings' keys
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
