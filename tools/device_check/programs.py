"""The programs that are measured, and MPICH. The programs are built here, or copied from another
machine."""

from __future__ import annotations

import hashlib
import os
import platform
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
SOURCE_FOLDERS = ("api", "bench", "cmake", "include", "kernels", "src", "tests/device", "tests/mpi")
MPICH = ROOT / ".mpi" / "mpich"
PACKAGES = ("libhwloc-dev", "libhwloc15", "libcli11-dev", "nlohmann-json3-dev", "libgtest-dev")
KERNELS = {  # sizes of problems that the ranks of one node share
    "stencil": "--grid 128x128x128",
    "pipecg": "--grid 100x100x100 --method pipelined --tolerance 1e-2",
    "fft3d": "--grid 128x128x128",
    "cpals": "--dimensions 3000x2000x1500 --entries 1000000 --rank 16 --iterations 2",
    "atmosphere": "--truncation 128 --steps 1",
}
PROGRAMS = ("weft", "weft_interpose_mpich", "weft-cores")
PROGRAMS += ("overlap_mpich", "latency_mpich", "steps_mpich")
PROGRAMS += tuple(f"{name}_mpich" for name in KERNELS)
GPU_PROGRAMS = ("gpu_streams", "gpu_stencil", "gpu_notify", "gpu_allreduce", "gpu_fft3d")
CARRIED_TARGETS = (
    *PROGRAMS,
    *(f"{name}_mpich" for name in GPU_PROGRAMS),
)


def call(*command: object, **options) -> None:
    subprocess.run([str(word) for word in command], check=True, **options)


def prepare() -> None:
    CARRIED.mkdir(exist_ok=True)
    pinned = ROOT / "tools" / "requirements" / "mpich.txt"
    call(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", CARRIED, "-r", pinned)
    with tempfile.TemporaryDirectory() as archives:
        call("apt-get", "download", "-qq", *PACKAGES, cwd=archives)
        for archive in Path(archives).glob("*.deb"):
            call("dpkg", "-x", archive, CARRIED)
    carry_programs()
    megabytes = sum(path.lstat().st_size for path in CARRIED.rglob("*")) >> 20
    print(f"carry along: {CARRIED.name} ({megabytes} MiB)")


def carry_programs() -> None:
    """Copies the programs of build/ without debug information into the folder that is taken to the
    other machine."""
    call("cmake", "--build", BUILT, "--target", *CARRIED_TARGETS, stdout=subprocess.DEVNULL)
    programs = [BUILT / "bin" / "weft-cores"]
    names = (*GPU_PROGRAMS, *KERNELS, "overlap", "latency", "steps")
    programs += [BUILT / "bin" / "mpich" / name for name in names]
    libraries = [BUILT / "lib" / f"lib{name}-mpich.so" for name in ("weft", "weft-gpu")]
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


def sources() -> str:
    """Returns a checksum of all sources from which the programs are built."""
    known = hashlib.sha256()
    for folder in SOURCE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".cc", ".cu", ".h", ".in", ".map", ".txt"):
                known.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return known.hexdigest()


def install_mpich() -> None:
    """Installs MPICH by unpacking its wheel, since the files in it need no further installation."""
    # tools/make-venv creates the same file at the end of an installation.
    whole = MPICH / ".installed"
    if whole.exists():
        return
    wheels = list(CARRIED.glob("mpich-*.whl"))
    if not wheels:
        sys.exit(
            f"device-check: no MPICH in {CARRIED.name}/: run tools/device-check --prepare first"
        )
    with tempfile.TemporaryDirectory() as directory, ZipFile(wheels[0]) as wheel:
        wheel.extractall(directory)
        for data in Path(directory).glob("mpich-*.data/data"):
            shutil.copytree(data, MPICH, dirs_exist_ok=True)
    for program in (MPICH / "bin").iterdir():
        program.chmod(0o755)
    whole.touch()


def carried_programs_run() -> bool:
    """Returns whether the copied programs were built from this source and find all their libraries
    on this machine."""
    paths = [path for path in CARRIED_PROGRAMS.rglob("*") if path.is_file()]
    if paths and (not SOURCES_MARK.exists() or SOURCES_MARK.read_text() != sources()):
        print("the programs that were carried along are of another source")
        return False
    for path in paths:
        told = subprocess.run(["ldd", path], env=environment(), capture_output=True, text=True)
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


def environment(**variables: str) -> dict[str, str]:
    """Returns the environment of mpiexec, in which programs find the libraries that --prepare
    unpacked. CUDA's libraries may come from Python packages."""
    libraries = [MPICH / "lib", BUILD / "lib", CARRIED_PROGRAMS / "lib"]
    libraries.append(CARRIED / "usr" / "lib" / f"{platform.machine()}-linux-gnu")
    libraries += [path for place in sys.path for path in Path(place).glob("nvidia/*/lib")]
    paths = ":".join([*map(str, libraries), os.environ.get("LD_LIBRARY_PATH", "")])
    return {**os.environ, **variables, "LD_LIBRARY_PATH": paths}
