"""Tests presets of `weft bench` that run kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.system import info, installation, mpi_libraries


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

    from weft.bench import experiments
    from weft.measurements import kernels

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


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"engines": "native,thraed"}, "--engines: unknown 'thraed'"),
        ({"ranks": "4"}, "--ranks has no effect on preset stencil in the lab"),
        ({"ranks": "4", "lab": "nodes=2"}, "--ranks has no effect on preset stencil in the lab"),
        ({"lab": "nodes=4", "launcher": "srun"}, "--lab and --launcher exclude each other"),
    ],
)
def test_what_has_no_effect_on_a_kernel_is_refused(said, sentence):
    from weft.bench import experiments
    from weft.bench.settings import SettingsError

    with pytest.raises(SettingsError, match=sentence):
        experiments.adapted(experiments.find("stencil"), said, said)


def test_samples_that_cannot_be_kept_are_not_taken(tmp_path):
    from weft.bench import experiments
    from weft.bench.settings import SettingsError

    chosen, file = experiments.find("stencil"), Path("/proc/x/y.json")
    with pytest.raises(SettingsError, match=f"cannot write {file}"):
        experiments.carry_out_kernel(chosen, ["mpich"], file, tmp_path / "page.html")


def test_threads_per_core_gives_all_cases_the_same_products(capsys, tmp_path):
    """The preset is that of a machine with two cores, whatever this machine has."""
    from dataclasses import replace

    from weft.bench import experiments
    from weft.measurements import kernels, presets

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

    from weft.bench import experiments
    from weft.measurements import presets

    chosen = presets.presets(2)["threads-per-core"]
    alone = replace(chosen, runs=chosen.runs[1:2])
    with pytest.raises(experiments.NothingMeasuredError):
        experiments.carry_out_kernel(alone, ["mpich"], tmp_path / "f", tmp_path / "p")
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Not measured: Prog2, all ranks on one core needs a run before it, which chooses the amount"
        in said
    )


def test_without_fftw_the_remedy_names_it(monkeypatch, tmp_path):
    from weft.bench import experiments, kernel_runs
    from weft.bench.settings import SettingsError

    monkeypatch.setattr(installation, "BUILD", tmp_path)
    with pytest.raises(SettingsError, match=r"install FFTW \(Debian: libfftw3-dev\) and"):
        kernel_runs.measure("fft3d", experiments.find("fft3d").runs[0], "mpich")
