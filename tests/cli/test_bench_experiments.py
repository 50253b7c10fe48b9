"""`weft bench --preset`: what is measured, what is told, and what is refused."""

import pytest

from weft.bench import experiments
from weft.bench.presets import presets
from weft.bench.result import Result
from weft.bench.settings import SettingsError


def test_an_unknown_preset_names_the_choices():
    with pytest.raises(SettingsError, match="unknown preset 'x'; choose one of tcc, "):
        experiments.find("x")


def test_every_preset_is_found():
    for name in presets(2):
        assert experiments.find(name).name == name


def test_what_cannot_be_measured_is_said_and_nothing_runs(tmp_path, capsys):
    def measure(options):
        raise AssertionError("nothing to measure")

    page = tmp_path / "page.html"
    assert experiments.carry_out(experiments.find("split-tree"), measure, page) == 0
    said = capsys.readouterr().out
    assert "Published: Denis et al." in said
    assert "Not measured here: the whole experiment" in said
    assert not page.exists()


def test_without_a_point_the_preset_fails(tmp_path):
    def measure(options):
        return Result(machine={}, points=[])

    preset = experiments.find("tcc")
    assert experiments.carry_out(preset, measure, tmp_path / "page.html") == 1


def test_the_kernel_of_three_arrays_runs_and_is_judged(capsys, tmp_path):
    preset = experiments.find("iallreduce-kernel")
    in_shared_memory = preset.runs[0]
    assert in_shared_memory["lab"] is None
    figures = experiments.kernel_figures(preset.program, {**in_shared_memory, "ranks": 2})
    assert figures["schema"] == "weft-kernel/1"
    assert {variant["engine"] for variant in figures["variants"]} >= {"function", "thread", "tcc"}
    assert "2 ranks, 10000 doubles" in preset.judge(figures)


def test_bad_preset_on_the_command_line(call):
    done = call("bench", "--preset", "moon")
    assert done.returncode == 2
    assert "choose one of tcc, threads-per-core" in done.stderr
