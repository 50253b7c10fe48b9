"""The programs of kernels/: each variant's answer is right, with and without Weft, and input that
cannot be used is refused in one sentence before anything is computed.
"""

from __future__ import annotations

import array
import itertools
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weft import info, installation, mpi_libraries

LIMIT_S = 100


@pytest.fixture
def kernel(environment, weft):
    """Runs a kernel on some ranks; under Weft where engines are named."""

    def run(
        name: str,
        *words: object,
        ranks: int = 2,
        engines: str = "",
        mpi: str = "mpich",
        inside: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess:
        library = mpi_libraries.implementation(mpi)
        program = library.program(name)
        if not program.exists():
            pytest.skip(f"needs {name}, built for {mpi}")
        command = [*inside, *library.launcher(ranks)]
        if engines:
            command += [weft, "run", "--engine", "thread", "--"]
        command += [str(program), *map(str, words), "--engines", engines or "native"]
        # Threads that wait by spinning would keep each other from the cores of a small machine.
        variables = {**environment, **library.environment(), "OMP_WAIT_POLICY": "passive"}
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=LIMIT_S
        )

    return run


def check(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 wrong results" in done.stdout
    return done.stdout


def refused(done: subprocess.CompletedProcess, name: str) -> str:
    """The one sentence."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{name}: ")]
    assert len(lines) == 1 and "us" not in done.stdout.split()
    return lines[0]


# ---- pipecg -----------------------------------------------------------------------------------

QUICK = ("--repetitions", 1)
SMALL = ("--grid", "7x5x6", *QUICK)


@pytest.mark.parametrize(
    ("method", "ranks"), [("classic", 1), ("chronopoulos-gear", 2), ("gropp", 3), ("pipelined", 5)]
)
def test_each_method_of_pipecg_is_right_under_weft(kernel, method, ranks):
    words = ("--method", method, "--coefficients", "anisotropic", "--contrast", 50)
    said = check(kernel("pipecg", *words, *SMALL, ranks=ranks, engines="auto,thread"))
    assert ", converged" in said and "overlapped, auto" in said and "halo only" in said


@pytest.mark.parametrize("method", ["classic", "chronopoulos-gear", "gropp", "pipelined"])
def test_replacement_and_refinement_lead_to_the_true_residual(kernel, method):
    """Without Weft; single precision alone cannot reach 1e-9, with refinement it does."""
    words = ("--method", method, "--tolerance", 1e-9, *SMALL)
    alone = kernel("pipecg", *words, "--precision", "single", ranks=1)
    assert alone.returncode == 1
    assert "true residual" in alone.stdout and ", converged" not in alone.stdout
    refined = ("--precision", "single", "--stabilise", "refinement")
    assert ", converged" in check(kernel("pipecg", *words, *refined, ranks=2))
    replaced = ("--precision", "mixed", "--stabilise", "replacement", "--coefficients")
    said = check(kernel("pipecg", *words, *replaced, "heterogeneous", "--contrast", 10, ranks=2))
    assert ", converged" in said and " 0 replacements" not in said


def test_overlap_of_two_ranks_changes_no_bit(kernel):
    said = check(kernel("pipecg", *SMALL, "--threads", 2))
    lines = [line for line in said.splitlines() if " us " in line][1:]
    assert len(lines) == 3, said
    assert all(line.endswith(" bitwise equal") for line in lines), said
    assert "master thread" in said


def test_pipecg_under_open_mpi(kernel):
    check(kernel("pipecg", *SMALL, engines="auto,tcc", mpi="openmpi"))


def matrix(path: Path, body: str, banner: str = "real symmetric") -> Path:
    path.write_text(f"%%MatrixMarket matrix coordinate {banner}\n% a comment\n{body}\n")
    return path


def test_a_matrix_is_read_from_a_file(kernel, tmp_path):
    n = 40
    entries = [f"{i} {i} 2.5" for i in range(1, n + 1)]
    entries += [f"{i + 1} {i} -1" for i in range(1, n)] + [f"{n} 1 -0.25"]
    file = matrix(tmp_path / "ring.mtx", f"{n} {n} {len(entries)}\n" + "\n".join(entries))
    said = check(kernel("pipecg", "--matrix", file, *QUICK, ranks=3))
    assert ", converged" in said and "ring.mtx" in said
    error = float(said.split("error ")[1].split(",")[0])
    assert error < 1e-6


def test_a_matrix_that_is_not_positive_definite_is_a_breakdown(kernel, tmp_path):
    file = matrix(tmp_path / "x.mtx", "3 3 4\n1 1 1\n2 2 1\n3 3 1\n2 1 3")
    for method in ("classic", "pipelined"):
        done = kernel("pipecg", "--matrix", file, "--method", method, ranks=1)
        assert done.returncode == 1
        assert "breakdown in iteration" in done.stdout and "nan" not in done.stdout


@pytest.mark.parametrize(
    ("body", "banner", "sentence"),
    [
        ("2 3 0", "real symmetric", "is not square"),
        ("2 2 2\n1 1 1\n2 2 x", "real symmetric", "is damaged, at entry 2 of 2"),
        ("2 2 1\n3 1 1", "real symmetric", "has an entry outside the matrix"),
        ("2 2 2\n1 1 1\n2 2 -1", "real symmetric", "is not positive definite"),
        ("2 2 3\n1 1 1\n2 2 1\n1 2 1", "real general", "is not symmetric in row 1"),
        ("2 2 1\n1 1", "pattern symmetric", "does not begin with"),
        ("two two", "real symmetric", "has no line with its numbers"),
        ("1 1 1\n1 1 1", "real symmetric", "does not divide among 2 ranks"),
    ],
)
def test_a_damaged_matrix_is_refused(kernel, tmp_path, body, banner, sentence):
    file = matrix(tmp_path / "x.mtx", body, banner)
    assert sentence in refused(kernel("pipecg", "--matrix", file), "pipecg")


# ---- fft3d ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "ranks", "columns", "blocks"),
    [("6x7x8", 1, 1, 2), ("9x8x5", 4, 1, 3), ("8x9x11", 4, 2, 3), ("5x7x6", 5, 5, 9)],
)
def test_slabs_and_pencils_are_right_under_weft(kernel, grid, ranks, columns, blocks):
    words = ("--grid", grid, "--columns", columns, "--blocks", blocks, *QUICK)
    said = check(kernel("fft3d", *words, ranks=ranks, engines="auto,thread"))
    assert said.count(" bitwise equal") == 2 and "not bitwise" not in said
    assert ("slabs" if columns == 1 else "pencils") in said


def test_fft3d_under_open_mpi_and_without_weft(kernel):
    check(kernel("fft3d", "--grid", "8x8x8", *QUICK, engines="auto,thread", mpi="openmpi"))
    check(kernel("fft3d", "--grid", "8x8x8", *QUICK, ranks=3))


# ---- gemv_alltoall ----------------------------------------------------------------------------

GEMV = ("--order", 60, "--bytes", 2000, *QUICK)


@pytest.mark.parametrize(("ranks", "in_flight"), [(1, 1), (2, 8), (3, 2), (5, 1)])
def test_each_case_of_gemv_alltoall_is_right(kernel, ranks, in_flight):
    words = ("--in-flight", in_flight, *GEMV)
    said = check(kernel("gemv_alltoall", *words, ranks=ranks, engines="function,thread,tcc,auto"))
    for case in ("call per row, function", "inner calls, function", "waited for, function"):
        assert case in said
    assert said.count(" bitwise equal") == 7


def test_gemv_alltoall_under_open_mpi_and_with_threads(kernel):
    check(kernel("gemv_alltoall", *GEMV, engines="auto,thread", mpi="openmpi"))
    check(kernel("gemv_alltoall", *GEMV, "--threads", 3))


# ---- gemm_allgather ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        (1, ("--bytes", 1, "--order", 1, "--products", 1)),
        (2, ("--bytes", 16, "--products", 3)),
        (3, ("--bytes", 5000, "--order", 13, "--products", 7)),
        (5, ("--bytes", 100000, "--order", 9, "--products", 2)),
    ],
)
def test_products_and_blocks_of_gemm_allgather_are_right(kernel, ranks, words):
    """The products are compared with their definition, in the program."""
    engines = "native,function,thread,tcc,auto"
    said = check(kernel("gemm_allgather", *words, *QUICK, ranks=ranks, engines=engines))
    for variant in ("by hand, native", "by hand, function", "overlapped, tcc", "overlapped, auto"):
        assert variant in said


def test_gemm_allgather_chooses_its_products_and_says_how_many(kernel, tmp_path):
    """And under Open MPI; more computation is asked for, so there are more products."""
    chosen = []
    for ratio in (0.5, 200):
        file = tmp_path / f"{ratio}.json"
        words = ("--bytes", 1000, "--ratio", ratio, "--json", file, *QUICK)
        check(kernel("gemm_allgather", *words, engines="thread", mpi="openmpi"))
        chosen.append(json.loads(file.read_text())["amount"])
    assert 1 <= chosen[0] < chosen[1]


# ---- stencil ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        (("--grid", "9x8x7"), 1),
        (("--grid", "1x9x8"), 4),
        (("--grid", "3x7x5", "--blocks", "3x1x1"), 3),
        (("--grid", "8x8x8", "--diffusion", "0.16", "--steps", "7"), 8),
    ],
)
def test_each_exchange_of_stencil_is_right_under_weft(kernel, words, ranks):
    said = check(kernel("stencil", *words, *QUICK, ranks=ranks, engines="auto,thread"))
    assert said.count(" bitwise equal") == 6 and "not bitwise" not in said
    assert "persistent, auto" in said and "messages" in said
    assert float(said.split("error ")[1].split()[0]) < 1e-14


def test_stencil_under_open_mpi_and_without_weft(kernel):
    check(kernel("stencil", "--grid", "8x6x4", *QUICK, engines="auto,thread", mpi="openmpi"))
    check(kernel("stencil", "--grid", "8x6x4", *QUICK, ranks=3))


# ---- cpals ------------------------------------------------------------------------------------

TENSOR = ("--dimensions", "12x9x7", "--entries", 150, "--rank", 3, "--iterations", 3, *QUICK)


def fit_in(said: str) -> float:
    return float(said.split(": fit ")[1].split(",")[0])


def test_each_exchange_of_cpals_is_right_under_weft(kernel):
    said = check(kernel("cpals", *TENSOR, engines="auto,thread"))
    assert said.count(" bitwise equal") == 7 and "not bitwise" not in said
    assert "rows, auto" in said and "neighbours, thread" in said and "messages" in said


def test_the_distribution_does_not_change_the_fit(kernel):
    """Without Weft, and so without its exchange of rows."""
    fits = []
    for ranks, blocks in ((1, "1x1x1"), (3, "3x1x1"), (4, "1x2x2")):
        said = check(kernel("cpals", *TENSOR, "--blocks", blocks, ranks=ranks))
        assert f"blocks {blocks}" in said and "rows" not in said
        fits.append(fit_in(said))
    assert 0.1 < fits[0] < 1
    assert fits == pytest.approx([fits[0]] * 3, abs=1e-10)


def test_cpals_under_open_mpi_and_with_more_modes(kernel):
    check(kernel("cpals", *TENSOR, engines="auto,tcc", mpi="openmpi"))
    five = ("--dimensions", "6x5x4x3x7", "--entries", 90, "--rank", 2, *QUICK)
    check(kernel("cpals", *five, "--blocks", "1x1x2x1x1", engines="thread"))


def random_at(stream: int, number: int) -> float:
    """As in kernels/tensor.h."""
    mask = (1 << 64) - 1
    z = ((stream + 1) * 0x9E3779B97F4A7C15 + number * 0xD1342543DE82EF95) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gauss and Jordan, with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for k in range(len(rows)):
            if k != i:
                share = rows[k][i] / rows[i][i]
                rows[k] = [a - share * b for a, b in zip(rows[k], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def dense_fit(tensor: dict[tuple[int, ...], float], extents: tuple[int, ...], iterations: int):
    """CP-ALS with two components on the whole tensor, from its definition."""
    rank = 2
    factors = [
        [[random_at(1000 + mode, row * rank + r) for r in range(rank)] for row in range(extent)]
        for mode, extent in enumerate(extents)
    ]
    places = list(itertools.product(*map(range, extents)))

    def term(place: tuple[int, ...], r: int, without: int = -1) -> float:
        others = [m for m in range(len(extents)) if m != without]
        return math.prod(factors[m][place[m]][r] for m in others)

    for _ in range(iterations):
        for mode, extent in enumerate(extents):
            normal = [[0.0] * rank for _ in range(rank)]
            for place in places:
                for r, s in itertools.product(range(rank), repeat=2):
                    if place[mode] == 0:
                        normal[r][s] += term(place, r, mode) * term(place, s, mode)
            for row in range(extent):
                right = [
                    sum(tensor.get(p, 0.0) * term(p, r, mode) for p in places if p[mode] == row)
                    for r in range(rank)
                ]
                factors[mode][row] = solved(normal, right)
    rest = sum(
        (tensor.get(place, 0.0) - sum(term(place, r) for r in range(rank))) ** 2 for place in places
    )
    return 1 - math.sqrt(rest / sum(value**2 for value in tensor.values()))


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_tensor_is_read_and_its_fit_is_that_of_the_dense_computation(kernel, tmp_path, ranks):
    extents = (4, 3, 5)
    places = [p for p in itertools.product(*map(range, extents)) if sum(p) % 3]
    tensor = {place: 1 + random_at(7, number) for number, place in enumerate(places)}
    lines = [" ".join(str(i + 1) for i in place) + f" {tensor[place]!r}" for place in places]
    # The same place twice: the values add.
    lines[-1:] = [lines[-1].rsplit(" ", 1)[0] + f" {tensor[places[-1]] / 2!r}"] * 2
    file = tmp_path / "small.tns"
    file.write_text("# a comment\n" + "\n".join(lines) + "\n\n")
    words = ("--tensor", file, "--rank", 2, "--iterations", 3, *QUICK)
    said = check(kernel("cpals", *words, ranks=ranks))
    assert fit_in(said) == pytest.approx(dense_fit(tensor, extents, 3), abs=1e-10)


def test_dependent_components_are_a_breakdown(kernel, tmp_path):
    file = tmp_path / "one.tns"
    file.write_text("1 1 1 2.5\n2 2 2 0\n")
    done = kernel("cpals", "--tensor", file, "--rank", 4, *QUICK)
    assert done.returncode == 1
    assert "breakdown: " in done.stdout and "in iteration 1" in done.stdout
    assert "nan" not in done.stdout


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "has no entries"),
        ("1 1 1\n", "is no tensor of 3 to 8 modes"),
        ("1 1 1 1 1 1 1 1 1 1\n", "is no tensor of 3 to 8 modes"),
        ("1 1 1 1.5\n1 2 1\n", "is damaged, in line 2"),
        ("# c\n1 1 1 1.5\n1 0 1 2\n", "is damaged, in line 3"),
        ("1 1 1 nan\n", "is damaged, in line 1"),
        ("1 x 1 1\n", "is damaged, in line 1"),
        ("1 1 1 1 1\n1 1 1 1 1 1\n", "is damaged, in line 2"),
        ("2 2 2 0\n", "has no value but 0"),
        ("9 9 1 1\n", "mode 3 of the tensor has 1 rows, fewer than there are ranks"),
    ],
)
def test_a_damaged_tensor_is_refused(kernel, tmp_path, body, sentence):
    file = tmp_path / "x.tns"
    file.write_text(body)
    assert sentence in refused(kernel("cpals", "--tensor", file), "cpals")


# ---- atmosphere -------------------------------------------------------------------------------

SPHERE = ("--truncation", 10, *QUICK)


def test_a_steady_flow_across_the_poles_stays_and_sections_change_no_bit(kernel):
    said = check(kernel("atmosphere", *SPHERE, "--steps", 2, ranks=3, engines="auto,thread"))
    assert said.count(" bitwise equal") == 5 and "not bitwise" not in said
    assert "behind pressure, thread" in said


def writing(file: Path, *words: object) -> tuple:
    return (*SPHERE, *words, "--output", file)


def test_every_way_of_output_writes_the_same_file(kernel, tmp_path):
    words = writing(tmp_path / "fields", "--steps", 4, "--every", 2)
    said = check(kernel("atmosphere", *words, ranks=3, engines="auto,thread"))
    assert said.count(" bitwise equal") == 6 and "not bitwise" not in said
    assert "behind steps, thread" in said and "rank 0 behind steps, thread" in said


def test_open_mpi_writes_without_weft_and_is_refused_with_it(kernel, tmp_path):
    words = writing(tmp_path / "fields", "--steps", 4, "--every", 2)
    said = check(kernel("atmosphere", *words, mpi="openmpi"))
    assert said.count(" bitwise equal") == 5 and "not bitwise" not in said
    done = kernel("atmosphere", *words, mpi="openmpi", engines="auto")
    assert "leave out --output, or run it without Weft" in refused(done, "atmosphere")


def sines_of_gauss(latitudes: int) -> list[float]:
    """Roots of the Legendre polynomial, from the north, by bisection around their estimates."""

    def legendre(x: float) -> float:
        before, now = 1.0, x
        for n in range(2, latitudes + 1):
            before, now = now, ((2 * n - 1) * x * now - (n - 1) * before) / n
        return now

    found = []
    for j in range(latitudes):
        north, south = (math.cos(math.pi * (j + k) / (latitudes + 0.5)) for k in (0.5, 1.0))
        for _ in range(60):
            middle = (north + south) / 2
            if (legendre(middle) > 0) == (legendre(north) > 0):
                north = middle
            else:
                south = middle
        found.append(north)
    return found


def test_the_file_holds_the_fields_of_the_steady_flow(kernel, tmp_path):
    """All records, against the case's own formulas at every point of the grid."""
    file = tmp_path / "fields"
    words = writing(file, "--steps", 3, "--every", 1)
    check(kernel("atmosphere", *words, engines="auto"))
    latitudes, longitudes = 16, 32
    values = array.array("d", file.read_bytes())
    assert len(values) == 3 * 3 * latitudes * longitudes
    radius, turning = 6.37122e6, 7.292e-5
    speed = 2 * math.pi * radius / (12 * 86400)
    for record, (j, sine), i in itertools.product(
        range(3), enumerate(sines_of_gauss(latitudes)), range(longitudes)
    ):
        east = 2 * math.pi * i / longitudes
        pole = (sine - math.cos(east) * math.sqrt(1 - sine * sine)) / math.sqrt(2)
        depth = 2.94e4 - (radius * turning * speed + speed**2 / 2) * pole**2
        spin, spread, found = (
            values[((record * 3 + q) * latitudes + j) * longitudes + i] for q in range(3)
        )
        assert spin == pytest.approx(2 * speed / radius * pole, abs=1e-14)
        assert spread == pytest.approx(0, abs=1e-14)
        assert found == pytest.approx(depth, rel=1e-10)


def full_disk(directory: Path) -> tuple[str, ...]:
    """What a command runs in so that this directory has 16 KiB.

    Its shared memory goes with it: MPI_Abort leaves some behind.
    """
    own = ("unshare", "--user", "--map-root-user", "--mount")
    mount = 'mount -t tmpfs own /dev/shm && mount -t tmpfs -o size=16k full "$0" && exec "$@"'
    inside = (*own, "sh", "-c", mount, str(directory))
    if not shutil.which("unshare") or subprocess.run((*inside, "true")).returncode != 0:
        pytest.skip("needs a mount namespace of its own")
    return inside


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_full_disk_is_said_and_ends_the_job(kernel, tmp_path, mpi):
    words = writing(tmp_path / "fields", "--steps", 3, "--every", 1)
    done = kernel("atmosphere", *words, mpi=mpi, inside=full_disk(tmp_path))
    assert done.returncode != 0 and "wrong results" not in done.stdout
    assert f"atmosphere: cannot write {tmp_path}/fields (" in done.stderr
    assert "is the disk full?" in done.stderr


def test_five_days_of_the_steady_flow(kernel):
    said = check(kernel("atmosphere", *SPHERE, "--steps", 240, "--seconds", 1800, ranks=1))
    assert "5.00 days" in said
    assert float(said.split("beginning by ")[1].split(",")[0]) < 1e-12


def test_the_flow_over_a_mountain_is_the_same_on_any_number_of_ranks(kernel):
    """And under Open MPI; the mass stays."""
    words = (*SPHERE, "--case", 5, "--steps", 24)
    alone = check(kernel("atmosphere", *words, ranks=1)).splitlines()[0]
    assert 1e-5 < float(alone.split("beginning by ")[1].split(",")[0]) < 1e-2
    assert float(alone.split("mass by ")[1]) < 1e-12
    done = check(kernel("atmosphere", *words, engines="auto", mpi="openmpi"))
    assert done.splitlines()[0].split(", mass")[0] == alone.split(", mass")[0]


def test_a_step_that_is_too_long_is_said_to_diverge(kernel):
    words = ("--case", 5, "--steps", 60, "--seconds", 30000)
    done = kernel("atmosphere", *SPHERE, *words, ranks=1)
    assert done.returncode == 1 and "nan" not in done.stdout
    assert "diverged: choose fewer --seconds for a step" in done.stdout


# ---- Speed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "lines"),
    [("pipecg", ("--grid", "9x8x7"), 1), ("cpals", ("--dimensions", "9x8x7", "--rank", 3), 3)],
)
def test_products_are_set_beside_the_memory_s_bandwidth(kernel, name, words, lines):
    done = kernel(name, "--what", "speed", *words, "--repetitions", 3, ranks=1)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"product .*: (\S+) GB/s, triad (\S+) GB/s, share (\S+) \[", done.stdout)
    assert len(said) == lines and "wrong" not in done.stdout
    assert all(float(figure) > 0 for one in said for figure in one[:2])
    assert "--what speed is for one rank" in refused(kernel(name, "--what", "speed"), name)


# ---- Options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("pipecg", ("--grid", "8x8"), "--grid takes three numbers from 1 to 4096"),
        ("pipecg", ("--method", "cg"), "--method takes one of classic, chronopoulos-gear"),
        ("pipecg", ("--contrast", "-1"), "--contrast takes a number greater than 0, not -1"),
        ("pipecg", ("--speed", "1"), "there is no option --speed; there are --grid"),
        ("pipecg", ("--matrix", "/nowhere.mtx"), "cannot read /nowhere.mtx"),
        ("fft3d", ("--grid", "4x1x4"), "has too few points for 2 x 1 ranks"),
        ("fft3d", ("--columns", "3"), "--columns 3 does not divide 2 ranks"),
        ("fft3d", ("--grid", "512x512x512"), "more than 2^26 points"),
        ("gemv_alltoall", ("--order", "1"), "has fewer rows than there are ranks"),
        ("gemm_allgather", ("--ratio", "0"), "--ratio takes a number greater than 0, not 0"),
        ("gemm_allgather", ("--bytes", "1000000000"), "are more than 2^30: choose fewer"),
        ("stencil", ("--grid", "1x1x1"), "has fewer points than there are ranks"),
        ("stencil", ("--blocks", "2x2x1"), "--blocks 2x2x1 is for another number than 2 ranks"),
        ("stencil", ("--grid", "1x8x8", "--blocks", "2x1x1"), "has too few points for blocks"),
        ("stencil", ("--diffusion", "0.2"), "values grow without bound: choose at most 0.166"),
        ("cpals", ("--tensor", "/nowhere.tns"), "cannot read /nowhere.tns"),
        ("cpals", ("--dimensions", "8x8"), "--dimensions takes 3 to 8 numbers"),
        ("cpals", ("--blocks", "2x2x1"), "--blocks is for another number than 2 ranks"),
        ("cpals", ("--blocks", "2x1"), "--blocks needs 3 numbers"),
        ("atmosphere", ("--case", "3"), "--case takes 2 or 5"),
        ("atmosphere", ("--every", "2"), "--every needs --output FILE"),
        ("atmosphere", ("--output", "/x"), "--output needs --every STEPS"),
        ("atmosphere", ("--every", "2", "--output", "/nowhere/x"), "cannot write /nowhere/x: "),
        ("atmosphere", ("--every", "2", "--output", "/tmp"), "cannot write /tmp: choose a file"),
        ("iallreduce_kernel", ("--elements", "many"), "--elements takes a whole number"),
    ],
)
def test_bad_input_is_one_sentence(kernel, name, words, sentence):
    assert sentence in refused(kernel(name, *words), name)


def test_an_unwritable_file_is_said(kernel):
    done = kernel("gemv_alltoall", *GEMV, "--json", "/nowhere/x.json")
    assert done.returncode != 0 and "gemv_alltoall: cannot write /nowhere/x.json" in done.stderr


# ---- Presets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("pipecg", "--grid 6x6x6 --repetitions 3"),
        ("fft3d", "--grid 8x8x8 --repetitions 3"),
        ("stencil", "--grid 6x6x6 --repetitions 3"),
        ("cpals", "--dimensions 9x8x7 --entries 99 --rank 2 --repetitions 3"),
        ("atmosphere", "--truncation 5 --steps 1 --repetitions 3"),
        ("atmosphere", "--truncation 5 --steps 1 --every 1 --output {scratch}/x --repetitions 3"),
        ("tcc", "--order 60 --bytes 2000 --repetitions 3"),
    ],
)
def test_presets_run_their_kernels(capsys, tmp_path, preset, words):
    from dataclasses import replace

    from weft.bench import experiments, kernels

    chosen = experiments.find(preset)
    if not mpi_libraries.implementation("mpich").program(chosen.program).exists():
        pytest.skip(f"needs {chosen.program}")
    run = {**chosen.runs[0], "lab": None, "ranks": 2, "arguments": words}
    file, page = tmp_path / "figures.json", tmp_path / "page.html"
    small = replace(chosen, runs=[run])
    assert experiments.carry_out_kernel(small, ["mpich"], file, page) == 0
    assert "Found: The finding" in " ".join(capsys.readouterr().out.split())
    (measured,) = kernels.load(file).runs
    assert measured.communication_share > 0 and "2 ranks" in measured.title
    assert "The finding" in page.read_text()


def test_threads_per_core_gives_all_cases_the_same_products(capsys, tmp_path):
    """As on a machine with two cores, whatever this one has."""
    from dataclasses import replace

    from weft.bench import experiments, kernels, presets

    if not mpi_libraries.implementation("mpich").program("gemm_allgather").exists():
        pytest.skip("needs gemm_allgather")
    if len(info.whole_cores()) < 2:
        pytest.skip("this machine has one core")
    chosen = presets.presets(2)["threads-per-core"]
    short = [{**run, "arguments": quicker(run["arguments"])} for run in chosen.runs[:3]]
    file, page = tmp_path / "figures.json", tmp_path / "page.html"
    assert experiments.carry_out_kernel(replace(chosen, runs=short), ["mpich"], file, page) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "that Prog2 is the fastest cannot be judged here" in said
    runs = kernels.load(file).runs
    assert [(run.case[:6], run.ranks) for run in runs] == [
        ("Normal", 2),
        ("Prog2,", 2),
        ("Prog4,", 4),
    ]
    assert len({run.amount for run in runs}) == 1 and runs[0].amount > 0
    assert "that Prog2 is the fastest" in page.read_text()


def quicker(arguments: str) -> str:
    words = arguments.split()
    words[words.index("--repetitions") + 1] = "3"
    return " ".join(words)


def test_a_case_without_the_run_that_chooses_its_amount_is_not_measured(capsys, tmp_path):
    from dataclasses import replace

    from weft.bench import experiments, presets

    chosen = presets.presets(2)["threads-per-core"]
    alone = replace(chosen, runs=chosen.runs[1:2])
    assert experiments.carry_out_kernel(alone, ["mpich"], tmp_path / "f", tmp_path / "p") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Not measured: Prog2, all ranks on one core needs a run before it, which chooses the amount"
        in said
    )


def test_without_fftw_the_remedy_names_it(monkeypatch, tmp_path):
    from weft.bench import experiments, kernels
    from weft.bench.settings import SettingsError

    monkeypatch.setattr(installation, "BUILD", tmp_path)
    with pytest.raises(SettingsError, match=r"install FFTW \(Debian: libfftw3-dev\) and"):
        kernels.measure("fft3d", experiments.find("fft3d").runs[0], "mpich")
