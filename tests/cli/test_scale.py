"""Tests the number of system calls that Weft adds to MPI_Init (docs/inside/scale.md).

strace lists them, with marks around the MPI library's own MPI_Init. The remaining calls are Weft's,
and those that the library makes when Weft calls it."""

import re
import shutil
import subprocess

import pytest

from weft.system import installation

pytestmark = pytest.mark.covering

# These system calls are not counted. A waiting rank yields its core, or polls for messages, as long
# as others are late. Calls of the C library's heap depend on what is free there, and on messages
# that arrived early.
NOT_COUNTED = re.compile(
    r"sched_yield|epoll_wait|poll|brk|mmap\(NULL, \d+, \S+, MAP_PRIVATE\|MAP_ANONYMOUS, -1"
)
RANKS_OF_A_NODE, MOST_OF_A_NODE = 128, 2000
# These options are used without trials, and with the data that trials need.
OPTIONS = {"no trials": ["--init-budget", "0"], "trials": ["--one-copy", "off"]}


def of_weft(calls: list[tuple[str, str]]) -> list[str]:
    """Returns those calls of one process that are Weft's. `calls` has (thread, text) in their
    order."""
    main = next(thread for thread, words in calls if "/mark/begin" in words)
    found, threads = [], []
    is_within, is_weft = False, True
    for thread, words in calls:
        if thread != main:
            continue
        if "/mark/" in words:
            is_within = "/mark/begin" in words or (is_within and "/mark/end" not in words)
            is_weft ^= "/mark/library" in words
        elif is_within and is_weft:
            found.append(words)
            threads += re.findall(r"\bclone.*= (\d+)$", words)
    # An idle thread sleeps soon, unless the program ends before. In that case all its calls count.
    for own in threads:
        words = [text for thread, text in calls if thread == own]
        sleeps = [i for i, text in enumerate(words) if text.startswith("futex(")]
        found += words[: sleeps[0] + 1] if sleeps else words
    return [words for words in found if re.match(r"\w+\(", words) and not NOT_COUNTED.match(words)]


@pytest.fixture
def calls_of_ranks(mpi, compiled_for, environment, tmp_path):
    """Returns a function that returns the calls of each rank on a node, with the rank that makes
    most of them first."""
    program = compiled_for(mpi, "init_marks")
    tool = compiled_for(mpi, "init_marks", "-DAS_A_TOOL", "-shared", "-fPIC")

    def count(ranks: int, *options: str) -> list[list[str]]:
        place = tmp_path / f"{ranks}-ranks"
        place.mkdir()
        trace = 'exec strace -f -o "$0/$$" "$@"'
        traced = ["sh", "-c", trace, place, "env", f"LD_PRELOAD={tool}"]
        front = [installation.weft_command(), "run", "--engine", "auto", *options]
        command = [*mpi.launcher(ranks), *traced, *front, "--", program]
        done = subprocess.run(
            [str(word) for word in command],
            env={
                **environment,
                **mpi.environment(),
                "OMPI_MCA_mpi_yield_when_idle": "1",
                "WEFT_PLAN_CACHE": str(tmp_path / "plans"),
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [path.read_text().splitlines() for path in place.iterdir()]
        calls = [[tuple(line.split(maxsplit=1)) for line in of_rank] for of_rank in lines]
        assert len(calls) == ranks
        return sorted([of_weft(of_rank) for of_rank in calls], key=len, reverse=True)

    return count


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_system_calls_of_a_node(calls_of_ranks, options):
    """One rank of the node makes the calls that are needed once per node."""
    for ranks in (4, 6):
        first, *others = calls_of_ranks(ranks, *options)
        print(ranks, len(first), *map(len, others))
        assert others[-1]
        of_a_node = len(first) + (RANKS_OF_A_NODE - 1) * len(others[0])
        assert of_a_node <= MOST_OF_A_NODE, "\n".join(others[0])
