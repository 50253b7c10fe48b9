"""MPI programs that no package registry has. Each is built from a source tree that the user has
fetched."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import ClassVar

from debian_programs import PLACE, SYSTEM, Missing, Program


class Decomp2d(Program):
    """An example of NAG's 2DECOMP&FFT: 3-D transforms of many grids. MPI_Ialltoall transposes one
    grid while the next one is transformed.

    The original calls MPI_Test five times after each 1-D transform, so that the library makes
    progress. These calls are removed here, as most programs have none."""

    SOURCE = "https://github.com/numericalalgorithmsgroup/2decomp_fft"
    EXAMPLE = "examples/non_blocking/non_blocking.f90"
    # The example contains its sizes and its number of ranks as constants, which are replaced by
    # these.
    CONSTANTS: ClassVar = {
        "nx=16, ny=16, nz=16": "nx=64, ny=64, nz=64",
        "p_row=2, p_col=2": "p_row=1, p_col=2",
        "NFFT=20 ": "NFFT=200 ",
        "NTEST=5 ": "NTEST=0 ",
        "FFTW_MEASURE": "FFTW_ESTIMATE",  # with FFTW_ESTIMATE each run chooses the same algorithm
    }
    OPTIONS = ("-O3", "-cpp", "-fcray-pointer", "-w", "-fallow-argument-mismatch")
    DEFINES = ("-DDOUBLE_PREC", "-DEVEN")
    LIBRARIES = (
        "-Wl,--allow-shlib-undefined",
        "-lmpi_usempi_ignore_tkr",
        "-lmpi_mpifh",
        "-l:libmpi.so.40",
        "-lfftw3",
    )

    def build(self, source: Path | None) -> None:
        if source is None:
            raise Missing(
                f"{self.name} is left out: no package has it; git clone {self.SOURCE} DIRECTORY,"
                f" then tools/real-programs {self.name} --source DIRECTORY"
            )
        example = source / self.EXAMPLE
        if not example.exists():
            raise Missing(f"{self.name} is left out: {source} has no {self.EXAMPLE}")
        text = example.read_text()
        for found, wanted in self.CONSTANTS.items():
            if found not in text:
                raise Missing(f"{self.name} is left out: {example} has no '{found.strip()}'")
            text = text.replace(found, wanted)
        program = PLACE / self.file
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=PLACE) as directory:
            changed = Path(directory) / "non_blocking.f90"
            changed.write_text(text)
            words = ["gfortran", *self.OPTIONS, *self.DEFINES, *self.flags(source)]
            words += [source / "src/decomp_2d.f90", changed, "-o", program, *self.LIBRARIES]
            done = subprocess.run(
                [str(word) for word in words], cwd=directory, capture_output=True, text=True
            )
        if done.returncode != 0:
            raise Missing(f"{self.name} could not be built: {self.first_error(done.stderr)}")

    @staticmethod
    def first_error(said: str) -> str:
        lines = said.strip().splitlines()
        return next((line for line in lines if "rror" in line or "cannot" in line), lines[-1])

    @staticmethod
    def flags(source: Path) -> list[str]:
        """Returns compiler options for Debian's headers, module files and libraries, whether
        unpacked or installed."""
        found = [f"-I{source / 'src'}"]
        for root in (PLACE, SYSTEM):
            found += [f"-I{root / 'usr/include'}"]
            for directory in root.glob("usr/lib/*-linux-gnu*"):
                headers = [directory / "openmpi/include"]
                headers += directory.glob("fortran/gfortran-mod-*/openmpi")
                found += [*(f"-I{path}" for path in headers), f"-L{directory}"]
        return found

    def command(self, directory, ranks, short):
        return [self.path()]

    def results(self, directory, output):
        found = {}
        for grid, values in re.findall(r"^ *TEST +(\d+)((?:\s+\([^)]*\))+)", output, re.MULTILINE):
            for index, value in enumerate(re.findall(r"[-+\d.E]+", values)):
                found[f"grid {grid}, value {index}"] = float(value)
        return found

    def seconds(self, directory, output):
        return float(re.search(r"Average Forward FFT Time\(sec\): +(\S+)", output)[1])


PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Decomp2d(
            "2decomp",
            ("libopenmpi-dev", "libfftw3-dev"),
            "2decomp/non_blocking",
            rate="1gbit",
            sums=False,
        ),
    )
}
