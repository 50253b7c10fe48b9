"""`weft bench --preset osu`: the overlap of all collectives by OSU's formula."""

from __future__ import annotations

import json

import pytest

from weft.bench import kernel_runs, osu
from weft.bench.settings import SettingsError
from weft.data import stored
from weft.system import installation, mpi_libraries

GIVEN = {"mpi": None, "lab": None, "launcher": None, "ranks": None, "engines": "", "size": ""}
GIVEN |= {"collective": ""}
FIGURES = osu.Figures(
    "MPICH Version: 5.0.2, here",
    2,
    262144,
    10,
    [
        osu.Row("ibcast", "native", 100.0, 100.0, 180.0, 20.0),
        osu.Row("ibcast", "thread", 100.0, 100.0, 101.0, 99.0),
    ],
)


def options(**given):
    return osu.options_of({**GIVEN, **given}, set(given))


def test_every_call_is_measured_and_checked_under_every_engine(call, mpi, tmp_path):
    """In this machine's memory, with few bytes: figures are read back, and results were right."""
    program = mpi.program(osu.PROGRAM)
    if not program.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi.name)}")
    file = tmp_path / "osu.json"
    words = ("--preset", "osu", "--mpi", mpi.name, "--launcher", "mpiexec", "--bytes", "2KiB")
    done = call("bench", *words, "--engines", "native,thread,tcc", "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    (library,) = found["libraries"]
    assert found["schema"] == osu.SCHEMA and found["failed"] == [] and library["ranks"] == 2
    rows = library["rows"]
    wanted = [f"i{name}" for name in osu.CALLS]
    assert sorted({row["call"] for row in rows}) == sorted(wanted)
    assert len(rows) == 3 * len(wanted)
    for row in rows:
        computed, together = row["computation_us"], row["total_us"]
        by_formula = max(0, 100 - (together - computed) / row["alone_us"] * 100)
        assert row["overlap"] == pytest.approx(by_formula, abs=0.1)
        assert row["alone_us"] > 0 and computed < together
    for name in wanted:
        assert f"\n{name} " in done.stdout


def test_each_library_has_a_table(monkeypatch, capsys):
    asked = []

    def figures_of(program, options, mpi, *more):
        asked.append(mpi)
        if mpi == "openmpi":
            raise SettingsError("openmpi is not here")
        return FIGURES, "lab"

    monkeypatch.setattr(kernel_runs, "figures_of", figures_of)
    assert osu.carry_out({**GIVEN, "mpi": "mpich,openmpi,intelmpi"}, {"mpi"}, None) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert asked == ["mpich", "openmpi", "intelmpi"]
    assert said.count("ibcast 20.0 (180 µs) 99.0 (101 µs)") == 2
    assert "Not measured: openmpi is not here" in said
    assert osu.carry_out({**GIVEN, "mpi": "openmpi"}, {"mpi"}, None) == 1


def test_the_programs_calls_are_those_of_the_command(call):
    """The header that both measuring programs take their calls from."""
    source = (installation.ROOT / "bench" / "calls.h").read_text()
    assert [name for name in osu.CALLS if f"FORMS({name}, " not in source] == []
    assert source.count("      FORMS(") == len(osu.CALLS)


def test_the_presets_own_options_are_an_exchange_between_nodes():
    own = options()
    assert own["lab"] == osu.LAB and own["engines"] == "native,thread,tcc"
    assert own["arguments"] == "--bytes 262144"
    own = options(launcher="mpiexec", ranks="4", collective="scan,alltoallw", size="8KiB")
    assert own["lab"] is None and own["ranks"] == "4"
    assert own["arguments"] == "--bytes 8192 --calls scan,alltoallw"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"amounts": "3"}, "--amounts has no effect on preset osu"),
        ({"engines": "native,thraed"}, "--engines: unknown 'thraed'"),
        ({"collective": "iscan"}, "--collective: unknown 'iscan'"),
        ({"ranks": "4"}, "--ranks needs --launcher here"),
        ({"lab": "nodes=2", "launcher": "srun"}, "--lab and --launcher exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused(given, sentence):
    with pytest.raises(SettingsError, match=sentence):
        options(**given)


def test_figures_are_read_by_their_schema(tmp_path):
    file = tmp_path / "x.json"
    file.write_text('{"schema": "weft-osu-run/1", "mpi": "a", "ranks": 2}')
    with pytest.raises(stored.ResultError, match="bytes is missing"):
        stored.read(osu.Figures, file, osu.RUN_SCHEMA)
