"""Facts about the machine and the software, stored in a result."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from weft import __version__
from weft.system import info


def describe(place: str) -> dict:
    facts = info.machine()
    return {
        "cpu": cpu(),
        "cores": facts["cores"],
        "usable_cores": facts["usable_cores"],
        "numa_nodes": facts["numa_nodes"],
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": facts["system"],
        "network": place,
        "weft": __version__,
        "python": platform.python_version(),
    }


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
