"""Names of MPI functions, and the languages of source files."""

from __future__ import annotations

from pathlib import Path


def base_name(call: str) -> str:
    """Returns the name of the collective without its form: allreduce for MPI_Iallreduce_c and
    MPI_Allreduce_init."""
    name = call.removeprefix("MPI_").removesuffix("_c").removesuffix("_init").lower()
    return name[1:] if call.startswith("MPI_I") else name


def is_persistent(call: str) -> bool:
    return call.removesuffix("_c").endswith("_init")


def is_nonblocking(call: str) -> bool:
    """Returns whether the call is started and waited for: it is non-blocking or persistent."""
    return call.startswith("MPI_I") or is_persistent(call)


# Languages by the suffix of the file's name.
LANGUAGES = {".py": "python", ".c": "c", ".h": "c"}
LANGUAGES |= dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), "c++")
LANGUAGES |= dict.fromkeys(
    (".f", ".f77", ".f90", ".f95", ".f03", ".f08", ".for", ".ftn"), "fortran"
)


def language_of(file: str, binding: str) -> str:
    """Returns the language by the file's name, else that of the MPI binding which the call uses."""
    return LANGUAGES.get(Path(file).suffix.lower()) or binding or "c"
