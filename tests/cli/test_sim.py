"""Tests `weft sim`: its answers, its pages, and refused options."""

from __future__ import annotations

import json

import pytest
from python_weft import weft

from weft.data import stored
from weft.sim import native, runs
from weft.system import installation

pytestmark = pytest.mark.skipif(
    not installation.native_part("weft-sim").exists(), reason="needs make build"
)


def told(*words: object, machine: str = "knl64") -> dict:
    return json.loads(native.simulate_text(machine, [str(word) for word in words]))


def refusal(*words: object, machine: str = "knl64") -> str:
    with pytest.raises(native.SimError) as refused:
        told(*words, machine=machine)
    message = str(refused.value)
    assert message.count("\n") == 0
    return message


SCAN = ("--collective", "iscan", "--ranks", 62, "--callers", "leave", "--algorithm", "chain")


def test_a_run_answers_with_its_time():
    done = weft("sim", *SCAN, "--placement", "odd-even", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["runs"]
    assert (found["ranks"], found["cores"]) == (62, 64)
    assert found["thread_cores"] == [31, 63] * 31
    assert found["messages"] == 61 and found["message_bytes"] == 61 << 20
    # Each hop of the chain copies the data at least once.
    assert found["total_us"] > 61 * (1 << 20) / 6700
    assert found["events"] > 100


def test_without_words_an_example_answers_in_a_sentence():
    """The example has two nodes, a quarter of the cores without ranks, and as much computation as
    communication."""
    done = weft("sim", "--json")
    blocking, thread = json.loads(done.stdout)["runs"]
    assert (blocking["engine"], thread["engine"]) == ("blocking", "thread")
    assert (thread["collective"], thread["nodes"], thread["ranks"]) == ("allreduce", 2, 96)
    assert thread["placement"] == "numa" and not thread.get("note")
    assert thread["compute_us"] == pytest.approx(blocking["communication_us"], rel=0.01)
    times = blocking["total_us"] / thread["total_us"]
    said = " ".join(weft("sim").stdout.split())
    assert times > 1.1
    assert said.startswith(f"thread, numa is {times:.2f} times as fast as the blocking call: ")


@pytest.mark.parametrize(
    ("totals", "says"),
    [
        ((200.0, 100.0), "thread, numa is 2.00 times as fast as the blocking call: 100% of"),
        ((200.0, 150.0), "thread, numa is 1.33 times as fast as the blocking call: 50% of"),
        ((200.0, 199.9), "Nothing takes clearly less time than the blocking call."),
        ((200.0, 300.0), "Nothing takes clearly less time than the blocking call."),
    ],
)
def test_the_sentence_of_runs(totals, says):
    facts = told("--collective", "bcast", "--ranks", 4, "--nodes", 2)
    facts |= {"compute_us": 100.0, "communication_us": 100.0, "placement": "numa"}
    both = [
        stored.parse(native.Run, json.dumps(facts | {"engine": engine, "total_us": total}), "x")
        for engine, total in zip(("blocking", "thread"), totals)
    ]
    assert runs.sentence(both).startswith(says)
    alone = runs.sentence(both[1:])
    times = f"{totals[1]:,.1f} µs, {totals[1] - 100:,.1f} µs more"
    assert alone.startswith(f"thread, numa takes {times}")


def test_defaults_agree_with_each_other():
    """Without --ranks every core has a rank, so that no thread can have a core of its own."""
    for machine in native.names_of_machines():
        done = weft("sim", "--machine", machine, "--collective", "bcast", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["runs"][0]["placement"] == "bind"


def test_the_same_seed_gives_the_same_run():
    words = ("--collective", "allreduce", "--ranks", 16, "--noise", 0.5, "--compute", 500)
    assert told(*words, "--seed", 3) == told(*words, "--seed", 3)
    assert told(*words, "--seed", 3)["total_us"] != told(*words, "--seed", 4)["total_us"]


def test_computation_hides_communication_behind_threads_only():
    words = ("--collective", "bcast", "--algorithm", "binomial", "--ranks", 16, "--compute", 9000)
    hidden = told(*words, "--engine", "thread")
    in_line = told(*words, "--engine", "blocking")
    assert hidden["total_us"] < 9100 < in_line["total_us"]


def test_a_caller_that_looks_while_it_computes_passes_messages_on():
    words = ("--collective", "bcast", "--algorithm", "binomial", "--ranks", 4, "--nodes", 4)
    words += ("--bytes", "4MiB", "--compute", 5000, "--transport", "mpi", "--engine", "function")
    assert told(*words, "--calls", 200)["total_us"] < told(*words)["total_us"] - 300
    said = refusal(*words[:-1], "thread", "--calls", 200)
    assert said == "only the caller of engine function looks while it computes: leave out --calls"


def test_calls_are_those_of_engine_function_among_others():
    words = ("--collective", "bcast", "--nodes", 2, "--ranks", 2, "--compute", 900, "--calls", 9)
    done = weft("sim", *words, "--engine", "function", "--engine", "thread", "--json")
    assert done.returncode == 0, done.stderr
    assert [run["engine"] for run in json.loads(done.stdout)["runs"]] == ["function", "thread"]


def test_every_machine_that_comes_along_can_be_simulated():
    assert native.names_of_machines() == [
        "knl64",
        "sandybridge16",
        "sapphire120",
        "skylake48",
    ]
    for machine in native.names_of_machines():
        found = told("--collective", "ibarrier", "--nodes", 2, machine=machine)
        assert found["machine"] == machine and found["nodes"] == 2


def test_messages_between_nodes_go_over_links():
    words = ("--collective", "bcast", "--algorithm", "binomial", "--ranks", 2, "--nodes", 2)
    found = told(*words, "--bytes", 12000000, "--engine", "blocking", "--transport", "mpi")
    # The time is that of 12,000 bytes per us, a latency for each part of the protocol, and some
    # overhead.
    assert 1003 < found["total_us"] < 1015


def test_several_runs_are_set_side_by_side(tmp_path):
    page = tmp_path / "sim.html"
    engines = [word for name in ("blocking", "thread") for word in ("--engine", name)]
    words = (*engines, "--placement", "numa", "--placement", "odd-even", "--out", page)
    done = weft("sim", *SCAN, *words)
    assert done.returncode == 0, done.stderr
    assert "thread, numa" in done.stdout and "thread, odd-even" in done.stdout
    assert done.stdout.count("\nblocking ") == 1  # a blocking call has no thread to place
    shown = page.read_text()
    assert shown.count('<section class="card">') == 3 and shown.count("<path d=") >= 3 * 2
    assert len(shown) < 150_000
    assert "https://" not in shown.split("<main>")[1]


def test_a_trace_is_one_that_perfetto_reads(tmp_path):
    file = tmp_path / "trace.json"
    found = told(*SCAN, "--trace", file)
    events = json.loads(file.read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"application", "progress", "rank 61 (knl64)"} <= names
    spans = [event for event in events if event["ph"] == "X"]
    assert max(span["ts"] + span["dur"] for span in spans) <= found["total_us"] + 0.01
    run = stored.parse(native.Run, json.dumps(found), "weft-sim")
    drawn = runs.spans_of(run, {"traceEvents": events})
    assert {span[0] for span in drawn} == {*run.rank_cores, *run.thread_cores} == {*range(64)}


def changed(tmp_path, change) -> str:
    facts = json.loads(native.machine_file("knl64").read_text())
    change(facts)
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(facts, indent=2))
    return str(file)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.update(cores=0), "line 4: cores is 0, and must be a whole number from 1 to"),
        (lambda m: m["copy"].update(core="fast"), 'copy.core is "fast", and must be a number from'),
        (lambda m: m["copy"].pop("reduce"), "copy.reduce is missing; it is a number from"),
        (
            lambda m: m["core"].update(speed=1),
            "core.speed is no field of a machine; core has cache",
        ),
        (
            lambda m: m["message"].update(copies=3),
            "message.copies is 3, and must be a whole number",
        ),
        (lambda m: m["network"].update(fabric="ring"), "flat, fat-tree or dragonfly"),
        (
            lambda m: m["network"].update(window_bytes=-1),
            "line 37: network.window_bytes is -1, and must be a whole number from 0",
        ),
        (
            lambda m: m["network"].update(send_us_per_kib="much"),
            'network.send_us_per_kib is "much", and must be a number from 0',
        ),
        (lambda m: m["network"].update(burst=1), "network.burst is no field of a machine"),
        (lambda m: m["sources"].pop("copy"), "sources says nothing of copy.core"),
        (lambda m: m.update(numa_nodes=65), "numa_nodes must be at most the number of cores"),
    ],
)
def test_a_machine_that_makes_no_sense_is_refused(tmp_path, change, says):
    assert says in refusal("--collective", "bcast", machine=changed(tmp_path, change))


def test_a_machine_that_is_no_json_is_refused_with_its_line(tmp_path):
    file = tmp_path / "machine.json"
    file.write_text('{\n  "cores": 4,,\n}\n')
    assert "line 2" in refusal("--collective", "bcast", machine=str(file))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("allgatherv",), "no collective 'allgatherv' is simulated"),
        (("moon",), "no collective 'moon' is simulated; there are"),
        (("bcast", "--algorithm", "moon"), "bcast has binomial"),
        (("bcast", "--ranks", 65), "65 ranks do not fit on 64 cores"),
        (("bcast", "--bytes", "much"), "is no size"),
        (("bcast", "--placement", "moon"), "unknown placement 'moon'"),
        (("bcast", "--placement", "list:64"), "names 1 core for 64 ranks"),
        (("bcast", "--ranks", 2, "--placement", "list:0,64"), "names core 64"),
        (("allreduce", "--algorithm", "binomial", "--split", 1), "only trees have levels"),
        (("bcast", "--root", 64), "--root must be 0 to 63"),
        (("bcast", "--engine", "moon"), "moon not in {blocking,function,thread,agent,tcc,auto}"),
        (("bcast", "--nodes", 2, "--engine", "agent"), "an agent serves the ranks of one node"),
        (("bcast", "--nodes", 3, "--ranks", 2), "more nodes than ranks"),
        (("scan", "--split", 1), "only trees have levels"),
        (("bcast", "--algorithm", "binomial", "--split", 1), "needs engine thread, and callers"),
        (("bcast", "--split", "x"), "--split must be a number"),
        (("bcast", "--trace", "/nowhere/trace.json"), "name a file that can be written"),
        (("bcast", "--backoff", "loud"), "loud"),
    ],
)
def test_what_cannot_be_simulated_is_refused(words, says):
    assert says in refusal("--collective", *words)


def test_auto_goes_by_the_static_rule():
    alltoall = ("--collective", "alltoall", "--ranks", 2, "--nodes", 2, "--transport", "mpi")
    by_thread = told(*alltoall, "--engine", "thread", "--compute", 500)
    assert told(*alltoall, "--engine", "auto", "--compute", 500, "--library", "openmpi") == {
        **by_thread,
        "engine": "auto",
    }
    # With other libraries the single exchange proceeds by itself once it is posted.
    assert "leaves this call to the MPI library" in refusal(*alltoall, "--engine", "auto")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--collective", "bcast", "--machine", "moon"), "there are knl64, sandybridge16, "),
        (("--collective", "bcast", "--calls", 3), "add --engine function"),
        (("--collective", "bcast", "--split", 0, "--split", 1, "--trace", "x"), "takes one run"),
    ],
)
def test_the_command_refuses_in_one_sentence(words, says):
    done = weft("sim", *words)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("weft sim: ") and done.stderr.count("\n") == 1
    assert says in done.stderr
