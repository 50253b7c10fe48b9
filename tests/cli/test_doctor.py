"""Tests `weft doctor` and `weft info`: they find what is installed, and name the fix for what is
wrong."""

from __future__ import annotations

import ctypes
import json
import os
import re
from pathlib import Path

import pytest
import standins

from weft.doctor import checks, leftovers
from weft.system import gpu, info, installation, mpi_libraries, one_copy, xpmem

NOT_HERE = ("GPU", "XPMEM")  # parts that not every machine has


def test_everything_that_make_sets_up_is_good():
    findings = {finding.what: finding for finding in checks.findings()}
    for what, finding in findings.items():
        # The tests do not control what other jobs leave on this machine, and what it permits.
        if "leftovers" in what or "lab" in what or "/dev/shm" in what:
            continue
        if what in NOT_HERE or "find it" in what or "mpifort" in what:
            assert finding.good is not False, finding
            continue
        assert finding.good is True, finding
        assert not finding.fix


def test_mpi_libraries_that_are_not_here_are_no_fault(call, tmp_path):
    result = call("doctor", WEFT_MPI_DIR=str(tmp_path / "no-mpi"), PATH=str(tmp_path))
    for name, command in (("mpich", "make build"), ("openmpi", "make mpis")):
        assert f"missing {name}: not here\n          to get it: {command}\n" in result.stdout
    others = [line for line in result.stdout.splitlines() if "leftovers" not in line]
    assert not any(line.startswith("bad") for line in others), result.stdout


@pytest.mark.parametrize(("wanted", "good"), [(True, False), (False, None)])
def test_missing_library(monkeypatch, wanted, good):
    """A missing library of Weft is only a fault if there is an MPI library for it."""
    monkeypatch.setattr(installation, "preload_library", lambda family: None)
    finding = checks.check_library("openmpi", wanted)
    assert (finding.good, finding.fix) == (good, "make mpis")


def test_library_that_cannot_be_loaded(monkeypatch, tmp_path):
    broken = tmp_path / "libweft-mpich.so"
    broken.write_text("not a library")
    monkeypatch.setattr(installation, "preload_library", lambda family: broken)
    finding = checks.check_library("mpich", wanted=True)
    assert (finding.good, finding.fix) == (False, "make build")


@pytest.fixture
def left(monkeypatch, tmp_path):
    """Returns a folder in which tests create leftovers of jobs. Files in it count as old."""
    monkeypatch.setattr(leftovers, "SHM", tmp_path)
    monkeypatch.setattr(leftovers, "SEGMENTS", tmp_path / "sysvipc")
    monkeypatch.setattr(leftovers, "SECONDS_OF_A_START", -1)
    monkeypatch.setattr(leftovers.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_leftovers_are_counted_and_removed(left):
    (left / "mpich_shm_1f0e804_0").write_bytes(bytes(3 << 20))
    (left / "psm_folder").mkdir()
    (left / "somebody-elses").touch()
    finding = checks.check_leftovers("/dev/shm", leftovers.in_shared_memory)
    assert (finding.good, finding.note) == (False, "2 of jobs that were killed, 3 MiB")
    assert finding.fix == "weft doctor --fix"
    assert checks.mended(finding)
    assert [path.name for path in left.iterdir()] == ["somebody-elses"]
    assert checks.check_leftovers("/dev/shm", leftovers.in_shared_memory).good


def test_what_a_job_has_just_made_is_not_left(left, monkeypatch):
    monkeypatch.setattr(leftovers, "SECONDS_OF_A_START", 60)
    (left / "mpich_shm_1f0e804_0").touch()
    assert leftovers.in_shared_memory().count == 0


def test_leftovers_of_other_users_are_theirs(left, monkeypatch):
    (left / "mpich_shm_1f0e804_0").touch()
    (left / "ompi.99999999").mkdir()
    assert leftovers.in_shared_memory().count == leftovers.of_launchers().count == 1
    monkeypatch.setattr(leftovers.os, "getuid", lambda: left.stat().st_uid + 1)
    assert leftovers.in_shared_memory().count == leftovers.of_launchers().count == 0


def test_dead_launchers_are_counted(left):
    (left / f"ompi.{os.getpid()}").mkdir()
    (left / "ompi.node.0").mkdir()
    assert leftovers.of_launchers().count == 0
    (left / "ompi.99999999").mkdir()
    assert leftovers.of_launchers().paths == [left / "ompi.99999999"]


def test_system_v_segments_of_a_dead_maker_are_counted_and_removed(left, monkeypatch):
    libc = ctypes.CDLL(None)
    segment = libc.shmget(0, ctypes.c_size_t(1 << 20), 0o600)
    assert segment >= 0
    monkeypatch.setattr(leftovers, "SEGMENTS", Path("/proc/sysvipc/shm"))
    try:
        assert segment not in leftovers.of_system_v().segments, "its maker lives"
        row = next(
            line.split()
            for line in leftovers.SEGMENTS.read_text().splitlines()
            if line.split()[1] == str(segment)
        )
        head = leftovers.SEGMENTS.read_text().splitlines()[0]
        row[4] = "99999999"  # the process that created the segment
        monkeypatch.setattr(leftovers, "SEGMENTS", left / "sysvipc")
        leftovers.SEGMENTS.write_text(f"{head}\n{' '.join(row)}\n")
        found = leftovers.of_system_v()
        assert (found.segments, found.bytes) == ([segment], 1 << 20)
        found.remove()
        assert libc.shmctl(segment, 2, ctypes.create_string_buffer(256)) == -1, "it is gone"
    finally:
        libc.shmctl(segment, leftovers.IPC_RMID, None)


def test_fix_mends_only_what_is_bad(monkeypatch, capsys):
    done = []
    is_bad = [True]

    def findings():
        yield checks.Finding("a", None, "not here", "get it", lambda: done.append("a"))
        yield checks.Finding("b", not is_bad[0], "broken", "mend it", mend)
        yield checks.Finding("c", False, "needs root", "sudo it")

    def mend():
        done.append("b")
        is_bad[0] = False

    monkeypatch.setattr(checks, "findings", findings)
    assert checks.report(checks.fix()) == 1
    said = capsys.readouterr().out
    assert done == ["b"]
    assert "mended b: broken\n" in said and "good    b" in said and "bad     c" in said


def test_a_target_of_make_is_mended_in_the_source_tree_only(monkeypatch):
    ran = []
    monkeypatch.setattr(checks, "print_nothing", ran.append)
    fix, mend = checks.by_make("make mpis")
    mend()
    assert (fix, ran) == ("make mpis", [["make", "-C", str(installation.ROOT), "mpis"]])
    assert checks.by_make("install Weft again")[1] is None
    monkeypatch.setattr(installation, "SOURCE", None)
    assert checks.by_make("make mpis")[1] is None


def test_a_library_that_the_loader_does_not_find(monkeypatch):
    """mpi4py looks for the library by name. Programs of the library's own mpicc contain its
    path."""
    mpich = mpi_libraries.implementation("mpich")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    finding = checks.check_found_by_loader(mpich)
    if finding.good is None:
        assert finding.fix.startswith(f"export LD_LIBRARY_PATH={mpich.library.parent}")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(mpich.library.parent))
    assert checks.check_found_by_loader(mpich).good is True


def test_too_little_shared_memory(monkeypatch):
    monkeypatch.setattr(checks, "SHM_NEEDED_BYTES", 1 << 62)
    finding = checks.check_shm_space()
    assert not finding.good
    assert "remount" in finding.fix


def examined(monkeypatch, **answers) -> list[checks.Finding]:
    """Returns the findings about MPICH for these answers of its probe, alone and under Weft."""
    mpich = mpi_libraries.implementation("mpich")

    def run_probe(mpi, ranks, under_weft=False):
        return answers["under_weft" if under_weft else "alone"]

    monkeypatch.setattr(checks, "run_probe", run_probe)
    return list(checks.check_mpi(mpich))


def test_library_without_threads(monkeypatch):
    alone, under_weft = {"thread_level": "MPI_THREAD_FUNNELED"}, {"weft": "0.1"}
    level, ranks = examined(monkeypatch, alone=alone, under_weft=under_weft)
    assert level.good is False and ranks.good is True
    assert "--engine function" in level.fix
    reasons = info.engines("mpich", "MPI_THREAD_FUNNELED")
    assert [engine for engine, why in reasons.items() if not why] == ["native", "function", "auto"]
    assert "MPI_THREAD_MULTIPLE" in reasons["thread"]


def test_ranks_without_weft(monkeypatch):
    alone, under_weft = {"thread_level": "MPI_THREAD_MULTIPLE"}, {"weft": None}
    level, ranks = examined(monkeypatch, alone=alone, under_weft=under_weft)
    assert level.good is True and ranks.good is False
    assert "--verbose" in ranks.fix


def test_measuring_programs_that_were_not_built_are_no_fault(monkeypatch, tmp_path):
    monkeypatch.setattr(installation, "mpi_program", lambda mpi, name: tmp_path / name)
    (finding,) = checks.check_mpi(mpi_libraries.implementation("mpich"))
    assert (finding.good, finding.fix) == (None, "make build")


@pytest.mark.parametrize(
    ("devices", "limit", "good"),
    [([], 8 << 20, True), (["mlx5_0"], 8 << 20, False), (["mlx5_0"], -1, True)],
)
def test_locked_memory_matters_to_infiniband(monkeypatch, devices, limit, good):
    monkeypatch.setattr(checks.offload, "network_devices", lambda: devices)
    monkeypatch.setattr(checks.resource, "getrlimit", lambda which: (limit, limit))
    finding = checks.check_locked_memory()
    assert finding.good is good
    assert ("MEMLOCK" in finding.fix) != good


def test_limited_addresses(monkeypatch):
    monkeypatch.setattr(checks.resource, "getrlimit", lambda which: (1 << 30, 1 << 30))
    finding = checks.check_addresses()
    assert (finding.good, finding.fix) == (False, "ulimit -v unlimited")


def test_gpu(monkeypatch, tmp_path):
    device = tmp_path / "nvidiactl"
    monkeypatch.setattr(gpu, "DEVICE_FILES", (str(device),))
    assert checks.check_gpu().good is None
    assert gpu.facts()["problem"] == "no GPU here"
    found = {"driver": "13.0", "devices": ["NVIDIA H200"], "mps": True, "problem": None}
    monkeypatch.setattr(gpu, "asked", lambda: found)
    monkeypatch.setattr(gpu, "has_kernels", lambda: True)
    assert checks.check_gpu().good
    assert "NVIDIA H200; driver for CUDA 13.0" in checks.check_gpu().note
    found["driver"] = "11.0"
    assert not checks.check_gpu().good
    assert re.search(r"Weft's kernels need a driver for CUDA \d+\.\d", checks.check_gpu().note)
    monkeypatch.setattr(gpu, "has_kernels", lambda: False)
    assert checks.check_gpu().fix == "tools/setup-cuda && make build"
    found["problem"] = "CUDA's driver does not answer"
    assert checks.check_gpu().good is False


@pytest.mark.parametrize(
    ("driver", "compiler", "needed"),
    [
        ("12.4", 13000, "13.0"),
        ("13.0", 13000, None),
        ("13.1", 13000, None),
        ("12.0", 12090, None),  # the driver has the same major version
        ("11.2", 11080, "11.4"),
        ("11.0", 0, "11.4"),  # Weft has no kernels
        (None, 13000, None),
    ],
)
def test_kernels_may_need_a_newer_driver(monkeypatch, driver, compiler, needed):
    marker = f"weft_kernel_image: CUDA {compiler}\0".encode()
    monkeypatch.setattr(gpu, "content", lambda: b"\x7fELF" + marker)
    assert gpu.newer_driver_needed(driver) == needed


def test_the_library_says_whose_kernels_it_has():
    assert gpu.COMPILER.search(gpu.content())


def test_gpu_is_asked_by_its_driver(monkeypatch):
    """The driver is a stand-in (tests/device)."""
    monkeypatch.setattr(gpu, "LIBRARY", "libweft-nowhere.so")
    assert "cannot be loaded" in gpu.ask_driver()["problem"]
    if not standins.CUDA.exists():
        pytest.skip(f"{standins.CUDA} is not built")
    monkeypatch.setattr(gpu, "LIBRARY", str(standins.CUDA))
    found = gpu.ask_driver()
    assert (found["devices"], found["driver"]) == (["a stand-in"], "12.4")


def test_mps_is_named(monkeypatch, tmp_path):
    """The device tells whether MPS is used. With older drivers the control pipe of its daemon tells
    it."""
    if not standins.CUDA.exists():
        pytest.skip(f"{standins.CUDA} is not built")
    monkeypatch.setattr(gpu, "LIBRARY", str(standins.CUDA))
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    driver = ctypes.CDLL(str(standins.CUDA))

    def said(attribute):
        driver.standin_set_attribute(gpu.IS_SHARED, attribute)
        found = gpu.ask_driver() | {"kernels": True, "needs": None}
        driver.standin_forget_errors()
        return gpu.in_words(found)

    assert said(1).endswith("; MPS runs")
    assert said(0).endswith(gpu.NO_MPS)
    assert said(-1).endswith(gpu.NO_MPS)
    (tmp_path / "control").touch()
    assert said(-1).endswith("; MPS runs")


def test_xpmem(monkeypatch, tmp_path):
    monkeypatch.setattr(xpmem, "DEVICE", tmp_path / "xpmem")
    assert checks.check_xpmem().good is None
    assert info.without_a_copy()["xpmem"] == f"there is no {tmp_path}/xpmem"
    (tmp_path / "xpmem").touch()
    monkeypatch.setattr(xpmem, "LIBRARY", str(tmp_path / "libxpmem.so.0"))
    finding = checks.check_xpmem()
    assert (finding.good, finding.fix) == (False, xpmem.FIX)
    assert "cannot be loaded" in info.without_a_copy()["xpmem"]
    monkeypatch.setattr(xpmem, "LIBRARY", "libc.so.6")
    assert checks.check_xpmem().good
    assert info.without_a_copy()["xpmem"] is None
    monkeypatch.setenv("WEFT_XPMEM", "off")
    assert "WEFT_XPMEM" in info.without_a_copy()["xpmem"]


def test_fix_for_the_lab():
    assert "apt-get install" in checks.lab_fix(
        "the lab needs 'tc'; install it with: apt-get install x"
    )
    assert checks.lab_fix("RTNETLINK: tbf unknown") == "sudo modprobe sch_tbf"


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        ({"kernel/apparmor_restrict_unprivileged_userns": "1"}, "kernel.apparmor_restrict"),
        ({"kernel/unprivileged_userns_clone": "0"}, "kernel.unprivileged_userns_clone=1"),
        ({"user/max_user_namespaces": "0"}, "user.max_user_namespaces=10000"),
        ({"user/max_user_namespaces": "9"}, "ask the administrator"),
    ],
)
def test_the_setting_that_refuses_namespaces_is_named(monkeypatch, tmp_path, settings, fix):
    for name, value in settings.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{value}\n")
    monkeypatch.setattr(checks, "SYSCTL", tmp_path)
    monkeypatch.setattr(checks.os, "geteuid", lambda: 1000)
    assert fix in checks.lab_fix("unshare failed: Operation not permitted")


def test_a_machine_that_permits_no_lab_is_no_fault(monkeypatch):
    monkeypatch.setattr(checks, "lab_problem", lambda: "the lab cannot be set up here: refused")
    finding = checks.check_lab()
    assert finding.good is None
    assert "--launcher mpiexec" in finding.note


def test_info_as_json(call):
    facts = json.loads(call("info", "--json").stdout)
    assert facts["schema"] == "weft-info/2"
    assert facts["machine"]["usable_cores"]
    assert facts["machine"]["without_a_copy"]["shared buffers"] is None
    assert [mpi["name"] for mpi in facts["libraries"]][:3] == list(mpi_libraries.IMPLEMENTATIONS)
    assert facts["not_here"] == {}
    for mpi in facts["libraries"]:
        assert mpi["thread_level"] == "MPI_THREAD_MULTIPLE"
        assert all(reason is None for reason in mpi["engines"].values())


def test_info_as_text(call):
    text = call("info").stdout
    assert "NUMA" in text
    assert "without a copy: shared buffers: yes; xpmem:" in text
    assert "one copy by the system: " in text
    assert "libmpi.so.40" in text
    assert f"openmpi: {mpi_libraries.implementation('openmpi').mpiexec} (embedded)" in text


def test_info_says_from_where_on_one_copy_is_faster(call, tmp_path):
    cache = tmp_path / "plans"
    machine = f"{one_copy.processor()} NUMA nodes 0, L2 1024K, L3 32768K"
    lines = ["# weft plans, version 3"]
    for traffic, least in (("of one rank, in a row", 262144), ("of all ranks", 0)):
        lines.append(
            f"weft 0|{machine}|one copy|{traffic}\tone-copy/{least}/4/0\t0\tone-copy/1/4/0=5"
        )
        elsewhere = "Another, 3 CPUs, NUMA nodes 0"
        lines.append(f"weft 0|{elsewhere}|one copy|{traffic}\tone-copy/4096/4/0\t0\tx/1/4/0=5")
    cache.write_text("\n".join(lines) + "\n")
    assert one_copy.measured(cache) == {"of one rank, in a row": 262144, "of all ranks": None}
    text = call("info", WEFT_PLAN_CACHE=str(cache)).stdout
    words = "from one rank faster from 256 KiB on, among all ranks slower at all sizes"
    assert f"one copy by the system: {words}" in text
    assert "not measured yet" in one_copy.in_words({})


def test_info_says_what_is_not_here(call, tmp_path):
    text = call("info", WEFT_MPI_DIR=str(tmp_path), PATH=str(tmp_path)).stdout
    assert "mpich: not here; get it with: make build\n" in text
    assert "intelmpi: not here; get it with: make mpis\n" in text


@pytest.mark.parametrize(
    ("library", "title"),
    [
        ("MPICH Version:      4.0.2\nMPICH Release date: Thu", "MPICH 4.0.2"),
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI 4.1.4"),
        ("Intel(R) MPI Library 2021.18 for Linux* OS", "Intel(R) MPI Library 2021.18"),
        ("somebody's own", "somebody's own"),
    ],
)
def test_title_of_a_library(library, title):
    assert info.title(library) == title
