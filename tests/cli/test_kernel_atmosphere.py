"""Tests kernels/atmosphere with flows whose solution is known, and the files that it writes."""

from __future__ import annotations

import array
import itertools
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from kernel_answers import QUICK, check, refused, sines_of_gauss

SPHERE = ("--truncation", 10, *QUICK)


def test_a_steady_flow_across_the_poles_stays_and_sections_change_no_bit(kernel):
    said = check(kernel("atmosphere", *SPHERE, "--steps", 2, ranks=3, engines="auto,thread"))
    assert said.count(" bitwise equal") == 6 and "not bitwise" not in said
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


def test_the_file_holds_the_fields_of_the_steady_flow(kernel, tmp_path):
    """All records are compared with the case's own formulas at every point of the grid."""
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
    """Returns the words of a command that runs another one with a disk of 16 KiB in this directory.

    Shared memory is mounted as well and disappears with it, since MPI_Abort leaves files there."""
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
    """The result is the same with Open MPI, and the mass is constant."""
    words = (*SPHERE, "--case", 5, "--steps", 24)
    alone = check(kernel("atmosphere", *words, ranks=1)).splitlines()[0]
    assert 1e-5 < float(alone.split("beginning by ")[1].split(",")[0]) < 1e-2
    assert float(alone.split("mass by ")[1]) < 1e-12
    done = check(kernel("atmosphere", *words, engines="auto", mpi="openmpi"))
    assert done.splitlines()[0].split(", mass")[0] == alone.split(", mass")[0]


def test_fields_have_the_same_bits_on_any_number_of_ranks(kernel, tmp_path):
    """This includes ranks that have a part of a block of latitudes, or latitudes without their
    opposite ones."""
    words = ("--what", "flow", "--truncation", 42, "--case", "galewsky", "--steps", 3)
    written = set()
    for ranks in (1, 2, 3, 5):
        file = tmp_path / str(ranks)
        done = kernel("atmosphere", *words, "--every", 2, "--output", file, ranks=ranks)
        assert done.returncode == 0, done.stderr
        written.add(file.read_bytes())
    assert len(written) == 1 and len(written.pop()) == 2 * 3 * 64 * 128 * 8


def beginning(said: str) -> float:
    return float(said.split("beginning by ")[1].split(",")[0])


def energy(said: str) -> float:
    return float(said.split("energy differs by ")[1].split(";")[0])


def test_the_jet_without_its_perturbation_stays_for_five_days(kernel):
    """The remaining error is that of the truncation, which decreases faster than any power of the
    wave number."""
    kept = []
    for truncation in (10, 21):
        words = ("--truncation", truncation, "--case", "jet", "--steps", 240, "--seconds", 1800)
        said = check(kernel("atmosphere", *words, *QUICK, ranks=1))
        assert "5.00 days" in said and energy(said) < 1e-4
        kept.append(beginning(said))
    assert kept[1] < 2e-3 and kept[1] < kept[0] / 4


def test_the_jet_with_its_perturbation_keeps_mass_and_energy_and_grows_eddies(kernel):
    words = ("--truncation", 21, "--steps", 144, "--seconds", 1800, *QUICK)
    said = {
        case: check(kernel("atmosphere", *words, "--case", case, ranks=1))
        for case in ("jet", "galewsky")
    }
    perturbed = said["galewsky"]
    assert float(perturbed.splitlines()[0].split("mass by ")[1]) < 1e-12
    assert energy(perturbed) < 1e-4
    least = [float(one.split("vorticity from ")[1].split()[0]) for one in said.values()]
    assert least[1] < 1.03 * least[0] < 0


def test_diffusion_takes_energy_and_no_mass(kernel):
    words = (*SPHERE, "--case", "galewsky", "--steps", 24)
    alone = check(kernel("atmosphere", *words, ranks=1))
    smoothed = check(kernel("atmosphere", *words, "--diffusion", "1e6", ranks=1))
    assert energy(smoothed) > 10 * energy(alone)
    assert ", 24 steps, diffusion 1e+06\n" in smoothed and "diffusion" not in alone
    assert float(smoothed.splitlines()[0].split("mass by ")[1]) < 1e-12


def test_a_flow_that_diffusion_damps_need_not_be_steady(kernel):
    words = ("--case", 2, "--truncation", 5, "--steps", 3, "--diffusion", "1e5", *QUICK)
    assert (
        float(check(kernel("atmosphere", *words)).split("beginning by ")[1].split(",")[0]) > 1e-10
    )


def test_a_step_that_is_too_long_is_said_to_diverge(kernel):
    words = ("--case", 5, "--steps", 60, "--seconds", 30000)
    done = kernel("atmosphere", *SPHERE, *words, ranks=1)
    assert done.returncode == 1 and "nan" not in done.stdout
    assert "diverged: choose fewer --seconds for a step" in done.stdout
