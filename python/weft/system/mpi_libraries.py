"""Finds the MPI libraries for Weft's commands, and knows how jobs start with each.

The command line, the lab, the demo and the tests all use this module, so that they use the same
libraries. It searches in this order: below .mpi/ in the source tree, in the Python environment of
Weft (`pip install mpich`), and in PATH and the variables of loaded modules, which includes packages
of the distribution. The first library found is the default."""

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
# Debian gives the launchers of each library these names, besides the one that the administrator has
# chosen.
PACKAGED_LAUNCHERS = ("mpiexec.mpich", "mpiexec.openmpi")
# These are the names of the library's file. Debian's MPICH has a name of its own.
FILES = {"mpich": ("libmpi.so.12", "libmpich.so.12"), "openmpi": ("libmpi.so.40", "libmpi.so")}
LIBRARY_PLACES = (
    *("lib", "lib64", "lib/release", "lib64/release", "lib/*-linux-gnu"),
    *("lib/*-linux-gnu/mpich/lib", "lib/*-linux-gnu/openmpi/lib"),
)
# Modules set these variables to folders. The Python environment and PATH are searched first.
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
    """Raised if there is no such MPI library; the message says what was searched, or what to do."""


@dataclass(frozen=True)
class Implementation:
    """An MPI library. If it is not installed, it has no library file."""

    name: str
    prefix: Path
    mpiexec: Path
    library: Path | None = None  # file of libmpi.so.12 or libmpi.so.40, which may have another name
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
        """Returns the words that start this number of ranks on this machine, which may exceed the
        number of cores."""
        if not self.mpiexec.exists() and shutil.which("srun"):
            return ["srun", "-n", str(ranks)]
        return [str(self.mpiexec), "-n", str(ranks), *self.unbound()]

    def unbound(self) -> list[str]:
        """Returns the options for mpiexec to start any number of ranks, each on any core."""
        if self.name != "openmpi":
            return []
        return ["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]

    def program(self, name: str) -> Path:
        """Returns the path of a measuring program that was compiled for this MPI library, or for
        another one of its ABI."""
        own = installation.mpi_program(self.name, name)
        return own if own.exists() else installation.mpi_program(self.family, name)

    def environment(self) -> dict[str, str]:
        """Returns the variables that its mpiexec and programs need in addition."""
        found = {}
        if self.library:
            before = os.environ.get("LD_LIBRARY_PATH")
            paths = [*map(str, loader_directories(self)), *([before] if before else [])]
            found["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
        # In the lab every user is root, in a user namespace.
        if self.name == "openmpi":
            names = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
            found |= {name + end: "1" for name in names for end in ("", "_CONFIRM")}
        if self.name == "intelmpi":
            found["I_MPI_ROOT"] = str(self.prefix)
        return found


def implementation(word: str) -> Implementation:
    """Returns the first library of a kind, or the one at a prefix or of an mpiexec.

    If there is none of the kind, returns the one that would be below .mpi/. Raises MpiError if the
    word is neither a kind nor a path."""
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
    """Returns all installed libraries in the order of the search, each once."""
    return list(search())


def default() -> Implementation:
    """Returns the first library for which measuring programs exist, or else the first library.
    Raises MpiError if there is none."""
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
    """Returns the checked words of `--mpi a,b`, or the default without a text. Libraries that are
    not installed may be among them. Raises MpiError for unknown words."""
    if not text:
        return [default().name]
    found = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in found:
        implementation(word)
    return found


def make_target(name: str) -> str:
    """Returns the command that installs an MPI library."""
    if installation.SOURCE:
        return "make build" if name == "mpich" else "make mpis"
    if sys.prefix != sys.base_prefix:
        return f"{sys.executable} -m pip install {PYTHON_PACKAGES[name]}"
    if name in DEBIAN_PACKAGES and shutil.which("apt-get"):
        sudo = "" if os.geteuid() == 0 else "sudo "
        return f"{sudo}apt-get install {DEBIAN_PACKAGES[name]}"
    return f"module load {name}, or as the cluster's manual says"


# ---- Search -----------------------------------------------------------------------------------


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
            continue  # the set-up of this library was interrupted
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
    """Yields libraries of loaded modules and of the system, and those that Debian installs beside
    the chosen one."""
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
    """Returns the library of a prefix; None if there is none. It may lack a launcher if jobs are
    only started by srun."""
    if launcher := launcher_below(prefix):
        return at_launcher(launcher, where)
    for family in FILES:
        if library := library_below(prefix, family):
            return Implementation(family, prefix, prefix / "bin" / "mpiexec", library, where)
    return None


def at_launcher(path: Path, where: str) -> Implementation | None:
    """Returns the library to which a launcher belongs; None if that is not known."""
    real = path.resolve()
    prefixes = list(dict.fromkeys(file.parent.parent for file in (path, real)))
    for name in kinds_of(path, prefixes):
        library = library_of(name, path, prefixes)
        if library:
            prefix = next((p for p in prefixes if p in library.parents), prefixes[0])
            return Implementation(name, prefix, path, library, where)
    return None


def launcher_below(prefix: Path) -> Path | None:
    """Returns the launcher below a prefix; None if there is none. mpiexec.hydra is preferred, since
    Intel's mpiexec may be another launcher."""
    for name in ("mpiexec.hydra", "mpiexec", "mpirun"):
        for directory in ("bin", "intel64/bin"):
            if is_program(prefix / directory / name):
                return prefix / directory / name
    return None


def kinds_of(path: Path, prefixes: list[Path]) -> tuple[str, ...]:
    """Returns the kinds of library to which a launcher may belong. If it prints no version, its
    library is searched for each kind."""
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
    """Returns the output of a command; an empty string if it cannot be run."""
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
    """Returns the library's file beside the launcher, or else the one to which the compiler wrapper
    links programs; None if there is none."""
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
        # The link libmpi.so of Open MPI may point into another folder, which has the file with the
        # numbered name.
        numbered = path.resolve().parent / FAMILY_LIBRARY[family]
        if name == "libmpi.so" and not numbered.exists():
            continue
        return numbered if name == "libmpi.so" else path
    return None


def loader_directories(mpi: Implementation) -> list[Path]:
    """Returns the folders in which programs of the ABI find the library and those on which it
    depends.

    A system folder is not returned, since all its libraries would come before those of loaded
    modules. A folder with a link to the library replaces it. The same is done for a library with an
    unusual file name."""
    directory = mpi.library.parent
    usual = mpi.library.name == FAMILY_LIBRARY[mpi.family]
    ordinary = [] if SYSTEM_DIRECTORIES.fullmatch(str(directory.resolve())) else [directory]
    companions = (mpi.prefix / "opt/mpi/libfabric/lib", mpi.prefix / "libfabric/lib")
    found = [*ordinary, *(path for path in companions if path.is_dir())]
    return found if usual and ordinary else [directory_of_link(mpi), *found]


def directory_of_link(mpi: Implementation) -> Path:
    """Returns a folder with a link to the library. It is in the user's cache, which nodes of a
    cluster share if they share the home directory."""
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
    # The cache is not writable. Only programs that look for the library's own file name find it.
    except OSError:
        return mpi.library.parent
    return directory
