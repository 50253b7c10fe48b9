"""Tests `weft reproduce`: its list, its verdicts, its page, failures, and refused options.

Nothing is measured here; results of the benchmark and of its programs are made up."""

from __future__ import annotations

import json
import re
import typing

import pytest
from python_weft import weft
from reproductions import LARGE, SMALL, verdicts
from typer.testing import CliRunner

from weft import cli
from weft.data import stored
from weft.measurements import presets
from weft.reproduce import (
    carry_out,
    claims,
    command,
    findings,
    here,
    measured,
    page,
    published,
)
from weft.reproduce.findings import CANNOT, DOES_NOT_HOLD, HOLDS, MEASURED, SIMULATED
from weft.reproduce.measured import Bench
from weft.sim.native import SimError
from weft.system import installation

needs_simulator = pytest.mark.skipif(
    not installation.native_part("weft-sim").exists(), reason="needs make build"
)
NAMES = [name for name in typing.get_args(command.Name) if name != command.ALL]


def called(*words: object):
    """Runs the command in this process, so that tests can replace parts of it."""
    return CliRunner().invoke(cli.app, ["reproduce", *map(str, words)], env={"COLUMNS": "180"})


# ---- List of all findings ---------------------------------------------------------------------


def test_every_finding_of_the_papers_is_listed_with_its_tests_and_its_needs():
    done = weft("reproduce", "--list", "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert [one["name"] for one in listed] == NAMES
    for one in listed:
        assert one["title"] and one["source"] == claims.SOURCES[one["paper"]]
        for statement in one["statements"]:
            assert statement["where"] and statement["published"]
            assert statement["tested"] or statement["needs"]
            # A statement that is neither simulated nor computed by the model has a reason, in one
            # sentence.
            why = statement["not_simulated"]
            assert bool(why) == statement["tested"].keys().isdisjoint({"simulated", "computed"})
            assert not why or (why.endswith(".") and why.count(". ") == 0)
    tested = " ".join(
        by for one in listed for each in one["statements"] for by in each["tested"].values()
    )
    with_runs = [name for name, preset in presets.presets(64).items() if preset.runs]
    assert [name for name in with_runs if f"--preset {name}" not in tested] == []


# What sums a text up.
SUMMARIES = {
    claims.OKUMA: ["abstract", "VI"],
    claims.STUDY: ["abstract", "section 6"],
    claims.DENIS: ["abstract", "section 8"],
    claims.INTEL: ["introduction"],
    claims.JOCKSCH: ["conclusions"],
}


@pytest.mark.parametrize("paper", SUMMARIES)
def test_every_summary_of_a_paper_is_in_the_list(paper):
    listed = json.loads(weft("reproduce", "--list", "--json").stdout)
    places = [
        statement["where"]
        for one in listed
        if one["paper"] == paper
        for statement in one["statements"]
    ]
    for summary in SUMMARIES[paper]:
        assert any(re.search(rf"\b{summary}\b", place) for place in places), summary


def test_each_statement_is_listed_once():
    words = [claim.words for one in published.FINDINGS for claim in one.claims]
    assert len(words) == len({*words}) >= 50


def test_what_cannot_be_tested_anywhere_is_few_and_has_a_reason():
    """Such statements need switches, machines or libraries that are not available, or cannot be
    false."""
    lost = [claim.needs for one in published.FINDINGS for claim in one.claims if claim.needs]
    words = ("SHARP", "GPUs", "128 cores", "leaves it open", "does not give", "has no result")
    assert all(any(word in needs for word in words) for needs in lost)


def test_the_list_is_a_table():
    done = weft("reproduce", "--list")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert said.startswith("finding where published tested here needs")
    assert "measured: weft bench --preset pipecg" in said
    assert "InfiniBand switches with SHARP" in said and CANNOT in said
    assert "finding not simulated, since" in said
    assert "gpu-stencil The simulator has no GPUs." in said


def test_statements_of_a_finding_can_be_told_apart_and_have_a_judge():
    for one in published.all_findings():
        assert len({(claim.where, claim.words) for claim in one.claims}) == len(one.claims)
        assert bool(one.simulated or one.computed) == (one.name in carry_out.SIMULATIONS)
        assert bool(one.program) == (one.name in carry_out.PROGRAMS)
        if not one.preset:
            continue
        if presets.presets(2)[one.preset].program:
            assert one.name in measured.JUDGES or len(one.claims) == 1
        else:
            assert one.name in measured.BENCH_JUDGES


# ---- Requirements of this machine -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpu-stencil", "needs a GPU: no GPU here"),
        ("placement", "needs 6 cores, four of ranks and two of threads; here are 2"),
        ("threads-per-core", "needs 5 cores"),
        ("nbc-eff", "needs 2 MPI libraries; here is 1"),
        ("tcc", ""),
    ],
)
def test_what_a_machine_lacks_is_said(name, says):
    needs = published.named(name).needs
    assert here.lacking(needs, SMALL).startswith(says) and bool(says) == bool(
        here.lacking(needs, SMALL)
    )
    assert here.lacking(needs, LARGE) == ""


def test_what_cannot_be_measured_here_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(Bench, "carry_out", None)
    found = carry_out.reproduce(published.named("gpu-stencil"), Bench(tmp_path, 2), SMALL)
    assert verdicts(found.findings) == [CANNOT] and "needs" in found.findings[0].why


# ---- All findings -----------------------------------------------------------------------------


@pytest.fixture
def made_up(monkeypatch):
    """Replaces jobs and simulations: each part of every finding holds."""

    def part(one, bench):
        claims = one.claims_by(MEASURED)
        return findings.Part([claim.found(MEASURED, "here", "as said", HOLDS) for claim in claims])

    def simulated(name):
        claims = published.named(name).claims_by(SIMULATED, "computed")
        line = findings.Line("total", [], [1.0, None])
        drawn = findings.Figure("a <figure>", "", "µs", [line], True, ["a", "b"])
        told = [claim.found(SIMULATED, "there", "<as said>", HOLDS) for claim in claims]
        return lambda: findings.Part(told, [drawn], "Simulated.")

    monkeypatch.setattr(carry_out, "measurement", part)
    for name in carry_out.SIMULATIONS:
        monkeypatch.setitem(carry_out.SIMULATIONS, name, simulated(name))
    monkeypatch.setattr(here, "this_machine", lambda: LARGE)


def test_all_findings_are_gone_through_though_some_fail(made_up, monkeypatch, tmp_path):
    def failing():
        raise SimError("weft-sim is missing;\n build it")

    monkeypatch.setitem(carry_out.SIMULATIONS, "model", failing)
    written, file = tmp_path / "all.html", tmp_path / "all.json"
    done = called("all", "--json", file, "--out", written)
    assert done.exit_code == 0, done.output
    found = stored.read(findings.Reproductions, file, findings.ALL_SCHEMA)
    assert [one.name for one in found.reproductions] == NAMES
    by_name = {one.name: one.findings for one in found.reproductions}
    assert set(verdicts(by_name["model"])) == {CANNOT}
    assert by_name["model"][0].why == "it failed: weft-sim is missing; build it"
    assert set(verdicts(by_name["placement"])) == {HOLDS} and len(by_name["placement"]) == 15
    for one in published.all_findings():  # each statement must be on the page
        told = {(finding.where, finding.published) for finding in by_name[one.name]}
        assert told == {(claim.where, claim.words) for claim in one.claims}
    shown = written.read_text()
    body = shown.split("<main>")[1]
    assert "https://" not in body and "weft-sim is missing" in body
    assert "&lt;as said&gt;" in body and body.count('<section class="card">') == 7
    assert 'href="#split-tree"' in body and 'id="split-tree"' in body


def test_one_table_ends_the_way_through_all(made_up, tmp_path):
    done = called("all", "--out", tmp_path / "all.html")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "1 of 17, tcc: " in said and "17 of 17, shm-allreduce" in said
    assert said.count("finding published how verdict") == 1
    assert f"{CANNOT}: needs InfiniBand switches with SHARP" in said
    untested = sum(bool(claim.needs) for one in published.FINDINGS for claim in one.claims)
    assert f"Does not hold: 0. Cannot be tested here: {untested}. Page: " in said


def test_only_what_is_simulated_leaves_the_rest_out(made_up, tmp_path):
    file = tmp_path / "all.json"
    words = ("--only", "simulated", "--json", file, "--out", tmp_path / "all.html")
    done = called("all", *words)
    assert done.exit_code == 0, done.output
    found = json.loads(file.read_text())["reproductions"]
    assert {one["name"] for one in found} == set(carry_out.SIMULATIONS)
    assert {row["how"] for one in found for row in one["findings"]} == {"simulated"}


def test_what_was_found_before_an_interruption_is_kept(made_up, monkeypatch, tmp_path):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setitem(carry_out.SIMULATIONS, "split-tree", stopped)
    written = tmp_path / "all.html"
    done = called("all", "--only", "simulated", "--out", written)
    assert done.exit_code == 130
    shown = written.read_text()
    assert 'id="placement"' in shown and 'id="split-tree"' not in shown


def test_one_finding_is_told_with_what_was_found(made_up):
    done = called("threads-per-core")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "published how here verdict" in said and "Page:" not in said
    assert said.count("topic 1, figure 1)") == 1 and "simulated: there <as said> holds" in said


def test_samples_lie_beside_the_page(tmp_path):
    for name in ("page.html", "page"):
        assert command.samples_beside(tmp_path / name) == tmp_path / "page-samples"


def test_each_reason_is_told_once():
    claim = published.named("fft3d").claims[0]
    rows = [
        claim.found(MEASURED, on, "x", verdict, "because")
        for on, verdict in (("a", HOLDS), ("b", DOES_NOT_HOLD), ("c", CANNOT))
    ]
    found = findings.Reproduction("fft3d", "t", "p", rows, [], [])
    assert page.reasons(found) == ["because"]
    said = "Tests: 3. Holds: 1. Does not hold: 1. Cannot be tested here: 1."
    assert page.tally([found]) == said
    assert page.verdict(rows[2]).endswith(": because")


# ---- Refused options --------------------------------------------------------------------------


BAD_INPUT = [
    ((), "give NAME, or --list"),
    (("placement", "--list"), "give NAME, or --list"),
    (("--list", "--out", "x.html"), "give NAME, or --list"),
    (("--list", "--only", "measured"), "give NAME, or --list"),
    (("moon",), "'moon' is not one of 'all', 'tcc', 'progress-calls'"),
    (("fft3d", "--only", "simulated"), "nothing of fft3d is simulated; leave out --only"),
    (("model", "--only", "measured"), "nothing of model is measured"),
    (("tcc", "--time-budget", "9s"), "--time-budget has no effect on tcc"),
    (("nbc-eff", "--time-budget", "soon"), "--time-budget needs a number with"),
    (("tcc", "--mpi", "moon"), "unknown MPI 'moon'"),
    (("placement", "--out", "/proc/nothing/x.html"), "/proc/nothing/x.html: No such file"),
]


def test_what_makes_no_sense_is_refused_in_one_sentence(answers):
    found = answers([["reproduce", *words] for words, _ in BAD_INPUT])
    for done, (_, says) in zip(found, BAD_INPUT):
        assert done.returncode == 2 and not done.stdout, done
        assert says in done.stderr and done.stderr.count("\n") == 1, done
