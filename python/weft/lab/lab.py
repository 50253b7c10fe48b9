"""Builds the lab's sandbox, runs jobs in it, and checks that their bytes use the links.

Without the check, traffic that takes another way than the links would give good but meaningless
measurements."""

from __future__ import annotations

import array
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.lab import launch
from weft.lab.plan import SWITCH, LabError, make_plan
from weft.system import building, installation, mpi_libraries
from weft.system.mpi_libraries import Implementation, MpiError
from weft.system.probe import how_to_build

NAMESPACES = [
    "--net",
    "--mount",
    "--pid",
    "--uts",
    "--ipc",
    "--fork",
    "--kill-child",
    "--mount-proc",
]
# This is the folder from which the package was loaded. An installation may have it outside of
# Python's own folders.
PACKAGES = Path(__file__).resolve().parents[2]
INSIDE = "import sys; sys.path[:0] = [sys.argv.pop(1)]; import weft.lab.inside as lab; lab.main()"
START_SECONDS = 20
GRACE_SECONDS = 3
PROBE_SECONDS = 60
MAX_ORDER_BYTES = 1 << 20
MAX_PROBE_BYTES = 4 << 20
MIN_PROBE_BYTES = 1 << 20


class LabUnavailable(LabError):
    """Raised if this machine does not permit the namespaces or links that a lab needs."""


@dataclass
class LabResult:
    """The result of a command, like subprocess.CompletedProcess. sent_bytes has the bytes that left
    each node."""

    args: list[str]
    returncode: int
    sent_bytes: list[int]
    stdout: str | None = None
    stderr: str | None = None


class Lab:
    """A lab as a context manager: `with Lab(nodes=2) as lab: lab.run([...])`. It runs any number of
    jobs, one after the other."""

    def __init__(
        self,
        nodes: int,
        per_node: int = 1,
        rate: str = "200mbit",
        burst: str | None = None,
        mpi: str | Implementation | None = None,
        cores: str | Sequence[str] | None = None,
        check: bool = True,
        delay: str = "0",
    ) -> None:
        self.plan = make_plan(nodes, per_node, rate, burst, cores, delay)
        try:
            self.mpi = mpi if isinstance(mpi, Implementation) else mpi_libraries.chosen(mpi)
        except MpiError as error:
            raise LabError(str(error)) from None
        if not self.mpi.mpiexec.exists():
            raise LabError(f"{self.mpi.prefix} has no mpiexec, by which the lab starts its ranks")
        if self.plan.delay_ns and not building.is_there(installation.native_part(SWITCH)):
            raise LabError(f"--delay needs {SWITCH}, which is missing; {installation.REMEDY}")
        self.check = check
        self.process: subprocess.Popen | None = None
        self.channel: socket.socket | None = None
        self.shell = ""

    def __enter__(self) -> Lab:
        try:
            self.open()
            if self.check:
                self.check_links()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        for tool in ("unshare", "nsenter", "taskset", "ip", "tc"):
            if not shutil.which(tool, path=search_path()):
                raise LabUnavailable(
                    f"the lab needs '{tool}'; install it with: apt-get install iproute2 util-linux"
                )
        ways = (
            [[], ["--user", "--map-root-user"]]
            if os.geteuid() == 0
            else [["--user", "--map-root-user"]]
        )
        reason = ""
        for way in ways:
            reason = self.try_open(way)
            if not reason:
                return
        raise LabUnavailable(f"the lab cannot be set up here: {reason}")

    def try_open(self, way: list[str]) -> str:
        """Starts the sandbox, and returns an empty string if it runs, or else why not."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_ORDER_BYTES)
        plan = json.dumps(asdict(self.plan))
        inside = [sys.executable, "-I", "-c", INSIDE, str(PACKAGES), str(theirs.fileno()), plan]
        with tempfile.TemporaryFile("w+") as errors:
            self.process = subprocess.Popen(
                ["unshare", *way, *NAMESPACES, *inside],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PATH": search_path()},
            )
            theirs.close()
            self.channel = ours
            ours.settimeout(START_SECONDS)
            try:
                answer = json.loads(ours.recv(1 << 16) or b"{}")
            except socket.timeout:
                answer = {"error": f"no answer within {START_SECONDS} s"}
            if answer.get("ready"):
                ours.settimeout(None)
                self.shell = answer["shell"]
                return ""
            self.close()
            errors.seek(0)
            lines = errors.read().strip().splitlines()
        return answer.get("error") or (lines[-1] if lines else "unshare failed")

    def close(self) -> None:
        """Ends the lab by closing the socket to its first process. The kernel then ends all other
        processes."""
        if self.channel:
            self.channel.close()
            self.channel = None
        if self.process:
            try:
                self.process.wait(timeout=GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def run(
        self,
        command: Sequence[str | os.PathLike],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        capture: bool = False,
        timeout: float | None = None,
    ) -> LabResult:
        """Runs one MPI job with a rank for each slot, and returns its result. `env` is added to
        this process's environment."""
        program = [str(word) for word in command]
        if program and program[0] == "weft":
            program[0] = str(installation.weft_command())
        full = launch.job_command(self.mpi, self.plan, self.shell, program)
        return self.carry_out(program, full, env, cwd, capture, timeout)

    def run_on_head(
        self,
        command: Sequence[str | os.PathLike],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        capture: bool = False,
        timeout: float | None = None,
    ) -> LabResult:
        """Runs one command on the head node of the lab, which is on the bridge. It is no MPI job.

        The command may start others on the nodes by $WEFT_LAB_SHELL NODE COMMAND.... They are
        killed when the command ends."""
        words = [str(word) for word in command]
        variables = {"WEFT_LAB_SHELL": self.shell, **(env or {})}
        return self.carry_out(words, words, variables, cwd, capture, timeout)

    def carry_out(
        self,
        program: list[str],
        full: list[str],
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike | None,
        capture: bool,
        timeout: float | None,
    ) -> LabResult:
        # Plans are stored by machine, while the links of a lab on this machine may have any rate.
        environment = {"WEFT_PLAN_CACHE": "none", **os.environ, "PATH": search_path()}
        environment |= {**launch.job_environment(self.mpi, self.plan), **(env or {})}
        directory = str(Path(cwd or ".").resolve())
        order = {"command": full, "environment": environment, "directory": directory}
        if not capture:
            return self.submit(program, order, [0, 1, 2], timeout)
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            Path(os.devnull).open() as none,
        ):
            descriptors = [none.fileno(), out.fileno(), err.fileno()]
            result = self.submit(program, order, descriptors, timeout)
            for stream in (out, err):
                stream.seek(0)
            result.stdout = out.read().decode(errors="replace")
            result.stderr = err.read().decode(errors="replace")
        return result

    def submit(
        self, program: list[str], order: dict, descriptors: list[int], timeout: float | None
    ) -> LabResult:
        if not self.channel:
            raise LabError("the lab is closed")
        sys.stdout.flush()
        rights = array.array("i", descriptors)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        self.channel.sendmsg([json.dumps(order).encode()], control)
        try:
            answer = self.receive(timeout)
        except KeyboardInterrupt:
            self.interrupt()
            raise
        except socket.timeout:
            self.close()
            raise subprocess.TimeoutExpired(program, timeout or 0) from None
        status = answer["status"]
        # A shell reports a process that was ended by a signal as 128 + signal.
        status = 128 - status if status < 0 else status
        return LabResult(program, status, answer["sent_bytes"])

    def receive(self, timeout: float | None) -> dict:
        self.channel.settimeout(timeout)
        answer = self.channel.recv(1 << 20)
        if not answer:
            raise LabError("the lab ended while a job was running")
        return json.loads(answer)

    def interrupt(self) -> None:
        """Sends SIGINT to the job's launcher, so that it can end its ranks. Closing the lab would
        kill them anyway."""
        with contextlib.suppress(OSError, LabError):
            self.channel.send(json.dumps({"signal": int(signal.SIGINT)}).encode())
            self.receive(GRACE_SECONDS)

    def check_links(self) -> None:
        """Lets every rank send a known number of bytes to the next one, and checks that the links
        carried them. Raises LabError otherwise."""
        if self.plan.nodes == 1:
            return
        probe = self.mpi.program("weft-probe")
        if not building.is_there(probe):
            raise LabError(f"{probe} is missing; {how_to_build(self.mpi)}")
        size = int(self.plan.rate_bits_per_second / 8 * 0.15)
        size = max(MIN_PROBE_BYTES, min(MAX_PROBE_BYTES, size))
        try:
            result = self.run([probe, "--ring", str(size)], capture=True, timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            raise LabError(f"a test message did not arrive within {PROBE_SECONDS} s") from None
        if result.returncode != 0:
            output = (result.stderr + result.stdout).strip()
            raise LabError(f"{self.mpi.name} does not run in the lab:\n{output}{why(output)}")
        judge_bytes(self.mpi.name, size, result.sent_bytes)


@functools.cache
def lab_problem() -> str:
    """Returns why this machine permits no lab; an empty string if it permits one."""
    try:
        with Lab(nodes=1, check=False):
            return ""
    except LabUnavailable as error:
        return str(error)


def why(output: str) -> str:
    """Returns a sentence about LD_LIBRARY_PATH if the output shows that a library was not found;
    otherwise an empty string."""
    given = os.environ.get("LD_LIBRARY_PATH")
    if not given or not re.search("undefined symbol|cannot open shared object", output):
        return ""
    return f"\nLD_LIBRARY_PATH ({given}) may name other libraries: try unset LD_LIBRARY_PATH"


def judge_bytes(mpi: str, size: int, sent_bytes: list[int]) -> None:
    """Raises LabError unless each node sent `size` bytes, or at most 30 % more."""
    for node, sent in enumerate(sent_bytes):
        if not 1.0 <= sent / size <= 1.3:
            raise LabError(
                f"the traffic of {mpi} went another way: node weft{node} had to send {size} bytes,"
                f" its link carried {sent}; look for variables in the environment that choose a"
                " transport (UCX_*, FI_*, OMPI_MCA_*), or use --no-check"
            )


def search_path() -> str:
    """Returns PATH with the folders of ip and tc, which a user's PATH may lack."""
    extra = ["/usr/sbin", "/sbin", str(installation.ROOT / ".deps" / "tools")]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *extra])
