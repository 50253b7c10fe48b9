"""The MPI libraries that Weft's commands use: where each lies, how its jobs start.

Why one place: the command line, the lab, the demo and the tests must all mean the same libraries.
Looked for in this order: below .mpi/ in the source tree, in the Python environment that Weft is
installed in (`pip install mpich`), in PATH and the variables of loaded modules, which includes what
a distribution packages. The first one found is the default.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from weft.system import installation

# Variable WEFT_MPI_DIR: the folder of embedded MPI libraries, if it is not .mpi/.
MPI_DIR = Path(os.environ.get("WEFT_MPI_DIR", installation.ROOT / ".mpi"))
IMPLEMENTATIONS = ("mpich", "openmpi", "intelmpi")
FAMILY = {"mpich": "mpich", "intelmpi": "mpich", "openmpi": "openmpi"}
FAMILY_LIBRARY = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}

LAUNCHERS = ("mpiexec", "mpiexec.hydra", "mpirun")
# Debian's names for each library's launcher, beside the one that the administrator chose.
PACKAGED_LAUNCHERS = ("mpiexec.mpich", "mpiexec.openmpi")
# Names of the library's file: Debian's MPICH has one of its own.
FILES = {"mpich": ("libmpi.so.12", "libmpich.so.12"), "openmpi": ("libmpi.so.40", "libmpi.so")}
LIBRARY_PLACES = (
    *("lib", "lib64", "lib/release", "lib64/release", "lib/*-linux-gnu"),
    *("lib/*-linux-gnu/mpich/lib", "lib/*-linux-gnu/openmpi/lib"),
)
# Directories that modules name; the Python environment and PATH come first.
MODULE_VARIABLES = (
    *("I_MPI_ROOT", "MPI_HOME", "MPI_ROOT", "MPICH_DIR", "CRAY_MPICH_DIR"),
    *("EBROOTMPICH", "EBROOTOPENMPI", "EBROOTIMPI", "EBROOTMVAPICH2", "EBROOTPSMPI"),
)
OWN_ENVIRONMENT = "Weft's Python environment"
PYTHON_PACKAGES = {"mpich": "mpich", "openmpi": "openmpi", "intelmpi": "impi-rt"}
DEBIAN_PACKAGES = {"mpich": "mpich", "openmpi": "openmpi-bin"}
# Patterns of the output of `mpiexec --version`.
SAYS = (
    ("intelmpi", re.compile(r"Intel\(R\) MPI")),
    ("openmpi", re.compile(r"Open ?MPI|OpenRTE|PRRTE|prterun|orterun", re.IGNORECASE)),
    ("mpich", re.compile(r"HYDRA|MPICH|MVAPICH", re.IGNORECASE)),
)
VERSION_SECONDS = 20
SYSTEM_PREFIXES = {Path("/"), Path("/usr"), Path("/usr/local")}
SYSTEM_DIRECTORIES = re.compile(r"(/usr(/local)?)?/lib(64)?(/[^/]+-linux-gnu)?")


class MpiError(Exception):
    """There is no such MPI library; the message says what was looked for, or what to do."""


@dataclass(frozen=True)
class Implementation:
    """An MPI library. If it is not installed, it has no library file."""

    name: str
    prefix: Path
    mpiexec: Path
    library: Path | None = None  # libmpi.so.12 or libmpi.so.40, whatever its name is here
    where: str = ""  # how it was found

    @property
    def family(self) -> str:
        return FAMILY[self.name]

    @property
    def present(self) -> bool:
        return self.library is not None

    @property
    def version(self) -> str:
        """Returns its launcher's version; "" if it prints none."""
        found = re.search(r"\d+(\.\d+)+", said_by(self.mpiexec))
        return found[0] if found else ""

    def launcher(self, ranks: int) -> list[str]:
        """Starts so many ranks on this machine, also more than it has cores."""
        if not self.mpiexec.exists() and shutil.which("srun"):
            return ["srun", "-n", str(ranks)]
        return [str(self.mpiexec), "-n", str(ranks), *self.unbound()]

    def unbound(self) -> list[str]:
        """Returns the options for mpiexec to start any number of ranks, each on any core."""
        if self.name != "openmpi":
            return []
        return ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]

    def program(self, name: str) -> Path:
        """A measuring program, as compiled for this MPI library or another one of its ABI."""
        own = installation.mpi_program(self.name, name)
        return own if own.exists() else installation.mpi_program(self.family, name)

    def environment(self) -> dict[str, str]:
        """Returns the variables that its mpiexec and programs need in addition."""
        found = {}
        if self.library:
            before = os.environ.get("LD_LIBRARY_PATH")
            paths = [*map(str, loader_directories(self)), *([before] if before else [])]
            found["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
        # In the lab everybody is root, in a namespace of their own.
        if self.name == "openmpi":
            names = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
            found |= {name + end: "1" for name in names for end in ("", "_CONFIRM")}
        if self.name == "intelmpi":
            found["I_MPI_ROOT"] = str(self.prefix)
        return found


def implementation(word: str) -> Implementation:
    """The first library of a kind, or the one at a prefix or an mpiexec.

    Of a kind that is nowhere, what would be below .mpi/; MpiError if the word is neither.
    """
    if word in IMPLEMENTATIONS:
        there = (mpi for mpi in search() if mpi.name == word)
        own = MPI_DIR / word
        return next(there, Implementation(word, own, own / "bin" / "mpiexec"))
    path = word if "/" in word else shutil.which(word)
    if not path:
        choices = ", ".join(IMPLEMENTATIONS)
        raise MpiError(
            f"unknown MPI '{word}'; choose one of {choices}, or name a prefix or an mpiexec"
        )
    named = Path.cwd() / Path(path).expanduser()
    if named.is_dir():
        mpi = at_prefix(named.parent if named.name == "bin" else named, "named")
    else:
        mpi = at_launcher(named, "named") if is_program(named) else None
    if mpi is None:
        files = ", ".join(sorted({name for names in FILES.values() for name in names}))
        raise MpiError(
            f"{word} is no MPI library: looked for an mpiexec that says whose it is"
            f" (bin/{', bin/'.join(LAUNCHERS)}), and beside it, in lib or lib64, for {files}"
        )
    return mpi


def found() -> list[Implementation]:
    """All that are there, in the order in which they are looked for, each once."""
    return list(search())


def default() -> Implementation:
    """The first one whose measuring programs are there, else the first one."""
    first = None
    for mpi in search():
        if mpi.program("weft-probe").exists():
            return mpi
        first = first or mpi
    if first is None:
        raise MpiError(f"there is no MPI library here; get one with: {make_target('mpich')}")
    return first


def chosen(word: str | None) -> Implementation:
    """Returns the library for `--mpi WORD`; without a word the default. Raises MpiError if it is
    not installed."""
    if not word:
        return default()
    mpi = implementation(word)
    if not mpi.present:
        raise MpiError(f"{word} is not here; get it with: {make_target(word)}")
    return mpi


def words(text: str | None) -> list[str]:
    """`--mpi a,b`, each checked; without a word the default. What is not here may be among them."""
    if not text:
        return [default().name]
    found = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in found:
        implementation(word)
    return found


def make_target(name: str) -> str:
    """The command that brings an MPI library."""
    if installation.SOURCE:
        return "make build" if name == "mpich" else "make mpis"
    if sys.prefix != sys.base_prefix:
        return f"{sys.executable} -m pip install {PYTHON_PACKAGES[name]}"
    if name in DEBIAN_PACKAGES and shutil.which("apt-get"):
        sudo = "" if os.geteuid() == 0 else "sudo "
        return f"{sudo}apt-get install {DEBIAN_PACKAGES[name]}"
    return f"module load {name}, or as the cluster's manual says"


# ---- Looking for them -------------------------------------------------------------------------


def search() -> Iterator[Implementation]:
    seen: set[Path] = set()
    for mpi in chain(embedded(), in_environment(), in_path(), in_modules()):
        library = mpi.library.resolve()
        if library not in seen:
            seen.add(library)
            yield mpi


def embedded() -> Iterator[Implementation]:
    for name in IMPLEMENTATIONS:
        prefix = MPI_DIR / name
        if (prefix / "pyvenv.cfg").exists() and not (prefix / ".installed").exists():
            continue  # its set-up was interrupted
        library = library_below(prefix, FAMILY[name])
        mpiexec = launcher_below(prefix)
        if mpiexec and library:
            yield Implementation(name, prefix, mpiexec, library, "embedded")


def in_environment() -> Iterator[Implementation]:
    """Yields MPI libraries that pip installed: beside Weft, for one user or in an environment."""
    prefixes = [sys.prefix, *([site.getuserbase()] if site.ENABLE_USER_SITE else [])]
    for prefix in map(Path, prefixes):
        # MPI libraries in the system's own prefixes are found by PATH.
        launcher = None if prefix in SYSTEM_PREFIXES else launcher_below(prefix)
        if launcher and (mpi := at_launcher(launcher, OWN_ENVIRONMENT)):
            yield mpi


def in_path() -> Iterator[Implementation]:
    """A loaded module's, the system's, and what Debian keeps beside the one of its choice."""
    directories = [word for word in os.environ.get("PATH", "").split(os.pathsep) if word]
    for names in (LAUNCHERS, PACKAGED_LAUNCHERS):
        for directory in dict.fromkeys(directories):
            paths = [path for name in names if is_program(path := Path(directory, name))]
            found = [at_launcher(path, "PATH") for path in paths]
            if not paths and is_program(Path(directory, "mpicc")):
                found = [at_prefix(Path(directory).parent, "PATH")]
            yield from filter(None, found)


def in_modules() -> Iterator[Implementation]:
    for variable in MODULE_VARIABLES:
        prefix = os.environ.get(variable)
        if prefix and (mpi := at_prefix(Path(prefix), variable)):
            yield mpi


def is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def at_prefix(prefix: Path, where: str) -> Implementation | None:
    """The library of a prefix; where jobs start by srun alone, it may have no launcher."""
    if launcher := launcher_below(prefix):
        return at_launcher(launcher, where)
    for family in FILES:
        if library := library_below(prefix, family):
            return Implementation(family, prefix, prefix / "bin" / "mpiexec", library, where)
    return None


def at_launcher(path: Path, where: str) -> Implementation | None:
    """The library whose launcher this is; None if that cannot be told."""
    real = path.resolve()
    prefixes = list(dict.fromkeys(file.parent.parent for file in (path, real)))
    for name in kinds_of(path, prefixes):
        library = library_of(name, path, prefixes)
        if library:
            prefix = next((p for p in prefixes if p in library.parents), prefixes[0])
            return Implementation(name, prefix, path, library, where)
    return None


def launcher_below(prefix: Path) -> Path | None:
    """mpiexec.hydra where there is one: Intel's mpiexec may be another launcher."""
    for name in ("mpiexec.hydra", "mpiexec", "mpirun"):
        for directory in ("bin", "intel64/bin"):
            if is_program(prefix / directory / name):
                return prefix / directory / name
    return None


def kinds_of(path: Path, prefixes: list[Path]) -> tuple[str, ...]:
    """Returns the kinds that a launcher may be; one that prints nothing is judged by its
    library."""
    text = said_by(path)
    for name, says in SAYS:
        if says.search(text):
            return (name,)
    mine = path.name.startswith(("mpiexec", "mpirun"))
    return tuple(FILES) if mine and not set(prefixes) & SYSTEM_PREFIXES else ()


@functools.cache
def said_by(path: Path) -> str:
    """Returns the launcher's version output, preceded by its file's name."""
    return f"{path.resolve().name} {output_of([str(path), '--version'])}"


def output_of(command: list[str]) -> str:
    """Nothing where the command cannot be run."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        return f"{done.stdout}{done.stderr}"
    return ""


def library_of(name: str, path: Path, prefixes: list[Path]) -> Path | None:
    """Beside the launcher, else where its compiler links programs to."""
    family = FAMILY[name]
    for prefix in prefixes:
        if library := library_below(prefix, family):
            return library
    for compiler in (f"mpicc.{name}", "mpicc"):
        wrapper = path.parent / compiler
        if is_program(wrapper):
            words = output_of([str(wrapper), "-show"])
            for directory in re.findall(r"(?:^|\s)-L\"?([^\s\"]+)", words):
                if library := library_in(Path(directory), family):
                    return library
    return None


def library_below(prefix: Path, family: str) -> Path | None:
    for place in LIBRARY_PLACES:
        directories = prefix.glob(place) if "*" in place else [prefix / place]
        for directory in sorted(directories):
            if library := library_in(directory, family):
                return library
    return None


def library_in(directory: Path, family: str) -> Path | None:
    for name in FILES[family]:
        path = directory / name
        if not path.exists():
            continue
        # Open MPI's libmpi.so may be a link into another directory, where the numbered name is.
        numbered = path.resolve().parent / FAMILY_LIBRARY[family]
        if name == "libmpi.so" and not numbered.exists():
            continue
        return numbered if name == "libmpi.so" else path
    return None


def loader_directories(mpi: Implementation) -> list[Path]:
    """Directories in which programs of the ABI find the library, and its companions.

    A directory of the system is not named, since it would come before those of loaded modules for
    all libraries: a directory with a link to the one file stands for it; likewise for a library
    that has another name here.
    """
    directory = mpi.library.parent
    usual = mpi.library.name == FAMILY_LIBRARY[mpi.family]
    ordinary = [] if SYSTEM_DIRECTORIES.fullmatch(str(directory.resolve())) else [directory]
    companions = (mpi.prefix / "opt/mpi/libfabric/lib", mpi.prefix / "libfabric/lib")
    found = [*ordinary, *(path for path in companions if path.is_dir())]
    return found if usual and ordinary else [directory_of_link(mpi), *found]


def directory_of_link(mpi: Implementation) -> Path:
    """In the user's cache, which nodes of a cluster share like the home directory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    mark = hashlib.sha256(str(mpi.library).encode()).hexdigest()[:12]
    directory = cache / "weft" / "mpi" / mark
    link = directory / FAMILY_LIBRARY[mpi.family]
    try:
        if not link.is_symlink() or link.readlink() != mpi.library:
            directory.mkdir(parents=True, exist_ok=True)
            new = directory / f".{os.getpid()}"
            new.symlink_to(mpi.library)
            new.replace(link)
    except OSError:  # nowhere to write: only programs that look for this very name find it
        return mpi.library.parent
    return directory
