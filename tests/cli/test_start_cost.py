"""Tests the cost of starting a collective in instructions, whose number does not depend on the
machine's load.

`make test` counts the starts of engine auto, and one kind of persistent calls. `make test-long`
counts the others, since a run under valgrind takes seconds."""

import re
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest
import standins

from weft.system import installation, mpi_libraries

MPICH = mpi_libraries.implementation("mpich")
CALLS = (100, 200)
MOST_INSTRUCTIONS = 1560
MOST_INLINE = 480  # of a short one in the node's memory, which its caller carries out inline
MOST_RECORDED = 2600
MOST_AT_A_SITE = 40  # additional instructions of a call class about which engine auto has decided
MOST_OF_A_WATCH = 5  # additional ones of a blocking call whose time Weft watches for changes
# If one of these files exists, any program may have memory of a device.
DEVICE_FILES = [
    Path("/dev", name) for name in ("nvidiactl", "nvidia-uvm", "nvhost-gpu", "dxg", "kfd")
]


@pytest.fixture
def program(compiled_for):
    return compiled_for(MPICH, "start_cost")


def profile(
    program,
    calls,
    file,
    option,
    form="nonblocking",
    doubles=1,
    inside=None,
    engine="function",
    more=(),
):
    """Runs the program with rank 0 under callgrind, which counts inside the starts only, or inside
    another function. Returns the profile."""
    if engine == "advise":
        weft = [installation.weft_command(), "advise", "--directory", file.parent, *option.split()]
    else:
        weft = [installation.weft_command(), "run", f"--engine={engine}", *option.split()]
    inside = inside or ("MPI_Start" if form == "persistent" else "MPI_Iallreduce")
    callgrind = ["valgrind", "-q", "--tool=callgrind", f"--toggle-collect={inside}"]
    callgrind += ["--compress-strings=no", f"--callgrind-out-file={file}", *more]
    job = [program, calls, form, *str(doubles).split()]
    rank_0 = ["-n", 1, *weft, "--", *callgrind, *job]
    rank_1 = ["-n", 1, *weft, "--", *job]
    command = [str(word) for word in [MPICH.mpiexec, *rank_0, ":", *rank_1]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    return file.read_text()


def outside_the_library(profile_text):
    """Returns the number of Weft's instructions.

    Those inside calls of the MPI library are left out. So is the poll of the library every 20 us,
    which happens much more often under valgrind, since that is slow."""
    total = int(re.search(r"^totals: (\d+)", profile_text, re.MULTILINE)[1])
    poll = r"weft::Lifecycle::keep_library_going\(\)"
    library_call = r"cob=\S*libmpi\.so\S*\n(?:cfi=.*\n)?cfn=PMPI_\w+"
    called = re.compile(
        rf"^(?:{library_call}|(?:cfi=.*\n)?cfn={poll})\ncalls=.*\n\S+ (\d+)$", re.MULTILINE
    )
    objects = re.split(r"^ob=", profile_text, flags=re.MULTILINE)
    of_weft = "".join(text for text in objects if "libweft-" in text.split("\n", 1)[0])
    functions = re.split(r"^fn=", of_weft, flags=re.MULTILINE)
    outside_poll = "".join(text for text in functions if not re.match(poll, text))
    return total - sum(int(inclusive) for inclusive in called.findall(outside_poll))


needs_valgrind = pytest.mark.skipif(
    not shutil.which("valgrind"), reason="needs valgrind: sudo apt-get install -y valgrind"
)


def instructions_of_one_start(program, directory, option, engine):
    """Returns the instructions of one start whose schedule is cached. The first start is in both
    runs, and cancels out."""
    few, many = (
        outside_the_library(
            profile(program, calls, directory / f"{calls}.out", option, engine=engine)
        )
        for calls in CALLS
    )
    return (many - few) / (CALLS[1] - CALLS[0])


@needs_valgrind
@pytest.mark.parametrize(
    ("engine", "option", "most"),
    [
        ("auto", "--learn=off", MOST_INLINE),
        pytest.param("function", "--transport=mpi", MOST_INSTRUCTIONS, marks=pytest.mark.long),
        ("auto", "--learn=use", MOST_INLINE + MOST_AT_A_SITE),
    ],
)
def test_instructions_of_one_start(program, tmp_path, engine, option, most, capsys):
    instructions = instructions_of_one_start(program, tmp_path, option, engine)
    with capsys.disabled():
        print(f"  engine {engine}, {option}: {instructions:.0f} instructions")
    assert 300 < instructions <= most


@pytest.mark.long
@needs_valgrind
def test_instructions_of_one_start_that_the_advisor_records(program, tmp_path, capsys):
    """A quarter of these instructions find the callers on the stack, and another quarter the memory
    that the call uses."""
    instructions = instructions_of_one_start(program, tmp_path, "--overhead=0", "advise")
    with capsys.disabled():
        print(f"  weft advise: {instructions:.0f} instructions")
    assert 300 < instructions <= MOST_RECORDED


@pytest.mark.long
@needs_valgrind
def test_instructions_of_one_start_where_ways_are_tried(program, tmp_path, capsys):
    """The call class has settled, and this call is neither a trial nor watched."""
    calls, file = 600, tmp_path / "out"
    each_alone = ["--dump-before=MPI_Iallreduce"]
    profile(program, calls, file, "--learn=on", engine="auto", more=each_alone)
    later = [file.with_name(f"out.{call}") for call in range(calls // 2, calls)]
    instructions = [outside_the_library(file.read_text()) for file in later]
    settled = statistics.quantiles(instructions, n=4)[0]
    with capsys.disabled():
        print(f"  engine auto, --learn=on: {settled:.0f} instructions")
    assert settled <= MOST_INLINE + MOST_AT_A_SITE


def settled_instructions(program, directory, options, form, inside):
    """Returns the instructions of a usual later call; those at which something is timed, compared
    or agreed on are few."""
    calls, file = 200, directory / "out"
    options = (f"{options} --plan-cache=none", form, 1, inside, "auto")
    profile(program, calls, file, *options, more=[f"--dump-before={inside}"])
    later = [file.with_name(f"{file.name}.{call}") for call in range(calls // 2, calls)]
    return statistics.median(outside_the_library(file.read_text()) for file in later)


@needs_valgrind
@pytest.mark.parametrize(
    ("form", "call", "budget"), [("blocking", "MPI_Bcast", "1us"), ("left", "MPI_Allreduce", "20s")]
)
def test_a_watched_blocking_call_costs_hardly_more(
    program, compiled_for, tmp_path, monkeypatch, form, call, budget, capsys
):
    """Weft carries out the bcasts, since there is no time for a comparison. The library carries out
    the allreduces, since a tool stands in for it that takes no time."""
    tool = compiled_for(MPICH, "fast_allreduce", "-shared", "-fPIC")
    monkeypatch.setenv("LD_PRELOAD", str(tool))

    def instructions(learn):
        directory = tmp_path / learn
        directory.mkdir()
        options = f"--learn={learn} --init-budget={budget}"
        return settled_instructions(program, directory, options, form, call)

    without, watched = instructions("use"), instructions("on")
    with capsys.disabled():
        print(f"  {call}: {without:.0f} instructions, {watched - without:.0f} more if watched")
    assert 0 <= watched - without <= MOST_OF_A_WATCH


@needs_valgrind
def test_a_known_initialisation_asks_for_no_comparison(program, tmp_path):
    """The ranks meet once to agree on the plan, and once to agree on memory."""
    inside, more = "MPI_Allreduce_init", ["--dump-before=MPI_Allreduce_init"]
    options = ("--init-budget=1us --plan-cache=none", "known", 1024, inside, "auto", more)
    profile(program, 4, tmp_path / "out", *options)
    third = (tmp_path / "out.4").read_text()
    called = r"^cfn=weft::InternalCollective::{}\(.*\ncalls=(\d+)"
    reduced = re.findall(called.format("reduced"), third, re.MULTILINE)
    assert sum(map(int, reduced)) == 1
    assert "weft::memory_of_request" in third


@pytest.mark.long
@needs_valgrind
@pytest.mark.skipif(any(map(Path.exists, DEVICE_FILES)), reason="this machine has a GPU")
@pytest.mark.parametrize("has_driver", [False, True])
def test_only_a_program_with_a_driver_asks_it_for_memory(
    program, tmp_path, monkeypatch, has_driver
):
    """`has_driver`: the program has loaded the stand-in for CUDA's driver (tests/device)."""
    if has_driver:
        if not standins.CUDA.exists():
            pytest.skip(f"{standins.CUDA} is not built")
        monkeypatch.setenv("LD_PRELOAD", str(standins.CUDA))
    counted = profile(program, 20, tmp_path / "out", "--transport=auto")
    assert ("weft::StagedBuffers::of" in counted) == has_driver


@needs_valgrind
@pytest.mark.parametrize(
    ("doubles", "offered"),
    [
        (1, False),
        pytest.param(512, False, marks=pytest.mark.long),
        pytest.param(16384, True, marks=pytest.mark.long),
    ],
)
def test_persistent_calls_stay_in_the_hand_of_the_caller(program, tmp_path, doubles, offered):
    """Such calls are not among the operations under way. If others wait for its later steps, a call
    may be taken over by any thread that advances operations."""
    no_trials = "--init-budget=0"
    counted = profile(program, 20, tmp_path / "out", no_trials, "persistent", doubles)
    assert "weft::SharedMemoryCall::progress" in counted
    assert "weft::Progress::submit" not in counted
    assert ("weft::Progress::offer" in counted) == offered


@pytest.mark.long
@needs_valgrind
def test_waitall_leaves_persistent_calls_in_the_hand_of_the_caller(program, tmp_path):
    counted = profile(program, 20, tmp_path / "out", "--init-budget=0", "waitall", 1, "MPI_Waitall")
    assert "weft::interpose::complete::Waitall" in counted
    assert "weft::SharedMemoryCall::progress" in counted
    assert "Completion::Completion" not in counted


@pytest.mark.long
@needs_valgrind
def test_an_initialisation_in_memory_needs_no_collective_of_the_library(program, tmp_path):
    """Ranks agree in the communicator's memory, which also contains the request. Weft's own
    communicator of this rank alone was made in MPI_Init."""
    options = ("--init-budget=0", "persistent", 64 * 1024, "MPI_Allreduce_init")
    counted = profile(program, 1, tmp_path / "out", *options)
    called = set(re.findall(r"^cfn=(?:PMPI_)?(\w+)$", counted, re.MULTILINE))
    assert "Recv_init" in called
    assert "weft::memory_of_request" in counted
    # MPI_Allreduce is called on one rank, to check that operator and type fit together.
    assert not called & {"Bcast", "Scan", "Allgather", "Barrier", "Comm_split", "Comm_create"}
    assert not called & {"memfd_create", "ftruncate"}


@pytest.mark.long
@needs_valgrind
def test_an_initialisation_does_not_wait_for_the_file_of_plans(program, tmp_path):
    """The file was read in MPI_Init. With such a short budget nothing is measured or written."""
    options = ("--init-budget=1us", "persistent", 64 * 1024, "MPI_Allreduce_init")
    counted = profile(program, 1, tmp_path / "out", *options)
    assert "weft::PlanCache::find" in counted
    called = set(re.findall(r"^cfn=(\w+)$", counted, re.MULTILINE))
    assert not called & {"open", "open64", "read", "fstat", "fstat64"}
