"""Runs random programs with Weft's libraries built with a sanitizer.

    tools/sanitize                       # builds both, and runs what CI runs
    cmake --build build-asan --target weft_interpose_openmpi
    python tests/random/sanitize.py address --mpi openmpi --engine thread --programs 100

`address` includes undefined behaviour. Only Weft is instrumented, and neither the MPI library nor
the programs. Findings of the sanitizer are printed, and the exit status is then not 0. `thread
--planted` shows that a race would be found: it hides Weft's mutexes from the sanitizer."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from shrink import Setting

from weft.system import installation, mpi_libraries

BUILDS = {"address": "build-asan", "thread": "build-tsan"}
RUNTIMES = {"address": "libasan.so", "thread": "libtsan.so"}
# The programs handle signals, and print their seed. The library that is loaded first is Weft's, not
# the sanitizer's.
COMMON = "handle_segv=0:handle_abort=0:exitcode=66"
OPTIONS = {
    "address": f"ASAN_OPTIONS={COMMON}:verify_asan_link_order=0",
    # Races between the MPI library's own threads are ignored.
    "thread": f"TSAN_OPTIONS={COMMON}:ignore_noninstrumented_modules=1:report_signal_unsafe=0",
}
# These settings avoid problems of the thread sanitizer. UCX intercepts each madvise, which glibc
# calls in threads that have already ended for the sanitizer. PMIx maps memory at addresses of its
# own choice. Addresses in another process (process_vm_readv) are taken for addresses in this one.
VARIABLES = {
    "address": {"UBSAN_OPTIONS": "print_stacktrace=1"},
    "thread": {
        "UCX_MEM_MMAP_HOOK_MODE": "none",
        "UCX_TLS": "^cma",
        "OMPI_MCA_smsc": "^cma",
        "PMIX_MCA_gds": "hash",
    },
}
# Open MPI itself leaks. MPICH does not, so that every leak found there is Weft's. With tcc,
# however, Weft's communicators are not freed at the end (Communicators::free_all).
LEAKS = {"mpich": "detect_leaks=1", "openmpi": "detect_leaks=0"}


def library(sanitizer: str, mpi: str) -> Path:
    """Returns the path of Weft's library as built with the sanitizer. It need not exist."""
    family = mpi_libraries.FAMILY[mpi]
    return installation.ROOT / BUILDS[sanitizer] / "lib" / f"libweft-{family}.so"


def runtime(sanitizer: str) -> str:
    """Returns the sanitizer's runtime library, which must be loaded when the process starts."""
    command = ["cc", f"-print-file-name={RUNTIMES[sanitizer]}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def planted_race(directory: Path) -> str:
    """Compiles a library that hides Weft's mutexes from the thread sanitizer, and returns its
    path."""
    library = directory / "libplanted-race.so"
    source = Path(__file__).with_name("planted_race.c")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    return str(library)


def setting(
    sanitizer: str, mpi: str, ranks: int, engine: str, limit_s: int = 120, before: str = "", **more
) -> Setting:
    """Returns the setting for a sanitizer. `before`: a library that is loaded before the
    sanitizer's. `more`: fields of Setting."""
    options = OPTIONS[sanitizer]
    if sanitizer == "address":
        options += f":{'detect_leaks=0' if engine.startswith('tcc') else LEAKS[mpi]}"
    loader = ["env", f"LD_PRELOAD={before}:{runtime(sanitizer)}", options]
    if sanitizer == "thread":
        # The sanitizer needs a fixed layout of the address space.
        loader = ["setarch", "-R", *loader]
    weft = installation.ROOT / BUILDS[sanitizer] / "bin" / "weft"
    variables = VARIABLES[sanitizer]
    return Setting(
        mpi, ranks, engine, limit_s, variables=variables, loader=tuple(loader), weft=weft, **more
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sanitizer", choices=BUILDS)
    parser.add_argument("--mpi", choices=LEAKS, default="mpich")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--engine", default="thread", help="with more options of weft run, if any")
    parser.add_argument("--nodes", default="", help="of MPICH: ranks on hosts, such as a:2,b:1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=20, help="seeds from --seed on")
    parser.add_argument("--planted", action="store_true", help="with a race that must be found")
    words = parser.parse_args()
    if not library(words.sanitizer, words.mpi).exists():
        raise SystemExit(f"{library(words.sanitizer, words.mpi)} is not built:\n\n{__doc__}")
    programs = ("--seed", words.seed, "--programs", words.programs)
    with tempfile.TemporaryDirectory() as directory:
        before = planted_race(Path(directory)) if words.planted else ""
        place = (words.sanitizer, words.mpi, words.ranks, words.engine)
        done = setting(*place, nodes=words.nodes, before=before).run(*programs)
    print(done.stdout, end="")
    raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
