"""Tests kernels/pipecg on unstructured meshes, whose rows are divided in blocks or by METIS. Each
result must be that of the same system without a partition, and the halo is counted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from kernel_answers import QUICK, check, refused

from weft.system import installation, mpi_libraries

MESH = ("--mesh", "tetrahedra", "--grid", "9x10x11", *QUICK)
DEPS = installation.ROOT / ".deps" / "usr"
COUNTED = re.compile(
    r"partition (\w+): cut (\d+) of (\d+) edges, halo (\d+) rows \(a rank's: (\d+) at most\),"
    r" (\d+) to (\d+) rows on a rank"
)


def counted(said: str) -> dict[str, list[int]]:
    """Returns by partition: cut, edges, halo, largest halo of a rank, fewest and most rows."""
    return {name: [int(word) for word in words] for name, *words in COUNTED.findall(said)}


def alone(said: str) -> tuple[int, int, float, float]:
    """Returns the iterations with and without a partition, and the differences of the solutions and
    of the right-hand sides."""
    parts = re.search(r": (\d+) iterations, .* converged\n", said)
    whole = re.search(
        r"unpartitioned: (\d+) iterations, solutions differ by (\S+), .* by (\S+)", said
    )
    return int(parts[1]), int(whole[1]), float(whole[2]), float(whole[3])


@pytest.fixture
def environment(environment):
    """Adds METIS's library if the set-up has unpacked one."""
    unpacked = next(iter(DEPS.glob("lib/*/libmetis.so.5")), None)
    return {**environment, **({"METIS_LIBRARY": str(unpacked)} if unpacked else {})}


@pytest.fixture
def metis(kernel):
    """Skips the test if the program was built without METIS."""
    done = kernel("pipecg", *MESH, "--partition", "metis")
    if "needs METIS" in done.stderr:
        pytest.skip("needs METIS (Debian: libmetis-dev), and a build that found it")


@pytest.mark.parametrize(
    ("words", "ranks", "method"),
    [
        ((), 2, "pipelined"),
        (("--numbering", "random"), 3, "classic"),
        (("--coefficients", "heterogeneous", "--contrast", 30), 5, "gropp"),
        (("--coefficients", "anisotropic", "--contrast", 10), 2, "chronopoulos-gear"),
    ],
)
def test_a_mesh_in_blocks_has_the_answer_of_the_whole(kernel, words, ranks, method):
    said = check(kernel("pipecg", *MESH, *words, "--method", method, ranks=ranks, engines="auto"))
    together, whole, solutions, sides = alone(said)
    assert abs(together - whole) <= 1 and solutions < 1e-6 and sides < 1e-14
    assert float(said.split("error ")[1].split(",")[0]) < 1e-5
    cut, edges, halo, most, fewest, rows = counted(said)["blocks"]
    assert 0 < cut < edges and most <= halo <= 2 * cut and 0 <= rows - fewest <= 1


def test_metis_cuts_fewer_edges_and_finds_the_same_answer(kernel, metis):
    words = (*MESH, "--numbering", "random", "--partition", "metis")
    said = check(kernel("pipecg", *words, ranks=4, engines="auto,thread"))
    cost = counted(said)
    assert cost["metis"][0] < 0.5 * cost["blocks"][0] and cost["metis"][2] < cost["blocks"][2]
    assert cost["metis"][1] == cost["blocks"][1]
    together, whole, solutions, sides = alone(said)
    assert abs(together - whole) <= 1 and solutions < 1e-6 and sides < 1e-14
    assert "numbered at random metis" in said


def test_metis_divides_grids_and_files_too(kernel, metis, tmp_path):
    said = check(kernel("pipecg", "--grid", "12x4x4", "--partition", "metis", *QUICK, ranks=3))
    assert counted(said)["metis"][0] <= counted(said)["blocks"][0] and alone(said)[3] < 1e-14
    n = 30
    lines = [f"{i} {i} 2.5" for i in range(1, n + 1)] + [f"{n} 1 -0.25"]
    lines += [f"{i + 1} {i} -1" for i in range(1, n)]
    file = tmp_path / "ring.mtx"
    head = "%%MatrixMarket matrix coordinate real symmetric\n"
    file.write_text(f"{head}{n} {n} {len(lines)}\n" + "\n".join(lines) + "\n")
    said = check(kernel("pipecg", "--matrix", file, "--partition", "metis", *QUICK, ranks=2))
    # A ring is cut twice to make two parts.
    assert counted(said)["metis"][:4] == [2, n, 4, 2] and alone(said)[3] < 1e-14


def test_a_random_numbering_changes_neither_mesh_nor_answer(kernel):
    natural, random = (
        check(kernel("pipecg", *MESH, "--numbering", name)) for name in ("natural", "random")
    )
    assert counted(natural)["blocks"][1] == counted(random)["blocks"][1]
    assert counted(natural)["blocks"][0] < counted(random)["blocks"][0]
    assert alone(random)[2] < 1e-6


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--grid", "2x9x9"), "needs a --grid of at least 4 points along each axis"),
        (("--grid", "200x200x200"), "has more than 2^21 points, which every rank would keep"),
        (("--partition", "rows"), "--partition takes one of blocks, metis, not rows"),
    ],
)
def test_meshes_and_partitions_that_cannot_be_are_refused(kernel, words, sentence):
    assert sentence in refused(kernel("pipecg", "--mesh", "tetrahedra", *words), "pipecg")


def built(program: Path, *flags: str) -> Path:
    """Compiles a program with MPICH, and without METIS unless a flag adds it."""
    library = mpi_libraries.implementation("mpich")
    compiler = library.prefix / "bin" / "mpicxx"
    if not compiler.exists():
        pytest.skip(f"needs {compiler}")
    source = installation.ROOT / "kernels" / "pipecg.cc"
    words = [compiler, "-std=c++20", "-Wno-unknown-pragmas", *flags, source, "-o", program]
    subprocess.run([str(word) for word in words], check=True)
    return program


def two_ranks(first: Path, second: Path, **more: str) -> subprocess.CompletedProcess:
    """Runs two ranks, each with its own program, that ask for METIS's parts."""
    library = mpi_libraries.implementation("mpich")
    words = [*map(str, MESH), "--partition", "metis"]
    jobs = [*library.launcher(1), str(first), *words, ":", "-n", "1", str(second), *words]
    variables = {**library.environment(), "PATH": "/usr/bin:/bin", **more}
    return subprocess.run(jobs, env=variables, capture_output=True, text=True, timeout=100)


@pytest.mark.long
def test_without_metis_one_sentence_says_what_brings_it(tmp_path):
    """The program was built without METIS, or only one of the ranks has it."""
    without = built(tmp_path / "pipecg")
    with_it = mpi_libraries.implementation("mpich").program("pipecg")
    for job in ((without, without), (with_it, without), (without, with_it)):
        said = refused(two_ranks(*job), "pipecg")
        assert "install it (Debian: libmetis-dev) and build Weft again" in said


def header_of_metis() -> Path:
    found = (place / "include" / "metis.h" for place in (Path("/usr"), DEPS))
    if not (header := next(filter(Path.exists, found), None)):
        pytest.skip("needs METIS (Debian: libmetis-dev), and a build that found it")
    return header


def test_no_place_of_metis_is_in_the_program(metis):
    """METIS's library is searched for where the program runs, and not where it was built."""
    program = mpi_libraries.implementation("mpich").program("pipecg").read_bytes()
    assert b"libmetis.so.5" in program and b"/libmetis" not in program


@pytest.mark.long
def test_that_metis_fails_is_said(tmp_path):
    """A stand-in replaces METIS's library, and fails to divide anything."""
    source, library = tmp_path / "metis.c", tmp_path / "libfails.so"
    source.write_text(
        "int METIS_SetDefaultOptions(int* options) { return 1; }\n"
        "int METIS_PartGraphRecursive() { return -4; }\nint METIS_PartGraphKway() { return -4; }\n"
    )
    words = ["cc", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(words, check=True)
    include = ("-idirafter", str(header_of_metis().parent))
    program = built(tmp_path / "pipecg", "-DWITH_METIS", *include)
    said = refused(two_ranks(program, program, METIS_LIBRARY=str(library)), "pipecg")
    assert "METIS cannot divide the matrix among 2 ranks: choose fewer ranks" in said


def test_a_file_is_neither_divided_by_metis_nor_solved_alone_unasked(kernel, tmp_path):
    file = tmp_path / "diagonal.mtx"
    head = "%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n"
    file.write_text(head + "".join(f"{i} {i} {i}\n" for i in range(1, 5)))
    said = check(kernel("pipecg", "--matrix", file, *QUICK))
    assert list(counted(said)) == ["blocks"] and "unpartitioned" not in said
