"""Tests the scaling of kernels: ratios are formed within a round, the picture shows where the cores
end, and a measurement has every case of every kernel."""

from __future__ import annotations

import importlib
import json
import re
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from weft.bench import kernel_runs
from weft.system import info, mpi_libraries

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

TOOLS = Path(__file__).parents[2] / "tools"
MACHINES = {"m": "a machine"}


@pytest.fixture
def scaling(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("generate_scaling")


def figures(scaling, cores: int = 2) -> dict:
    """Returns figures in which the blocking kernel takes 60 ms on one rank, and a half and a third
    of that on more. The overlapped kernel takes 10 ms less."""
    times = {
        str(ranks): {"blocking": [60 / r, 120 / r], "overlapped": [60 / r - 10, 120 / r - 20]}
        for ranks, r in zip(scaling.RANKS, (1, 2, 3))
    }
    names = scaling.PROBLEMS
    about = {"machine": "m", "cores": cores, "date": "2026-01-01", "commit": "c", "library": "L"}
    about |= {"rate": "1mbit", "command": "x", "remark": "Quiet"}
    about["problems"] = {name: dict.fromkeys(scaling.MODES, "--size 1") for name in names}
    return {**about, "kernels": {name: dict.fromkeys(scaling.MODES, times) for name in names}}


def test_ratios_are_made_within_a_round(scaling):
    """In the second round the machine is half as fast, which changes no ratio."""
    times = figures(scaling)["kernels"]["stencil"]["strong"]
    assert scaling.figure(times, "blocking", 4) == pytest.approx((3, 3, 3))
    assert scaling.figure(times, "overlapped", 2) == pytest.approx((3, 3, 3))
    times["2"]["blocking"][1] = 30
    assert scaling.figure(times, "blocking", 2) == pytest.approx((3, 2, 4))


def test_the_picture_says_where_the_cores_end(scaling):
    """The mark begins behind two ranks. On a machine with enough cores there is none."""
    panels = len(scaling.PROBLEMS) * len(scaling.MODES)
    drawn = scaling.picture(figures(scaling), MACHINES)
    xml.fromstring(drawn)
    assert drawn.count("beyond the 2 cores") == panels
    begins = {float(x) for x in re.findall(r'class="beyond" x="([0-9.]+)"', drawn)}
    assert begins == {
        scaling.LEFT + column * (scaling.PANEL_WIDTH + scaling.GAP) + scaling.PANEL_WIDTH / 2
        for column in range(len(scaling.MODES))
    }
    assert "beyond the" not in scaling.picture(figures(scaling, cores=8), MACHINES)


def test_lines_are_as_high_as_the_ratios(scaling):
    times = figures(scaling)["kernels"]["stencil"]["strong"]
    lines = "".join(scaling.panel(times, "strong", 0, 0, 2))
    (points,) = re.findall(r'class="line-without" points="([^"]*)"', lines)
    heights = [float(point.split(",")[1]) for point in points.split()]
    most = scaling.RANKS[-1]
    assert heights == pytest.approx(
        [scaling.PANEL_HEIGHT * (1 - speed / most) for speed in (1, 2, 3)], abs=0.1
    )


def test_the_committed_figures_hold_every_case(scaling):
    data = json.loads(scaling.DATA.read_text())
    assert data["kernels"].keys() == data["problems"].keys() <= scaling.PROBLEMS.keys()
    machines = json.loads((TOOLS.parent / "docs/data/machines.json").read_text())
    assert data["machine"] in machines and data["cores"] >= 1
    for modes in data["kernels"].values():
        for mode in scaling.MODES:
            assert list(modes[mode]) == [str(ranks) for ranks in scaling.RANKS]
            counts = {len(one[way]) for one in modes[mode].values() for way in scaling.WAYS}
            assert len(counts) == 1 and counts.pop() >= 1


def test_what_was_not_measured_yet_is_not_on_the_page(scaling):
    data = figures(scaling)
    page = scaling.page(data, MACHINES)
    assert (
        page.count("`atmosphere`: the links") == 1 and "| `pipecg` | of one rank: `--size" in page
    )
    del data["kernels"]["atmosphere"]
    page, drawn = scaling.page(data, MACHINES), scaling.picture(data, MACHINES)
    assert "atmosphere" not in page + drawn and "`pipecg`: the links are 1 ms late" in page


def test_problems_of_more_ranks_are_larger(scaling):
    for name in scaling.PROBLEMS:
        weak = [scaling.problem(name, "weak", ranks) for ranks in scaling.RANKS]
        strong = {scaling.problem(name, "strong", ranks) for ranks in scaling.RANKS}
        assert len(set(weak)) == len(scaling.RANKS) and strong == {weak[1]}


def test_a_measurement_runs_every_case_with_its_problem(scaling, monkeypatch):
    """The real programs run with small problems and without a lab."""
    missing = [
        n for n in scaling.PROBLEMS if not mpi_libraries.implementation("mpich").program(n).exists()
    ]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    small = {
        "stencil": lambda ranks: f"--grid {4 * ranks}x6x6 --steps 2",
        "fft3d": lambda ranks: f"--grid {8 * ranks}x8x8",
        "cpals": lambda ranks: f"--dimensions 9x8x7 --entries {50 * ranks} --rank 2",
        "pipecg": lambda ranks: f"--grid 6x6x{6 * ranks}",
        "atmosphere": lambda ranks: f"--truncation {5 * ranks} --steps 1",
    }
    monkeypatch.setattr(scaling, "PROBLEMS", small)
    monkeypatch.setattr(scaling, "RANKS", (1, 2))
    asked, links = [], {}

    def here(program, options, mpi):
        ranks = int(re.match(r"nodes=(\d+),", options["lab"])[1])
        links[program] = options["lab"].partition(scaling.RATE)[2]
        asked.append((program, options["arguments"].rsplit(" --repetitions")[0], ranks))
        run = real(program, {**options, "lab": None, "ranks": str(ranks)}, mpi)
        assert run.ranks == ranks
        return run

    real = kernel_runs.measure
    monkeypatch.setattr(kernel_runs, "measure", here)
    data = scaling.measure("m", 1, "mpich", "Quiet")
    assert data["cores"] == len(info.whole_cores()) and "MPICH" in data["library"]
    assert len(asked) == len(small) * 2 * 2
    assert links["stencil"] == "" and links["pipecg"] == ",delay=1ms"
    assert ("stencil", "--grid 8x6x6 --steps 2", 1) in asked  # the problem of strong scaling
    assert ("stencil", "--grid 4x6x6 --steps 2", 1) in asked  # the problem of weak scaling
    assert scaling.figure(data["kernels"]["fft3d"]["weak"], "blocking", 1) == (1, 1, 1)
    page = scaling.page(data, MACHINES)
    assert "# Strong and weak scaling" in page and "a machine. Quiet." in page
