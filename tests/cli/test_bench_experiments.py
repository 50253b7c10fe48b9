"""Tests `weft bench --preset`: what it measures, prints and refuses."""

import json
import re
from dataclasses import replace

import pytest
from synthetic import hides, result

from weft.bench import experiments
from weft.bench.settings import SettingsError
from weft.measurements import kernels
from weft.measurements.presets import presets
from weft.measurements.result import Result, save_json
from weft.system import gpu, installation, mpi_libraries


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
    assert experiments.carry_out(presets(1)["threads-per-core"], measure, page) == 0
    said = capsys.readouterr().out
    assert "Published: Nanri et al." in said
    assert "Not measured here: 32 nodes of 120 cores" in said
    assert not page.exists()


def test_without_a_point_the_preset_fails(tmp_path):
    def measure(options):
        return Result(machine={}, points=[])

    preset = experiments.find("placement")
    assert experiments.carry_out(preset, measure, tmp_path / "page.html") == 1


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_the_kernel_of_three_arrays_runs_is_judged_and_reported(call, capsys, tmp_path, mpi):
    if not mpi_libraries.implementation(mpi).program("iallreduce_kernel").exists():
        pytest.skip(f"needs a build for {mpi}")
    preset = experiments.find("iallreduce-kernel")
    in_shared_memory = {**preset.runs[0], "ranks": 2, "arguments": "--elements 1000"}
    assert in_shared_memory["lab"] is None
    small = replace(preset, runs=[in_shared_memory])
    file, page = tmp_path / "figures.json", tmp_path / "page.html"
    assert experiments.carry_out_kernel(small, [mpi], file, page) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Found: The finding .*2 ranks, 1000 doubles, shared memory", said)
    (run,) = kernels.load(file).runs
    assert set(run.engines) == set(in_shared_memory["engines"].split(","))
    again = tmp_path / "again.html"
    done = call("report", file, "-o", again)
    assert done.returncode == 0, done.stderr
    assert "The finding" in done.stdout
    for written in (page, again):
        text = written.read_text()
        assert "54 % less time" in text and preset.judge(run).split(":")[0] in text


def test_a_kernel_that_cannot_run_is_said(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(mpi_libraries, "MPI_DIR", tmp_path)
    monkeypatch.setattr(installation, "BUILD", tmp_path)
    preset = experiments.find("iallreduce-kernel")
    with pytest.raises(experiments.NothingMeasuredError) as error:
        experiments.carry_out_kernel(preset, ["mpich"], tmp_path / "x", tmp_path / "y")
    assert "is missing; build it with: make" in error.value.reasons[0]
    assert "is missing; build it with: make" in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "x").exists()


def figures_of_a_kernel(path, **changes) -> None:
    variants = [{"engine": name, "samples_us": [5.0, 6.0, 7.0]} for name in ("", "thread")]
    run = {"schema": "weft-kernel/1", "kernel": "k", "mpi": "M", "ranks": 2, "elements": 8}
    path.write_text(json.dumps({**run, "variants": variants, **changes}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"variants": []}, "at least one engine"),
        ({"variants": [{"engine": "thread"}]}, "variants[0].samples_us is missing"),
        ({"variants": [{"engine": "", "samples_us": []}]}, "variants[0].samples_us"),
        ({"ranks": None}, "ranks should be a valid integer, not None"),
    ],
)
def test_damaged_figures_of_a_kernel_are_refused(call, tmp_path, changes, said):
    figures_of_a_kernel(tmp_path / "x.json", **changes)
    done = call("report", tmp_path / "x.json", "-o", tmp_path / "x.html")
    assert done.returncode == 2
    assert f"{tmp_path / 'x.json'}: " in done.stderr and said in done.stderr


def test_a_preset_s_result_reports_its_finding(call, tmp_path):
    found = result({"thread": hides(0.8)})
    found.settings = {"preset": "placement"}
    save_json(found, tmp_path / "x.json")
    assert call("report", tmp_path / "x.json", "-o", tmp_path / "x.html").returncode == 0
    page = (tmp_path / "x.html").read_text()
    assert "Published: Denis et al. 2019: 62 ranks" in page
    assert "Found: Not decided: no placement of a scan was measured." in page


def test_a_result_of_before_its_preset_ran_a_program_is_reported_without_judgement(call, tmp_path):
    found = result({"thread": hides(0.8), "tcc": hides(0.5)})
    found.settings = {"preset": "tcc"}
    save_json(found, tmp_path / "x.json")
    done = call("report", tmp_path / "x.json", "-o", tmp_path / "x.html")
    assert done.returncode == 0, done.stderr
    assert "Okuma" not in (tmp_path / "x.html").read_text()


def test_bad_preset_on_the_command_line(call):
    done = call("bench", "--preset", "moon")
    assert done.returncode == 2
    assert done.stderr.startswith("weft bench: Invalid value for '--preset': 'moon' is not one of")
    assert done.stderr.count("\n") == 1


def test_a_preset_for_gpus_says_that_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "DEVICE_FILES", ())
    preset = experiments.find("gpu-stencil")
    with pytest.raises(SettingsError, match="preset gpu-stencil cannot run: no GPU here"):
        experiments.carry_out_kernel(preset, ["mpich"], tmp_path / "f", tmp_path / "page")
    with pytest.raises(SettingsError, match="--engines has no effect on preset gpu-stencil"):
        experiments.adapted(preset, {"engines": "thread"}, {"engines"})


GIVEN = {"launcher": None, "lab": None, "ranks": None, "collective": "allreduce", "mpi": None}


def runs(preset, **said):
    return experiments.adapted(preset, {**GIVEN, **said}, set(said)).runs


def test_a_launcher_reaches_every_run_of_every_preset():
    for preset in presets(16).values():
        for options in runs(preset, launcher="srun --mpi=pmi2"):
            assert options["launcher"] == "srun --mpi=pmi2" and options["lab"] is None
    per_node = runs(presets(16)["nbc-eff"], launcher="mpiexec")
    assert [options["ranks"] for options in per_node] == ["2", "16"]
    (asked,) = runs(presets(16)["nbc-eff"], launcher="mpiexec", ranks="4")
    assert asked["ranks"] == "4"


def test_what_is_said_wins_over_the_preset_and_defaults_do_not():
    preset = presets(2)["placement"]
    (plain,) = experiments.adapted(preset, {**GIVEN, "engines": "native", "amounts": "10"}, ()).runs
    assert plain == preset.runs[0]
    (said,) = runs(preset, engines="thread", amounts="1x", mpi="openmpi")
    assert (said["engines"], said["amounts"], said["mpi"]) == ("thread", "1x", "openmpi")
    assert said["collective"] == "scan"


def test_a_value_that_makes_another_experiment_is_refused_in_one_sentence():
    with pytest.raises(SettingsError, match=r"--collective bcast makes another .* needs scan"):
        runs(presets(2)["placement"], collective="bcast")
    with pytest.raises(
        SettingsError, match=r"--placements bind makes another .* needs bind,numa,odd"
    ):
        runs(presets(2)["placement"], placements="bind")
    assert runs(presets(2)["placement"], placements="bind,numa,odd-even,list:0")
    with pytest.raises(SettingsError, match="--amounts has no effect on preset iallreduce-kernel"):
        runs(presets(2)["iallreduce-kernel"], amounts="3")


def test_a_kernel_runs_through_the_launcher(tmp_path, environment, call, script):
    if not mpi_libraries.implementation("mpich").program("iallreduce_kernel").exists():
        pytest.skip("needs a build for mpich")
    mpiexec = mpi_libraries.implementation("mpich").mpiexec
    srun = script("srun", f'echo "$@" >>{tmp_path}/calls; shift; exec {mpiexec} "$@"')
    words = ["--preset", "iallreduce-kernel", "--mpi", "mpich", "--ranks", "2"]
    out = tmp_path / "x.sqlite"
    path = f"{srun.parent}:{environment['PATH']}"
    done = call("bench", *words, "--launcher", "srun --mpi=pmi2", "-o", out, PATH=path)
    assert done.returncode == 0, done.stderr + done.stdout
    (line,) = (tmp_path / "calls").read_text().splitlines()
    assert line.startswith("--mpi=pmi2 -n 2 ") and "iallreduce_kernel" in line
