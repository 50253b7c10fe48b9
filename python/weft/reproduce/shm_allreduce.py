"""Jocksch, Piccinali: allreduce in a node's memory, by Weft and by the MPI library.

The program `latency` of the benchmark runs alternately without Weft (blocking) and with it
(persistent, as in the poster), in separate jobs. The simulator can only run Weft's algorithms."""

from __future__ import annotations

import re
from itertools import product

from weft.bench import kernel_runs, places
from weft.cores import native as cores
from weft.measurements import statistics
from weft.measurements.decisions import every, is_shorter
from weft.measurements.effect import duration, size
from weft.measurements.result import Statistic
from weft.reproduce.claims import Claim
from weft.reproduce.findings import (
    CANNOT,
    MEASURED,
    SIMULATED,
    Figure,
    Finding,
    Line,
    Part,
    verdict_if,
)
from weft.reproduce.measured import ERRORS, Bench, NotMeasured, decided
from weft.reproduce.published import named
from weft.sim import native
from weft.system import building, installation, mpi_libraries
from weft.system.probe import how_to_build

PROGRAM = "latency"
SHORT, LONG = 8, 1 << 20  # buffer sizes in bytes
PUBLISHED_RANKS = 128
# This is the number of jobs of each kind, alternately without and with Weft; a confidence interval
# needs six.
ROUNDS = 7
LINE = re.compile(r"^(?P<form>blocking|persistent) (?P<bytes>\d+) [\d.]+ (?P<us>[\d.]+)$")
LIBRARY, WEFT = "MPI library, blocking", "Weft, persistent"
WEFT_BLOCKING = "Weft, blocking"
ONE_SEGMENT = {SHORT: "node-tree", LONG: "node-ring"}
EACH_SOCKET = {SHORT: "domain-tree", LONG: "domain-ring"}
FORMS = {LIBRARY: ["blocking"], WEFT: ["persistent", "blocking"]}  # forms measured in one job
SIMULATED_RANKS = (61, 64)
Times = dict[tuple[int, str, int], Statistic]  # key: number of ranks, library and form, bytes


def ranks_here(cores: int) -> int:
    """Returns the greatest power of two with a core for each rank, at most the published number of
    ranks."""
    return 1 << (min(cores, PUBLISHED_RANKS).bit_length() - 1)


def prime_below(number: int) -> int:
    """Returns the greatest prime number below the given one."""
    return next(
        n for n in range(number - 1, 1, -1) if all(n % d for d in range(2, int(n**0.5) + 1))
    )


def counts(cores: int) -> list[int]:
    most = ranks_here(cores)
    return [most, prime_below(most)] if most > 2 else [most]


# ---- Measurements -----------------------------------------------------------------------------


def times_of(text: str) -> dict[tuple[str, int], float]:
    """Returns the time of a call in us by form and bytes, from the program's output."""
    lines = (LINE.match(line.strip()) for line in text.splitlines())
    return {(line["form"], int(line["bytes"])): float(line["us"]) for line in lines if line}


def job(
    mpi: str, ranks: int, who: str, algorithm: str = "", sizes: tuple[int, ...] = (SHORT, LONG)
) -> dict[tuple[str, int], float]:
    library = mpi_libraries.implementation(mpi)
    program = library.program(PROGRAM)
    if not building.is_there(program):
        raise NotMeasured(f"{program} is missing; {how_to_build(library)}")
    weft = [installation.weft_command(), "run", "--engine", "function", "--blocking"]
    weft += ["--algorithm", f"allreduce={algorithm}"] if algorithm else []
    words = [*([*weft, "--"] if who == WEFT else []), program]
    words += ["--bytes", ",".join(map(str, sizes))]
    words += ["--forms", ",".join(FORMS[who])]
    running = places.LauncherPlace("mpiexec").start(mpi, ranks, [str(word) for word in words], {})
    status = kernel_runs.wait(running)
    said = running.said()
    found = times_of(said)
    if status != 0 or set(found) != {*product(FORMS[who], sizes)}:
        last = (said.strip().splitlines() or ["no output"])[-1]
        raise NotMeasured(f"{PROGRAM} under {mpi} ended with status {status}: {last}")
    return found


def measure(mpi: str, ranks: list[int]) -> Times:
    samples: dict[tuple[int, str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for count in ranks:
            for who in (LIBRARY, WEFT):
                for (form, bytes_), time_us in job(mpi, count, who).items():
                    name = WEFT_BLOCKING if (who, form) == (WEFT, "blocking") else who
                    samples.setdefault((count, name, bytes_), []).append(time_us)
    return {key: statistics.of(values) for key, values in samples.items()}


SegmentTimes = dict[tuple[str, int], Statistic]  # key: algorithm, bytes


def domains() -> int:
    """Returns the number of NUMA domains of this machine with usable cores."""
    return len({*cores.ask(cores.Placement, ["place"])[0].numa_nodes})


def segments(mpi: str, ranks: int) -> SegmentTimes:
    """Returns times with one segment for all sockets, and with one segment for each."""
    samples: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for bytes_ in (SHORT, LONG):
            for algorithm in (ONE_SEGMENT[bytes_], EACH_SOCKET[bytes_]):
                time_us = job(mpi, ranks, WEFT, algorithm, (bytes_,))["persistent", bytes_]
                samples.setdefault((algorithm, bytes_), []).append(time_us)
    return {key: statistics.of(values) for key, values in samples.items()}


def of_segments(claim: Claim, mpi: str, ranks: int, times: SegmentTimes) -> Finding:
    sizes = (SHORT, LONG)
    one = {bytes_: times[ONE_SEGMENT[bytes_], bytes_] for bytes_ in sizes}
    each = {bytes_: times[EACH_SOCKET[bytes_], bytes_] for bytes_ in sizes}
    told = [
        f"{size(bytes_)}: one segment {duration(one[bytes_].median)}, one for each socket"
        f" {duration(each[bytes_].median)}"
        for bytes_ in sizes
    ]
    decision = every([is_shorter(one[SHORT], each[SHORT]), is_shorter(each[LONG], one[LONG])])
    return decided(claim, f"Weft, {ranks} ranks, {mpi}", "; ".join(told), decision, OTHER_LIBRARY)


def by_sockets(mpi: str, ranks: int) -> Finding:
    """Returns the finding on the statement that needs several sockets."""
    claim = named("shm-allreduce").claims[6]
    if ranks < claim.here.cores or domains() < claim.here.domains:
        return claim.untested(MEASURED, f"needs {claim.here.words}")
    return of_segments(claim, mpi, ranks, segments(mpi, ranks))


def measured(bench: Bench) -> Part:
    ranks = counts(bench.cores)
    findings, figures = [], []
    for mpi in bench.mpis:
        try:
            times, segments_here = measure(mpi, ranks), by_sockets(mpi, ranks[0])
        except ERRORS as error:
            why = f"it failed: {' '.join(str(error).split())}"
            claims = named("shm-allreduce").claims_by(MEASURED)
            findings += [claim.found(MEASURED, mpi, "", CANNOT, why) for claim in claims]
            continue
        findings += [*findings_of(mpi, ranks, times), segments_here]
        figures += [figure(mpi, count, times) for count in ranks]
    return Part(
        findings=findings,
        figures=figures,
        conditions=f"Measured: {PROGRAM} --bytes {SHORT},{LONG}, {ROUNDS} jobs without Weft and as"
        " many with it, in turn; the medians of the jobs are compared. The library is the one at"
        " hand, and not HPE's.",
    )


def findings_of(mpi: str, ranks: list[int], times: Times) -> list[Finding]:
    short, long, prime, persistent, *_ = named("shm-allreduce").claims
    most = ranks[0]
    found = [beside(short, mpi, most, SHORT, times), beside(long, mpi, most, LONG, times)]
    found += [of_form(persistent, mpi, most, bytes_, times) for bytes_ in (SHORT, LONG)]
    if len(ranks) < 2:
        return [*found, prime.untested(MEASURED, prime.here.cores_in_words)]
    return found + [of_prime(prime, mpi, ranks[1], most, bytes_, times) for bytes_ in (SHORT, LONG)]


def beside(claim: Claim, mpi: str, ranks: int, bytes_: int, times: Times) -> Finding:
    mine, theirs = times[ranks, WEFT, bytes_], times[ranks, LIBRARY, bytes_]
    on = f"{size(bytes_)}, {ranks} ranks, {mpi}"
    here = f"Weft {duration(mine.median)}, the library {duration(theirs.median)}"
    return decided(claim, on, here, is_shorter(mine, theirs))


def of_form(claim: Claim, mpi: str, ranks: int, bytes_: int, times: Times) -> Finding:
    """Returns the finding on whether Weft's persistent call is faster than its blocking one."""
    one, other = times[ranks, WEFT, bytes_], times[ranks, WEFT_BLOCKING, bytes_]
    on = f"Weft, {size(bytes_)}, {ranks} ranks, {mpi}"
    here = f"persistent {duration(one.median)}, blocking {duration(other.median)}"
    return decided(claim, on, here, is_shorter(one, other), OTHER_LIBRARY)


def of_prime(claim: Claim, mpi: str, prime: int, most: int, bytes_: int, times: Times) -> Finding:
    """Returns the finding on whether a prime number of ranks takes more time than a larger number
    that is a power of two."""
    one, other = times[prime, WEFT, bytes_], times[most, WEFT, bytes_]
    on = f"Weft, {size(bytes_)}, {mpi}"
    here = f"{prime} ranks {duration(one.median)}, {most} ranks {duration(other.median)}"
    return decided(claim, on, here, is_shorter(other, one), OTHER_LIBRARY)


OTHER_LIBRARY = "That was found with the poster's own library; here it is Weft's."


def figure(mpi: str, ranks: int, times: Times) -> Figure:
    """Returns a figure of the times as shares of the library's. Absolute times of the long message
    would hide those of the short one."""
    names = [size(SHORT), size(LONG)]
    lines = [
        Line(
            who,
            [],
            [times[ranks, who, b].median / times[ranks, LIBRARY, b].median for b in (SHORT, LONG)],
        )
        for who in (LIBRARY, WEFT)
    ]
    title = f"Allreduce in shared memory, {ranks} ranks, {mpi}"
    return Figure(title, "", "in the library's time", lines, True, names)


# ---- Simulations ------------------------------------------------------------------------------


SOCKETS, SOCKETS_CORES = "skylake48", 48
BY_ONE_TASK = "node-flat"


def simulated_us(machine: str, ranks: int, bytes_: int, algorithm: str | None = None) -> float:
    options = {"collective": "allreduce", "engine": "blocking", "algorithm": algorithm}
    return native.simulate(machine, ranks=ranks, bytes=bytes_, **options).total_us


def by_algorithm(bytes_: int) -> dict[str, float]:
    names = (ONE_SEGMENT[bytes_], BY_ONE_TASK)
    return {name: simulated_us(SOCKETS, SOCKETS_CORES, bytes_, name) for name in names}


def of_algorithms(short: dict[str, float], long: dict[str, float]) -> list[Finding]:
    """Returns the findings on chunks and on the tree, each compared with one task that reduces
    everything."""
    chunks, tree, *_ = named("shm-allreduce").claims[4:]

    def beside_one_task(claim: Claim, bytes_: int, times: dict[str, float]) -> Finding:
        mine, one = times[ONE_SEGMENT[bytes_]], times[BY_ONE_TASK]
        here = f"{ONE_SEGMENT[bytes_]} {duration(mine)}, by one task {duration(one)}"
        on = f"Weft, {size(bytes_)}, {SOCKETS}"
        return claim.found(SIMULATED, on, here, verdict_if(is_less(mine, one)))

    return [beside_one_task(chunks, LONG, long), beside_one_task(tree, SHORT, short)]


def is_less(one_us: float, other_us: float) -> bool:
    return one_us < (1 - statistics.NOTICEABLE) * other_us


def simulated() -> Part:
    sizes = (SHORT, LONG)
    times = {(n, b): simulated_us("knl64", n, b) for n in SIMULATED_RANKS for b in sizes}
    names = [f"{n} ranks" for n in SIMULATED_RANKS]
    figures = [
        Figure(
            f"Allreduce of {size(b)}, simulated on knl64",
            "",
            "µs",
            [Line("Weft", [], [times[n, b] for n in SIMULATED_RANKS])],
            True,
            names,
        )
        for b in (SHORT, LONG)
    ]
    return Part(
        findings=[
            *(simulated_prime(b, *(times[n, b] for n in SIMULATED_RANKS)) for b in sizes),
            *of_algorithms(*map(by_algorithm, sizes)),
        ],
        figures=figures,
        conditions="Simulated: knl64, in the memory that the ranks share, by the algorithm that"
        f" Weft takes; algorithms beside each other with {SOCKETS_CORES} ranks on {SOCKETS}. An"
        " MPI library's own collectives are not simulated.",
    )


def simulated_prime(bytes_: int, prime_us: float, most_us: float) -> Finding:
    prime, most = SIMULATED_RANKS
    claim = named("shm-allreduce").claims[2]
    here = f"{prime} ranks {duration(prime_us)}, {most} ranks {duration(most_us)}"
    slower = is_less(most_us, prime_us)
    on = f"Weft, {size(bytes_)}, knl64"
    return claim.found(SIMULATED, on, here, verdict_if(slower), OTHER_LIBRARY)
