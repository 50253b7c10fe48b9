"""Stores the output of a job's ranks in files, since a launcher may lose the last lines of its
ranks."""

from __future__ import annotations

from pathlib import Path


def into_files(directory: Path) -> list[str]:
    """Returns the words in front of each rank's command that redirect its output to files.

    The launcher's pipes stay open until the rank ends. If they are closed earlier, Open MPI 5's
    launcher often hangs once all ranks end with an exit status other than 0. Launchers use low
    descriptors, and only bash can use high ones."""
    keep = "198>&1 199>&2"
    return ["bash", "-c", f'exec "$@" {keep} >>"$0/out" 2>>"$0/err"', str(directory)]


def printed(directory: Path, where: str) -> str:
    """Returns what all ranks printed on their standard output (out) or error (err)."""
    file = directory / where
    return file.read_text() if file.exists() else ""
