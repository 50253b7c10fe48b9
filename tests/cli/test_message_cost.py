"""Tests the instructions that Weft adds to calls for messages too small for its thread. The
machine's load does not change their number."""

import re
import shutil
import subprocess

import pytest

from weft.system import installation, mpi_libraries

MPICH = mpi_libraries.implementation("mpich")
STARTS = ("Isend", "Irecv", "Start", "Startall")
PROBES = ("Iprobe",)
COMPLETIONS = ("Wait", "Waitany", "Waitsome", "Waitall", "Test", "Testany", "Testsome", "Testall")
MOST_INSTRUCTIONS = 25
TIMES = 200


@pytest.fixture(scope="module", params=["thread", pytest.param("tcc", marks=pytest.mark.long)])
def profile(request, compiled_for, tmp_path_factory):
    """Profiles rank 0 by callgrind."""
    place = tmp_path_factory.mktemp("message_cost")
    program = compiled_for(MPICH, "message_cost")
    callgrind = ["valgrind", "-q", "--tool=callgrind", "--compress-strings=no"]
    callgrind += ["--separate-threads=yes", f"--callgrind-out-file={place / 'out'}"]
    weft = [installation.weft_command(), "run", f"--engine={request.param}", "--"]
    job = [program, TIMES, 1]
    command = [MPICH.mpiexec, "-n", 1, *weft, *callgrind, *job, ":", "-n", 1, *weft, *job]
    done = subprocess.run([str(word) for word in command], capture_output=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    return (place / "out-01").read_text()


def added_by_weft(profile_text, name):
    """Returns the instructions per call from the program, without those of the library's own call
    inside."""
    inclusive, calls, caller, called = 0, 0, "", ""
    lines = iter(profile_text.splitlines())
    for line in lines:
        if line.startswith("fn="):
            caller = line[3:]
        elif line.startswith("cfn="):
            called = line[4:]
        elif line.startswith("calls="):
            instructions = int(next(lines).split()[1])
            if called == f"MPI_{name}" and caller == "main":
                calls += int(re.match(r"calls=(\d+)", line)[1])
                inclusive += instructions
            elif called == f"PMPI_{name}":
                inclusive -= instructions
    assert calls >= TIMES, f"{name} was called {calls} times"
    return inclusive / calls


@pytest.mark.skipif(
    not shutil.which("valgrind"), reason="needs valgrind: sudo apt-get install -y valgrind"
)
def test_instructions_of_short_messages(profile, capsys):
    added = {name: added_by_weft(profile, name) for name in STARTS + PROBES + COMPLETIONS}
    with capsys.disabled():
        print("", *(f"{name} {count:.1f}" for name, count in added.items()), sep="  ")
    assert max(added[name] for name in STARTS + PROBES) <= MOST_INSTRUCTIONS
