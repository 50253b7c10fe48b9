"""Tests that files which commands write for the user are complete or absent, and that one sentence
says so. Also tests that wrong options are refused by one sentence. Files of a job's ranks are
tested in tests/faults/test_full_disk.py."""

from __future__ import annotations

import sys

import pytest

from weft.data import files
from weft.terminal import messages

# This script runs a command with a full disk, and lists the files that the command has left on it.
FULL = """
mount -t tmpfs -o size=4k tmpfs "$0" && head -c 4096 /dev/zero >"$0/all" || exit 77
"$@"
status=$?
ls -A "$0" | sed '/^all$/d'
exit $status
"""
WRITERS = {
    "a page": ("model", "--cores", "8", "-o"),
    "a simulation's page": ("sim", "--collective", "bcast", "-o"),
    "a simulation's trace": ("sim", "--collective", "bcast", "--trace"),
    "samples": ("bench", "--launcher", "mpiexec", "-o"),
    "an answer": ("learned", "--plan-cache", "none", "--json"),
}


@pytest.mark.parametrize("what", WRITERS)
def test_on_a_full_disk_nothing_is_left(call, tmp_path, what):
    """The disk is mounted in a mount namespace, which needs root."""
    disk = tmp_path / "disk"
    disk.mkdir()
    file = str(disk / "file")
    in_front = ["unshare", "--mount", "sh", "-c", FULL, str(disk)]
    done = call(*WRITERS[what], file, in_front=in_front)
    if done.returncode in (1, 77) and "unshare" in done.stderr:
        pytest.skip("a small disk is mounted by root")
    assert done.returncode == 2, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("weft"), done.stderr
    assert file in lines[0]
    assert "No space left on device" in lines[0] or "disk is full" in lines[0]
    assert "file" not in done.stdout.splitlines()


@pytest.mark.parametrize("what", WRITERS)
def test_missing_folders_are_not_made(call, tmp_path, what):
    file = tmp_path / "none" / "file"
    done = call(*WRITERS[what], file)
    assert done.returncode == 2, done
    assert str(file) in done.stderr and "No such file or directory" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "none").exists()


def test_what_is_there_stays_until_a_new_file_is_whole(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o604)
    link.symlink_to(file)
    with pytest.raises(RuntimeError), files.whole(link) as out:
        out.write("a part")
        out.flush()
        assert file.read_text() == "before"
        raise RuntimeError
    assert [one.name for one in sorted(tmp_path.iterdir())] == ["file", "link"]
    assert file.read_text() == "before"
    files.write_text(link, "after")
    assert link.is_symlink() and file.read_text() == "after"
    assert file.stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sim", "--collective", "bcast", "--machine", "/"), "/ cannot be read"),
        (("sim", "--collective", "bcast", "--compute", "nan"), "--compute"),
        (("model", "--cores", "8", "--level-cost", "1,nan"), "nan is no number from"),
        (("model", "--cores", "8", "--computation", "nan"), "--computation"),
        (("model", "--cores", "8", "--collective", "\x1b[31m\n"), "\\x1b[31m\\n"),
        (("run", "--engine", "\x1b[31m\n", "--", "true"), "'\\x1b[31m\\n'"),
        (("advise", "--overhead", "\x1b\n", "--", "true"), "\\x1b\\n"),
        (("no\nverb",), "no\\nverb"),
        (("run", "--init-budget", "9" * 30 + "s", "--", "true"), "at most 2147483647"),
        (("run", "--transfers", "9999999999", "--", "true"), "at most 2147483647"),
        (("run", "--shared-heap=99999999999", "--", "true"), "at most 2147483647"),
    ],
)
def test_words_that_make_no_sense_are_refused_by_one_sentence(call, words, said):
    done = call(*words)
    assert done.returncode == 2, done
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1 and "\x1b" not in done.stderr


def test_words_of_the_command_line_are_shown_as_they_can_be_printed(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["weft", "--out=a\nb", "é"])
    assert messages.shown("a\nb is no é:\n\tx\x07") == "a\\nb is no é:\n\tx\\x07"


def test_a_file_of_plans_that_is_none_is_refused(call, tmp_path):
    """The file is neither changed nor renamed."""
    file = tmp_path / "diary"
    file.write_text("dear diary\n")
    done = call("run", "--plan-cache", file, "--", "true")
    assert done.returncode == 2
    assert f"'{file}' is nothing of Weft's, and stays as it is" in done.stderr
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [
        ("diary", "dear diary\n")
    ]
