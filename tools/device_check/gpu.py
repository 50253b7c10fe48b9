"""Checks that collectives in streams on a GPU are right, and then measures how fast they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from time import monotonic

from device_check import programs

STENCILS = ((1024, 1000), (2048, 500), (4096, 400), (8192, 200), (16384, 100), (32768, 40))
LONG_BYTES = "1048576,16777216,268435456"
GPU_JOB_S, LEAST_GPU_JOB_S, STACKS_S, SHOWN_BYTES = 60, 5, 15, 4000
NOT_RUN = "left out"
DONE: dict[str, dict] = {}  # parts of an earlier call, by name
# The papers' own experiments, as far as they fit into the first part of a call.
FIRST = r"^stencil (1024|4096|16384), 2 |^notice and overlap, 2 |^allreduces, 2 "
FIRST_S = 100
STACKS = "thread apply all backtrace 12"  # a debugger's command


@dataclass
class Part:
    """One job on a GPU. `lacks` names a requirement that this machine does not meet."""

    what: str
    ranks: int
    command: Sequence[object]
    variables: dict[str, str] = field(default_factory=dict)
    lacks: str = ""
    status: str = f"{NOT_RUN}: the time is up"
    took_s: float = 0
    output: str = ""

    @property
    def program(self) -> str:
        """Returns the name of Weft's program in the command, which also has a launcher and
        options."""
        return next((word.name for word in self.command if isinstance(word, Path)), "")

    def missed(self) -> str:
        """Returns text about the limits that the job reports as missed."""
        missed = len(re.findall(r"\bmissed\b", self.output))
        return f"; limits missed: {missed}" if missed else ""

    def fastest(self) -> str:
        """Returns text about the fastest of the stencil's methods if there are several."""
        found = re.findall(r"^(\w+) +(\d+\.\d\d) \[", self.output, re.MULTILINE)
        times = {method: float(time) for method, time in found}
        return f"; fastest: {min(times, key=times.__getitem__)}" if len(times) > 1 else ""

    def failed(self) -> bool:
        return self.status != "right" and not self.lacks


def limit_of(left_s: float) -> float:
    """Returns the time limit of a job in seconds. It is a part of the remaining time, so that
    hanging jobs leave time for others."""
    return min(GPU_JOB_S, left_s / 4)


def end_group(job: subprocess.Popen) -> None:
    """Ends the job's process group. The launcher gets SIGTERM first, so that it can end its
    ranks."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(job.pid, signum)
            job.wait(timeout=3)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def where_it_stands(program: str) -> str:
    """Returns the stacks of all threads in the processes of this name; an empty string without a
    debugger."""
    debugger = shutil.which("gdb") or shutil.which("cuda-gdb")
    told = []
    for process in Path("/proc").glob("[0-9]*") if debugger else ():
        try:
            if (process / "exe").resolve().name != program:
                continue
            words = [debugger, "--batch", "-p", process.name, "-ex", STACKS]
            found = subprocess.run(words, capture_output=True, text=True, timeout=STACKS_S)
            told.append(found.stdout)
        except (OSError, subprocess.TimeoutExpired):
            continue
    kept = [line for one in told for line in one.splitlines() if line.startswith(("#", "Thread"))]
    return "\n".join(kept)


def run_part(part: Part, limit_s: float) -> None:
    """Runs a job with its output in a file, since ranks that outlive their launcher may keep a pipe
    open."""
    print(f"--- {part.what}", flush=True)
    words = [programs.MPICH / "bin" / "mpiexec", "-n", part.ranks, *part.command]
    began = monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        job = subprocess.Popen(
            [str(word) for word in words],
            env=programs.environment(**part.variables),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stacks = ""
        try:
            status = job.wait(timeout=limit_s)
            part.status = "right" if status == 0 else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            part.status = f"did not end within {limit_s:.0f} s"
            stacks = where_it_stands(part.program)
            end_group(job)
        out.seek(0)
        part.output = out.read() + stacks
        print(part.output[-SHOWN_BYTES:].rstrip(), flush=True)
    part.took_s = monotonic() - began


def run_parts(parts: Sequence[Part], end: float) -> None:
    for part in parts:
        limit_s = limit_of(end - monotonic())
        if part.what in DONE:
            continue
        if part.lacks:
            part.status = f"{NOT_RUN}: {part.lacks}"
        elif limit_s >= LEAST_GPU_JOB_S:
            run_part(part, limit_s)


def show_parts(parts: Sequence[Part]) -> int:
    """Prints a table of all jobs, and returns how many have failed or had no time."""
    width = max(len(part.what) for part in parts)
    print("\nwhat came of each")
    for part in parts:
        took = f"{part.took_s:6.1f} s" if part.took_s else " " * 8
        print(f"{part.what:{width}} {took} {part.status}{part.missed()}{part.fastest()}")
    failed = sum(part.failed() for part in parts)
    print(f"{failed} of {len(parts)} failed, or had no time", flush=True)
    return failed


@contextmanager
def shared_device() -> Iterator[dict[str, str] | None]:
    """Yields the variables for processes that share a device at the same time (MPS); None if MPS
    does not start."""
    control = shutil.which("nvidia-cuda-mps-control")
    if not control:
        yield None
        return
    with tempfile.TemporaryDirectory() as directory:
        variables = {
            "CUDA_MPS_PIPE_DIRECTORY": directory,
            "CUDA_MPS_LOG_DIRECTORY": directory,
        }
        own = {**os.environ, **variables}
        started = subprocess.run([control, "-d"], env=own, capture_output=True)
        try:
            yield variables if started.returncode == 0 else None
        finally:
            subprocess.run([control], input=b"quit\n", env=own, capture_output=True, timeout=20)


def gpu_parts(shared: dict[str, str] | None) -> list[Part]:
    """Returns the jobs: first those that check results, then those that measure. `shared` has the
    variables for ranks that share the device at the same time."""
    streams, stencil, cg, notify, allreduce, fft3d = (
        programs.BUILD / "bin" / "mpich" / name for name in programs.GPU_PROGRAMS
    )
    weft = {"LD_PRELOAD": str(programs.BUILD / "lib" / "libweft-mpich.so"), "WEFT_ENGINE": "thread"}
    loaded = [word for name, value in weft.items() for word in ("-genv", name, value)]
    by_stream = {"WEFT_GPU_NOTIFY": "stream"}
    by_driver = {"WEFT_GPU_KERNEL_COPY": "0"}
    any_length = {"WEFT_GPU_ONE_KERNEL_BYTES": "268435456"}
    no_mps = "" if shared is not None else "MPS does not start"

    def together(what: str, ranks: int, *command: object, **variables: str) -> Part:
        given = {**(shared or {}), **variables}
        return Part(f"{what}, {ranks} ranks (MPS)", ranks, command, given, no_mps)

    small = (stencil, "--order", 64, "--steps", 8, "--repetitions", 1, "--check")
    all_streams = (streams, "libcuda.so.1")
    staged = (*all_streams, "by calls of MPI's")  # for ranks whose kernels take turns on the device
    right = [
        Part("every collective in streams", 3, staged),
        Part("the same under Weft", 3, (*loaded, *staged)),
        Part("the same by values", 3, staged, by_stream),
        together("short ones in one kernel", 3, *all_streams),
        together("copied by the driver, too", 3, *all_streams, **by_driver),
        Part("stencil, small, 2 ranks take turns", 2, small),
        together("stencil, small", 2, *small),
        together("conjugate gradients, small", 2, cg, "--order", 16, "--repetitions", 1),
        Part("transforms, small", 2, (fft3d, "--order", 16, "--blocks", 2, "--work", 1)),
        *launches_of_a_graph(stencil, shared),
        *sanitized(small, (allreduce, "--bytes", "8,262144,524288", "--turns", 3)),
    ]
    fast = [
        Part("notice and overlap, 1 rank", 1, (notify,)),
        Part("the same by values", 1, (notify,), by_stream),
        together("notice and overlap", 2, notify),
        together("notice and overlap under Weft", 2, *loaded, notify),
        Part("allreduces, 1 rank", 1, (allreduce,)),
        *(together("allreduces", ranks, allreduce) for ranks in (2, 4)),
        together(
            "long allreduces", 2, allreduce, "--bytes", LONG_BYTES, "--turns", 20, **any_length
        ),
        together("allreduces, copied by the driver", 2, allreduce, **by_driver),
        *(together("conjugate gradients", ranks, cg) for ranks in (1, 2)),
        together("transforms", 2, fft3d),
        together("transforms under Weft", 2, *loaded, fft3d),
    ]
    for order, steps in STENCILS:
        options = (stencil, "--order", order, "--steps", steps)
        fast.append(Part(f"stencil {order}, 1 rank", 1, options))
        fast.append(together(f"stencil {order}", 2, *options))
        fast.append(together(f"stencil {order} under Weft", 2, *loaded, *options))
    small_one = (stencil, "--order", STENCILS[0][0], "--steps", STENCILS[0][1])
    fast.append(together("stencil 1024, copied by the driver", 2, *small_one, **by_driver))
    turns = (stencil, "--steps", 20)
    alone = "stencil, 2 ranks take turns (no MPS)"
    fast += [Part(alone, 2, turns), Part(f"{alone}, by values", 2, turns, by_stream)]
    return [*right, *fast]


def launches_of_a_graph(stencil: Path, shared: dict[str, str] | None) -> Iterator[Part]:
    """Yields jobs that launch a graph often. Each launch does two steps. If ranks take turns on the
    device, each step needs one turn."""
    launches = 10_000 if shared is not None else 500
    options = ("--order", 128, "--steps", 2 * launches, "--repetitions", 1, "--check")
    how = "(MPS)" if shared is not None else "take turns"
    what = f"{launches:,} launches of a graph, 2 ranks {how}"
    yield Part(what, 2, (stencil, *options, "--methods", "graphs"), dict(shared or {}))


def sanitized(*programs: Sequence[object]) -> Iterator[Part]:
    sanitizer = shutil.which("compute-sanitizer")
    lacks = "" if sanitizer else "there is no compute-sanitizer"
    for tool in ("memcheck", "racecheck"):
        words = (sanitizer, "--tool", tool, "--error-exitcode", 9)
        for program, ranks in product(programs, (1, 2)):
            what = f"{Path(str(program[0])).name} under {tool}, {ranks} rank{'s' * (ranks > 1)}"
            yield Part(what, ranks, (*words, *program), lacks=lacks)


def keep(path: Path) -> None:
    """Takes what was right in an earlier call's file for done."""
    for one in json.loads(path.read_text())["parts"]:
        if one["status"] == "right":
            DONE[one["what"]] = one


def with_earlier(parts: Sequence[Part]) -> None:
    for part in parts:
        for name, value in DONE.get(part.what, {}).items():
            setattr(part, name, value)


def write_outputs(parts: Sequence[Part], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    names = ("what", "status", "took_s", "output")
    found = [{name: getattr(part, name) for name in names} for part in parts]
    document = {"schema": "weft-device-check-gpu/1", "parts": found}
    (out / "device-check-gpu.json").write_text(json.dumps(document, indent=1) + "\n")
    told = (f"--- {part.what}: {part.status}, {part.took_s:.1f} s\n{part.output}" for part in parts)
    (out / "device-check-gpu.log").write_text("\n".join(told))


def is_there() -> bool:
    return shutil.which("nvidia-smi") is not None


def check_gpu(only: str, out: Path, end: float) -> int:
    if not is_there():
        print("device-check: there is no GPU here (no nvidia-smi)", file=sys.stderr)
        return 1
    began = monotonic()
    targets = ("weft", "weft_interpose_mpich", *(f"{name}_mpich" for name in programs.GPU_PROGRAMS))
    try:
        programs.get_programs(*targets, tests="ON", limit_s=end - began)
    except subprocess.TimeoutExpired:
        print("device-check: the build took all of the time: nothing was run", file=sys.stderr)
        return 1
    print(f"programs after {monotonic() - began:.0f} s", flush=True)
    with shared_device() as shared:
        parts = [part for part in gpu_parts(shared) if re.search(only, part.what)]
        with_earlier(parts)
        run_parts(parts, end)
        write_outputs(parts, out)
        failed = show_parts(parts)
    return 1 if failed else 0
