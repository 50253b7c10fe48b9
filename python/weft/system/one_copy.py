"""Reads from which size a single copy by the kernel is faster than two copies on this machine.

The first job measures it, and stores it with the plans (src/runtime/node/one_copy.cc writes the
lines that are read here). The speed of kernel copies differs by processor and virtual machine."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from weft.data.kept_plans import cache_file, processor

KEY = "one copy"
TRAFFIC = {"of one rank, in a row": "from one rank", "of all ranks": "among all ranks"}


def measured(cache: Optional[Path] = None) -> dict[str, Optional[int]]:
    """Returns by kind of traffic the bytes of a block from which one copy is faster; None if it is
    at no size.

    The result is empty if this machine has not been measured yet."""
    file = cache_file(cache)
    lines = file.read_text(errors="replace").splitlines() if file and file.is_file() else []
    found: dict[str, Optional[int]] = {}
    for line in lines:
        key, _, rest = line.partition("\t")
        words = key.split("|")
        chosen = rest.split("/")
        if len(words) != 4 or words[2] != KEY or words[3] not in TRAFFIC:
            continue
        if not words[1].startswith(processor()):
            continue
        if len(chosen) > 1 and chosen[1].isdigit():
            found[words[3]] = int(chosen[1]) or None
    return found


def in_words(found: dict[str, Optional[int]]) -> str:
    if not found:
        return "not measured yet; the first job of several ranks on this machine does it"
    return ", ".join(
        f"{TRAFFIC[traffic]} "
        + (f"faster from {least // 1024} KiB on" if least else "slower at all sizes")
        for traffic, least in sorted(found.items(), reverse=True)
    )
