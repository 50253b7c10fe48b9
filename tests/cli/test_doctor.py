"""`weft doctor` and `weft info`: what is there is seen, and what is wrong comes with its fix."""

from __future__ import annotations

import json
import os

from weft import doctor, info, installation, mpi_libraries, xpmem


def test_everything_that_make_sets_up_is_good():
    findings = {finding.what: finding for finding in doctor.findings()}
    for what, finding in findings.items():
        # What else ran on this machine, and what it permits, is not of our making.
        if "leftovers" in what or "lab" in what or "/dev/shm" in what:
            continue
        assert finding.good, finding
        assert not finding.fix


def test_missing_parts_are_named_with_their_fix(call, tmp_path):
    result = call("doctor", WEFT_MPI_DIR=str(tmp_path / "no-mpi"))
    assert result.returncode == 1
    assert "make build" in result.stdout
    assert "make mpis" in result.stdout


def test_missing_library(monkeypatch):
    monkeypatch.setattr(installation, "preload_library", lambda family: None)
    finding = doctor.check_library("openmpi")
    assert (finding.good, finding.fix) == (False, "make mpis")


def test_library_that_cannot_be_loaded(monkeypatch, tmp_path):
    broken = tmp_path / "libweft-mpich.so"
    broken.write_text("not a library")
    monkeypatch.setattr(installation, "preload_library", lambda family: broken)
    finding = doctor.check_library("mpich")
    assert (finding.good, finding.fix) == (False, "make build")


def test_leftovers_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "SHM", tmp_path)
    (tmp_path / "mpich_shm_1f0e804_0").touch()
    (tmp_path / "somebody-elses").touch()
    finding = doctor.check_leftovers()
    assert not finding.good
    assert finding.fix == f"rm -r {tmp_path}/mpich_shm_1f0e804_0"


def test_dead_launchers_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / f"ompi.{os.getpid()}").mkdir()
    (tmp_path / "ompi.node.0").mkdir()
    assert doctor.check_dead_launchers().good
    (tmp_path / "ompi.99999999").mkdir()
    finding = doctor.check_dead_launchers()
    assert (finding.good, finding.fix) == (False, f"rm -r {tmp_path}/ompi.99999999")


def test_too_little_shared_memory(monkeypatch):
    monkeypatch.setattr(doctor, "SHM_NEEDED_BYTES", 1 << 62)
    finding = doctor.check_shm_space()
    assert not finding.good
    assert "remount" in finding.fix


def test_library_without_threads(monkeypatch):
    level = {"thread_level": "MPI_THREAD_FUNNELED"}
    monkeypatch.setattr(doctor, "run_probe", lambda mpi, ranks: level)
    finding = doctor.check_mpi(mpi_libraries.implementation("mpich"))
    assert not finding.good
    assert "--engine function" in finding.fix
    reasons = info.engines("mpich", "MPI_THREAD_FUNNELED")
    assert [engine for engine, why in reasons.items() if not why] == ["native", "function", "auto"]
    assert "MPI_THREAD_MULTIPLE" in reasons["thread"]


def test_xpmem(monkeypatch, tmp_path):
    monkeypatch.setattr(xpmem, "DEVICE", tmp_path / "xpmem")
    assert doctor.check_xpmem().good
    assert info.without_a_copy()["xpmem"] == f"there is no {tmp_path}/xpmem"
    (tmp_path / "xpmem").touch()
    monkeypatch.setattr(xpmem, "LIBRARY", str(tmp_path / "libxpmem.so.0"))
    finding = doctor.check_xpmem()
    assert (finding.good, finding.fix) == (False, xpmem.FIX)
    assert "cannot be loaded" in info.without_a_copy()["xpmem"]
    monkeypatch.setattr(xpmem, "LIBRARY", "libc.so.6")
    assert doctor.check_xpmem().good
    assert info.without_a_copy()["xpmem"] is None
    monkeypatch.setenv("WEFT_XPMEM", "off")
    assert "WEFT_XPMEM" in info.without_a_copy()["xpmem"]


def test_fix_for_the_lab():
    assert "apt-get install" in doctor.lab_fix(
        "the lab needs 'tc'; install it with: apt-get install x"
    )
    assert doctor.lab_fix("RTNETLINK: tbf unknown") == "sudo modprobe sch_tbf"
    assert doctor.lab_fix("unshare failed: Operation not permitted")


def test_info_as_json(call):
    facts = json.loads(call("info", "--json").stdout)
    assert facts["schema"] == "weft-info/1"
    assert facts["machine"]["usable_cores"]
    assert facts["machine"]["without_a_copy"]["shared buffers"] is None
    assert [mpi["name"] for mpi in facts["mpi"]] == list(mpi_libraries.IMPLEMENTATIONS)
    for mpi in facts["mpi"]:
        assert mpi["thread_level"] == "MPI_THREAD_MULTIPLE"
        assert all(reason is None for reason in mpi["engines"].values())


def test_info_as_text(call):
    text = call("info").stdout
    assert "NUMA" in text
    assert "without a copy: shared buffers: yes; process_vm_readv: slower" in text
    assert "libmpi.so.40" in text
