"""Tests records of `weft advise` that are read again, compared, damaged, or cannot be written."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from advise_runs import HERE, sites

from weft.advise import record, session, store
from weft.data.stored import ResultError
from weft.system import installation, mpi_libraries

SOURCES = Path(__file__).parent / "programs"


def test_a_record_says_the_same_later(kept, call, tmp_path):
    again = tmp_path / "again.json"
    out = tmp_path / "again.html"
    assert call("advise", "--from", kept, "--json", again, "-o", out).returncode == 0
    both = [json.loads(file.read_text()) for file in (again, tmp_path / "first.json")]
    assert both[0].pop("command") != both[1].pop("command")
    assert both[0].pop("date") >= both[1].pop("date") and both[0] == both[1]


def test_what_is_damaged_is_named(kept, call, tmp_path):
    with sqlite3.connect(kept) as database:
        database.execute("DROP TABLE arrival")
    done = call("advise", "--from", kept, "-o", tmp_path / "p.html")
    assert done.returncode == 0
    assert "cannot be read: arrival" in " ".join(done.stdout.split())


@pytest.mark.parametrize("how", ["kill", "crash"])
def test_a_program_that_is_killed_or_faults_leaves_its_record(mpi, program, advise, tmp_path, how):
    done = advise(mpi, [program(mpi, "advise_ends.c"), how], "--json", "s.json")
    assert done.returncode != 0
    assert "did not come to MPI_Finalize" in done.stdout
    assert "MPI_Allreduce" in {site["call"] for site in sites(tmp_path / "s.json").values()}


def test_a_record_that_cannot_be_written_is_not_begun(program, advise):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), "exit"], "--record", "/nowhere/x")
    assert done.returncode == 2
    assert "/nowhere/x: no record can be written there" in done.stderr


def test_what_was_recorded_outlives_a_full_disk(program, advise, monkeypatch, tmp_path, capsys):
    """The ranks have written their records, but the job's record cannot be written."""
    mpi = mpi_libraries.implementation("mpich")
    monkeypatch.setattr(session, "run", lambda command, overhead, mpi, directory: 3)
    monkeypatch.setattr(session, "read_directory", lambda directory: ["a rank's"])

    def full(*_):
        raise ResultError("x: the record cannot be written: disk full")

    monkeypatch.setattr(store, "write", full)
    with pytest.raises(SystemExit) as ended:
        session.record(["./app"], 0.05, mpi.name, tmp_path / "x")
    assert ended.value.code == 3
    kept = Path(capsys.readouterr().err.split("weft advise --from ")[1].split()[0])
    assert kept.is_dir()
    shutil.rmtree(kept)


def test_records_have_any_name(program, advise, tmp_path):
    mpi = mpi_libraries.implementation("mpich")
    done = advise(mpi, [program(mpi, "advise_ends.c"), "none"], "--record", "a#1?%41.sqlite")
    assert (done.returncode, done.stdout.count("called no collective")) == (0, 1), done.stderr


def test_without_a_place_for_the_record(mpi, program, environment, tmp_path):
    """Only the ranks' library runs, with a directory that does not exist. The program must run as
    usual."""
    loaded = installation.preload_library(mpi.family)
    library = loaded.with_name(f"libweft-advise-{mpi.family}.so")
    extra = {"WEFT_ADVISE_DIRECTORY": str(tmp_path / "none" / "none"), "LD_PRELOAD": str(library)}
    words = [mpi.mpiexec, "-n", "1", program(mpi, "advise_ends.c"), "exit"]
    done = subprocess.run(
        [str(word) for word in words],
        env={**environment, **mpi.environment(), **HERE, **extra},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3
    assert done.stderr.count("advise records nothing of this job: No such file") == 1


def test_a_record_that_was_cut_short_is_shown_as_far_as_it_goes(kept, call, tmp_path):
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) * 3 // 4])
    done = call("advise", "--from", kept, "-o", tmp_path / "p.html")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "of the run time is in collectives" in said and "cannot be read: " in said


def test_a_file_that_is_no_record(call, tmp_path):
    path = tmp_path / "text.sqlite"
    path.write_text("no database\n" * 100)
    done = call("advise", "--from", path)
    assert done.returncode == 2 and "cannot be read as a record" in done.stderr


def test_what_ranks_of_other_nodes_have_left_is_put_together(
    mpi, program, weft, call, environment, tmp_path
):
    """A node without the directory creates it. Here each rank has a directory of its own."""
    (tmp_path / "0").mkdir()
    own = [program(mpi, "advise_ends.c"), "kill"]
    launcher = [mpi.mpiexec, *(["--oversubscribe"] if mpi.name == "openmpi" else [])]
    words = [*launcher, "-n", "1", weft, "advise", "--directory", tmp_path / "0", "--", *own]
    words += [":", "-n", "1", weft, "advise", "--directory", tmp_path / "1", "--", *own]
    done = subprocess.run(
        [str(word) for word in words],
        env={**environment, **mpi.environment(), **HERE},
        capture_output=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode != 0
    for file in (tmp_path / "1").glob("rank-*"):
        file.rename(tmp_path / "0" / file.name)
    target = ["--record", tmp_path / "both.sqlite", "-o", tmp_path / "p.html"]
    done = call("advise", "--from", tmp_path / "0", *target)
    assert done.returncode == 0, done.stderr
    stored = store.read(tmp_path / "both.sqlite")
    assert [rank["rank"] for rank in stored["rank"]] == [0, 1]
    assert "did not come to MPI_Finalize" in done.stdout


def test_a_directory_without_records(call, tmp_path):
    done = call("advise", "--from", tmp_path)
    assert done.returncode == 2
    assert "it holds no rank's record" in done.stderr


def test_records_on_other_nodes_are_named(tmp_path):
    head = record.Head(rank=0, ranks=4, nodes=2, host=b"here")
    here = [record.RankRecord(head, [], [], [], [], [], [])] * 2
    assert session.lacks_other_nodes(here, tmp_path)
    said = session.elsewhere(here, tmp_path)
    assert "the records of 2 ranks" in said and f"weft advise --from {tmp_path}" in said
    assert not session.lacks_other_nodes(here * 2, tmp_path)
    (tmp_path / "job").touch()
    assert not session.lacks_other_nodes(here, tmp_path)


def test_where_rank_0_is_on_another_node_it_says_where_the_record_is(
    program, environment, call, tmp_path
):
    """The directory does not exist here, as on a node without the command."""
    mpi = mpi_libraries.implementation("mpich")
    there = tmp_path / "there"
    words = [*mpi.launcher(2), installation.weft_command(), "advise", "--directory", there, "--"]
    done = subprocess.run(
        [str(word) for word in (*words, program(mpi, "advise_ends.c"), "blocking")],
        env={**environment, **mpi.environment()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert f"copy {there} from there and run weft advise --from {there}" in done.stderr
    assert done.stderr.count("has written its record on") == 1
    shown = call("advise", "--from", there, "--record", tmp_path / "kept.sqlite")
    assert shown.returncode == 0, shown.stderr
    assert "of the run time is in collectives" in shown.stdout
