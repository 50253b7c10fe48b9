"""Places where jobs run: the lab, the cores of this machine, or a launcher such as srun.

A job is started without waiting for it, since the driver reads samples while it runs, and stops it
if it hangs."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from typing import Protocol

from weft.bench.settings import Settings, SettingsError
from weft.lab import Lab, LabError, lab_problem
from weft.system import mpi_libraries

GRACE_SECONDS = 3
# Inside a job of Slurm, PBS or LSF, mpiexec starts ranks on the job's nodes rather than on this
# machine alone.
BATCH_JOB = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")


class Job(Protocol):
    def status(self) -> int | None:
        """Returns the exit status; None while the job runs."""

    def said(self) -> str:
        """Returns the job's output after it has ended."""

    def stop(self) -> None:
        """Kills the job at once."""


class Place(Protocol):
    description: str

    def start(
        self, mpi: str, ranks: int, command: list[str], environment: dict[str, str]
    ) -> Job: ...

    def close(self) -> None: ...


class LabJob:
    """A job in an open lab. Stopping it closes the lab, which ends all processes in it."""

    def __init__(self, lab: Lab, command: list[str], environment: dict[str, str]) -> None:
        self.lab = lab
        self.ended: int | None = None
        self.text = ""
        arguments = (command, environment)
        self.thread = threading.Thread(target=self.work, args=arguments, daemon=True)
        self.thread.start()

    def work(self, command: list[str], environment: dict[str, str]) -> None:
        try:
            result = self.lab.run(command, env=environment, capture=True)
            self.text = f"{result.stderr}{result.stdout}"
            self.ended = result.returncode
        except (LabError, OSError, ValueError) as error:
            self.text = str(error)
            self.ended = 255

    def status(self) -> int | None:
        return None if self.thread.is_alive() else self.ended

    def said(self) -> str:
        return self.text

    def stop(self) -> None:
        if self.lab.process:
            # The end of the lab's first process kills all others, and the waiting thread notices
            # it.
            self.lab.process.kill()
        self.thread.join(GRACE_SECONDS)
        self.lab.close()


class LabPlace:
    """Keeps one lab open between jobs for each MPI library and number of nodes."""

    def __init__(self, settings: dict) -> None:
        self.settings = settings
        self.labs: dict[tuple[str, int], Lab] = {}
        self.checked: set[tuple[str, int]] = set()
        self.delay = settings.get("delay", "0")  # older stored runs have no delay
        late = f", {self.delay} late" if self.delay != "0" else ""
        links = f"{settings['rate']} links, burst {settings['burst']}"
        self.description = f"lab, {links}{late}"

    def start(self, mpi: str, ranks: int, command: list[str], environment: dict[str, str]) -> Job:
        nodes = max(1, ranks // self.settings["per_node"])
        key = (mpi, nodes)
        lab = self.labs.get(key)
        if lab is None or lab.process is None:
            lab = Lab(
                nodes,
                self.settings["per_node"],
                self.settings["rate"],
                self.settings["burst"],
                mpi,
                cores=self.settings.get("cores"),
                check=key not in self.checked,
                delay=self.delay,
            )
            self.labs[key] = lab.__enter__()
            self.checked.add(key)
        return LabJob(lab, command, environment)

    def close(self) -> None:
        for lab in self.labs.values():
            lab.close()


class ProcessJob:
    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.output = tempfile.TemporaryFile("w+")  # noqa: SIM115 (read after the job's end)
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def status(self) -> int | None:
        return self.process.poll()

    def said(self) -> str:
        self.output.seek(0)
        return self.output.read()

    def stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE_SECONDS)
                return


class LauncherPlace:
    """Runs jobs by the mpiexec of each MPI library, or by the user's launcher, with `-n RANKS`
    behind its words.

    For `mpiexec -hosts a,b` the mpiexec of each MPI library is used, too, with the additional
    words."""

    def __init__(self, launcher: str) -> None:
        self.words = launcher_words(launcher)
        own = self.words == ["mpiexec"] and not any(name in os.environ for name in BATCH_JOB)
        self.description = "shared memory of this machine" if own else launcher

    def start(self, mpi: str, ranks: int, command: list[str], environment: dict[str, str]) -> Job:
        library = mpi_libraries.implementation(mpi)
        variables = {**library.environment(), **environment}
        words = list(self.words)
        if words[0] == "mpiexec":
            words[:1] = [str(library.mpiexec), *library.unbound()]
            # Open MPI passes only the named environment variables to other nodes.
            if library.name == "openmpi":
                words += ["-x", "LD_LIBRARY_PATH"]
        return ProcessJob([*words, "-n", str(ranks), *command], variables)

    def close(self) -> None:
        pass


def launcher_words(text: str) -> list[str]:
    """Returns the words of --launcher. Raises SettingsError if the program does not exist."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or not (words[0] == "mpiexec" or shutil.which(words[0])):
        raise SettingsError(
            f"--launcher: there is no program '{words[0] if words else text}'; it takes mpiexec,"
            " 'mpiexec -hosts a,b', srun or 'srun --mpi=pmi2'"
        )
    return words


def without_a_lab() -> str:
    """Returns why jobs cannot run in a lab here, and where they run instead; an empty string if
    they can."""
    if not (why := lab_problem()):
        return ""
    return (
        f"{why}; the ranks share this machine's memory instead, as with --launcher mpiexec, where"
        " the cores themselves move the data and little can be hidden"
    )


def place(settings: Settings) -> Place:
    if not settings.lab:
        return LauncherPlace(settings.launcher)
    if why := lab_problem():
        raise SettingsError(f"{why}; measure without a lab: --launcher mpiexec")
    return LabPlace(settings.lab)
