"""Fixtures of all tests: the built command, and an environment in which started programs have a
temporary folder of their own, and store no plans.

With WEFT_REQUIRE_ALL=1 a skipped test fails, unless its reason begins with "this machine" or names
something that could not be fetched (WEFT_NOT_FETCHED, set by tools/setup-for-tests).

Tests must not write to the user's cache of plans. A killed launcher of Open MPI leaves
TMPDIR/ompi.PID, and a later one with the same process id refuses to start ("The PMIx server's
listener thread failed to start").

Several jobs share the cores, so that ranks of Open MPI that wait must give their cores away."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from covering import mark_what_is_long

from weft.lab import Lab, LabUnavailable
from weft.system import installation

DIRECTORY = pytest.StashKey[Path]()
YIELDS = "OMPI_MCA_mpi_yield_when_idle"
# A launcher sets variables with these prefixes, and the tests themselves may run under one.
LAUNCHER_VARIABLES = ("PMI", "HYD", "OMPI_", "SLURM_", "WEFT_", "LD_PRELOAD")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[DIRECTORY] = Path(tempfile.mkdtemp(prefix="weft-"))
    config.stash[DIRECTORY].chmod(0o755)  # some jobs run as another user
    os.environ["TMPDIR"] = str(config.stash[DIRECTORY])
    os.environ["XDG_CACHE_HOME"] = str(config.stash[DIRECTORY])
    os.environ[YIELDS] = "1"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Tells a worker of pytest-xdist where programs are compiled for all workers."""
    node.workerinput["compiled"] = str(node.config.stash[DIRECTORY])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_what_is_long(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    if report.skipped and os.environ.get("WEFT_REQUIRE_ALL") == "1":
        reason = report.longrepr[2].removeprefix("Skipped: ")
        not_fetched = filter(None, os.environ.get("WEFT_NOT_FETCHED", "").split(","))
        may_be = reason.startswith("this machine") or any(word in reason for word in not_fetched)
        if not may_be:
            report.outcome = "failed"
            report.longrepr = f"left out, while WEFT_REQUIRE_ALL=1: {reason}"
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[DIRECTORY], ignore_errors=True)


@pytest.fixture(scope="session")
def compile_once(pytestconfig):
    """Carries out a compiler's command, unless a worker of pytest-xdist has done so already, and
    returns the file that it makes. Each command has a folder of its own, which other users can
    read."""
    own = {"compiled": pytestconfig.stash[DIRECTORY]}
    place = Path(getattr(pytestconfig, "workerinput", own)["compiled"]) / "compiled"
    place.mkdir(exist_ok=True)

    def compiled(
        name: str, command: Sequence[object], variables: Mapping[str, str] | None = None
    ) -> Path:
        words = [str(word) for word in command]
        folder = place / hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
        folder.mkdir(exist_ok=True)
        target = folder / name
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                environment = {**os.environ, **(variables or {})}
                words += ["-o", str(target)]
                subprocess.run(words, check=True, timeout=200, env=environment, cwd=folder)
        return target

    return compiled


# ---- The built command --------------------------------------------------------------------------


@pytest.fixture(scope="session")
def weft() -> str:
    path = installation.weft_command()
    assert path.exists(), f"{path} is missing; build it with: make build"
    return str(path)


@pytest.fixture(scope="session")
def permitted_lab() -> None:
    """Skips the test if the machine permits no lab."""
    try:
        with Lab(nodes=1, check=False):
            pass
    except LabUnavailable as error:
        pytest.skip(f"this machine permits no lab: {error}")


@pytest.fixture
def environment() -> dict[str, str]:
    keep = ("WEFT_BUILD_DIR", "WEFT_MPI_DIR", YIELDS)
    return {
        name: value
        for name, value in os.environ.items()
        if name in keep or not name.startswith(LAUNCHER_VARIABLES)
    }


@pytest.fixture
def call(weft, environment):
    """Runs `weft ARGUMENTS` with additional variables. The result has the text of both streams."""

    def run(
        *arguments: object, in_front: Sequence[str] = (), **variables: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*in_front, weft, *map(str, arguments)],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
