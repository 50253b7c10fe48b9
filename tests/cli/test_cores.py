"""Tests `weft place` and `weft model`: the design's numbers, pictures, pages, and refused
options."""

from __future__ import annotations

import json
import os
from xml.etree import ElementTree

import pytest
from python_weft import weft

from weft.cores import model, native, placement
from weft.system import installation

pytestmark = pytest.mark.skipif(
    not installation.native_part("weft-cores").exists(), reason="needs make build"
)


def told(*words: object) -> dict:
    done = weft(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_odd_even_on_64_cores():
    found = told("place", "--policy", "odd-even", "--cores", 64, "--ranks", 62)
    assert found["threads"] == [31, 63] * 31
    assert found["ranks"] == [core for core in range(63) if core != 31]


def test_numa_on_64_cores():
    found = told("place", "--policy", "numa", "--cores", 64, "--ranks", 62)
    assert found["threads"] == [31] * 31 + [63] * 31


def test_machines_may_be_described_or_read_from_a_file(tmp_path):
    xml = tmp_path / "machine.xml"
    xml.write_text(MACHINE)
    words = ("place", "--policy", "numa", "--ranks", 2, "--machine")
    assert told(*words, "package:2 core:2 pu:2")["threads"] == [2, 6]
    found = told(*words, xml)
    assert (found["cores"], found["threads"]) == ([0, 1, 2, 3], [1, 3])
    assert found["numa_nodes"] == [0, 0, 1, 1]


def test_without_a_free_core_threads_stay_and_the_reason_is_told():
    words = ("place", "--cores", 4, "--ranks", 4, "--policy", "odd-even")
    found = told(*words)
    assert found["threads"] == found["ranks"] == [0, 1, 2, 3]
    assert "4 ranks leave none free" in found["note"]
    assert found["note"] in " ".join(weft(*words).stdout.split())


def test_the_defaults_are_those_of_weft_run():
    """By default each core of this machine has one rank, and each thread shares its rank's core."""
    found = told("place")
    assert found["policy"] == "bind" and "note" not in found
    assert found["ranks"] == found["threads"] == found["cores"]
    assert told("model")["cores"] == max(2, len(os.sched_getaffinity(0)))


def test_the_node_is_drawn(tmp_path):
    file = tmp_path / "node.svg"
    machine = "numa:2 core:6 pu:1"
    done = weft("place", "--machine", machine, "--ranks", 10, "--policy", "numa", "--out", file)
    assert done.returncode == 0 and f"Drawing: {file}" in done.stdout, done.stderr
    drawing = ElementTree.fromstring(file.read_text())
    boxes = [one.get("class") for one in drawing.iter("{http://www.w3.org/2000/svg}rect")]
    assert (boxes.count("rank"), boxes.count("threads")) == (10, 2)
    texts = [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "NUMA node 1" in texts and "threads of 0–4" in texts and "rank 9" in texts


def test_the_chosen_number_of_ranks_is_marked():
    lines = weft("model", "--cores", 16).stdout.splitlines()
    (marked,) = [line for line in lines if "← this one" in line]
    assert marked.split()[0] == "13" and "time in transfers" in " ".join(lines)


def test_the_picture_has_ranks_threads_and_the_launcher_s_option():
    text = weft("place", "--cores", 8, "--ranks", 6, "--policy", "numa").stdout
    assert "3: 3 threads" in text and "4: rank 3" in text
    assert "core 3: threads of ranks 0–2" in text and "core 7: threads of ranks 3–5" in text
    assert "mpiexec -n 6 -bind-to user:0,1,2,4,5,6\n" in text
    assert "srun -n 6 --cpu-bind=map_cpu:0,1,2,4,5,6\n" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cores", 4, "--ranks", 5), "5 ranks do not fit on 4 cores"),
        (("--cores", 4, "--ranks", 2, "--policy", "moon"), "unknown placement 'moon'"),
        (
            ("--cores", 4, "--ranks", 2, "--policy", "list:1,4"),
            "names core 4, which this machine",
        ),
        (("--machine", "moon:1", "--ranks", 2), "lstopo machine.xml"),
        (("--machine", "core:2", "--cores", 4, "--ranks", 2), "leave one out"),
    ],
)
def test_what_does_not_fit_is_refused(words, says):
    done = weft("place", *words)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("weft place: ") and done.stderr.count("\n") == 1
    assert says in done.stderr


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([3], "3"),
        ([0, 1, 2], "0–2"),
        ([0, 2, 4, 6], "0, 2, …, 6"),
        ([0, 1, 5, 7, 8], "0–1, 5, 7–8"),
        ([4, 6, 8], "4, 6, 8"),
    ],
)
def test_ranks_are_told_in_spans(numbers, text):
    assert placement.spans(numbers) == text


@pytest.mark.parametrize(
    ("ranks", "split", "total"), [(51, 0, 7.53), (57, 1, 7.74), (60, 2, 8.4), (62, 3, 9.19)]
)
def test_the_model_on_64_cores(ranks, split, total):
    found = told("model", "--cores", 64, "--ranks", ranks)
    assert (found["ranks"], found["S"], found["total"]) == (ranks, split, total)


@pytest.mark.parametrize(("cores", "best", "total"), [(64, 51, 7.53), (48, 38, 7.58)])
def test_the_best_number_of_ranks(cores, best, total):
    found = told("model", "--cores", cores)
    assert (found["ranks"], found["total"]) == (best, total)
    assert found["total"] == min(row["total"] for row in found["by_ranks"])


def test_an_allreduce_goes_up_and_down():
    once, twice = (told("model", "--cores", 16, "--collective", c) for c in ("bcast", "allreduce"))
    assert twice["blocking"] == 2 * once["blocking"] and twice["S"] == once["S"]


def test_the_table_and_the_page(tmp_path):
    page = tmp_path / "model.html"
    done = weft("model", "--cores", 64, "--ranks", 57, "--out", page)
    text = " ".join(done.stdout.split())
    assert "57 ranks on 64 cores leave 7 for communication; bcast with S = 1 takes 7.74" in text
    assert "The best number of ranks is 51: 7.53 with S = 0." in text
    shown = page.read_text()
    assert '<tr class="best">\n<td>57</td><td>7</td><td>1</td>' in shown
    assert "https://" not in shown.split("<main>")[1]


def test_the_page_s_lines_end_where_a_tree_has_no_such_level():
    found, _ = native.ask(native.Model, ["model", "--cores", "8"])
    lines = model.lines(found)
    assert lines["ranks"] == list(range(2, 9))
    assert len(lines["totals"]) == 4
    # Trees of up to four ranks have two levels, so that S = 3 is impossible.
    assert lines["totals"][3][:3] == [None, None, None]
    # The last number of ranks leaves no core for communication.
    assert lines["totals"][0][-1] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cores", 1), "--cores"),
        (("--cores", 5000), "2 to 4096"),
        (("--cores", 600, "--dataflow"), "2 to 512 with --dataflow"),
        (("--cores", 8, "--ranks", 9), "--ranks must be 2 to 8"),
        (("--cores", 8, "--level-cost", "1,x"), "level-cost"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(words, says):
    done = weft("model", *words)
    assert done.returncode == 2 and says in done.stderr


# This is hwloc's description of a machine with two NUMA nodes of two cores each.
MACHINE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0xf" complete_cpuset="0xf" allowed_cpuset="0xf"
    nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
    <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
      complete_nodeset="0x1" gp_index="2">
      <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
        complete_nodeset="0x1" gp_index="3" local_memory="1073741824"/>
      <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
        complete_nodeset="0x1" gp_index="4">
        <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
          complete_nodeset="0x1" gp_index="5"/>
      </object>
      <object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1"
        complete_nodeset="0x1" gp_index="6">
        <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1"
          complete_nodeset="0x1" gp_index="7"/>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2"
      complete_nodeset="0x2" gp_index="8">
      <object type="NUMANode" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2"
        complete_nodeset="0x2" gp_index="9" local_memory="1073741824"/>
      <object type="Core" os_index="2" cpuset="0x4" complete_cpuset="0x4" nodeset="0x2"
        complete_nodeset="0x2" gp_index="10">
        <object type="PU" os_index="2" cpuset="0x4" complete_cpuset="0x4" nodeset="0x2"
          complete_nodeset="0x2" gp_index="11"/>
      </object>
      <object type="Core" os_index="3" cpuset="0x8" complete_cpuset="0x8" nodeset="0x2"
        complete_nodeset="0x2" gp_index="12">
        <object type="PU" os_index="3" cpuset="0x8" complete_cpuset="0x8" nodeset="0x2"
          complete_nodeset="0x2" gp_index="13"/>
      </object>
    </object>
  </object>
</topology>
"""
