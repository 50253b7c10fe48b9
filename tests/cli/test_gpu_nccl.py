"""Tests persistent collectives that NCCL carries out, in CUDA streams, with stand-ins for CUDA's
driver and for NCCL (tests/device)."""

import subprocess

import pytest
import standins
from test_gpu import run

from weft.system import mpi_libraries

pytestmark = pytest.mark.covering


def by_nccl(*words, devices=2, ranks=2, place=standins.NCCL, mpi="mpich", **variables):
    """Runs gpu_nccl on so many devices, with the NCCL in the folder `place`."""
    places = [place, mpi_libraries.implementation(mpi).environment().get("LD_LIBRARY_PATH")]
    variables = {
        "WEFT_GPU_NCCL": "auto",
        "WEFT_STANDIN_DEVICES": str(devices),
        "LD_LIBRARY_PATH": ":".join(str(one) for one in places if one),
        "OMPI_MCA_mpi_yield_when_idle": "1",
        **variables,
    }
    done = run("gpu_nccl", standins.CUDA, *words, ranks=ranks, mpi=mpi, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases right" in done.stdout, done.stdout + done.stderr
    return done


@pytest.mark.parametrize(("mpi", "engine"), [("mpich", ""), ("openmpi", ""), ("mpich", "auto")])
def test_collectives_by_nccl(mpi, engine):
    """`engine` is Weft's; if it is empty, the program runs without Weft."""
    by_nccl("all", devices=3, ranks=3, mpi=mpi, engine=engine, WEFT_GPU_NCCL="on")


@pytest.mark.parametrize(
    ("nccl", "one_kernel", "engine"),
    [("on", "auto", ""), ("off", "auto", ""), ("off", "off", "auto")],
)
def test_what_graphs_and_streams_outlive(nccl, one_kernel, engine):
    """A graph outlives its communicator and MPI, and a collective its stream."""
    by_nccl("lifetimes", engine=engine, WEFT_GPU_NCCL=nccl, WEFT_GPU_ONE_KERNEL=one_kernel)


@pytest.mark.parametrize("one_kernel", ["auto", "off"])
def test_a_call_that_fails_while_nccl_is_measured(one_kernel):
    by_nccl("measures", WEFT_GPU_ONE_KERNEL=one_kernel)


def test_what_nccl_has_begun_is_given_up_at_the_end():
    done = by_nccl("end", WEFT_GPU_NCCL="on")
    assert "had not ended in MPI_Finalize, and were given up" in done.stderr


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        ("by NCCL 2.21.5, as WEFT_GPU_NCCL says", {"WEFT_GPU_NCCL": "on"}),
        # The stand-in counts each task in a stream as a microsecond.
        ("in one kernel; not by NCCL: it took 1.0 us, this way 1.0 us", {}),
        (
            "by NCCL 2.21.5, in 1.0 us; it took 2.0 us by calls of MPI's",
            {"WEFT_GPU_ONE_KERNEL": "off"},
        ),
        ("in one kernel; not by NCCL: rank 0: WEFT_GPU_NCCL is off", {"WEFT_GPU_NCCL": "off"}),
        (
            "in one kernel; not by NCCL: ranks 0 and 1 share a GPU, and NCCL needs one for each",
            {"WEFT_STANDIN_DEVICES": "1", "WEFT_GPU_NCCL": "on"},
        ),
        (
            "; not by NCCL: rank 0: NCCL 2.8.4 is too old; Weft needs 2.10 or later",
            {"WEFT_STANDIN_NCCL_VERSION": "2804"},
        ),
        # This machine's own NCCL, if there is one, finds none of the stand-in's devices.
        ("in one kernel; not by NCCL: rank 0: ", {"place": ""}),
    ],
)
def test_whether_nccl_is_chosen(path, variables):
    by_nccl("says", path, **variables)


def test_nccl_is_compared_with_the_way_of_the_whole_call():
    """It is measured with 8 MiB, which kernels could carry out, and the call's 12 MB go by MPI."""
    path = " us by calls of MPI's, not in one kernel: it has more than 10485760 bytes"
    by_nccl("says", path, 1_500_000, WEFT_GPU_ONE_KERNEL_BYTES="10485760")


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_nccl_is_chosen_under_weft(mpi):
    path = "by NCCL 2.21.5, in 1.0 us; it took 2.0 us by calls of MPI's"
    by_nccl("says", path, mpi=mpi, engine="auto", WEFT_GPU_ONE_KERNEL="off")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (None, "NCCL cannot be loaded here (libnccl.so.2)"),
        (
            "int ncclGetVersion(int* version) { *version = 22105; return 0; }",
            "this NCCL lacks nccl",
        ),
        ("int ncclGetVersion(int* version) { return 1; }", "this NCCL lacks nccl"),
    ],
)
def test_a_broken_nccl_is_not_used(source, why, tmp_path):
    """The first file is no library."""
    library = tmp_path / "libnccl.so.2"
    if source is None:
        library.write_text("nothing")
    else:
        (tmp_path / "nccl.c").write_text(source + "\n")
        subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "nccl.c", "-o", library], check=True)
    by_nccl("says", f"; not by NCCL: rank 0: {why}", place=tmp_path)
