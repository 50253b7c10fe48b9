"""Tests that `weft learned` shows what the file of plans contains: the calls, the variants, and
whether the result is in use."""

from __future__ import annotations

import json

import pytest

from weft import __version__
from weft.data import kept_plans

HEADER = "# weft plans, version 4\n"
HERE = f"weft {__version__}|{kept_plans.this_machine()}, MPICH Version:      5.0.2|"
LINE = (
    HERE + "learnt|app|4 ranks|4 ranks on 2 nodes|alltoall, below 1 MiB\t"
    "thread linear/65536/4/0\t1\tthread ring/65536/4/0=9000000,native/65536/4/0=8000000,"
    "thread linear/65536/4/0=6000000\trounds=9 cycle=1\n"
)
LIBRARYS = LINE.replace("\tthread linear/65536/4/0\t", "\tnative/65536/4/0\t")


@pytest.fixture
def learned(call, tmp_path):
    """Returns the output for these lines of the file, and the JSON of the call classes."""

    def run(*lines, arguments=(), header=HEADER, status=0):
        plans = tmp_path / "plans"
        plans.write_text(header + "".join(lines))
        out = tmp_path / "out.json"
        done = call("learned", *arguments, "--plan-cache", plans, "--json", out, COLUMNS="250")
        assert done.returncode == status, done.stderr
        found = json.loads(out.read_text())
        assert found["schema"] == "weft-learned/3"
        assert found["headline"]["sites"] == len(found["sites"])
        return done.stdout, found["sites"]

    return run


def test_what_is_known_is_shown(learned):
    shown, (site,) = learned(LINE)
    assert "app, 4 ranks, MPICH 5.0.2: alltoall, below 1 MiB (4 ranks on 2 nodes)" in shown
    assert "taken, 25 % less time than native (in 8 of 9 rounds)" in shown
    assert "by chance" not in shown.lower()
    assert site["way"] == "thread linear"
    assert site["rival"] == "native"
    assert (site["rounds"], site["rounds_lost"]) == (9, 1)
    assert site["tried"][1] == {"way": "native", "period_us": 8000.0}
    assert site["trials_cost_us"] is None  # earlier versions do not store it
    remarks = "trials=18 cost_ns=2500000 at=0x11:/gone/a b|0x2f:/x\n"
    shown, (site,) = learned(LINE.replace("rounds=9 cycle=1\n", remarks))
    assert "18 calls were tried, which cost 2.5 ms." in shown
    assert "called by a b+0x11, x+0x2f" in shown
    (taken,) = [row.rstrip() for row in shown.splitlines() if "taken" in row]
    assert taken.endswith("taken, 25 % less time than native")
    assert site["rounds"] is None
    assert "By chance: " not in shown
    shown, sites = learned(LINE, arguments=["other"], status=1)
    assert "has no program named other; it has app." in shown
    assert sites == []


def test_calls_in_turn_are_told_apart(learned):
    second = LINE.replace("below 1 MiB", "below 1 MiB, call 2 of 2 in turn")
    first = LINE.replace("rounds=9 cycle=1", "trials=18 cost_ns=2500000 cycle=2")
    shown, _ = learned(first, second)
    assert "alltoall, below 1 MiB, call 1 of 2 in turn (4 ranks on 2 nodes)" in shown
    assert "alltoall, below 1 MiB, call 2 of 2 in turn (4 ranks on 2 nodes)" in shown
    assert shown.count("18 calls were tried") == 1


# As in the summary (src/select/tried_variants.cc), native is compared with the rule's variant, or
# else with the next best one.
def test_the_librarys_own_is_compared_with_the_rules_way(learned):
    shown, (site,) = learned(LIBRARYS.replace("=6000000", "=7760000"))
    words = "taken, the library's own, 11 % less time than thread ring"
    assert f"{words} (in 8 of 9 rounds), within 3 % of thread linear" in shown
    assert site["rival"] == "thread ring"
    shown, (site,) = learned(LIBRARYS.replace("=9000000", "=8000001"))
    words = "taken, the library's own, within 1 % of thread ring"
    assert f"{words}; thread linear was not surely faster" in shown
    assert site["rival"] == "thread ring"
    first = LIBRARYS.replace("thread ring/65536/4/0=9000000,", "").replace("=6000000", "=7760000")
    shown, (site,) = learned(first)
    assert "taken, the library's own, within 3 % of thread linear" in shown
    assert shown.count("within") == 1
    assert site["rival"] == "thread linear"


# The number of two rounds says nothing. The rival was dropped since it was clearly slower.
@pytest.mark.parametrize(
    ("rounds", "lost", "native_ms", "words"),
    [
        ("1 left=1", 0, 18, ", which took 3.0 times as long and was met in 1 round only"),
        ("2 left=1", 0, 18, ", which took 3.0 times as long and was met in 2 rounds only"),
        ("3 left=1", 0, 9, ", which took 1.5 times as long and was met in 3 rounds only"),
        ("2", 0, 18, " (in 2 of 2 rounds, by chance 25 %)"),
        ("3", 1, 9, " (in 2 of 3 rounds, by chance 50 %)"),
    ],
)
def test_it_says_why_a_way_was_tried_a_few_times_only(learned, rounds, lost, native_ms, words):
    line = LINE.replace("=8000000", f"={native_ms}000000")
    line = line.replace("\t1\t", f"\t{lost}\t").replace("rounds=9", f"rounds={rounds}")
    shown, _ = learned(line)
    assert f"less time than native{words}" in shown


def test_libraries_machines_and_versions_are_told_apart(learned):
    open_mpi = LINE.replace("MPICH Version:      5.0.2", "Open MPI v5.0.11")
    elsewhere = LINE.replace(kept_plans.this_machine(), "Another, 3 CPUs, L2 1K, L3 2K")
    older = LINE.replace(f"weft {__version__}|", "weft 0.0.1|")
    shown, sites = learned(elsewhere, LINE, older, open_mpi)
    here, another, old = (
        shown.index("On this machine ("),
        *(
            shown.index(f"Not used here, learnt {words}")
            for words in (
                "on another machine (Another, 3 CPUs, L2 1K, L3 2K):",
                f"by Weft 0.0.1, and this is {__version__} ({kept_plans.this_machine()}):",
            )
        ),
    )
    assert here < shown.index("app, 4 ranks, Open MPI v5.0.11: ") < min(another, old)
    assert here < shown.index("app, 4 ranks, MPICH 5.0.2: ") < min(another, old)
    assert [site["used_here"] for site in sites] == [False, True, False, True]
    assert [site["library"] for site in sites] == ["MPICH 5.0.2"] * 3 + ["Open MPI v5.0.11"]
    assert [site["weft"] for site in sites[1:3]] == [f"weft {__version__}", "weft 0.0.1"]
    assert sites[0]["machine"] == "Another, 3 CPUs, L2 1K, L3 2K"
    assert sites[1]["machine"] == kept_plans.this_machine()


def test_names_are_shown_as_they_are(learned):
    line = LINE.replace("|app|", "|[red]app:x:|").replace("\n", " at=0x11:/gone/b[x]:x:\n")
    shown, _ = learned(line)
    assert "[red]app:x:, 4 ranks" in shown
    assert "called by b[x]:x:+0x11" in shown


def test_files_that_are_none_are_refused(call, tmp_path):
    plans = tmp_path / "plans"
    plans.write_text("dear diary\n")
    done = call("learned", "--plan-cache", plans)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{plans}: no file in which Weft keeps plans" in done.stderr
    plans.write_text(HEADER.replace("4", "41") + LINE)
    done = call("learned", "--plan-cache", plans)
    assert (done.returncode, done.stdout) == (2, "")
    assert f'{plans}: written by another Weft ("weft plans, version 41")' in done.stderr
    for header in ("", *(HEADER.replace("4", version) for version in "123")):
        plans.write_text(header)
        assert call("learned", "--plan-cache", plans).returncode == 0


def test_a_file_that_is_named_is_there(call, tmp_path):
    done = call("learned", "--plan-cache", tmp_path / "plasn")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"weft learned: {tmp_path}/plasn: No such file or directory\n"
    done = call("learned", "--plan-cache", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"weft learned: {tmp_path}: Is a directory\n"
    # The first job that has something to store creates the default file.
    for variables in ({"WEFT_PLAN_CACHE": f"{tmp_path}/plans"}, {"XDG_CACHE_HOME": str(tmp_path)}):
        done = call("learned", COLUMNS="400", **variables)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"There is no {tmp_path}/")
        assert "weft lab run --nodes 2 -- weft run --plan-cache plans -- ./app" in done.stdout


def test_none_is_no_file(call, tmp_path, monkeypatch):
    said = "so nothing that is learnt is kept"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none").write_text(HEADER + LINE)
    for name in ("none", ""):
        done = call("learned", "--plan-cache", name, COLUMNS="200")
        assert (done.returncode, said in done.stdout) == (0, True)
        done = call("learned", WEFT_PLAN_CACHE=name, COLUMNS="200")
        assert (done.returncode, said in done.stdout) == (0, True)
    assert "app, 4 ranks" in call("learned", "--plan-cache", "./none", COLUMNS="200").stdout
