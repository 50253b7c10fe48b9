"""Fixtures of all tests: the built command, and an environment in which started programs have a
temporary folder of their own, and store no plans.

With WEFT_REQUIRE_ALL=1 a skipped test fails, unless its reason begins with "this machine" or names
something that could not be fetched (WEFT_NOT_FETCHED, set by tools/setup-for-tests).

Tests must not write to the user's cache of plans. A killed launcher of Open MPI leaves
TMPDIR/ompi.PID, and a later one with the same process id refuses to start ("The PMIx server's
listener thread failed to start")."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from covering import mark_what_is_long

from weft.lab import Lab, LabUnavailable
from weft.system import installation

DIRECTORY = pytest.StashKey[Path]()
# A launcher sets variables with these prefixes, and the tests themselves may run under one.
LAUNCHER_VARIABLES = ("PMI", "HYD", "OMPI_", "SLURM_", "WEFT_", "LD_PRELOAD")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[DIRECTORY] = Path(tempfile.mkdtemp(prefix="weft-"))
    config.stash[DIRECTORY].chmod(0o755)  # some jobs run as another user
    os.environ["TMPDIR"] = str(config.stash[DIRECTORY])
    os.environ["XDG_CACHE_HOME"] = str(config.stash[DIRECTORY])


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
    keep = ("WEFT_BUILD_DIR", "WEFT_MPI_DIR")
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
