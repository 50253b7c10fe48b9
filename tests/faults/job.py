"""Runs a job of the program `faults` in isolation, with or without Weft, and finds what it leaves
behind.

README.md has the table of rows. If permitted (as root), each job runs in its own namespaces, so
that files in /dev/shm and System V segments are this job's. Every job has a hard time limit."""

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
# Engine agent needs the threads of all ranks on one core.
OPTIONS = {"agent": ["--placement", "list:" + ",".join([str(min(os.sched_getaffinity(0)))] * 8)]}
LIMIT_S = 60
HUNG = (3, 124, 137)  # exit statuses of jobs that exceeded their time limit
# MPI libraries leave these when their processes are killed: files in /dev/shm, and System V
# segments of UCX. Weft makes none of them (test_limits.py).
OF_THE_LIBRARY = re.compile(r"mpich|vader|sm_segment|ucx|Intel_MPI|shm_(segment|pool)|psm|^sysv")
CAN_ENCLOSE = (
    subprocess.run(["unshare", "--mount", "--ipc", "true"], capture_output=True).returncode == 0
)


# This script runs a command with a full disk, and prints the files that are on the disk afterwards.
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
    """One job. Without an engine (None) it runs without Weft; with "advise" it runs under the
    advisor instead."""

    mpi: str
    cases: list[str]
    engine: str | None = None
    ranks: int = 2
    options: list[str] = field(default_factory=list)  # options of weft run
    variables: dict[str, str] = field(default_factory=dict)
    tools: list[Path] = field(default_factory=list)  # libraries that are preloaded behind Weft
    limit_s: int = LIMIT_S
    shm_size: str = "50%"
    as_somebody: bool = False
    limits: str = ""  # limits of each rank, as options of ulimit
    program: list[str | Path] | None = None  # program that replaces `faults`
    weft: list[str] | None = None  # subcommand of weft with its options, in place of `run`
    full_disk: Path | None = None  # directory on which a full disk is mounted
    launcher_options: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.library = mpi_libraries.implementation(self.mpi)
        if not self.library.program("faults").exists():
            pytest.skip(f"needs {mpi_libraries.make_target(self.mpi)}")
        self.run = uuid.uuid4().hex
        # This user runs only this job, so that other jobs' processes do not count against its
        # limit.
        self.somebody = str(10000 + int(self.run[:4], 16) % 50000)
        self.directory = Path(tempfile.mkdtemp(prefix="weft-faults-"))
        self.directory.chmod(0o777)
        self.report = self.directory / "left"

    def command(self) -> list[str]:
        words = ["unshare", "--mount", "--ipc"] if CAN_ENCLOSE else []
        if self.full_disk:
            words += ["sh", "-c", FULL_DISK, self.full_disk]
        words += [HERE / "enclosed.sh", self.run, self.report, self.shm_size]
        if self.as_somebody and os.geteuid() == 0:  # RLIMIT_NPROC does not apply to root
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
            # Open MPI leaves /tmp/ompi.PID of a killed job, which may belong to another user.
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
        if not enclosed:  # all jobs share /dev/shm
            left = [line for line in left if line.startswith("process") or "weft" in line]
            of_library = []
        return Done(process.returncode, out, err, left, of_library)

    def done(self) -> Done:
        """Runs the job to its end. It must not hang, and must leave nothing behind."""
        done = self.finish(self.start())
        assert done.left == []
        assert done.status not in HUNG, f"hangs: {done.text}"
        return done

    def right(self) -> Done:
        done = self.done()
        assert done.status == 0, f"{done.status}: {done.text}"
        return done

    def started(self) -> tuple[subprocess.Popen, dict[int, int]]:
        """Starts the job, and waits until each rank has printed its process id. Returns the process
        and the ids by rank."""
        process, pids = self.start(), {}
        while len(pids) < self.ranks:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
            told = re.findall(r"rank (\d+) is process (\d+)\n", self.printed("out"))
            pids = {int(rank): int(pid) for rank, pid in told}
        return process, pids


@functools.cache
def natively(mpi: str, case: str, ranks: int = 2) -> Done:
    """Returns the result of a case without Weft. All tests that compare with it share one job."""
    return Job(mpi, [case], ranks=ranks).done()


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^PPid:\s+(\d+)", status, re.MULTILINE)[1])


def launcher_of(rank_pid: int) -> int:
    """Returns the process of mpiexec, which is the ancestor whose parent is `timeout`."""
    pid = rank_pid
    while Path(f"/proc/{parent(pid)}/comm").read_text().strip() != "timeout":
        pid = parent(pid)
    return pid


def end_launcher(process: subprocess.Popen) -> None:
    """Ends a job that was started by Job.start(). `timeout` passes the signal on to mpiexec."""
    (timeout,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(timeout), signal.SIGTERM)


def stop_and_continue(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
