"""What the ranks of a job print, kept in files: a launcher may lose the last lines of its ranks."""

from __future__ import annotations

from pathlib import Path


def into_files(directory: Path) -> list[str]:
    """In front of what each rank runs."""
    return ["sh", "-c", 'exec "$@" >>"$0/out" 2>>"$0/err"', str(directory)]


def printed(directory: Path, where: str) -> str:
    """By all ranks, on their standard output (out) or error (err)."""
    file = directory / where
    return file.read_text() if file.exists() else ""
