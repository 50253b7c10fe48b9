"""Finds out whether ranks on this machine can use each other's private buffers by XPMEM.

The library decides for each rank (src/shm/xpmem.cc). This module shows users in advance what it may
decide."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

DEVICE = Path("/dev/xpmem")
LIBRARY = "libxpmem.so.0"
FIX = f"install {LIBRARY} (github.com/hpc/xpmem), and let users read and write {DEVICE}"


def problem() -> str | None:
    """Returns None if XPMEM can be used, or else why not."""
    if os.environ.get("WEFT_XPMEM") == "off":
        return "switched off (WEFT_XPMEM)"
    if not DEVICE.exists():
        return f"there is no {DEVICE}"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} may not be read and written"
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return f"{LIBRARY} cannot be loaded"
    return None
