"""One job of the program `faults`, enclosed, with or without Weft, and what it left behind.

README.md has the table of rows. Each job runs in namespaces of its own where that is permitted (as
root), so that what is left in /dev/shm and of System V is this job's; every job has a hard limit.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from printed import into_files, printed

from weft.system import installation, mpi_libraries

HERE = Path(__file__).parent
MPIS = ("mpich", "openmpi")
ENGINES = ("auto", "function", "thread", "tcc", "assist", "agent")
# The threads of all ranks on one core have an agent.
OPTIONS = {"agent": ["--placement", "list:" + ",".join([str(min(os.sched_getaffinity(0)))] * 8)]}
LIMIT_S = 60
HUNG = (3, 124, 137)  # statuses of jobs that have met their limit
# What the MPI libraries themselves leave when their processes are killed: files in /dev/shm, and
# UCX's System V segments, of which Weft makes none (test_limits.py).
OF_THE_LIBRARY = re.compile(r"mpich|vader|sm_segment|ucx|Intel_MPI|shm_(segment|pool)|psm|^sysv")
CAN_ENCLOSE = (
    subprocess.run(["unshare", "--mount", "--ipc", "true"], capture_output=True).returncode == 0
)


# What is on it afterwards is printed.
FULL_DISK = """
mount -t tmpfs -o size=8k tmpfs "$0" && head -c 8192 /dev/zero >"$0/all" || exit 1
"$@"
status=$?
ls -A "$0" | sed '/^all$/d; s/^/on the full disk: /'
exit $status
"""


@dataclass
class Done:
    status: int
    out: str
    err: str
    left: list[str]
    left_by_library: list[str]

    @property
    def text(self) -> str:
        return self.out + self.err

    def sentences(self) -> list[str]:
        return [line for line in self.err.splitlines() if "weft: " in line]


@dataclass
class Job:
    """One job. engine None: without Weft, natively; "advise": under the advisor instead."""

    mpi: str
    cases: list[str]
    engine: str | None = None
    ranks: int = 2
    options: list[str] = field(default_factory=list)  # of weft run
    variables: dict[str, str] = field(default_factory=dict)
    tools: list[Path] = field(default_factory=list)  # preloaded behind Weft
    limit_s: int = LIMIT_S
    shm_size: str = "50%"
    as_somebody: bool = False
    limits: str = ""  # of each rank, in the words of ulimit
    program: list[str | Path] | None = None  # in place of `faults`
    weft: list[str] | None = None  # in place of `run` and its options
    full_disk: Path | None = None  # a directory that is to be one
    launcher_options: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.library = mpi_libraries.implementation(self.mpi)
        if not self.library.program("faults").exists():
            pytest.skip(f"needs {mpi_libraries.make_target(self.mpi)}")
        self.run = uuid.uuid4().hex
        # Somebody of this job's alone, whose processes nobody else's are counted with.
        self.somebody = str(10000 + int(self.run[:4], 16) % 50000)
        self.directory = Path(tempfile.mkdtemp(prefix="weft-faults-"))
        self.directory.chmod(0o777)
        self.report = self.directory / "left"

    def command(self) -> list[str]:
        words = ["unshare", "--mount", "--ipc"] if CAN_ENCLOSE else []
        if self.full_disk:
            words += ["sh", "-c", FULL_DISK, self.full_disk]
        words += [HERE / "enclosed.sh", self.run, self.report, self.shm_size]
        if self.as_somebody and os.geteuid() == 0:  # whom RLIMIT_NPROC does not bind
            words += ["setpriv", "--reuid", self.somebody, "--regid", self.somebody]
            words += ["--clear-groups"]
        words += ["timeout", "-k", 2, self.limit_s, self.library.mpiexec, "-n", self.ranks]
        words += self.launcher_options
        words += ["--bind-to", "none", "--oversubscribe"] if self.mpi == "openmpi" else []
        words += into_files(self.directory)
        if self.limits:
            words += ["bash", "-c", f'ulimit {self.limits} && exec "$@"', "-"]
        words += ["env"] + [f"{name}={value}" for name, value in self.variables.items()]
        if self.tools:
            words += ["LD_PRELOAD=" + ":".join(map(str, self.tools))]
        if self.engine == "advise":
            words += [installation.weft_command(), "advise", "--"]
        elif self.engine:
            words += [installation.weft_command(), "run", "--engine", self.engine]
            words += [*OPTIONS.get(self.engine, []), *self.options, "--"]
        elif self.weft:
            words += [installation.weft_command(), *self.weft, "--"]
        faults = [self.library.program("faults"), "--limit-s", self.limit_s - 1, *self.cases]
        words += self.program or faults
        return [str(word) for word in words]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        if self.as_somebody and os.geteuid() == 0 and CAN_ENCLOSE:
            kept["WEFT_FAULTS_REACH"] = str(installation.ROOT)
        return {
            **kept,
            **self.library.environment(),
            "HOME": str(self.directory),
            "XDG_CACHE_HOME": str(self.directory),
            # Open MPI's /tmp/ompi.PID of a killed job stays, and may be another user's.
            "TMPDIR": str(self.directory),
            "OMPI_MCA_op": "^avx",
            "OMPI_MCA_mpi_yield_when_idle": "1",
        }

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(
            self.command(),
            env=self.environment(),
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def printed(self, where: str) -> str:
        return printed(self.directory, where)

    def finish(self, process: subprocess.Popen) -> Done:
        out, err = process.communicate(timeout=self.limit_s + 30)
        out, err = self.printed("out") + out, self.printed("err") + err
        lines = self.report.read_text().splitlines()
        shutil.rmtree(self.directory, ignore_errors=True)
        enclosed = "enclosed" in lines
        lines = [line for line in lines if line != "enclosed"]
        left = [line for line in lines if not OF_THE_LIBRARY.search(line)]
        of_library = [line for line in lines if OF_THE_LIBRARY.search(line)]
        if not enclosed:  # /dev/shm is everybody's
            left = [line for line in left if line.startswith("process") or "weft" in line]
            of_library = []
        return Done(process.returncode, out, err, left, of_library)

    def done(self) -> Done:
        """Runs it to its end; nothing may be left of it, and it may not have hung."""
        done = self.finish(self.start())
        assert done.left == []
        assert done.status not in HUNG, f"hangs: {done.text}"
        return done

    def right(self) -> Done:
        done = self.done()
        assert done.status == 0, f"{done.status}: {done.text}"
        return done

    def started(self) -> tuple[subprocess.Popen, dict[int, int]]:
        """Starts it and waits until each rank has said which process it is."""
        process, pids = self.start(), {}
        while len(pids) < self.ranks:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
            told = re.findall(r"rank (\d+) is process (\d+)\n", self.printed("out"))
            pids = {int(rank): int(pid) for rank, pid in told}
        return process, pids


@functools.cache
def natively(mpi: str, case: str, ranks: int = 2) -> Done:
    """What a case does without Weft: one job for all tests that compare with it."""
    return Job(mpi, [case], ranks=ranks).done()


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^PPid:\s+(\d+)", status, re.MULTILINE)[1])


def launcher_of(rank_pid: int) -> int:
    """The process of mpiexec: the ancestor whose parent is `timeout`."""
    pid = rank_pid
    while Path(f"/proc/{parent(pid)}/comm").read_text().strip() != "timeout":
        pid = parent(pid)
    return pid


def end_launcher(process: subprocess.Popen) -> None:
    """Ends a job that was started by Job.start(); `timeout` hands the signal on to mpiexec."""
    (timeout,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(timeout), signal.SIGTERM)


def stop_and_continue(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
