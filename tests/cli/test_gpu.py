"""Tests collectives in streams with each MPI library and under Weft, and the symbols of the
libraries.

A stand-in replaces CUDA's driver (tests/device). Weft loads CUDA into no other process."""

import json
import os
import re
import struct
import subprocess

import debian_open_mpi
import pytest
import standins
from printed import into_files, printed

from weft.system import gpu as weft_gpu
from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

LIB = installation.BUILD / "lib"
STANDIN = standins.CUDA
HEADERS = ("weft_gpu.h", "weft_gpu_calls.h")


def gpu_library(family):
    path = LIB / f"libweft-gpu-{family}.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


# The program leaves out the longest buffers, or nothing.
AMOUNTS = pytest.mark.parametrize("amount", ["quick", pytest.param("", marks=pytest.mark.long)])


@AMOUNTS
@pytest.mark.parametrize(
    ("mpi", "engine"),
    [
        ("mpich", ""),
        ("openmpi", "thread"),
        pytest.param("mpich", "thread", marks=pytest.mark.long),
        pytest.param("openmpi", "", marks=pytest.mark.long),
    ],
)
def test_equal(mpi, engine, amount, tmp_path):
    """`engine` is Weft's; if it is empty, the program runs without Weft.

    There are three ranks, so that the two neighbours on a ring differ."""
    library = mpi_libraries.implementation(mpi)
    program = library.program("gpu_streams")
    if not program.exists() or not library.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    summary = tmp_path / "summary.json"
    weft = [installation.weft_command(), "run", "--engine", engine, f"--summary=json:{summary}"]
    command = [*library.launcher(3), *into_files(tmp_path), *([*weft, "--"] if engine else [])]
    done = subprocess.run(
        [str(word) for word in [*command, program, STANDIN, *amount.split()]],
        env={**os.environ, **library.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    out, err = printed(tmp_path, "out"), printed(tmp_path, "err")
    assert done.returncode == 0, out + err + done.stderr
    assert "cases equal" in out
    assert "a collective in streams failed, and no call has said so: " in err
    assert "had not ended" not in err  # a request is freed before its stream has reached it
    hint = "function" if engine else "none"
    assert f"hint of Weft's communicators: {hint}" in out
    if engine:
        calls = {call["call"]: call for call in json.loads(summary.read_text())["calls"]}
        for name in ("MPI_Iallreduce", "MPI_Allreduce_init", "MPI_Ineighbor_alltoallw"):
            assert calls[name]["handled"] > 0, calls[name]


def run(name, *options, ranks=3, limit_s=180, mpi="mpich", engine="", **variables):
    """Runs one of the programs for GPUs. `engine` is Weft's; if it is empty, the program runs
    without Weft. Collectives do not go by NCCL unless `variables` says so, since this machine's own
    NCCL finds none of the stand-in's devices."""
    library = mpi_libraries.implementation(mpi)
    program = library.program(name)
    if not program.exists():
        pytest.skip(f"needs {mpi_libraries.make_target(mpi)}")
    weft = [installation.weft_command(), "run", "--engine", engine, "--"] if engine else []
    return subprocess.run(
        [str(word) for word in [*library.launcher(ranks), *weft, program, *options]],
        env={**os.environ, **library.environment(), "WEFT_GPU_NCCL": "off", **variables},
        capture_output=True,
        text=True,
        timeout=limit_s,
    )


def stencil(*options):
    return run("gpu_stencil", *options)


def measured(name, *options, **variables):
    """Returns the output of a measuring program with the stand-in."""
    if not weft_gpu.has_kernels():
        pytest.skip("this machine had no nvcc for the build, and could not fetch it")
    done = run(name, "--driver", STANDIN, *options, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


BY_MPI = "by calls of MPI's, not in one kernel: rank 0: "
OFF = f"{BY_MPI}WEFT_GPU_ONE_KERNEL is off"
STRANGERS = f"{BY_MPI}cuIpcOpenMemHandle: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"


@AMOUNTS
@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ((OFF,), {"WEFT_GPU_ONE_KERNEL": "off"}),
        ((), {"WEFT_GPU_NOTIFY": "stream", "WEFT_INIT_BUDGET": "0"}),
        ((), {"WEFT_GPU_KERNEL_COPY": "0"}),
        pytest.param(
            (OFF,),
            {"WEFT_GPU_NOTIFY": "auto", "WEFT_GPU_ONE_KERNEL": "off"},
            marks=pytest.mark.long,
        ),
        pytest.param((), {"WEFT_STANDIN_DEVICES": "2"}, marks=pytest.mark.long),
        ((STRANGERS,), {"WEFT_STANDIN_DEVICES": "2", "WEFT_STANDIN_STRANGERS": "0-1"}),
    ],
)
def test_equal_as_the_user_chooses(options, variables, amount):
    """There are two ranks, since three take three times as long on two cores."""
    done = run("gpu_streams", STANDIN, *amount.split(), *options, ranks=2, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_library_that_takes_memory_of_the_device(mpi):
    done = run("gpu_aware", STANDIN, mpi=mpi, OMPI_MCA_mpi_yield_when_idle="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_what_cannot_be_enqueued_is_followed_by_nothing(mpi):
    done = run("gpu_refused", STANDIN, ranks=2, mpi=mpi, OMPI_MCA_mpi_yield_when_idle="1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["", "thread"])
def test_a_library_without_persistent_collectives(engine):
    """A program that was compiled for Open MPI 5.0 runs with Open MPI 4.1. `engine` is Weft's,
    whose wrappers exist all the same; if it is empty, the program runs without Weft."""
    place = installation.ROOT / ".deps" / "debian-mpi"
    older = list(place.glob("usr/lib/*/libmpi.so.40.30.*"))
    if not (place / "unpacked").exists() or not older:
        pytest.skip("Debian's Open MPI 4.1 is not in .deps: tools/setup-debian-mpi fetches it")
    program = mpi_libraries.implementation("openmpi").program("gpu_refused")
    if not program.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('openmpi')}")
    variables = debian_open_mpi.environment(place)
    command = [place / debian_open_mpi.LAUNCHER, "-n", 2, "--oversubscribe"]
    command += debian_open_mpi.finds_libraries(variables)
    weft = [installation.weft_command(), "run", "--mpi", "openmpi", "--engine", engine, "--"]
    command += [*(weft if engine else []), program, STANDIN, "prepare"]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        assert f"rank {rank}: MPI_ERR_UNSUPPORTED_OPERATION" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("mpi", "engine"),
    [
        ("mpich", ""),
        ("openmpi", ""),
        ("mpich", "thread"),
        ("openmpi", "thread"),
        ("intelmpi", "thread"),
    ],
)
def test_random_programs_of_collectives_in_streams(mpi, engine):
    """`engine` is Weft's; if it is empty, the programs run without Weft, which is not tested with
    Intel MPI, whose own persistent collectives are wrong.

    WEFT_GPU_MPI_PROGRAMS is the number of programs, and WEFT_GPU_SEED the first seed."""
    programs = os.environ.get("WEFT_GPU_MPI_PROGRAMS", "20")
    first = os.environ.get("WEFT_GPU_SEED", "1")
    limit_s = 60 + 2 * int(programs)
    yields = {"OMPI_MCA_mpi_yield_when_idle": "1"}
    words = (STANDIN, programs, first)
    done = run("gpu_programs", *words, mpi=mpi, engine=engine, limit_s=limit_s, **yields)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout


@pytest.mark.parametrize(
    ("mpi", "seeds"), [("mpich", range(1, 7)), ("openmpi", range(7, 13))], ids=["mpich", "openmpi"]
)
def test_a_call_of_the_drivers_that_fails_hangs_no_program(mpi, seeds, tmp_path):
    """A rank that gets an error of the driver ends the job. If it can take another way, the results
    are right.

    The output is written to a file, since a launcher may lose the last lines of an aborted job."""
    told = 0
    for seed in seeds:
        file = tmp_path / f"program-{seed}"
        words = (STANDIN, 1, seed, file)
        done = run("gpu_programs", *words, mpi=mpi, limit_s=60, OMPI_MCA_mpi_yield_when_idle="1")
        text = file.read_text()
        said = re.search(r"^rank \d: .*: CUDA_ERROR_OUT_OF_MEMORY$", text, re.M)
        told += said is not None
        right = done.returncode == 0 and "cases equal" in text
        assert right != (said is not None), (seed, text + done.stdout + done.stderr)
    assert told > 1, "nothing has failed"


@pytest.mark.parametrize(
    ("mpi", "engine"), [("mpich", ""), ("openmpi", ""), ("intelmpi", "thread")]
)
def test_numbers_that_an_int_does_not_count(mpi, engine):
    """`engine` is Weft's; if it is empty, the program runs without Weft. Intel MPI is tested with
    Weft only, since its own persistent collectives fail."""
    yields = {"OMPI_MCA_mpi_yield_when_idle": "1"}
    done = run("gpu_large", STANDIN, ranks=2, mpi=mpi, engine=engine, **yields)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout


@pytest.fixture(scope="module")
def place_of_a_library_without_large_counts(tmp_path_factory):
    """Returns the folder of a copy of MPICH in which MPI_Ibcast_c, MPI_Bcast_init_c and the like
    are renamed."""
    library = mpi_libraries.implementation("mpich").library
    if not library:
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    place = tmp_path_factory.mktemp("library")
    text, count = re.subn(
        rb"(P?MPI_(?:I[a-z]\w+|[A-Z]\w+_init))_c\0", rb"\1_q\0", library.read_bytes()
    )
    assert count >= 2 * 21
    (place / library.name).write_bytes(text)
    for beside in library.parent.iterdir():
        if beside.name != library.name:
            (place / beside.name).symlink_to(beside)
    return place


@pytest.mark.parametrize("engine", ["", "thread"])
@pytest.mark.parametrize("program", [("gpu_large", "LIBRARY"), ("gpu_programs", 20, 1)])
def test_a_library_that_lacks_only_calls_with_large_counts(
    place_of_a_library_without_large_counts, program, engine
):
    """`engine` is Weft's, whose wrappers exist all the same; if it is empty, the program runs
    without Weft."""
    place = place_of_a_library_without_large_counts
    name, *words = program
    done = run(name, STANDIN, *words, ranks=2, engine=engine, LD_LIBRARY_PATH=str(place))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases equal" in done.stdout


@pytest.mark.parametrize(
    "variable, value, words",
    [
        ("WEFT_GPU_NOTIFY", "always", "WEFT_GPU_NOTIFY is kernel, stream or auto"),
        ("WEFT_GPU_NCCL", "always", "WEFT_GPU_NCCL is auto, on or off"),
        ("WEFT_GPU_KERNEL_COPY", "32KiB", "WEFT_GPU_KERNEL_COPY is a number of bytes"),
        ("WEFT_GPU_KERNEL_COPY", "-1", "WEFT_GPU_KERNEL_COPY is a number of bytes"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(variable, value, words):
    done = run("gpu_streams", STANDIN, ranks=1, **{variable: value})
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_stencil_is_right_by_every_method():
    small = ("--order", 24, "--steps", 6, "--repetitions", 1)
    methods = ("default", "notify", "coop", "graphs", "acx")
    said = measured("gpu_stencil", *small, "--check", "--methods", ",".join(methods))
    assert "0 wrong values" in said
    assert set(methods) <= {line.split()[0] for line in said.splitlines()[1:]}


def test_stencil_says_which_methods_cannot_run_here():
    """Without an option all other methods are run."""
    small = ("--order", 24, "--steps", 2, "--repetitions", 1)
    said = measured("gpu_stencil", *small, ranks=2).splitlines()
    assert "nccl     left out: it needs NCCL and a GPU for each of several ranks" in said
    shown = [line.split()[0] for line in said if "[" in line and "left out" not in line]
    assert shown[-5:] == ["default", "notify", "coop", "graphs", "acx"]


def test_stencil_by_nccl_in_a_graph():
    """Each rank has its own device."""
    small = ("--order", 24, "--steps", 6, "--repetitions", 1, "--check", "--methods", "nccl,graphs")
    said = measured("gpu_stencil", *small, "--nccl", STANDIN, WEFT_STANDIN_DEVICES="3")
    assert "0 wrong values" in said and "left out" not in said
    assert re.search(r"^nccl +\d+\.\d\d \[", said, re.M), said


def test_cooperative_kernels_of_ranks_that_share_a_device_run_at_one_time(tmp_path):
    """The stand-in can run four blocks, and starts a kernel when there is room for all its
    blocks."""
    device = tmp_path / "device"
    device.write_bytes(struct.pack("qq", 4, 0))
    small = ("--order", 24, "--steps", 6, "--repetitions", 1, "--check", "--methods", "coop")
    said = measured("gpu_stencil", *small, ranks=2, limit_s=40, WEFT_STANDIN_DEVICE=str(device))
    assert "0 wrong values" in said
    assert struct.unpack("qq", device.read_bytes()) == (4, 0)


def test_stencil_begins_on_the_device():
    """Of the N x N numbers only the two rows next to the ranks' borders are copied from the
    processor."""
    small = ("--order", 64, "--steps", 2, "--repetitions", 1, "--methods", "default,notify,graphs")
    two_rows = str(2 * 64 * 8)
    measured("gpu_stencil", *small, ranks=2, WEFT_STANDIN_MOST_AT_ONCE=two_rows)


def test_conjugate_gradients_are_right_by_every_method():
    """Three ranks have different numbers of planes."""
    said = measured("gpu_cg", "--order", 8, "--repetitions", 1)
    assert "all solutions right" in said
    rows = [line.split() for line in said.splitlines() if "iterations" in line and "[" in line]
    assert [row[0] for row in rows if row[0] != "a"] == ["default", "notify", "graphs"]
    assert len({row[5] for row in rows if row[0] != "a"}) == 1, "the methods differ"


def test_conjugate_gradients_by_nccl_in_a_graph():
    variables = {"WEFT_STANDIN_DEVICES": "2", "LD_LIBRARY_PATH": str(standins.NCCL)}
    small = ("--order", 6, "--repetitions", 1, "--methods", "notify,graphs")
    said = measured("gpu_cg", *small, ranks=2, WEFT_GPU_NCCL="on", **variables)
    assert "sums go by NCCL" in said and "all solutions right" in said


def test_conjugate_gradients_in_a_graph_are_really_computed():
    if not weft_gpu.has_kernels():
        pytest.skip("this machine had no nvcc for the build, and could not fetch it")
    small = ("--order", 6, "--repetitions", 1, "--most", 100, "--methods", "graphs")
    done = run("gpu_cg", "--driver", STANDIN, *small, ranks=1, WEFT_STANDIN_IDLE_GRAPHS="1")
    assert done.returncode == 1 and "WRONG SOLUTIONS" in done.stdout


def test_notify_measures_both():
    small = ("--turns", 5, "--bytes", 3 << 20, "--repetitions", 1, "--blocks", 4)
    said = measured("gpu_notify", *small, ranks=2)
    for row in ("notice", "notice after 10 ms of nothing"):
        assert re.search(rf"^{row}: \d+\.\d\d us .* limit 5 us: (met|missed)$", said, re.M), said
    assert re.search(r"^overlap: .* 3145728 bytes .* limit 90 %: (met|missed)$", said, re.M), said
    assert "0 wrong values; it travels by calls of MPI's, not in one kernel: it has more" in said


def test_a_gap_may_be_left_out():
    small = ("--turns", 2, "--gap-ms", 0, "--bytes", 4096, "--repetitions", 1, "--blocks", 1)
    assert "of nothing" not in measured("gpu_notify", *small, ranks=1)


def test_a_graph_that_sums_nothing_is_found():
    """Other methods leave the right sum in the buffer before and after the graph."""
    if not weft_gpu.has_kernels():
        pytest.skip("this machine had no nvcc for the build, and could not fetch it")
    small = ("--driver", STANDIN, "--bytes", "4096", "--turns", 3, "--blas", STANDIN)
    done = run("gpu_allreduce", *small, WEFT_STANDIN_IDLE_GRAPHS="1")
    assert done.returncode != 0
    assert f"{3 * 512} wrong values" in done.stdout


@pytest.mark.parametrize("way", ["in one kernel", "by calls of MPI's"])
def test_allreduce_is_right_by_every_way(way):
    chosen = "auto" if way == "in one kernel" else "off"
    small = ("--bytes", "8,262144,524288", "--turns", 3)
    libraries = ("--blas", STANDIN, "--cpu-blas", f"libweft-nowhere.so,{STANDIN}")
    said = measured("gpu_allreduce", *small, *libraries, WEFT_GPU_ONE_KERNEL=chosen)
    assert "0 wrong values" in said
    assert f"cpu gemv: {STANDIN}" in said
    assert f"one kernel: {way}" in said
    rows = [line.split() for line in said.splitlines() if re.match(r" +\d", line)]
    assert [row[0] for row in rows] == 2 * ["8", "262144", "524288"]
    in_kernel = [row[1] != "-" for row in rows[:3]]
    assert in_kernel == 3 * [chosen == "auto"]
    assert all(row[5] != "-" for row in rows[:3]), "the product with ones was not run"
    assert all("-" not in row for row in rows[3:]), "some sum of rows was not run"


def test_allreduce_by_nccl():
    small = ("--bytes", "8,524288", "--turns", 3, "--blas", STANDIN, "--nccl", STANDIN)
    said = measured("gpu_allreduce", *small, WEFT_STANDIN_DEVICES="3")
    assert "0 wrong values" in said
    rows = [line.split() for line in said.splitlines() if re.match(r" +\d", line)]
    assert [row[6] != "-" for row in rows[:2]] == [True, True]


def test_fft3d_is_right():
    small = ("--order", 12, "--blocks", 2, "--repetitions", 1, "--work", "1,2", "--fft", STANDIN)
    said = measured("gpu_fft3d", *small)
    assert "all answers right" in said
    assert said.count("(from the definition)") == 2
    assert re.search(r"^overlap (pays|does not pay)", said, re.M), said


def test_programs_say_what_is_wrong():
    done = run("gpu_fft3d", "--order", 10, ranks=2)
    assert done.returncode == 2
    assert "multiple of ranks times blocks" in done.stderr
    assert run("gpu_notify", "--turns", 0, ranks=1).returncode == 2
    done = run("gpu_allreduce", "--bytes", "12", ranks=1)
    assert "multiples of 8" in done.stderr
    assert "even numbers" in run("gpu_cg", "--batch", 3, ranks=1).stderr
    assert "each rank needs a plane" in run("gpu_cg", "--order", 1, ranks=2).stderr
    for name in ("gpu_cg", "gpu_notify", "gpu_allreduce", "gpu_fft3d"):
        done = run(name, "--driver", "libweft-nowhere.so", ranks=1)
        assert done.returncode == 77
        assert "there is no GPU here" in done.stderr


def test_stencil_says_that_there_is_no_gpu():
    done = stencil("--driver", "libweft-nowhere.so")
    assert done.returncode == 77
    assert "there is no GPU here" in done.stderr
    assert stencil("--methods", "magic").returncode == 2


def symbols(family, which) -> dict[str, str]:
    """Returns the kinds of symbols by name, as nm prints them."""
    words = ["nm", "-D", "-P", which, gpu_library(family)]
    listing = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return dict(line.split()[:2] for line in listing.splitlines())


@pytest.mark.parametrize("family", ["mpich", "openmpi", "abi"])
def test_shows_what_the_headers_declare(family):
    shown = {name.split("@")[0] for name in symbols(family, "--defined-only")}
    text = "".join((installation.ROOT / "include" / name).read_text() for name in HEADERS)
    # These functions act before the library's own finalisation.
    beside = {"MPI_Finalize", "weft_gpu_finalize"}
    assert beside < shown
    declared = set(re.findall(r"^WEFT_GPU_API [\w* ]+?\*?(weft_\w+)\(", text, re.M))
    assert shown - beside == declared
    with_ints, with_large_counts = 2 * 22, 2 * 21  # a barrier has no count
    assert len(declared) == with_ints + with_large_counts + 10


@pytest.mark.parametrize("family", ["mpich", "openmpi", "abi"])
def test_a_library_may_lack_what_came_with_mpi_4(family):
    kinds = symbols(family, "--undefined-only")
    new = {
        name: kind for name, kind in kinds.items() if re.match(r"MPI_\w+_(init|c|init_c)$", name)
    }
    assert len(new) == (22 if family == "openmpi" else 22 + 2 * 21)
    assert set(new.values()) == {"w"}


def test_kernels_are_there_for_each_architecture():
    """The library has machine code from sm_75 to sm_90, and PTX for later devices."""
    if not weft_gpu.has_kernels():
        pytest.skip("this machine had no nvcc for the build, and could not fetch it")
    image = weft_gpu.content()
    image = image[image.index(weft_gpu.FAT_BINARY) :]
    _, _, at, bytes_behind = struct.unpack_from("<IHHQ", image)
    found, end = set(), at + bytes_behind
    while at < end:
        kind, _, header, length = struct.unpack_from("<HHIQ", image, at)
        (architecture,) = struct.unpack_from("<I", image, at + 28)
        found.add(({1: "ptx", 2: "machine code"}[kind], architecture))
        at += header + length
    assert found == {("ptx", 90), *(("machine code", sm) for sm in (75, 80, 86, 89, 90))}


@pytest.mark.parametrize("name", ["weft-gpu", "weft", "weft-advise"])
@pytest.mark.parametrize("family", ["mpich", "openmpi", "abi"])
def test_needs_neither_cuda_nor_mpi(family, name):
    path = LIB / f"lib{name}-{family}.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    listing = subprocess.run(
        ["readelf", "-d", path], capture_output=True, text=True, check=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", listing)
    assert [n for n in needed if re.match(r"libcu|libnv|libmpi|libstdc\+\+", n)] == []


def test_no_process_gets_cuda_by_weft(tmp_path):
    """Weft loads no driver, although one could be found: the stand-in has the driver's own file
    name."""
    library = mpi_libraries.implementation("mpich")
    program = library.program("weft-probe")
    if not program.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    files = tmp_path / "files"
    command = [*library.launcher(1), "env", f"LD_DEBUG_OUTPUT={files}", "LD_DEBUG=libs"]
    command += [f"LD_LIBRARY_PATH={standins.FOLDER}", installation.weft_command(), "run", "--"]
    done = subprocess.run(
        [str(word) for word in [*command, program]],
        env={**os.environ, **library.environment()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said = "".join(path.read_text(errors="replace") for path in tmp_path.glob("files*"))
    assert "libweft-mpich.so" in said, "nothing was observed"
    assert not re.search(r"calling init: .*libcuda", said)


def test_says_which_driver_is_lacking(tmp_path):
    """Tests a missing driver, and one that lacks most functions."""
    library = mpi_libraries.implementation("mpich")
    mpicc = library.mpiexec.parent / "mpicc"
    if not mpicc.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    program, old = tmp_path / "program", tmp_path / "old"
    source = installation.ROOT / "tests/cli/programs/gpu_driver.c"
    path = gpu_library("mpich")
    words = [mpicc, f"-I{installation.ROOT / 'include'}", source, path, f"-Wl,-rpath,{path.parent}"]
    subprocess.run([*words, "-o", program], check=True)
    old.mkdir()
    (tmp_path / "old.c").write_text("int cuGetErrorName(void) { return 0; }\n")
    words = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", tmp_path / "old.c"]
    subprocess.run([*words, "-o", old / "libcuda.so.1"], check=True)

    def said(**variables):
        done = subprocess.run(
            [str(word) for word in [*library.launcher(1), program]],
            env={**os.environ, **library.environment(), **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "there is no driver of CUDA's here (libcuda.so.1)" in said()
    lacking = r"CUDA's driver is too old: it lacks cu\w+; Weft needs that of CUDA \d+\.\d or later"
    assert re.search(lacking, said(LD_LIBRARY_PATH=str(old)))


def test_headers_are_c(tmp_path):
    source = tmp_path / "use.c"
    source.write_text('#include <mpi.h>\n#include "weft_gpu.h"\nint main(void) { return 0; }\n')
    library = mpi_libraries.implementation("mpich")
    include = library.prefix / "include"
    if not (include / "mpi.h").exists():
        pytest.skip(f"needs {mpi_libraries.make_target('mpich')}")
    words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
    words += [f"-I{installation.ROOT / 'include'}", "-fsyntax-only", str(source)]
    subprocess.run(words, check=True)
