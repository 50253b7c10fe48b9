"""Names of MPI functions and of programs' files."""

from __future__ import annotations

from pathlib import Path


def base_name(call: str) -> str:
    """MPI_Iallreduce_c, MPI_Allreduce_init -> allreduce"""
    name = call.removeprefix("MPI_").removesuffix("_c").removesuffix("_init").lower()
    return name[1:] if call.startswith("MPI_I") else name


def is_persistent(call: str) -> bool:
    return call.removesuffix("_c").endswith("_init")


def is_nonblocking(call: str) -> bool:
    """Whether it is started and waited for."""
    return call.startswith("MPI_I") or is_persistent(call)


# By the suffixes of files.
LANGUAGES = {".py": "python", ".c": "c", ".h": "c"}
LANGUAGES |= dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), "c++")
LANGUAGES |= dict.fromkeys(
    (".f", ".f77", ".f90", ".f95", ".f03", ".f08", ".for", ".ftn"), "fortran"
)


def language_of(file: str, binding: str) -> str:
    """By the file, else by the binding that it calls MPI by."""
    return LANGUAGES.get(Path(file).suffix.lower()) or binding or "c"
