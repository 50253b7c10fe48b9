"""Makes two copies of the program's source tree beside the user's own, which stays as it is. One of
them gets the change.

In a git checkout the trees are worktrees, and a change that is kept becomes a branch. Elsewhere
they are plain copies. The unchanged program is not built in the user's own tree, since both must be
built alike, and since the runs may write files."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

BRANCH = "weft-advise"
MOST_BYTES, MOST_FILES = 4 << 30, 200_000  # most bytes and files that are copied
# Build folders with these files contain the path of the tree. A build in a copy of such a folder
# would build in the user's tree.
BOUND = ("CMakeCache.txt", "meson-private")
FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "weft advise"), ("EMAIL", "weft-advise@localhost"))
}
Files = Mapping[Path, "tuple[str, str]"]  # text of each file before and after the change


class TreeError(Exception):
    """Raised if the trees cannot be made; the message says why."""


def free_name(is_taken: Callable[[str], bool], name: str) -> str:
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(one for one in names if not is_taken(one))


def is_bound(folder: Path) -> bool:
    return any((folder / name).exists() for name in BOUND)


class Trees(ABC):
    def __init__(self, root: Path, folder: Path, files: Files) -> None:
        self.root, self.folder, self.files = root, folder, files
        self.unchanged, self.changed = folder / "unchanged", folder / "changed"

    @abstractmethod
    def fill(self) -> None:
        """Fills both trees with the unchanged source."""

    @abstractmethod
    def keep(self, message: str) -> str:
        """Returns a sentence about where the change is and how to apply it."""

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def there(self, path: Path, tree: Path) -> Path:
        return tree / path.resolve().relative_to(self.root)

    def change(self) -> None:
        for path, (before, after) in self.files.items():
            target = self.there(path, self.changed)
            found = target.read_bytes() if target.is_file() else None
            if found != before.encode(errors="surrogateescape"):
                raise TreeError(f"the patch no longer applies: {path} has changed meanwhile")
            target.write_bytes(after.encode(errors="surrogateescape"))


class Copies(Trees):
    """Plain copies of a folder that is not in a git checkout."""

    is_kept = False

    def fill(self) -> None:
        self.check_size()
        for tree in (self.unchanged, self.changed):
            shutil.copytree(self.root, tree, symlinks=True, ignore=self.left_out)

    def check_size(self) -> None:
        size = 0
        for count, path in enumerate(self.root.rglob("*"), 1):
            size += path.lstat().st_size
            if size > MOST_BYTES or count > MOST_FILES:
                raise TreeError(
                    f"{self.root} is too large to be copied: make it a git checkout (git init), or"
                    " call weft advise in the folder of the program"
                )

    def left_out(self, folder: str, names: list[str]) -> list[str]:
        return [name for name in names if is_bound(Path(folder) / name)]

    def keep(self, message: str) -> str:
        self.is_kept = True
        return f"It is in {self.changed}, a copy of {self.root}."

    def remove(self) -> None:
        if self.is_kept:
            shutil.rmtree(self.unchanged, ignore_errors=True)
        else:
            super().remove()


class Checkout(Trees):
    """Worktrees of a git checkout."""

    base = ""  # the commit that contains the source as it is

    def git(self, *words: object, at: Path | None = None, **variables: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        # The user's git hooks must not run for Weft's own commits.
        command = ["git", "-C", at or self.root, "-c", "core.hooksPath=/dev/null", *words]
        done = subprocess.run(
            [str(word) for word in command],
            env={**kept, **variables},
            capture_output=True,
            text=True,
            errors="surrogateescape",
        )
        if done.returncode:
            said = next(iter(done.stderr.strip().splitlines()), "")
            raise TreeError(f"git {words[0]} ended with {done.returncode} ({said})")
        return done.stdout.strip("\n")

    def asked(self, *words: object) -> str:
        """Returns git's output; an empty string if git refuses."""
        with contextlib.suppress(TreeError):
            return self.git(*words)
        return ""

    def commit(self, tree: str, parent: str, message: str) -> str:
        who = {} if self.asked("var", "GIT_COMMITTER_IDENT") else NOBODY
        parents = ["-p", parent] if parent else []
        return self.git("commit-tree", tree, *parents, "-m", message, **who)

    def fill(self) -> None:
        self.base = self.as_it_is()
        for tree in (self.unchanged, self.changed):
            self.git("worktree", "add", "--detach", tree, self.base)
        others = self.git("ls-files", "-z", "--others", "--exclude-standard").split("\0")
        for name in filter(None, others):
            self.copy(name)

    def copy(self, name: str) -> None:
        """Copies a file that git does not track to both trees."""
        path = self.root / name
        if not path.is_file() or any(map(is_bound, path.parents)):
            return
        for tree in (self.unchanged, self.changed):
            target = tree / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)

    def as_it_is(self) -> str:
        """Returns a commit of all tracked files as they are in the user's tree. The user's index is
        left unchanged."""
        head = self.asked("rev-parse", "--verify", "HEAD")
        index = self.folder / "index"
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(self.root / self.git("rev-parse", "--git-path", "index"), index)
        own = {"GIT_INDEX_FILE": str(index)}
        self.git("add", "--update", **own)
        self.git("add", "--force", "--", *self.files, **own)
        tree = self.git("write-tree", **own)
        if head and tree == self.git("rev-parse", f"{head}^{{tree}}"):
            return head
        return self.commit(tree, head, "What was not committed when weft advise ran")

    def keep(self, message: str) -> str:
        paths = [self.there(path, self.changed) for path in self.files]
        self.git("add", "--", *paths, at=self.changed)
        tree = self.git("write-tree", at=self.changed)
        made = self.commit(tree, self.base, message)
        branch = free_name(lambda n: bool(self.asked("rev-parse", f"refs/heads/{n}")), BRANCH)
        self.git("branch", branch, made)
        return (
            f"It is on the branch {branch}. To take it over: git show {branch} |"
            f" git -C {self.root} apply"
        )

    def remove(self) -> None:
        for tree in (self.unchanged, self.changed):
            self.asked("worktree", "remove", "--force", tree)
        super().remove()


@contextlib.contextmanager
def beside(root: Path, files: Files) -> Iterator[Trees]:
    """Makes both trees, and removes them at the end unless they are kept. Raises TreeError, with
    the reason, if that fails."""
    is_checkout = (root / ".git").exists() and shutil.which("git") is not None
    names = root.parent / f"{root.name}.weft-advise"
    folder = Path(free_name(os.path.lexists, str(names)))
    try:
        folder.mkdir()
    except OSError as error:
        raise TreeError(
            f"{folder}, where the program would be built, cannot be made ({error.strerror})"
        ) from None
    trees = (Checkout if is_checkout else Copies)(root, folder, files)
    try:
        trees.fill()
        yield trees
    except OSError as error:
        raise TreeError(f"{error.filename or folder}: {error.strerror}") from None
    finally:
        trees.remove()
