"""What the ranks of a job print, kept in files: a launcher may lose the last lines of its ranks."""

from __future__ import annotations

from pathlib import Path


def into_files(directory: Path) -> list[str]:
    """In front of what each rank runs. The launcher's pipes stay open until the rank ends: where
    they close before, Open MPI 5's launcher often hangs once all ranks end with another status than
    0. Launchers use low descriptors, and only bash can name others."""
    keep = "198>&1 199>&2"
    return ["bash", "-c", f'exec "$@" {keep} >>"$0/out" 2>>"$0/err"', str(directory)]


def printed(directory: Path, where: str) -> str:
    """By all ranks, on their standard output (out) or error (err)."""
    file = directory / where
    return file.read_text() if file.exists() else ""
