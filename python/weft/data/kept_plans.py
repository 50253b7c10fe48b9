"""Finds the file in which Weft stores plans, and describes the machine on which its lines are
valid.

src/base/config.cc chooses the file's name, src/select/plan_cache.cc reads and writes the file, and
src/topo/machine.cc has the same description of a machine."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

HEADER = "# weft plans, version "
VERSIONS = ("1", "2", "3", "4")
CPUINFO = Path("/proc/cpuinfo")
DEVICES = Path("/sys/devices/system")


def cache_file(named: Path | str | None = None) -> Path | None:
    """Returns the path of the file; None if plans are not stored."""
    name = os.environ.get("WEFT_PLAN_CACHE") if named is None else str(named)
    if name is not None:
        return None if name in ("", "none") else Path(name)
    directory = os.environ.get("XDG_CACHE_HOME", "")
    if directory.startswith("/"):
        return Path(directory) / "weft/plans"
    home = os.environ.get("HOME", "")
    return Path(home) / ".cache/weft/plans" if home.startswith("/") else None


def first_line(file: Path) -> str:
    return file.read_text().partition("\n")[0] if file.exists() else ""


def processor() -> str:
    """Returns the processor's model and number of CPUs, with which the description of a machine
    begins."""
    text = CPUINFO.read_text() if CPUINFO.exists() else ""

    def field(name: str) -> str:
        found = re.search(rf"^{name}\s*: (.*)$", text, re.MULTILINE)
        return found[1] if found else ""

    model = field("model name") or f"CPU {field('CPU implementer')} {field('CPU part')}"
    return f"{model}, {os.sysconf('SC_NPROCESSORS_ONLN')} CPUs,"


@cache
def this_machine() -> str:
    caches = DEVICES / "cpu/cpu0/cache"
    l2, l3 = (first_line(caches / f"index{level}/size") for level in (2, 3))
    return f"{processor()} NUMA nodes {first_line(DEVICES / 'node/online')}, L2 {l2}, L3 {l3}"
