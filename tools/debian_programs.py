"""MPI programs of Debian's packages: how to fetch each, what input it gets, and how its output is
read.

tools/real-programs compares runs, and need not know the output of each program. The packages are
unpacked into .deps/real-programs, so that nothing else on the machine changes. Programs that the
system already has are used from there. Inputs are written here, or are part of the packages."""

from __future__ import annotations

import gzip
import re
import subprocess
import tempfile
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import debian_open_mpi

from weft.system import installation, mpi_libraries

PLACE = installation.ROOT / ".deps" / "real-programs"
SYSTEM = Path("/")


class Missing(Exception):
    """Raised if a program is missing; the message has the command that installs it."""


@dataclass(frozen=True)
class Program(ABC):
    """A program that can be fetched and run. `file` is a path below the root, which exists if the
    packages are installed."""

    name: str
    packages: tuple[str, ...]
    file: str
    in_lab: bool = True
    rate: str = "200mbit"  # rate of the lab's links
    sums: bool = True  # the order of summation changes its results

    @property
    def stamp(self) -> Path:
        """Returns the file that exists if the program and all its dependencies were unpacked."""
        return PLACE / f".{self.name}"

    def path(self) -> Path:
        for root in (PLACE, SYSTEM):
            found = next(root.glob(self.file), None)
            if found and (root != PLACE or self.stamp.exists()):
                return found
        raise Missing(
            f"{self.name} is left out: it is not here; tools/real-programs {self.name} --fetch, or"
            f" apt-get install {' '.join(self.packages)}, brings it"
        )

    def root(self) -> Path:
        return PLACE if PLACE in self.path().parents else SYSTEM

    def fetch(self, source: Path | None = None) -> None:
        """Unpacks the program's packages and the launcher of Open MPI, and builds what no package
        has. Raises Missing if that fails."""
        try:
            unpack(self.packages)
        except (OSError, subprocess.CalledProcessError, Missing) as error:
            raise Missing(f"{self.name} could not be fetched: {error}") from None
        self.build(source)
        self.stamp.touch()

    def build(self, source: Path | None) -> None:  # noqa: B027
        """Builds the program from a source that no package has. Programs of packages need no
        build."""

    def environment(self) -> dict[str, str]:
        """Returns the variables that the program and its launcher need in addition."""
        return debian_open_mpi.environment(PLACE)

    def mpi(self) -> mpi_libraries.Implementation:
        """Returns the MPI library to which the program is linked. This process must have the
        variables of environment()."""
        return open_mpi()

    @abstractmethod
    def command(self, directory: Path, ranks: int, short: bool) -> list[object]:
        """Writes the input into the directory in which the program runs, and returns its
        command."""

    @abstractmethod
    def results(self, directory: Path, output: str) -> dict[str, float]:
        """Returns the computed numbers by name."""

    @abstractmethod
    def seconds(self, directory: Path, output: str) -> float:
        """Returns the time that the program reports, without start and end."""


class Lammps(Program):
    """A Lennard-Jones liquid that melts. The thermostat takes the temperature from a sum over all
    ranks, so that each step depends on the collectives of earlier steps."""

    INPUT = """\
        units lj
        lattice fcc 0.8442
        region box block 0 {cells} 0 {cells} 0 {cells}
        create_box 1 box
        create_atoms 1 box
        mass 1 1.0
        velocity all create 3.0 87287 loop geom
        pair_style lj/cut 2.5
        pair_coeff 1 1 1.0 1.0 2.5
        neighbor 0.3 bin
        neigh_modify delay 0 every 5 check yes
        fix 1 all nvt temp 3.0 1.5 0.1
        compute moved all msd
        thermo_style custom step temp pe ke etotal press c_moved[4]
        thermo_modify norm no format float %.17g
        thermo {every}
        run {steps}
        """

    def command(self, directory, ranks, short):
        cells, steps = (6, 40) if short else (10, 200)
        text = textwrap.dedent(self.INPUT).format(cells=cells, steps=steps, every=steps // 20)
        (directory / "melt.in").write_text(text)
        return [self.path(), "-in", "melt.in", "-log", "none"]

    def results(self, directory, output):
        table = re.search(r"^ *Step(.*)\n((?: *\d+ [^\n]*\n)+)", output, re.MULTILINE)
        names = table[1].split()
        lines = (line.split() for line in table[2].splitlines())
        return {
            f"{name} of step {step}": float(value)
            for step, *values in lines
            for name, value in zip(names, values)
        }

    def seconds(self, directory, output):
        return float(re.search(r"^Loop time of (\S+)", output, re.MULTILINE)[1])


class PwX(Program):
    """The self-consistent field, forces and stress of two silicon atoms, one of which is
    displaced."""

    PSEUDOPOTENTIAL = "usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz"
    INPUT = """\
        &control
          calculation = 'scf', prefix = 'si', pseudo_dir = '.', outdir = '.'
          tprnfor = .true., tstress = .true.
        /
        &system
          ibrav = 2, celldm(1) = 10.2, nat = 2, ntyp = 1, ecutwfc = {cutoff}
        /
        &electrons
          conv_thr = 1.0d-10
        /
        ATOMIC_SPECIES
          Si 28.086 Si.UPF
        ATOMIC_POSITIONS alat
          Si 0.00 0.00 0.00
          Si 0.26 0.25 0.25
        K_POINTS automatic
          {points} {points} {points} 1 1 1
        """

    def path(self):
        program = super().path()
        if not (PLACE / self.PSEUDOPOTENTIAL).exists():
            raise Missing(
                f"{self.name} is left out: its packages' examples, which have a pseudopotential,"
                f" are not in .deps; tools/real-programs {self.name} --fetch brings them"
            )
        return program

    def command(self, directory, ranks, short):
        cutoff, points = (12, 2) if short else (20, 3)
        text = textwrap.dedent(self.INPUT).format(cutoff=cutoff, points=points)
        (directory / "si.in").write_text(text)
        with gzip.open(PLACE / self.PSEUDOPOTENTIAL) as packed:
            (directory / "Si.UPF").write_bytes(packed.read())
        return [self.path(), "-in", "si.in"]

    @staticmethod
    def document(directory: Path) -> ElementTree.Element:
        return ElementTree.parse(directory / "si.save" / "data-file-schema.xml").getroot()

    def results(self, directory, output):
        def numbers(element: ElementTree.Element, name: str) -> Iterator[tuple[str, float]]:
            for index, word in enumerate((element.text or "").split()):
                if re.fullmatch(r"[-+]?\d[\d.]*([eE][-+]?\d+)?", word):
                    yield f"{name}[{index}]", float(word)
            for index, child in enumerate(element):
                yield from numbers(child, f"{name}/{child.tag}{index}")

        return dict(numbers(self.document(directory).find("output"), "output"))

    def seconds(self, directory, output):
        return float(self.document(directory).find("timing_info/total/wall").text)


class Petsc(Program):
    """Three Krylov methods with the five-point matrix of a square. cg and gmres wait for each sum.
    pipecg starts MPI_Iallreduce, and multiplies by the matrix before it waits."""

    SOURCE = """\
        import sys
        import time

        sys.path[:0] = {paths}
        import petsc4py

        petsc4py.init([])
        from petsc4py import PETSc

        side = {side}
        matrix = PETSc.Mat().createAIJ([side**2, side**2], nnz=5)
        for row in range(*matrix.getOwnershipRange()):
            i, j = divmod(row, side)
            matrix[row, row] = 4
            for inside, other in ((i, -side), (i < side - 1, side), (j, -1), (j < side - 1, 1)):
                if inside:
                    matrix[row, row + other] = -1
        matrix.assemble()
        x, b = matrix.createVecs()
        x.set(1)
        matrix.mult(x, b)
        says = print if PETSc.COMM_WORLD.getRank() == 0 else lambda *_: None
        PETSc.COMM_WORLD.barrier()
        began = time.perf_counter()
        for method in ("cg", "pipecg", "gmres"):
            x.set(0)
            solver = PETSc.KSP().create()
            solver.setOperators(matrix)
            solver.setType(method)
            solver.getPC().setType("jacobi")
            solver.setTolerances(rtol=1e-8)
            solver.setConvergenceHistory()
            solver.solve(b, x)
            for number, residual in enumerate(solver.getConvergenceHistory()):
                says("residual", method, number, repr(float(residual)))
            says("residual", method, "solution", repr(x.norm()))
        says("seconds", time.perf_counter() - began)
        """

    def interpreter(self) -> Path:
        return next(p for r in (PLACE, SYSTEM) if (p := r / "usr/bin/python3").exists())

    def command(self, directory, ranks, short):
        module = self.path().parents[1]
        paths = [str(module), str(self.root() / "usr/lib/python3/dist-packages")]
        text = textwrap.dedent(self.SOURCE).format(paths=paths, side=40 if short else 200)
        (directory / "solve.py").write_text(text)
        return [self.interpreter(), "solve.py"]

    def results(self, directory, output):
        found = re.findall(r"^residual (\S+ \S+) (\S+)$", output, re.MULTILINE)
        return {name: float(value) for name, value in found}

    def seconds(self, directory, output):
        return float(re.search(r"^seconds (\S+)", output, re.MULTILINE)[1])


class Hpcc(Program):
    """HPC Challenge: HPL, matrix transpose, random access, FFT.

    Its results are the residuals. Rates are not compared, nor is the number of updates, which
    depends on its time limit. It also measures links, which takes minutes in the lab."""

    INPUT = """\
        HPLinpack benchmark input file
        tools/real-programs
        HPL.out output file name
        8       device out
        1       # of problems sizes (N)
        {size}  Ns
        1       # of NBs
        80      NBs
        0       PMAP process mapping
        1       # of process grids (P x Q)
        1       Ps
        {ranks} Qs
        16.0    threshold
        1       # of panel fact
        2       PFACTs
        1       # of recursive stopping criterium
        4       NBMINs
        1       # of panels in recursion
        2       NDIVs
        1       # of recursive panel fact.
        1       RFACTs
        1       # of broadcast
        1       BCASTs
        1       # of lookahead depth
        1       DEPTHs
        2       SWAP
        64      swapping threshold
        0       L1 in form
        0       U in form
        1       Equilibration
        8       memory alignment in double
        ##### a separator
        0       Number of additional problem sizes for PTRANS
        1200    values of N
        0       number of additional blocking sizes for PTRANS
        40      values of NB
        """
    RESULTS = re.compile(
        r"^(Success|HPL_Rnorm\w+|HPL_[ABX]norm\w+|PTRANS_residual|MPIRandomAccess\w*_Errors"
        r"|MPIFFT_maxErr)=(\S+)$",
        re.MULTILINE,
    )
    SECONDS = re.compile(
        r"^(?:HPL_time|PTRANS_time|MPIRandomAccess\w*_time|MPIFFT_time\d)=(\S+)$", re.MULTILINE
    )

    def command(self, directory, ranks, short):
        text = textwrap.dedent(self.INPUT).format(size=256 if short else 600, ranks=ranks)
        (directory / "hpccinf.txt").write_text(text)
        return [self.path()]

    def results(self, directory, output):
        text = (directory / "hpccoutf.txt").read_text()
        found = dict(self.RESULTS.findall(text))
        found["scaled residual"] = re.search(r"\*N\)= *(\S+)", text)[1]
        return {name: float(value) for name, value in found.items()}

    def seconds(self, directory, output):
        text = (directory / "hpccoutf.txt").read_text()
        return sum(map(float, self.SECONDS.findall(text)))


PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Lammps("lammps", ("lammps",), "usr/bin/lmp"),
        PwX("pw.x", ("quantum-espresso", "quantum-espresso-data"), "usr/bin/pw.x"),
        Petsc(
            "petsc",
            ("python3-petsc4py-real",),
            "usr/lib/petscdir/*/*-real/lib/python3/dist-packages/petsc4py/__init__.py",
        ),
        Hpcc("hpcc", ("hpcc",), "usr/bin/hpcc", in_lab=False),
    )
}


# ---- Packages ---------------------------------------------------------------------------------


def apt(*words: str, directory: Path | None = None) -> str:
    command = ["apt-get", "-qq", "--no-install-recommends", *words]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing((done.stderr.strip().splitlines() or ["apt-get says nothing"])[-1])
    return done.stdout


def lacking(packages: tuple[str, ...]) -> list[str]:
    """Returns these packages, and those of their dependencies and of the launcher's that the system
    lacks."""
    planned = apt("install", "-s", *packages, "openmpi-bin")
    return list(dict.fromkeys([*packages, *re.findall(r"^Inst (\S+)", planned, re.MULTILINE)]))


def unpack(packages: tuple[str, ...]) -> None:
    """Unpacks packages into PLACE, with all dependencies that the system lacks."""
    try:
        names = lacking(packages)
    except Missing:
        apt("update")
        names = lacking(packages)
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as archives:
        apt("download", *names, directory=Path(archives))
        for archive in sorted(Path(archives).glob("*.deb")):
            subprocess.run(["dpkg", "-x", archive, PLACE], check=True)


# ---- MPI library ------------------------------------------------------------------------------


def open_mpi() -> mpi_libraries.Implementation:
    """Returns Debian's Open MPI. This process must have the variables of
    debian_open_mpi.environment(). Raises Missing if it is not installed."""
    for root in (PLACE, SYSTEM):
        launcher = root / debian_open_mpi.LAUNCHER
        if launcher.exists() and (found := mpi_libraries.at_launcher(launcher, "Debian")):
            return found
    raise Missing("Debian's Open MPI is not here: apt-get install openmpi-bin brings it")
