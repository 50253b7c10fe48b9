"""Tests the lab: jobs use its links, their bytes are counted, and nothing of it is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.lab import Lab, LabError
from weft.lab.lab import judge_bytes
from weft.lab.plan import make_plan, share_cores
from weft.system import mpi_libraries

MIB = 1 << 20
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
# These are names of files that the lab, or a job of these tests, might leave in /dev/shm.
OURS = ("weft", "left-")


@pytest.fixture(autouse=True)
def nothing_stays(permitted_lab):
    """Checks that a test leaves neither a process of the lab nor a file in /dev/shm."""
    links = Path("/proc/net/dev").read_text().count(":")
    yield
    wait_until(lambda: not lab_processes())
    assert not [path for path in Path("/dev/shm").iterdir() if path.name.startswith(OURS)]
    assert Path("/proc/net/dev").read_text().count(":") == links
    assert not Path("/run/netns/weft0").exists()


def wait_until(condition, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def is_of_this_worker(process: Path) -> bool:
    """Returns whether a process belongs to this worker. Other workers of the test run may have labs
    at the same time."""
    words = (process / "environ").read_bytes().split(b"\0")
    return WORKER is None or f"PYTEST_XDIST_WORKER={WORKER}".encode() in words


def lab_processes() -> list[int]:
    """Returns processes in another network namespace that this worker's tests have started."""
    own = Path("/proc/self/ns/net").readlink()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            elsewhere = (entry / "ns" / "net").readlink() != own
            ours = elsewhere and is_of_this_worker(entry)
        except OSError:
            continue
        if ours and (b"weft.lab.inside" in command or b"weft-test-mark" in command):
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("mpi", mpi_libraries.IMPLEMENTATIONS)
def test_bytes_are_on_the_links(mpi):
    with Lab(nodes=2, mpi=mpi) as lab:
        probe = lab.mpi.program("weft-probe")
        for size in (MIB, 3 * MIB):
            result = lab.run([probe, "--ring", str(size)], capture=True)
            assert result.returncode == 0, result.stderr
            assert all(size <= sent <= 1.2 * size for sent in result.sent_bytes)


def test_four_nodes_with_two_ranks_each():
    with Lab(nodes=4, per_node=2) as lab:
        names = lab.run(["sh", "-c", "hostname"], capture=True)
        assert sorted(names.stdout.split()) == [f"weft{i}" for i in range(4) for _ in range(2)]
        result = lab.run([lab.mpi.program("weft-probe")], capture=True)
        assert json.loads(result.stdout)["ranks"] == 8


def test_weft_run_works_inside():
    with Lab(nodes=2, check=False) as lab:
        program = lab.mpi.program("weft-probe")
        result = lab.run(["weft", "run", "--engine", "thread", "--", program], capture=True)
        assert json.loads(result.stdout)["weft"], result.stderr


def test_ranks_see_variables_directory_and_their_own_core(tmp_path):
    with Lab(nodes=2, cores="0", check=False) as lab:
        command = ["sh", "-c", 'echo "$MARK $PWD $(nproc)"']
        result = lab.run(command, env={"MARK": "a b"}, cwd=tmp_path, capture=True)
    assert result.stdout.splitlines() == [f"a b {tmp_path} 1"] * 2


def test_what_a_job_leaves_is_swept():
    with Lab(nodes=2, check=False) as lab:
        leave = "echo x >/dev/shm/left-$(hostname); (sleep 100 weft-test-mark >/dev/null 2>&1 &)"
        assert lab.run(["sh", "-c", leave], capture=True).returncode == 0
        result = lab.run(["sh", "-c", "ls /dev/shm; cat /proc/[0-9]*/cmdline"], capture=True)
    assert "left-" not in result.stdout
    assert "sleep" not in result.stdout.replace("\0", " ").split()


def test_status_is_the_jobs(call):
    assert call("lab", "run", "--no-check", "--", "sh", "-c", "exit 7").returncode == 7


def test_a_program_that_is_not_there_is_named_before_the_lab_is_made(call):
    done = call("lab", "run", "--", "./nothere")
    assert done.returncode == 127
    assert done.stderr == "weft: ./nothere: not found, or not executable\n"


def test_command_counts_bytes(call, tmp_path):
    counts = tmp_path / "counts.json"
    probe = mpi_libraries.implementation("mpich").program("weft-probe")
    result = call("lab", "run", "--nodes", 3, "--counts", counts, "--", probe, "--ring", MIB)
    assert result.returncode == 0, result.stderr
    facts = json.loads(counts.read_text())
    assert facts["schema"] == "weft-lab-counts/1"
    assert sorted(facts["sent_bytes"]) == ["weft0", "weft1", "weft2"]
    assert all(MIB <= sent <= 1.3 * MIB for sent in facts["sent_bytes"].values())
    assert "weft0 1," in result.stderr


PING_PONG = """
import socket, time
PLACE = ("10.77.0.1", 7000)
if socket.gethostname() == "weft0":
    end, _ = socket.create_server(PLACE).accept()
    while byte := end.recv(1):
        end.send(byte)
else:
    end = None
    while not end:
        try:
            end = socket.create_connection(PLACE, timeout=20)
        except ConnectionRefusedError:
            time.sleep(0.05)
    for _ in range(10):
        begin = time.monotonic()
        end.send(b"x")
        end.recv(1)
        print(time.monotonic() - begin)
"""


def test_what_is_delayed_arrives_later(tmp_path):
    program = tmp_path / "ping_pong.py"
    program.write_text(PING_PONG)
    with Lab(nodes=2, check=False, delay="25ms") as lab:
        result = lab.run([sys.executable, program], capture=True, timeout=60)
    times = [float(line) for line in result.stdout.split()]
    assert len(times) == 10, result.stderr
    assert 0.050 <= min(times) < 0.1  # the delay applies to both directions


@pytest.mark.parametrize("mpi", mpi_libraries.IMPLEMENTATIONS)
def test_what_is_delayed_arrives_whole(mpi):
    with Lab(nodes=3, mpi=mpi, delay="1ms") as lab:
        result = lab.run([lab.mpi.program("weft-probe"), "--ring", str(3 * MIB)], capture=True)
    assert result.returncode == 0, result.stderr
    assert all(3 * MIB <= sent <= 1.2 * 3 * MIB for sent in result.sent_bytes)


def test_a_lab_whose_switch_ends_ends_too():
    with Lab(nodes=2, check=False, delay="1ms") as lab:
        kill = "for p in /proc/[0-9]*; do read -r n < $p/comm; [ $n != weft-switch ] ||"
        with pytest.raises(LabError, match="the lab ended"):
            lab.run_on_head(["sh", "-c", f"{kill} kill -9 ${{p#/proc/}}; done; sleep 20"])


@pytest.mark.parametrize("sent", [[10 * MIB, 0], [10 * MIB, 14 * MIB]])
def test_traffic_that_went_another_way_is_an_error(sent):
    with pytest.raises(LabError, match="another way"):
        judge_bytes("mpich", 10 * MIB, sent)


BAD_INPUT = [
    (["--nodes", "0"], "--nodes"),
    (["--nodes", "65"], "--nodes"),
    (["--per-node", "0"], "--per-node"),
    (["--rate", "fast"], "--rate"),
    (["--burst", "0kb"], "--burst"),
    (["--mpi", "lam"], "mpich, openmpi, intelmpi"),
    (["--cores", "0,x"], "--cores"),
    (["--cores", "4096"], "--cores"),
    (["--delay", "1"], "--delay"),
    (["--delay", "2s"], "--delay"),
]


def test_bad_input_is_refused(answers, tmp_path):
    mark = tmp_path / "started"
    found = answers([["lab", "run", *words, "--", "touch", mark] for words, _ in BAD_INPUT])
    for done, (_, names) in zip(found, BAD_INPUT):
        assert done.returncode == 2 and names in done.stderr, done
    assert not mark.exists()


def heed_interrupts() -> None:
    """Restores the handling of SIGINT, which is ignored if a shell runs the tests in the
    background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_job(weft: str, environment: dict, mark: Path) -> subprocess.Popen:
    """Starts a lab whose ranks stay. Each rank writes its process id to MARK.RANK. Returns when
    both have started."""
    rank = f'echo $$ >"{mark}.$(hostname)"; exec sleep 100'
    command = [weft, "lab", "run", "--no-check", "--", "sh", "-c", rank]
    process = subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts
    )
    wait_until(lambda: all(mark.with_name(f"{mark.name}.weft{i}").exists() for i in (0, 1)), 20)
    return process


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_nothing_stays_after_a_signal(weft, environment, tmp_path, number, status):
    process = start_job(weft, environment, tmp_path / "mark")
    assert lab_processes()
    process.send_signal(number)
    assert process.wait(timeout=20) == status
    wait_until(lambda: not lab_processes())


def test_nothing_stays_after_a_rank_is_killed(tmp_path):
    with Lab(nodes=2, check=False) as lab:
        program = str(lab.mpi.program("weft-probe"))
        # The rank is killed after MPI_Init, while it transfers 80 MB. $$ is the program's process
        # id, since exec keeps it.
        kill = 'if [ "$(hostname)" = weft1 ]; then (sleep 1; kill -9 $$) & fi; '
        kill += f"exec {program} --ring 80000000"
        result = lab.run(["sh", "-c", kill], capture=True, timeout=60)
        assert result.returncode != 0
        again = lab.run([program], capture=True)
        assert json.loads(again.stdout)["ranks"] == 2


def test_timeout_ends_the_lab():
    with Lab(nodes=2, check=False) as lab, pytest.raises(subprocess.TimeoutExpired):
        lab.run(["sleep", "100"], capture=True, timeout=1)


def test_without_namespaces_it_says_so(call, script, environment):
    refuse = script("unshare", "echo 'unshare failed: Operation not permitted' >&2; exit 1")
    path = f"{refuse.parent}:{environment['PATH']}"
    result = call("lab", "run", "--", "true", PATH=path)
    assert result.returncode == 2
    assert "cannot be set up here" in result.stderr
    assert "not permitted" in result.stderr


def test_cores_are_shared_out():
    assert share_cores(4, 1, [0, 1]) == ["0", "1", "0", "1"]
    assert share_cores(2, 1, [0, 1, 2, 3]) == ["0", "1"]
    assert share_cores(2, 2, [0, 1, 2, 3]) == ["0,1", "2,3"]
    assert share_cores(2, 4, [0, 1, 2, 3]) == ["0,1", "2,3"]
    assert make_plan(3, 1, "1gbit", None, "0").cores == ["0", "0", "0"]
    assert make_plan(2, 1, "1gbit", None, ["0,2", "4,6"]).cores == ["0,2", "4,6"]


def test_the_burst_follows_the_rate():
    assert make_plan(2, 1, "200mbit", None, None).burst == "256kb"
    assert make_plan(2, 1, "2gbit", None, None).burst == "488kb"
    assert make_plan(2, 1, "1gbit", "16kb", None).burst == "16kb"
