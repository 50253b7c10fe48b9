"""tools/kernel_bars.py: from a kernel's run to the figures of its bars. The runs are made up."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from reproductions import run

from weft.bench import kernel_runs, settings
from weft.measurements import kernels
from weft.system import installation


@pytest.fixture(scope="module")
def bars():
    tools = installation.ROOT / "tools"
    found = importlib.util.spec_from_file_location("kernel_bars", tools / "kernel_bars.py")
    module = sys.modules["kernel_bars"] = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(tools))
    found.loader.exec_module(module)
    sys.path.remove(str(tools))
    yield module
    del sys.modules["kernel_bars"], sys.modules["bar"]


def test_the_advisors_interval_is_that_of_the_timed_steps_of_the_kernel():
    tools = installation.ROOT / "tools"
    sys.path.insert(0, str(tools))
    import honesty_bars

    sys.path.remove(str(tools))
    case = honesty_bars.Case("kernel", "", 100, False)
    gain = {"low": 102.0, "high": 204.0}
    own = {"file": "/x/kernel.cc", "calls": 204, "gain_us": gain, "free_bounds_us": None}
    free = own | {"calls": 102, "free_bounds_us": {"least": -10.2, "most": 10.2}}
    harness = free | {"file": "/x/trials.h"}
    found = honesty_bars.intervals([own, free, harness, own | {"file": None}], case)
    assert found == pytest.approx([300, 600, -10, 10])


def a_run(share: float, **times_us: float) -> kernels.Run:
    named = {"native": 990.0, "function": 900.0, "thread": 800.0, "tcc": 850.0, "assist": 870.0}
    return replace(run(blocking=1000.0, **(named | times_us)), communication_share=share)


def test_auto_is_set_beside_blocking_and_the_best_named_engine(bars):
    case = bars.Case("cpals", "", 0.8)
    of_blocking, of_best = bars.compared(a_run(0.4, auto=760.0), case, "here")
    assert of_blocking.figure == pytest.approx(0.76) and of_blocking.limit == 0.8
    assert of_best.figure == pytest.approx(0.95) and of_best.limit == bars.BEST
    assert of_blocking.note == "[0.76, 0.76] of 11 runs; communication 40%"
    assert of_best.note.endswith("; thread") and "best named engine" in of_best.what


def test_communication_outside_the_wanted_share_is_said(bars):
    case = bars.Case("fft3d", "", 1.0)
    for share, said in ((0.3, "30%"), (0.61, "61%, not 30% to 60%"), (0.2, "20%, not 30% to 60%")):
        first, _ = bars.compared(a_run(share, auto=1010.0), case, "here")
        assert first.note.endswith(f"communication {said}")
        assert first.figure == pytest.approx(1.01)


def test_each_case_is_a_run_that_the_lab_and_the_kernel_take(bars, monkeypatch):
    asked = []

    def measure(program, options, mpi, limit_s):
        asked.append((program, options, mpi))
        return a_run(0.5, auto=700.0)

    monkeypatch.setattr(kernel_runs, "measure", measure)
    both = list(bars.in_lab(["mpich", "openmpi"], 9, False))
    assert len(both) == len(asked) == 2 * sum(len(case.nodes) for case in bars.CASES)
    for _, options, _ in asked:
        words = settings.lab_words(options["lab"])
        assert words["nodes"] in (2, 4) and words["rate"] == "200mbit"
        assert "--repetitions 9" in options["arguments"]
        assert options["engines"].split(",")[-1] == "auto"
    assert len(list(bars.in_lab(["mpich"], 9, True))) == sum(2 in case.nodes for case in bars.CASES)
    assert "--repetitions 3" in asked[-1][1]["arguments"]


SAID = {
    "pipecg": "product with the matrix: 24.5 GB/s, triad 30.1 GB/s, share 0.81 [0.79-0.84]\n",
    "cpals": "product of mode 1: 33.4 GB/s, triad 37.1 GB/s, share 0.90 [0.88-0.94]\n"
    "  of these bytes 50 % must be moved: share 0.45\n",
    "atmosphere": "transform to the grid: 54.5 GFlop/s, multiply-adds alone 201.1 GFlop/s, "
    "share 0.27 [0.26-0.28]\n",
    "fft3d": "transform: 1.38 ms, FFTW's serial one 1.15 ms, ratio 1.19 [1.10-1.22]\n",
}


def test_one_rank_s_speed_is_set_beside_the_memory_s_and_fftw_s(bars, monkeypatch):
    asked, said_by = [], dict(SAID)

    def run(words, **_):
        asked.append(words)
        said = said_by.get(Path(words[3]).name, "")
        return subprocess.CompletedProcess(words, 0 if said else 2, said, "is not here")

    monkeypatch.setattr(bars.subprocess, "run", run)
    found = list(bars.speeds("mpich", 5))
    assert len(found) == len(bars.SPEEDS) == len(asked)
    assert all(words[1:3] == ("-n", "1") and "speed" in words for words in asked)
    met = {one.what.split()[2]: one for one in found}
    assert met["pipecg"].met and met["pipecg"].figure == 0.81
    assert not met["cpals"].met and met["cpals"].figure == 0.45  # of what must be moved
    assert met["fft3d"].met and met["fft3d"].figure == 1.19
    assert met["atmosphere"].met and "grid of multiply-adds alone" in met["atmosphere"].what
    del said_by["atmosphere"]
    met = {one.what.split()[2]: one for one in bars.speeds("mpich", 5)}
    assert not met["atmosphere"].met and "is not here" in met["atmosphere"].note


def test_the_speed_of_a_program_that_fails_is_none(bars, monkeypatch):
    """After its figure it may have found that its results are wrong."""
    said = SAID["fft3d"] + "1 wrong results\n"

    def run(words, **_):
        return subprocess.CompletedProcess(words, 1, said, "")

    monkeypatch.setattr(bars.subprocess, "run", run)
    found = list(bars.speeds("mpich", 5))
    assert len(found) == len(bars.SPEEDS)
    assert not any(one.met for one in found)
    assert all("1 wrong results" in one.note for one in found)


def test_one_run_is_enough_for_a_figure(bars):
    some = a_run(0.4, auto=800.0)
    once = {name: [times.median] for name, times in some.times_us.items()}
    case = bars.Case("cpals", "", 0.8)
    of_blocking, of_best = bars.compared(replace(some, samples_us=once), case, "here")
    assert of_blocking.figure == pytest.approx(0.8) and of_best.figure == pytest.approx(1.0)
    assert of_blocking.note.startswith("[0.80, 0.80] of 1 runs")


def test_a_kernel_without_a_result_misses_its_bars_and_the_others_go_on(bars, monkeypatch):
    def measure(program, options, mpi, limit_s):
        if program == "pipecg":
            raise settings.SettingsError("no answer within 5 s")
        return a_run(0.5, auto=700.0)

    monkeypatch.setattr(kernel_runs, "measure", measure)
    found = list(bars.in_lab(["mpich"], 9, True))
    lost = [one for run, pair in found if run is None for one in pair]
    assert len(found) == sum(2 in case.nodes for case in bars.CASES) and len(lost) == 2
    assert not any(one.met for one in lost)
    assert all("pipecg" in one.what and one.note == "no answer within 5 s" for one in lost)
