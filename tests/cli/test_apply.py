"""Tests `weft advise --apply`: copies of the user's tree, a build in each, and the comparison.

The programs are scripts, which a "build" copies, so that each test takes only seconds."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import advise_runs
import pytest
from typer.testing import CliRunner

from weft import cli
from weft.advise import analysis, store
from weft.advise.patch import answers, diff, promise, proof, trees, wish
from weft.advise.patch.diff import Patch
from weft.advise.patch.wish import Place
from weft.advise.stretches import Changed
from weft.advise.verify import FIRST_RUN, NotReplayed
from weft.measurements.result import Statistic
from weft.system import mpi_libraries
from weft.trying.rounds import Run

SOURCE = "#!/bin/sh\necho sum 1.5\necho $$\n"
BUILD = "cp app.sh app && chmod +x app"


def contents(folder: Path) -> dict[str, str]:
    """Returns checksums of the files in the user's tree, without git's own files."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *own, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(params=["git", "copy"])
def tree(tmp_path, monkeypatch, request):
    """Makes the user's tree with a built program. In git it has an uncommitted change, and a file
    that git does not track."""
    root = tmp_path / "program"
    root.mkdir()
    (root / "app.sh").write_text("#!/bin/sh\n")
    (root / "other.txt").write_text("1")
    if request.param == "git":
        git(root, "init", "--quiet")
        (root / ".gitignore").write_text("app\n")
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", "First")
    (root / "app.sh").write_text(SOURCE)
    (root / "new.txt").write_text("2")
    subprocess.run(BUILD, shell=True, cwd=root, check=True)
    monkeypatch.chdir(root)
    return root


def patch_of(root: Path, changed: str) -> Patch:
    own = Patch("the text", root, ["MPI_Bcast at app.sh:2 is changed."])
    own.files = {root / "app.sh": (SOURCE, changed)}
    own.modules = {root / "app"}
    return own


def tried(root: Path, changed: str, build: str = BUILD) -> proof.Proof:
    trial = proof.new_trial(60, 3)
    return proof.prove(patch_of(root, changed), ["./app"], build, trial, lambda text: None)


def branches(root: Path) -> str:
    return git(root, "branch", "--list", "weft-advise*") if (root / ".git").exists() else ""


def is_untouched(root: Path, before: dict[str, str]) -> bool:
    """Returns whether the user's tree is unchanged, and no worktree is left."""
    worktrees = git(root, "worktree", "list") if (root / ".git").exists() else "\n"
    return contents(root) == before and worktrees.count("\n") == 1


def test_a_change_that_cannot_be_judged_is_kept_beside_the_tree(tree):
    before = contents(tree)
    found = tried(tree, SOURCE + "echo >made-by-the-run\n")
    assert found.verdict.keep is None
    assert "runs for less than 0.1 s" in found.verdict.sentence
    assert is_untouched(tree, before)
    if (tree / ".git").exists():
        assert branches(tree).strip() == "weft-advise"
        assert "made-by-the-run" in git(tree, "show", "weft-advise:app.sh")
        assert git(tree, "show", "weft-advise~:app.sh") == SOURCE
        assert not (tree.parent / "program.weft-advise").exists()
        again = tried(tree, SOURCE + "echo >made-by-the-run\n")
        assert "on the branch weft-advise-2" in again.where
    else:
        copy = tree.parent / "program.weft-advise" / "changed"
        assert "made-by-the-run" in (copy / "app.sh").read_text()
        assert str(copy) in found.where


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ("#!/bin/sh\necho sum 1.7\necho $$\n", 'prints "sum 1.7" instead of "sum 1.5"'),
        ("#!/bin/sh\necho $$\n", 'prints no line "sum 1.5"'),
        (f"{SOURCE}exit 3\n", "changed, the program ends with status 3; unchanged, it ends well"),
    ],
)
def test_a_change_that_is_wrong_is_not_kept(tree, changed, sentence):
    before = contents(tree)
    found = tried(tree, changed)
    assert found.verdict.keep is False
    assert sentence in found.verdict.sentence
    assert is_untouched(tree, before)
    assert not branches(tree)
    assert not (tree.parent / "program.weft-advise").exists()


@pytest.mark.parametrize(
    ("changed", "build", "sentence"),
    [
        (SOURCE, "false", "false ended with 1 without a change"),
        (f"{SOURCE}bad\n", f"! grep bad app.sh && {BUILD}", "ended with 1 with the patch"),
        (f"{SOURCE}#\n", "true; rm -f app", "does not make app where"),
        (f"{SOURCE}#\n", "echo >app", "leaves app as it was without the patch"),
        (f"{SOURCE}#\n", "", 'must be compiled again: --build "make -j"'),
        (
            f"{SOURCE}#\n",
            "echo exit 4 >app; echo \\# >>app.sh; cat app.sh >>app; chmod +x app",
            "the program ends with status 4 without a change, too",
        ),
    ],
)
def test_what_cannot_be_tried_is_said_and_nothing_is_left(tree, changed, build, sentence):
    before = contents(tree)
    with pytest.raises(proof.Unproven) as why:
        tried(tree, changed, build)
    assert sentence in str(why.value) and "\n" not in str(why.value)
    assert is_untouched(tree, before)
    assert not branches(tree)


def test_a_patch_that_no_longer_applies(tree):
    own = patch_of(tree, SOURCE)
    own.files = {tree / "app.sh": ("another text", SOURCE)}
    with pytest.raises(proof.Unproven, match=r"no longer applies: .*app\.sh has changed meanwhile"):
        proof.prove(own, ["./app"], BUILD, proof.new_trial(60, 3), lambda text: None)


def test_a_place_that_cannot_be_written(tree, monkeypatch):
    def refused(self, *words):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refused)
    refusal = pytest.raises(trees.TreeError, match=r"cannot be made \(Permission denied\)")
    with refusal, trees.beside(tree, {}):
        pass


def test_a_program_that_lies_elsewhere_is_refused(tree, tmp_path):
    own = patch_of(tree, SOURCE)
    own.modules = {tmp_path / "app"}
    with pytest.raises(proof.Unproven, match="lies outside of"):
        proof.prove(own, ["./app"], BUILD, proof.new_trial(60, 3), lambda text: None)


def test_words_of_the_command_mean_the_copy(tree):
    """Files that git does not track are copied. Launchers stay where they are."""
    (tree / ".gitignore").write_text("app\ninput\nbin\n")
    (tree / "input").write_text("3")
    (tree / "bin").mkdir()
    (tree / "bin" / "mpiexec").write_text("")
    (tree / "bin" / "mpiexec").chmod(0o755)
    with trees.beside(tree, {tree / "app.sh": (SOURCE, SOURCE)}) as own:
        (own.changed / "app").touch()
        if isinstance(own, trees.Copies):
            (own.changed / "bin" / "mpiexec").unlink()
        it = proof.Proof(own, Patch(), [], "", proof.Trial([]), lambda text: None)
        words = [
            "bin/mpiexec",
            "-n",
            "4",
            "./app",
            "input",
            f"{tree}/other.txt",
            "/bin/sh",
            "no/file",
        ]
        there = [it.moved(word, own.changed) for word in words]
        assert there == [
            *(str(tree / "bin" / "mpiexec"), "-n", "4", str(own.changed / "app"), "input"),
            *(str(own.changed / "other.txt"), "/bin/sh", "no/file"),
        ]
        assert (own.changed / "input").read_text() == "3"
        assert (own.unchanged / "new.txt").read_text() == "2"


def test_folders_that_name_their_place_are_not_copied(tree):
    """A build in a copy of such a folder would write to the user's tree."""
    (tree / "made").mkdir()
    (tree / "made" / "CMakeCache.txt").touch()
    with trees.beside(tree, {tree / "app.sh": (SOURCE, SOURCE)}) as own:
        assert (own.changed / "new.txt").exists()
        assert not (own.changed / "made").exists()


def runs(*seconds: float) -> proof.Trial:
    """Returns a trial with these times of the unchanged program without and with Weft, and of the
    changed one."""
    trial = proof.new_trial(60, 12)
    for way, each in zip(trial.ways, seconds):
        way.runs += [Run(each)] * 9
    return trial


@pytest.mark.parametrize(
    ("seconds", "keep", "begin"),
    [
        ((3.0, 2.0, 1.0), True, "Keep it: changed, the program is 2.00 times as fast"),
        ((2.0, 3.0, 1.0), True, "Keep it: changed, the program is 2.00 times as fast"),
        ((2.0, 6.0, 4.0), False, "Do not keep it: changed, the program is 0.50 times as fast"),
        ((3.0, 2.0, 2.0), False, "Do not keep it: changed, the program is as fast as before"),
    ],
)
def test_the_first_sentence_says_whether_to_keep_it(tmp_path, seconds, keep, begin):
    trial = runs(*seconds)
    assert trial.ended
    own = proof.Proof(trees.Copies(tmp_path, tmp_path, {}), Patch(), [], "", trial, print)
    own.printed = {name: [answers.lines(b"sum 1")] for name in (proof.UNCHANGED, proof.CHANGED)}
    found = own.by_time()
    assert (found.keep, found.sentence.startswith(begin)) == (keep, True), found
    own.verdict = found
    document = own.to_json()
    assert document["headline"]["keep"] is keep
    assert [way["name"] for way in document["ways"]] == list(proof.WAYS)


@pytest.mark.parametrize(
    ("with_weft", "waiting", "interval", "beside"),
    [
        ([1.2] * 5, [], (1.25, 1.6), ""),  # by Weft alone it is slower
        ([0.8] * 5, [], (1.0, 1.28), " as unchanged with Weft"),
        ([1.2] * 5, [0.9] * 5, (1.11, 1.6), ""),  # a wait stands before the measured first use
    ],
)
def test_the_promise_is_beside_the_faster_unchanged_program(with_weft, waiting, interval, beside):
    changed = [0.7, 0.75, 0.625, 0.8, 0.7]
    made = promise.Promise(with_weft, changed, waiting)
    own = made.times_as_fast
    assert (own.low, own.high) == pytest.approx(interval, abs=0.005)
    assert f"{own.high:.2f} times as fast{beside} (5 rounds)" in proof.promised_before(made)
    for gain, is_kept in ((1.0, own.low <= 1), (1.3, own.high >= 1.3), (2.0, False)):
        assert made.is_kept(Statistic(gain, gain, gain, 5)) is is_kept


def test_a_promise_is_as_wide_as_replays_differ_from_the_record():
    own = promise.Promise([1.0] * 6, [0.8] * 6, [], error=0.04).times_as_fast
    assert (own.low, own.median, own.high) == pytest.approx((1.25 / 1.04, 1.25, 1.25 * 1.04))


def test_data_types_that_the_program_commits_promise_nothing(recorded):
    pytest.importorskip("tree_sitter_c")
    root, found = recorded
    own_call = CALL.replace("MPI_DOUBLE", "column")
    text = (root / "app.c").read_text().replace(CALL, own_call)
    text += "void commit(MPI_Datatype* type) { MPI_Type_commit(type); }\n"
    for committed, what in (("", []), ("&column", ["column"])):
        (root / "app.c").write_text(text.replace("(type)", f"({committed or 'type'})"))
        os.utime(root / "app.c", (1e9, 1e9))
        advice = analysis.analyse(found)
        [own] = wish.wishes_of(advice, found)
        own.source = own_call
        [made] = diff.make([own]).changes
        assert made.own_types == what
    with pytest.raises(NotReplayed, match="column is a data type of the program's"):
        promise.replayed([], "", found, advice, [made], 0.0)


def test_a_promise_is_of_the_whole_run():
    """Half of it lies between the first collective and the last."""
    library = {(0, 0): 100.0, (1, 0): 300.0}
    auto = {(0, 0): 80.0, (0, 1): 60.0, (1, 0): 300.0, (1, 1): 240.0}
    assert promise.of_round(library, auto, 1, 0.5, 800.0) == pytest.approx([0.975, 0.875])
    # The changed form's first run takes 50 us more than later ones, that of the library 10.
    library[FIRST_RUN, 0] = 110.0
    auto |= {(FIRST_RUN, 0): 80.0, (FIRST_RUN, 1): 110.0}
    assert promise.of_round(library, auto, 1, 0.5, 800.0) == pytest.approx([0.9625, 0.925])
    del auto[1, 1]  # the job was ended
    assert promise.of_round(library, auto, 1, 0.5, 800.0) is None


def test_a_promise_replays_what_the_patch_makes(recorded):
    """The wait that the source has before the first use is replayed at both ends."""
    pytest.importorskip("tree_sitter_c")
    root, found = recorded
    advice = analysis.analyse(found)
    [own] = wish.wishes_of(advice, found)
    own.plan = "MPI_Allreduce_init"
    [made] = diff.make([own]).changes
    assert promise.forms_of([made], advice) == [[Changed(advice.sites[0], False, True, True)]]
    text = (root / "app.c").read_text().replace("busy(MS);", "busy(MS);\n    total[0] += 1;")
    (root / "app.c").write_text(text)
    os.utime(root / "app.c", (1e9, 1e9))
    own.uses = [Place(one.file, one.line + 1) for one in own.uses]
    [made] = diff.make([own]).changes
    assert [one[0].late for one in promise.forms_of([made], advice)] == [True, False]


CALL = "MPI_Allreduce(part, total, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);"


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Makes a program and a record of its run on two nodes, in which the call took half of the time
    and its result was used 4 ms later."""
    root = tmp_path / "program"
    root.mkdir()
    text = (Path(__file__).parent / "programs" / "patch" / "live.c").read_text()
    (root / "app.c").write_text(text)
    (root / "app").write_text("A program.")
    os.utime(root / "app.c", (1e9, 1e9))
    lines = [line.strip() for line in text.splitlines()]
    call, use = lines.index(CALL) + 1, lines.index("sum += total[i];") + 1
    found = advise_runs.made("MPI_Allreduce", [(0, 0, 5_000_000), (1, 0, 5_000_000)])
    module = str(root / "app")
    for row in found["site"]:
        row |= {"place": "", "module": module}
    for row in found["time_window"]:
        row |= {"least_ns": 4_000_000, "most_ns": 4_000_000}
    place = {"module": module, "depth": 0, "function": "main", "file": str(root / "app.c")}
    found.tables["frame"] += [
        place | {"offset": 1, "line": call},
        place | {"offset": 2, "line": use},
    ]
    found.tables["touch"] += [
        {"rank": r, "site": 0, "side": "after", "module": module, "offset": 2, "count": 1}
        for r in (0, 1)
    ]
    found.tables["source"] += [{"file": str(root / "app.c"), "line": call, "text": CALL}]
    monkeypatch.setattr(store, "read", lambda path: found)
    monkeypatch.chdir(root)
    return root, found


def refused(*words: str) -> str:
    """Returns the single sentence that the command prints."""
    done = CliRunner().invoke(cli.app, ["advise", "--from", "a", *words])
    assert (done.exit_code, done.stdout) == (2, ""), (done.exit_code, done.output, done.exception)
    said = done.stderr.splitlines()
    assert said[-1].startswith("weft advise: nothing is changed: "), done.stderr
    return said[-1]


def no_debug_information(root: Path, found: store.Stored) -> None:
    for row in found["frame"]:
        row |= {"file": "", "line": 0}


def another_line(root: Path, found: store.Stored) -> None:
    (root / "app.c").write_text("\n" + (root / "app.c").read_text())
    os.utime(root / "app.c", (1e9, 1e9))


def newer_source(root: Path, found: store.Stored) -> None:
    os.utime(root / "app.c", (4e9, 4e9))


def generated(root: Path, found: store.Stored) -> None:
    (root / "app.c").write_text((root / "app.c").read_text() + '#line 3 "other.c"\n')
    os.utime(root / "app.c", (1e9, 1e9))


def no_source(root: Path, found: store.Stored) -> None:
    (root / "app.c").unlink()


BAD_SOURCES = [
    (no_debug_information, "MPI_Allreduce in main is left as it is: it has no line"),
    (another_line, "the line has changed since the program ran"),
    (newer_source, "the file is newer than app"),
    (generated, "app.c is generated from another file"),
    (no_source, "app.c cannot be read (No such file or directory)"),
]


@pytest.mark.parametrize(("how", "sentence"), BAD_SOURCES)
def test_bad_input_is_one_sentence(recorded, how, sentence):
    pytest.importorskip("tree_sitter_c")
    root, found = recorded
    how(root, found)
    before = contents(root)
    assert sentence in refused("--apply", "--build", "false", "--", "./app")
    assert contents(root) == before
    assert [path.name for path in root.parent.iterdir()] == ["program"]


@pytest.mark.parametrize(("how", "sentence"), BAD_SOURCES)
def test_no_patch_is_written_of_bad_input(recorded, how, sentence):
    pytest.importorskip("tree_sitter_c")
    root, found = recorded
    how(root, found)
    before = contents(root)
    page = str(root.parent / "page.html")
    words = ["advise", "--from", "a", "--out", page, "--patch", "app.diff"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 2, (done.output, done.exception)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("weft advise: app.diff is not written: ") and sentence in said
    assert contents(root) == before


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        ("false", "false ended with 1 without a change"),
        ("grep -q MPI_Iallreduce app.c && exit 3 || true", "ended with 3 with the patch"),
        ("echo >>../changed/app.c", "the patch no longer applies"),
    ],
)
def test_a_build_that_does_not_fit_is_one_sentence(recorded, build, sentence):
    """It fails, without the patch or with it, or writes the source itself."""
    pytest.importorskip("tree_sitter_c")
    root, _ = recorded
    before = contents(root)
    assert sentence in refused("--apply", "--build", build, "--", "./app")
    assert contents(root) == before
    assert [path.name for path in root.parent.iterdir()] == ["program"]


def test_a_tree_that_cannot_be_written_is_one_sentence(recorded, monkeypatch):
    pytest.importorskip("tree_sitter_c")
    root, _ = recorded
    make = Path.mkdir

    def refuse(self, *words, **options):
        if self.name.endswith(".weft-advise"):
            raise PermissionError(13, "Permission denied", str(self))
        make(self, *words, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    before = contents(root)
    said = refused("--apply", "--build", "make", "--", "./app")
    assert "program.weft-advise, where the program would be built, cannot be made" in said
    assert contents(root) == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--apply"], "--apply needs the program"),
        (["--build", "make"], "--build needs --apply"),
        (["--apply", "--verify", "--", "./app"], "--apply goes without --before, --verify"),
        (["--apply", "--", "./app"], "the program must be compiled again: --build"),
        (["--apply", "--build", "make", "--", "weft", "run", "./app"], "leave weft run out"),
    ],
)
def test_options_that_do_not_fit_are_refused(recorded, words, sentence):
    pytest.importorskip("tree_sitter_c")
    done = CliRunner().invoke(cli.app, ["advise", "--from", "a", *words])
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in done.stderr.splitlines()[-1]


VERDICTS = (
    *("Keep it: changed,", "Do not keep it: changed, the program is"),
    *("rounds do not tell whether to keep it", "Whether to keep it cannot be told"),
)


@pytest.mark.long
def test_a_program_in_the_lab(permitted_lab, weft, environment, tmp_path):
    """Runs the command from the recorded run to the verdict."""
    pytest.importorskip("tree_sitter_c")
    mpi = mpi_libraries.implementation("mpich")
    if not mpi.mpiexec.exists():
        pytest.skip("needs make mpich")
    root = tmp_path / "program"
    root.mkdir()
    shutil.copy(Path(__file__).parent / "programs" / "patch" / "live.c", root / "app.c")
    (root / ".gitignore").write_text("app\nweft-advise.*\n")
    build = f"{mpi.prefix}/bin/mpicc -g -O1 app.c -o app -Wl,-rpath,{mpi.prefix}/lib"
    (root / "Makefile").write_text(f"app: app.c\n\t{build}\n")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "First")
    variables = {**environment, **mpi.environment()}
    subprocess.run(["make"], cwd=root, env=variables, check=True, timeout=60)
    options = ["--apply", "--build", "make", "--time-budget", "10s", "--json", "change.json"]
    command = [weft, "lab", "run", "--nodes", "2", "--", "./app"]
    before = contents(root)
    done = subprocess.run(
        [weft, "advise", "--overhead", "50%", *options, "--", *command],
        cwd=root,
        env=variables,
        capture_output=True,
        text=True,
        timeout=200,
    )
    if "no call is worth a change" in done.stderr:
        return  # a loaded machine gives no certain verdict
    assert done.returncode == 0, done.stderr
    first = next(line for line in done.stdout.splitlines() if "keep it" in line.lower())
    assert any(one in first for one in VERDICTS), done.stdout
    after = {name: of for name, of in contents(root).items() if name in before}
    assert after == before
    assert git(root, "worktree", "list").count("\n") == 1
    document = json.loads((root / "change.json").read_text())
    kept = document["headline"]["keep"] is not False
    assert document["schema"] == "weft-advise-change/2"
    assert document["promised"]["low"] <= document["promised"]["high"]
    assert bool(branches(root)) is kept
    if kept:
        assert "MPI_Allreduce_init" in git(root, "show", "weft-advise:app.c")


@pytest.mark.parametrize(
    ("unchanged", "changed", "differs", "apart"),
    [
        (["a 1\nb 2\n", "b 2\na 1\n"], "b 2\na 1\n", False, 0.0),  # ranks print in any order
        # The line contains a time.
        (["a 1\nt 0.31 s\n", "a 1\nt 0.33 s\n"], "a 1\nt 0.2 s\n", False, 0.0),
        (["a 1.00000000001\n"] * 2, "a 1.00000000002\n", False, 1e-11),  # another order of a sum
        (["a 1.0\n"] * 2, "a 1.1\n", True, 0.0),
        (["a 1\na 1\n"] * 2, "a 1\n", True, 0.0),
        (["x nan\n"] * 2, "x 1\n", True, 0.0),
        (["a 1.5D+00\n"] * 2, "a 1.5D+01\n", True, 0.0),
    ],
)
def test_what_both_print_is_compared(unchanged, changed, differs, apart):
    found = answers.compare(
        [answers.lines(one.encode()) for one in unchanged], [answers.lines(changed.encode())]
    )
    assert found.differs is differs
    assert found.apart == pytest.approx(apart, rel=0.1)
