"""Tests presets: their options are those of weft bench, and their judgements follow from the
figures."""

import inspect
import json
import re
from dataclasses import replace

import pytest
from synthetic import hides, points, result, statistic

from weft.bench import command, kernel_runs, settings
from weft.bench.settings import SettingsError
from weft.data import stored
from weft.measurements import kernels, presets
from weft.measurements.result import Alone
from weft.system import info

NAMES = ("tcc", "threads-per-core", "placement", "nbc-eff", "iallreduce-kernel")
NAMES += ("pipecg", "fft3d", "stencil", "cpals", "atmosphere", "gpu-stencil")


def collective(found, name):
    found.points = [replace(point, collective=name) for point in found.points]
    found.alone = [replace(alone, collective=name) for alone in found.alone]
    return found


@pytest.mark.parametrize("cores", [2, 16])
def test_every_published_experiment_is_a_preset(cores):
    assert tuple(presets.presets(cores)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_runs_are_options_of_the_benchmark(name):
    preset = presets.presets(2)[name]
    assert preset.runs or preset.not_available
    if preset.program:
        return
    options = inspect.signature(command.bench).parameters
    for run in preset.runs:
        assert run.keys() <= options.keys()
        settings.words("--collective", run["collective"], settings.COLLECTIVES)
        settings.words("--engines", run["engines"], settings.ENGINES)
        settings.check_amounts(run["amounts"])
        settings.lab_words(run["lab"])
        for size in run["size"].split(","):
            settings.size_bytes("--bytes", size)


def test_ranks_per_node_need_cores():
    assert len(presets.presets(2)["nbc-eff"].runs) == 1
    assert "per-node=8" in presets.presets(16)["nbc-eff"].runs[1]["lab"]


def test_what_is_missing_is_said():
    preset = presets.presets(1)["threads-per-core"]
    assert preset.runs == []
    assert "32 nodes" in preset.not_available


def test_placement_is_measured_on_one_node_where_it_has_cores_for_the_threads():
    assert presets.presets(5)["placement"].runs[0]["lab"]
    (run,) = presets.presets(16)["placement"].runs
    assert (run["lab"], run["launcher"], run["ranks"]) == (None, "mpiexec", "14")
    assert run["algorithms"] == "chain"


def test_tcc_holds_where_function_thread_and_tcc_gain():
    judge = presets.presets(2)["tcc"].judge
    called = {"overlapped, call per row, function": 800.0}
    text = judge(kernel(blocking=1000.0, thread=500.0, tcc=750.0, **called))
    assert text.startswith("The finding holds in direction: function, thread and TCC gain")
    assert "in the order thread, tcc and overlapped, call per row, function (" in text
    assert text.verdict == "holds in direction"
    assert "thread 2.00 (published 1.127)" in text
    assert "tcc 1.33 (published 1.166)" in text
    assert "call per row, function 1.25 (published 1.346)" in text
    assert "was not counted" in text


def test_tcc_does_not_hold_where_nothing_gains():
    judge = presets.presets(2)["tcc"].judge
    text = judge(kernel(blocking=1000.0, thread=1000.0, tcc=1200.0))
    assert text.verdict == "does not hold" and "none of the three gains" in text
    text = judge(kernel(blocking=1000.0, thread=700.0, tcc=700.0))
    assert "row, function (not measured) may gain or not (" in text and text.verdict == "open"
    assert "in part: of the three, tcc" in judge(kernel(blocking=1000.0, thread=1000.0, tcc=700.0))


def test_pipecg_compares_with_blocking_and_with_the_halo_alone():
    judge = presets.presets(2)["pipecg"].judge
    run = kernel(blocking=1000.0, thread=700.0, native=950.0, **{"halo only": 875.0})
    text = judge(replace(run, communication_share=0.6))
    assert text.startswith("The finding holds in direction")
    assert "thread, it is 1.43 times as fast as blocking (published: 1.27)" in text
    assert "1.25 times as fast as with the halo alone (published: 1.06)" in text
    assert "communicates for 60 % of its time" in text and "would save up to 40 %" in text
    assert "holds in part" in judge(kernel(blocking=1000.0, thread=700.0, **{"halo only": 600.0}))
    slower = judge(kernel(blocking=1000.0, thread=1300.0, **{"halo only": 990.0}))
    assert "does not show" in slower and "0.77 times as fast as blocking" in slower


def test_pipecg_s_master_thread_is_measured_where_each_rank_has_two_cores(monkeypatch):
    assert not any("--threads" in run["arguments"] for run in presets.presets(2)["pipecg"].runs)
    assert "a second core for each rank" in presets.presets(2)["pipecg"].not_available
    found = presets.presets(4)["pipecg"]
    threaded = [run for run in found.runs if "--threads 2" in run["arguments"]]
    assert len(threaded) == 2 and "second core" not in found.not_available
    monkeypatch.setattr(info, "whole_cores", lambda: [0, 2, 4, 5, 6])
    assert kernel_runs.node_cores(threaded[0], 2) == ["0,2", "4,5"]
    assert kernel_runs.node_cores(found.runs[0], 2) is None
    with pytest.raises(SettingsError, match="needs 6 cores, 2 for each node; usable: 5"):
        kernel_runs.node_cores(threaded[0], 3)


def test_fft3d_holds_where_communication_takes_most_of_the_time():
    judge = presets.presets(2)["fft3d"].judge
    run = replace(kernel(blocking=1000.0, thread=900.0), communication_share=0.9)
    text = judge(run)
    assert text.startswith("The finding holds") and "90 % of the blocking transform" in text
    assert "thread, it takes 10 % less time" in text and "would save up to 10 %" in text
    assert judge(replace(run, communication_share=0.3)).verdict == "does not hold"
    assert judge(replace(run, communication_share=0.52)).verdict == "holds in part"
    assert judge(replace(run, communication_share=0.0)).verdict == "open"
    assert "auto" not in text


def test_fft3d_tells_whether_auto_is_slower_than_blocking():
    judge = presets.presets(2)["fft3d"].judge
    run = replace(kernel(blocking=1000.0, auto=1001.0), communication_share=0.9)
    assert "Under auto it is not slower than blocking beyond the spread." in judge(run)
    run = replace(kernel(blocking=1000.0, auto=1100.0), communication_share=0.9)
    assert "Under auto it is slower than blocking: 10 % more time." in judge(run)


def test_stencil_holds_where_the_interior_hides_the_halo():
    judge = presets.presets(2)["stencil"].judge
    run = kernel(blocking=1000.0, thread=800.0, messages=900.0)
    text = judge(replace(run, communication_share=0.3))
    assert text.startswith("The finding holds in direction")
    assert "thread, it is 1.25 times as fast as blocking (published: about 1.20)" in text
    assert "does not show" in judge(kernel(blocking=1000.0, thread=1100.0))


@pytest.mark.parametrize("name", ["stencil", "iallreduce-kernel"])
@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        ({"blocking": 1000.0, "thread": 700.0}, "holds in direction"),
        ({"blocking": 1000.0, "thread": 1000.0}, "does not hold"),
        ({"blocking": 1000.0, "thread": 1300.0}, "does not hold"),
    ],
)
def test_gains_are_judged_by_intervals(name, run, verdict):
    assert presets.presets(2)[name].judge(kernel(**run)).verdict == verdict


@pytest.mark.parametrize("name", ["stencil", "iallreduce-kernel"])
def test_wide_intervals_decide_nothing_whatever_the_medians_are(name):
    judge = presets.presets(2)[name].judge
    for thread_us in (700.0, 1000.0, 1300.0):
        assert judge(kernel_run(spread_of(blocking=1000.0, thread=thread_us))).verdict == "open"


def test_cpals_compares_the_exchange_made_for_rows_with_those_by_collectives():
    judge = presets.presets(2)["cpals"].judge
    collectives = {"blocking": 1000.0, "thread": 700.0, "neighbours, thread": 750.0}
    text = judge(kernel(**collectives, **{"rows, thread": 600.0, "messages": 900.0}))
    assert text.verdict == "holds" and "takes 40 % less time than blocking" in text
    assert "The fastest of both: rows, thread 0.6 ms and thread 0.7 ms." in text
    assert judge(kernel(**collectives, messages=701.0)).verdict == "does not hold"
    assert judge(kernel(**collectives)).verdict == "open", "no exchange of its own was measured"


def test_atmosphere_tells_which_sections_hide_the_gather():
    judge = presets.presets(2)["atmosphere"].judge
    sections = {"behind pressure, thread": 900.0, "behind transform, thread": 1001.0}
    text = judge(kernel(blocking=1000.0, thread=800.0, **sections))
    assert text.startswith("The finding holds in part")
    assert "behind pressure 10 % less time and behind transform 0 % more time" in text
    assert "where the transposes travel, too (thread), 20 % less time" in text
    sections = dict.fromkeys(sections, 900.0)
    assert "The finding holds (" in judge(kernel(blocking=1000.0, thread=800.0, **sections))


def test_atmosphere_tells_by_how_much_the_output_hides():
    judge = presets.presets(2)["atmosphere"].judge
    ways = {
        "blocking": 1000.0,
        "thread": 700.0,
        "behind steps, thread": 850.0,
        "rank 0 writes": 1250.0,
        "rank 0 behind steps, thread": 1250.0,
        "nothing written": 800.0,
    }
    text = judge(kernel(**ways))
    assert text.startswith("The finding holds for the output in part")
    assert (
        "written by all ranks, blocking output is 20 % of the time, and behind the next steps it"
        " takes 15 % less time; written by rank 0, blocking output is 36 % of the time, and behind"
        " the next steps it takes 0 % less time, no gain."
    ) in text
    ways["rank 0 behind steps, thread"] = 1000.0
    assert judge(kernel(**ways)).startswith("The finding holds for the output (")
    ways |= {"behind steps, thread": 1100.0, "rank 0 behind steps, thread": 1300.0}
    text = judge(kernel(**ways))
    assert text.startswith("The finding does not show for the output")
    assert "10 % more time" in text


def test_gpu_stencil_holds_where_nothing_is_faster_than_graphs():
    judge = presets.presets(2)["gpu-stencil"].judge
    text = judge(kernel(blocking=100.0, notify=60.0, coop=50.0, graphs=40.0))
    assert text.startswith("The finding holds")
    assert "with graphs a step takes 40 µs, synchronising 0.1 ms" in text
    slower = judge(kernel(blocking=100.0, notify=60.0, coop=20.0, graphs=40.0))
    assert slower.startswith("The finding does not hold") and "faster: coop" in slower
    assert "no finding to judge" in judge(kernel(blocking=100.0, notify=60.0))
    equal = judge(kernel(blocking=100.0, notify=40.1, coop=40.0, graphs=40.0))
    assert equal.verdict == "open" and "within the spread: coop and notify" in equal
    noisy = kernel_run(spread_of(graphs=40.0, notify=60.0, blocking=100.0))
    assert judge(noisy).verdict == "open", "the median alone would be faster"


def spread_of(**times_us: float) -> dict:
    """Returns a run whose samples vary so much that all intervals overlap."""
    variants = [
        {"name": name, "samples_us": [time_us * (0.3 + 0.14 * i) for i in range(11)]}
        for name, time_us in times_us.items()
    ]
    about = {"schema": "weft-kernel/1", "kernel": "k", "mpi": "MPICH 5.0.2", "ranks": 2}
    return {**about, "problem": "a problem", "variants": variants}


def test_a_variant_is_called_by_its_engine_and_what_else_it_does():
    def label(**words):
        return kernels.VariantFigures([1.0], **words).label

    assert label(engine="thread") == label(name="overlapped", engine="thread") == "thread"
    assert label() == label(name="blocking") == kernels.BLOCKING
    assert label(name="halo only") == "halo only"
    assert label(name="inner calls", engine="function") == "inner calls, function"


def test_threads_per_core_leaves_cores_to_the_threads():
    def ranks(cores):
        found = presets.presets(cores)["threads-per-core"].runs
        return {run["case"]: (run["ranks"], run["on_cores"]) for run in found}

    study = {"Normal": (120, 120), "Prog1": (60, 60), "Prog2": (80, 80), "Prog4": (96, 96)}
    assert ranks(120) == study
    assert ranks(3) == {"Normal": (3, 3), "Prog2": (2, 2)}
    crowded = {"Prog2, all ranks on one core": (2, 1), "Prog4, all ranks on one core": (4, 1)}
    assert ranks(2) == {"Normal": (2, 2), **crowded}
    assert ranks(1) == {}
    for run in presets.presets(5)["threads-per-core"].runs:
        normal = run["case"] == "Normal"
        assert ("--ratio" in run["arguments"]) == normal == ("placement" not in run)
        assert ("{amount}" in run["arguments"]) == (not normal)
    missing = presets.presets(4)["threads-per-core"].not_available
    assert "Prog4, which needs 5 cores" in missing and "Prog1" not in missing
    assert "share one of two cores here" in presets.presets(2)["threads-per-core"].not_available


def threads_runs(series: str, **times_us: float) -> list[kernels.Run]:
    """Returns runs of the study's cases. In case Normal the blocking form has the given time, in
    the others the thread."""
    return [
        replace(
            kernel(blocking=time_us, thread=9e6)
            if case == "Normal"
            else kernel(blocking=9e6, thread=time_us),
            series=series,
            case=case,
        )
        for case, time_us in times_us.items()
    ]


def test_threads_per_core_is_judged_by_the_published_order():
    judge = presets.presets(5)["threads-per-core"].judge
    short, long = ("16 B", "1 MB")
    half, twice = ("computation 1/2 of communication", "computation 2 of communication")
    said = judge(threads_runs(f"{short}, {half}", Normal=30.0, Prog1=25.0, Prog2=20.0, Prog4=40.0))
    assert f"{short}, {half}: that Prog2 is the fastest holds here (Prog2 20 µs, Prog1" in said
    said = judge(threads_runs(f"{short}, {twice}", Normal=30.0, Prog2=20.0))
    assert "that Normal is the fastest does not hold here (Prog2 20 µs" in said
    said = judge(threads_runs(f"{long}, {twice}", Normal=30.0, Prog2=9.0, Prog4=20.0))
    assert "that Prog4 is faster than Normal holds here" in said
    said = judge(threads_runs(f"{long}, {half}", Normal=30.0, Prog2=20.0, Prog4=20.0))
    assert "that Prog4 is the fastest is not decided" in said
    said = judge(threads_runs(f"{long}, {half}", Normal=30.0, Prog2=20.0))
    assert "that Prog4 is the fastest cannot be judged here" in said
    other = {"Normal": 30.0, "Prog2, all ranks on one core": 40.0}
    said = judge(threads_runs(f"{short}, {twice}", **other))
    assert "that Normal is the fastest cannot be judged here (Normal 30 µs and Prog2, all" in said


def alone(placement: str, time_us: float) -> Alone:
    where = ("mpich 5.0.2", "thread", placement, "quiet", "selected", "scan", 1000000, 2, 2)
    return Alone(*where, statistic(900.0), statistic(time_us))


def test_placement_is_judged_by_communication_alone():
    judge = presets.presets(2)["placement"].judge
    found = result({"thread": hides(0.5)})
    assert "Not decided" in judge(found)
    found.alone = [alone("bind", 1000.0), alone("numa", 3000.0)]
    text = judge(found)
    assert "numa takes 3.00 times as long as bind (published: 3 times)" in text
    assert "numa and odd-even were not both measured" in text and text.verdict == "open"
    found.alone += [alone("odd-even", 1500.0)]
    assert "2.00 times as long as odd-even (published: 2 times)" in judge(found)
    assert "holds in direction" in judge(found)
    found.alone[-1] = alone("odd-even", 3000.0)
    assert "holds in part" in judge(found)
    found.alone[1] = alone("numa", 1001.0)
    assert "does not show" in judge(found) and "as bind does" in judge(found)


def test_placement_is_judged_for_each_mpi_library():
    judge = presets.presets(2)["placement"].judge
    found = result({"thread": hides(0.5)})
    good = [alone("bind", 1000.0), alone("numa", 3000.0), alone("odd-even", 1500.0)]
    bad = [alone("bind", 3000.0), alone("numa", 3000.0), alone("odd-even", 3000.0)]
    found.alone = [*(replace(one, mpi="openmpi 5.0.10") for one in bad), *good]
    text = judge(found)
    assert text.verdict == "holds in part"
    assert "mpich 5.0.2: numa takes 3.00" in text and "openmpi 5.0.10: numa takes 1.00" in text


def test_nbc_eff_holds_where_the_winner_changes():
    judge = presets.presets(2)["nbc-eff"].judge
    found = result({"thread": hides(0.9, 250.0)})
    assert "Not decided" in judge(found)
    found.points += points("native", hides(0.3), mpi="openmpi 5.0.10")
    text = judge(found)
    # The times 1000 + 0.1·x + 250 and 1000 + 0.7·x meet at x = 416.7.
    assert text.startswith("The finding holds")
    assert "the winner changes with the amount of computation, at 0.417 ms" in text
    assert "All have 1 rank on a node; a run with another number tells more." in text
    found = result({"thread": hides(0.9)})
    found.points += points("native", hides(0.3), mpi="openmpi 5.0.10")
    assert judge(found).verdict == "does not hold"


def test_nbc_eff_does_not_take_a_change_of_engine_for_one_of_the_library():
    judge = presets.presets(2)["nbc-eff"].judge
    found = result({"thread": hides(0.9, 250.0), "native": hides(0.3)})
    found.points += points("native", hides(0.1, 500.0), mpi="openmpi 5.0.10")
    text = judge(found)
    assert "the winner changes with the amount of computation" in text
    assert text.verdict == "does not hold"


def test_nbc_eff_is_not_decided_where_nothing_leads():
    found = result({"thread": hides(0.5)})
    found.points += points("thread", hides(0.5), mpi="openmpi 5.0.10")
    assert presets.presets(2)["nbc-eff"].judge(found).verdict == "open"


def kernel_run(figures: dict) -> kernels.Run:
    text = json.dumps(figures)
    return kernels.run_of(stored.parse(kernels.RunFigures, text, "x", kernels.RUN_SCHEMA), "x")


def kernel(**times_us: float) -> kernels.Run:
    def samples(time_us):
        return [time_us * (1 + 0.001 * i) for i in range(-5, 6)]

    variants = [{"name": name, "samples_us": samples(time)} for name, time in times_us.items()]
    about = {"schema": "weft-kernel/1", "kernel": "k", "mpi": "MPICH 5.0.2", "ranks": 2}
    return kernel_run({**about, "problem": "10000 doubles", "variants": variants})


def test_iallreduce_kernel_holds_where_overlap_saves_time():
    judge = presets.presets(2)["iallreduce-kernel"].judge
    text = judge(kernel(blocking=1000.0, native=1100.0, thread=700.0))
    assert re.search(r"holds in direction .*engine thread .*30 % less time", text)
    assert "no difference" in judge(kernel(blocking=1000.0, thread=995.0))
    slower = kernel(blocking=1000.0, thread=1300.0)
    assert "30 % more time" in judge(slower) and "is short beside them" in judge(slower)
    assert "78.1 KiB pass the lab's links before" in judge(
        replace(slower, network="lab, 200mbit links")
    )


def test_iallreduce_kernel_refuses_other_figures():
    with pytest.raises(stored.ResultError, match="weft-kernel/1"):
        kernel_run({"schema": "weft-bench/1"})
