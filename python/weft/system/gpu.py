"""Finds this machine's GPUs by CUDA's driver, and whether this Weft has kernels for them.

The driver is loaded only if the system shows a device. It is loaded in a separate process, since it
starts threads and takes a while."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from weft.system import installation, mpi_libraries

DEVICE_FILES = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/dxg")
LIBRARY = "libcuda.so.1"
FAT_BINARY = b"\x50\xed\x55\xba"  # magic number of compiled kernels
NO_MPS = "no MPS: ranks that share a GPU take turns there (nvidia-cuda-mps-control -d starts it)"
# This finds the version of CUDA's compiler in a library. 13000 is CUDA 13.0.
COMPILER = re.compile(rb"weft_kernel_image: CUDA (\d+)\0")
OF_FUNCTIONS = (11, 4)  # version of the oldest driver with all functions that Weft calls
NAME_BYTES = 256
# This is the attribute of a device that is shared by MPS; drivers before CUDA 12.4 do not know it.
IS_SHARED = 133


def facts() -> dict:
    """Returns facts about the GPUs. `problem` says why no device can be used, and is None if one
    can."""
    found = asked()
    return found | {"kernels": has_kernels(), "needs": newer_driver_needed(found["driver"])}


def asked() -> dict:
    none = {"driver": None, "devices": []}
    if not any(Path(path).exists() for path in DEVICE_FILES):
        return none | {"problem": "no GPU here"}
    command = [sys.executable, "-c", "from weft.system import gpu; gpu.print_asked()"]
    package = str(installation.PACKAGE.parent)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=package)
        return json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return none | {"problem": "CUDA's driver does not answer"}


def print_asked() -> None:
    print(json.dumps(ask_driver()))


def ask_driver() -> dict:
    found: dict = {"driver": None, "devices": []}
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError:
        return found | {"problem": f"CUDA's driver ({LIBRARY}) cannot be loaded"}
    version, count = ctypes.c_int(), ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(version)) == 0:
        found["driver"] = f"{version.value // 1000}.{version.value % 1000 // 10}"
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return found | {"problem": "CUDA's driver finds no device that it can use"}
    for number in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(NAME_BYTES)
        driver.cuDeviceGet(ctypes.byref(device), number)
        driver.cuDeviceGetName(name, NAME_BYTES, device)
        found["devices"].append(name.value.decode(errors="replace"))
        found["mps"] = found.get("mps", True) and runs_beside_others(driver, device)
    return found | {"problem": None if found["devices"] else "CUDA's driver finds no device"}


def runs_beside_others(driver: ctypes.CDLL, device: ctypes.c_int) -> bool:
    """Returns whether kernels of several processes run on a device at the same time, which MPS
    does."""
    shared = ctypes.c_int()
    if driver.cuDeviceGetAttribute(ctypes.byref(shared), IS_SHARED, device) == 0:
        return shared.value != 0
    directory = os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps"
    return Path(directory, "control").exists()


def library(family: str) -> Path | None:
    """Returns the library for collectives in streams, which programs link; None if it is not
    installed."""
    beside = installation.preload_library(family)
    path = beside.with_name(f"libweft-gpu-{family}.so") if beside else None
    return path if path and path.exists() else None


def content() -> bytes:
    """Returns the contents of any installed library; all contain the same kernels."""
    paths = (library(family) for family in mpi_libraries.FAMILY_LIBRARY)
    return next((path.read_bytes() for path in paths if path), b"")


def has_kernels() -> bool:
    return FAT_BINARY in content()


def newer_driver_needed(driver: str | None) -> str | None:
    """Returns the version of CUDA whose driver accepts Weft's kernels. Its major version is that of
    the kernels' compiler.

    Returns None if the present driver accepts them."""
    compiler = COMPILER.search(content())
    if not driver or not compiler:
        return None
    needed = max(OF_FUNCTIONS, (int(compiler[1]) // 1000, 0))
    have = tuple(int(number) for number in driver.split("."))
    return None if have >= needed else f"{needed[0]}.{needed[1]}"


def in_words(found: dict) -> str:
    kernels = (
        "Weft has kernels for them" if found["kernels"] else "this Weft has no kernels for them"
    )
    if found["problem"]:
        return f"{found['problem']}; {kernels}"
    if found["kernels"] and found["needs"]:
        kernels = f"Weft's kernels need a driver for CUDA {found['needs']} or later"
    shared = "MPS runs" if found["mps"] else NO_MPS
    return f"{', '.join(found['devices'])}; driver for CUDA {found['driver']}; {kernels}; {shared}"
