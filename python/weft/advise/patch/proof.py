"""Measures whether a patch is worth keeping: builds the program without and with it, and runs both
alternately. The unchanged program runs without Weft and with Weft, and the patch is compared with
the faster of these, since a gain of Weft without a change is no merit of the patch."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Optional

from weft.advise.patch import answers
from weft.advise.patch.diff import Patch
from weft.advise.patch.promise import Promise
from weft.advise.patch.trees import TreeError, Trees, beside
from weft.data import stored
from weft.measurements import statistics
from weft.measurements.result import Statistic
from weft.measurements.statistics import FASTER, SAME, SLOWER
from weft.trying import rounds, show

SCHEMA = "weft-advise-change/2"
UNCHANGED, CHANGED = "unchanged, without Weft", "changed"
WAYS = {UNCHANGED: ["--engine", "native"], "unchanged": [], CHANGED: []}
SUBJECT = "Collectives run behind computation"
PATHS = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
MOST_SAID = 4000  # most characters that are shown of a failed build's output
ALIKE = 3  # runs of the unchanged program that show which lines of its output vary
# The time limit of the changed program is this multiple of the unchanged program's time, plus a
# minimum in seconds.
PATIENCE, LEAST_S = 10, 60


class Unproven(Exception):
    """Raised if no verdict about the patch is possible; the message says why."""


class Trial(rounds.Trial):
    """Runs of each of WAYS. The last way is compared with the faster of the others."""

    @property
    def changed(self) -> rounds.Way:
        return self.ways[-1]

    @property
    def fastest(self) -> rounds.Way:
        """Returns the faster of the two ways to run the unchanged program, without Weft and with
        it."""
        return min(self.ways[:-1], key=lambda one: median(self.seconds(one)))

    def gain(self, way: rounds.Way) -> Statistic:
        base = self.fastest if way is self.changed else self.ways[0]
        pairs = zip(self.seconds(base), self.seconds(way))
        return statistics.of([before / after for before, after in pairs], self.level)

    @property
    def decided(self) -> bool:
        return self.rounds > 0 and self.verdict(self.changed) != rounds.UNDECIDED


@dataclass
class Verdict:
    sentence: str
    keep: Optional[bool]  # whether to keep the patch; None if the runs do not tell


@dataclass
class Proof:
    """Proves one patch. `tell` is called with sentences about its progress."""

    trees: Trees
    patch: Patch
    command: list[str]
    build: str
    trial: Trial
    tell: Callable[[str], None]
    printed: dict[str, list[answers.Lines]] = field(default_factory=dict)
    verdict: Verdict = field(default_factory=lambda: Verdict("", None))
    running: str = UNCHANGED
    where: str = ""  # where the kept change is; "" if none is kept
    promise: Optional[Promise] = None  # None if no call could be replayed

    @property
    def is_promise_kept(self) -> Optional[bool]:
        """Returns whether the measured gain keeps the promise; None if nothing was promised or
        measured."""
        if not self.promise or not self.trial.rounds:
            return None
        return self.promise.is_kept(self.trial.gain(self.trial.changed))

    def tree(self, name: str) -> Path:
        return self.trees.changed if name == CHANGED else self.trees.unchanged

    # Builds of both programs ---------------------------------------------------------------------

    def folder(self, tree: Path) -> Path:
        """Returns the folder in which the program of this tree is built and run. If the command was
        called outside of the source tree, this is the current folder."""
        here = Path.cwd()
        if not self.is_inside(here):
            return here
        own = tree / here.relative_to(self.trees.root)
        own.mkdir(parents=True, exist_ok=True)
        return own

    def is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.trees.root)

    def build_both(self) -> None:
        if self.build:
            self.build_one(UNCHANGED, "without a change")
        self.trees.change()
        if self.build:
            self.build_one(CHANGED, "with the patch")
            self.check_programs()

    def check_programs(self) -> None:
        """Raises Unproven unless the build wrote the programs that the runs start, and the patch
        changed them."""
        for module in self.patch.modules:
            before, after = (self.trees.there(module, self.tree(n)) for n in (UNCHANGED, CHANGED))
            if not before.is_file() or not after.is_file():
                raise Unproven(f"{self.build} does not make {module.name} where {module} lies")
            if filecmp.cmp(before, after, shallow=False):
                raise Unproven(f"{self.build} leaves {module.name} as it was without the patch")

    def build_one(self, name: str, how: str) -> None:
        place = self.folder(self.tree(name))
        place = place if place.is_relative_to(self.tree(name)) else self.tree(name)
        self.tell(f"building {how}: {self.build}")
        done = subprocess.run(
            self.build,
            shell=True,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if done.returncode:
            sys.stderr.write(done.stdout[-MOST_SAID:])
            raise Unproven(f"{self.build} ended with {done.returncode} {how}")

    def moved(self, word: str, tree: Path) -> str:
        """Returns a word of the command with files of the user's tree replaced by those of this
        tree.

        Files that this tree lacks are copied into it, except programs, such as a launcher."""
        path = Path.cwd() / word
        if not path.exists():
            return word
        own = self.trees.there(path, tree) if self.is_inside(path.resolve()) else path
        is_program = path.is_file() and os.access(path, os.X_OK)
        if not own.exists() and not is_program:
            own.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, own)
        if "/" not in word:
            return word
        return str(own if own.exists() else path)

    def environment(self, tree: Path) -> dict[str, str]:
        """Returns the environment with search paths into the user's tree replaced by those of this
        tree, if they exist there."""
        found = {**os.environ, "PWD": str(self.folder(tree))}
        for name in found.keys() & set(PATHS):
            words = found[name].split(os.pathsep)
            found[name] = os.pathsep.join(self.searched(word, tree) for word in words)
        return found

    def searched(self, word: str, tree: Path) -> str:
        if not word or not self.is_inside(Path(word).resolve()):
            return word
        own = self.trees.there(Path(word), tree)
        return str(own) if own.exists() else word

    # The runs -----------------------------------------------------------------------------------

    def run(self, way: rounds.Way) -> rounds.Run:
        tree, self.running = self.tree(way.name), way.name
        printed = self.trees.folder / "printed"
        printed.unlink(missing_ok=True)
        setting = rounds.Setting(
            self.folder(tree), self.environment(tree), printed, self.limit_s(way)
        )
        words = [self.moved(word, tree) for word in self.command]
        ran = rounds.run(words, way.options, setting=setting)
        self.printed.setdefault(way.name, []).append(answers.lines(printed.read_bytes()))
        return ran

    def limit_s(self, way: rounds.Way) -> Optional[float]:
        """Returns the time limit of a run in seconds, which ends a changed program that hangs; None
        for the unchanged program, which has no limit."""
        longest = max((run.wall_s for run in self.trial.ways[0].runs), default=0.0)
        return None if way.name == UNCHANGED else LEAST_S + PATIENCE * longest

    def compared(self) -> answers.Comparison:
        return answers.compare(self.printed[UNCHANGED], self.printed[CHANGED])

    def measure(self) -> None:
        """Runs the programs alternately, and sets the verdict."""
        try:
            self.run(self.trial.ways[0])
            rounds.Rounds(self.trial, self.run).measure(self.look)
            self.verdict = self.by_time()
        except rounds.CommandFailed as error:
            self.verdict = self.of_failure(error)
        except rounds.TookTooLong as error:
            if self.running != CHANGED:
                raise
            self.verdict = Verdict(f"Do not keep it: changed, the program {error}.", False)
        except Different:
            pass

    def look(self, so_far: rounds.Trial) -> None:
        self.tell(show.progress(so_far))
        found = self.compared()
        if found.differs and (so_far.rounds + 1 >= ALIKE or so_far.ended):
            self.verdict = Verdict(f"Do not keep it: {different(found)}.", False)
            raise Different

    def of_failure(self, error: rounds.CommandFailed) -> Verdict:
        sys.stderr.write(error.said)
        status = f"the program ends with status {error.status}"
        if self.running != CHANGED:
            raise Unproven(f"{status} without a change, too, where it is built from its source")
        return Verdict(f"Do not keep it: changed, {status}; unchanged, it ends well.", False)

    def by_time(self) -> Verdict:
        trial, found = self.trial, self.compared()
        if found.differs:
            return Verdict(f"Do not keep it: {different(found)}.", False)
        if trial.too_short:
            return Verdict(
                f"Whether to keep it cannot be told: the program runs for less than"
                f" {rounds.SHORT_S:g} s.",
                None,
            )
        gain = trial.gain(trial.changed)
        alone = "" if trial.fastest is trial.ways[0] else " as unchanged with Weft"
        ends = f"({gain.low:.2f} to {gain.high:.2f}, {gain.n} rounds)"
        how = f"{gain.median:.2f} times as fast{alone} {ends}"
        same = printed_alike(found)
        said = {
            FASTER: (f"Keep it: changed, the program is {how} and {same}.", True),
            SLOWER: (f"Do not keep it: changed, the program is {how}; it {same}.", False),
            SAME: (f"Do not keep it: changed, the program is as fast as before: {how}.", False),
        }
        open_ = f"{gain.n} rounds do not tell whether to keep it: changed, the program is {how}"
        return Verdict(*said.get(trial.verdict(trial.changed), (f"{open_}; it {same}.", None)))

    # The verdict as data ------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        trial = self.trial
        told = next((run.summary for way in trial.ways for run in way.runs if run.summary), None)
        gain = trial.gain(trial.changed) if trial.rounds else None
        found = self.compared() if CHANGED in self.printed else None
        headline = {"keep": self.verdict.keep, "times_as_fast": gain and gain.median}
        return {
            **stored.head(SCHEMA, headline, *((told.mpi, told.ranks) if told else ())),
            "program": self.command,
            "build": self.build,
            "verdict": self.verdict.sentence,
            "promised": self.promise and self.promise.to_json(),
            "promise_kept": self.is_promise_kept,
            "changes": self.patch.made,
            "left": self.patch.left,
            "output": found
            and {
                "lines": found.compared,
                "missing": found.missing,
                "instead": found.instead,
                "more_lines": found.more,
                "numbers_apart": found.apart,
            },
            "ways": [
                {"name": way.name, **trial.way_to_json(way)} for way in trial.ways if trial.rounds
            ],
        }


class Different(Exception):
    """Raised if the changed program prints something else than the unchanged one."""


def different(found: answers.Comparison) -> str:
    if not found.missing:
        return f"changed, the program prints {found.more:+} lines"
    instead = f'"{found.instead}" instead of ' if found.instead else "no line "
    return f'changed, the program prints {instead}"{found.missing}"'


def printed_alike(found: answers.Comparison) -> str:
    if not found.compared:
        return "prints nothing that could be compared"
    if found.apart:
        return f"prints the same, but for {found.apart:.0e} of some numbers"
    return "prints the same"


def promised_before(promise: Promise) -> str:
    own = promise.times_as_fast
    beside = " as unchanged with Weft" if promise.is_beside_weft else ""
    how = f"{own.low:.2f} to {own.high:.2f} times as fast{beside} ({own.n} rounds)"
    return f"Replays of its recorded calls promised {how}."


def new_trial(budget_s: float, most: int) -> Trial:
    return Trial(
        [rounds.Way(options, label=name) for name, options in WAYS.items()], most, budget_s
    )


def check(patch: Patch, command: Sequence[str], root: Path, build: str) -> None:
    """Raises Unproven for every obstacle that can be found before the build."""
    if not build and any(path.suffix != ".py" for path in patch.files):
        raise Unproven('the program must be compiled again: --build "make -j", for example')
    for module in patch.modules:
        if not module.resolve().is_relative_to(root):
            raise Unproven(f"{module} lies outside of {root}, and would be run as it is")
    if any(Path(one).name == "weft" and two == "run" for one, two in zip(command, command[1:])):
        raise Unproven("leave weft run out of the command: it is put in")


def root_of(patch: Patch) -> Path:
    """Returns the git checkout. Outside of git, returns the current folder if it contains the
    source, and otherwise the folder of the patch."""
    here = Path.cwd().resolve()
    is_checkout = (patch.root / ".git").exists()
    inside = all(path.resolve().is_relative_to(here) for path in patch.files)
    return here if inside and not is_checkout else patch.root


def prove(
    patch: Patch,
    command: list[str],
    build: str,
    trial: Trial,
    tell: Callable[[str], None],
    promised: Callable[[], Optional[Promise]] = lambda: None,
) -> Proof:
    """Measures whether the patch is worth keeping. Raises Unproven, which says why there is no
    verdict, after removing the trees. `promised` is called once both programs are built."""
    root = root_of(patch)
    check(patch, command, root, build)
    try:
        with beside(root, patch.files) as trees:
            proof = Proof(trees, patch, command, build, trial, tell)
            proof.build_both()
            proof.promise = promised()
            proof.measure()
            if proof.verdict.keep is not False:
                proof.where = trees.keep("\n\n".join([SUBJECT, *patch.made]))
            return proof
    except (TreeError, rounds.TryError, stored.ResultError) as why:
        raise Unproven(why) from None


def show_verdict(proof: Proof) -> None:
    from rich.console import Console

    console = Console()
    lines = [proof.verdict.sentence, *proof.patch.made, *proof.patch.left, proof.where]
    if proof.promise:
        lines.insert(1, promised_before(proof.promise))
    for line in filter(None, lines):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if proof.trial.rounds:
        console.print(show.table(proof.trial))
