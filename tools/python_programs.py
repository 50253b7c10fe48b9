"""Python programs that call MPI by mpi4py, at the versions that were measured.

Each is a library of other authors, used as by its own users. The scripts in tools/drivers/ prepare
the input, call the library, and print what it has computed. The libraries come from Python's
registry into an environment below .deps/real-programs, and run under the embedded MPICH. PyTorch is
Debian's, and Heat runs under Debian's Open MPI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import debian_open_mpi
from debian_programs import PLACE, SYSTEM, Missing, Program

from weft.system import mpi_libraries

DRIVERS = Path(__file__).resolve().parent / "drivers"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class PythonProgram(Program):
    """A Python program whose script prints `result NAME VALUE` and `seconds VALUE`."""

    driver: str = ""
    requirements: tuple[str, ...] = ()
    # These requirements are built from source when the others are installed.
    built: tuple[str, ...] = ()
    arguments: tuple[object, ...] = ()
    short_arguments: tuple[object, ...] = ()

    def fetch(self, source: Path | None = None) -> None:
        self.run(sys.executable, "-m", "venv", "--clear", PLACE / self.name)
        pip = PLACE / self.name / "bin/pip", "install", "--quiet"
        self.run(*pip, *self.requirements)
        if self.built:
            building = self.building()
            self.run(*pip, "--no-build-isolation", *self.built, environment=building)
        self.stamp.touch()

    def building(self) -> dict[str, str]:
        """Returns the variables that the build needs in addition."""
        return {}

    def run(self, *words: object, environment: dict[str, str] | None = None) -> None:
        command = [str(word) for word in words]
        settings = os.environ | (environment or {})
        done = subprocess.run(command, capture_output=True, text=True, env=settings)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise Missing(f"{self.name} could not be fetched: {' '.join(command[:3])}: {last}")

    def mpi(self) -> mpi_libraries.Implementation:
        found = mpi_libraries.implementation("mpich")
        if not found.mpiexec.exists():
            raise Missing(f"{self.name} is left out: it needs the embedded MPICH; make demo")
        return found

    def environment(self) -> dict[str, str]:
        return self.mpi().environment() | ONE_THREAD

    def interpreter(self) -> Path:
        return self.path()

    def command(self, directory: Path, ranks: int, short: bool) -> Sequence[object]:
        numbers = self.short_arguments if short else self.arguments
        return [self.interpreter(), DRIVERS / self.driver, *numbers]

    def results(self, directory: Path, output: str) -> dict[str, float]:
        found = re.findall(r"^result (\S+) (\S+)$", output, re.MULTILINE)
        return {name: float(value) for name, value in found}

    def seconds(self, directory: Path, output: str) -> float:
        return float(re.search(r"^seconds (\S+)", output, re.MULTILINE)[1])


class Torch(PythonProgram):
    """A program that runs with Debian's PyTorch, since the one in Python's registry has several
    gigabytes."""

    def with_torch(self, *modules: Path, first: Sequence[Path] = ()) -> dict[str, str]:
        """Returns the environment with Debian's PyTorch. `modules` has further folders of modules,
        and `first` folders of libraries that precede Debian's."""
        found = debian_open_mpi.environment(PLACE, *first)
        libraries = [found.get("LD_LIBRARY_PATH"), str(PLACE / "usr/lib")]
        paths = [*modules, PLACE / "usr/lib/python3/dist-packages"]
        return found | {
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }


class Heat(Torch):
    """Heat, installed without its dependencies, which are Debian's packages."""

    def fetch(self, source: Path | None = None) -> None:
        Program.fetch(self, source)

    def build(self, source: Path | None) -> None:
        target = PLACE / self.file
        where = ["--no-deps", "--target", target.parent, "--upgrade"]
        self.run(sys.executable, "-m", "pip", "install", "--quiet", *where, *self.requirements)

    def mpi(self) -> mpi_libraries.Implementation:
        return Program.mpi(self)

    def interpreter(self) -> Path:
        return next(p for r in (PLACE, SYSTEM) if (p := r / "usr/bin/python3").exists())

    def environment(self) -> dict[str, str]:
        return self.with_torch((PLACE / self.file).parent) | ONE_THREAD


class Horovod(Torch):
    """Horovod, built from source for PyTorch and MPI only."""

    PARTS = ("MPI", "PYTORCH"), ("GLOO", "TENSORFLOW", "MXNET", "NVTX")

    def fetch(self, source: Path | None = None) -> None:
        Program.fetch(self, source)
        self.stamp.unlink()
        super().fetch(source)

    def environment(self) -> dict[str, str]:
        # Debian's libfabric may be too old for the embedded MPICH, so that the one in MPICH's
        # prefix comes first.
        prefix = self.mpi().prefix
        return self.with_torch(first=[prefix / "lib/mpich", prefix / "lib"]) | ONE_THREAD

    def building(self) -> dict[str, str]:
        wanted, unwanted = self.PARTS
        choice = {f"HOROVOD_WITH_{part}": "1" for part in wanted}
        choice |= {f"HOROVOD_WITHOUT_{part}": "1" for part in unwanted}
        headers = PLACE / "usr/include"
        python = headers / "python{}.{}".format(*sys.version_info)
        included = headers, python, headers / "torch/csrc/api/include"
        libraries = [str(folder) for folder in PLACE.glob("usr/lib/*-linux-gnu*")]
        programs = [str(self.mpi().prefix / "bin"), str(Path(sys.executable).parent)]
        return {
            **self.environment(),
            **choice,
            "CXXFLAGS": " ".join(["-w", *(f"-I{folder}" for folder in included)]),
            "LDFLAGS": " ".join(
                ["-Wl,--allow-shlib-undefined", *(f"-L{folder}" for folder in libraries)]
            ),
            "LIBRARY_PATH": os.pathsep.join(libraries),
            "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
        }


PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Heat(
            "heat",
            ("python3-torch", "python3-torchvision", "python3-scipy", "python3-mpi4py"),
            "heat/heat",
            driver="train_by_heat.py",
            rate="1gbit",
            sums=False,
            requirements=("heat==1.3.1",),
            arguments=(1024, 16, 40),
            short_arguments=(64, 4, 5),
        ),
        Horovod(
            "horovod",
            ("python3-torch", "libtorch-dev", "pybind11-dev", "python3-yaml", "python3-dev"),
            "horovod/bin/python",
            driver="train_by_horovod.py",
            rate="1gbit",
            sums=False,
            requirements=("setuptools<66", "wheel", "packaging", "cloudpickle", "psutil"),
            built=("horovod==0.28.1",),
            arguments=(3072, 2, 20),
            short_arguments=(64, 4, 5),
        ),
        PythonProgram(
            "chainermn",
            (),
            "chainermn/bin/python",
            driver="train_by_chainermn.py",
            rate="1gbit",
            sums=False,
            requirements=(
                "setuptools<66",
                "wheel",
                "mpi4py==4.1.2",
                "numpy==1.23.5",
                "protobuf==3.20.3",
                "typing_extensions",
                "six",
                "filelock",
            ),
            built=("chainer==7.8.1",),
            arguments=(1024, 16, 40),
            short_arguments=(64, 4, 5),
        ),
        PythonProgram(
            "pylops-mpi",
            (),
            "pylops-mpi/bin/python",
            driver="restore_image.py",
            rate="1gbit",
            sums=False,
            requirements=(
                "mpi4py==4.1.2",
                "numpy==2.4.6",
                "scipy==1.17.1",
                "pylops==2.8.0",
                "pylops-mpi==0.8.0",
            ),
            arguments=(1024, 2, 10),
            short_arguments=(64, 2, 5),
        ),
        PythonProgram(
            "litebird_sim",
            (),
            "litebird_sim/bin/python",
            driver="map_sky.py",
            rate="1gbit",
            sums=False,
            requirements=("mpi4py==4.1.2", "numpy==2.4.6", "litebird_sim==0.18.0"),
            arguments=(128, 0.25, 60),
            short_arguments=(8, 0.1, 3),
        ),
    )
}
