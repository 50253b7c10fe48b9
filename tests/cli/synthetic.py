"""Makes benchmark results for tests: lines whose crossings are known."""

from __future__ import annotations

from collections.abc import Callable

from weft.measurements.result import Alone, Candidate, Point, Result, Statistic, hidden_share

MPI = "mpich 5.0.2"
COMMUNICATION_US = 1000.0
AMOUNTS_US = tuple(200.0 * (i + 1) for i in range(10))
Line = Callable[[float], float]


def statistic(median: float, spread: float = 0.005, n: int = 9) -> Statistic:
    return Statistic(median, median * (1 - spread), median * (1 + spread), n)


def hides(share: float, overhead_us: float = 0.0, communication_us=COMMUNICATION_US) -> Line:
    """Returns the time of an engine that hides this share of the communication, as a function of
    the computation."""

    def total(x_us: float) -> float:
        return communication_us + x_us - share * min(communication_us, x_us) + overhead_us

    return total


def blocking(size_bytes: int = 1 << 20, communication_us=COMMUNICATION_US, **other) -> Alone:
    values = {
        "mpi": MPI,
        "engine": "native",
        "placement": "none",
        "backoff": "none",
        "algorithm": "library",
        "collective": "allreduce",
        "bytes": size_bytes,
        "ranks": 4,
        "nodes": 4,
        "blocking_us": statistic(communication_us),
        "immediate_us": statistic(1.05 * communication_us),
    }
    return Alone(**{**values, **other})


def points(engine: str, line: Line, spread: float = 0.005, scale: float = 1.0, **other) -> list:
    """Returns the points of one candidate over all amounts. `scale` multiplies computation and
    communication."""
    found = []
    for amount, x in enumerate(AMOUNTS_US):
        x_us, total_us = scale * x, scale * line(x)
        values = {
            "mpi": MPI,
            "engine": engine,
            "placement": "none",
            "backoff": "none",
            "algorithm": "library",
            "collective": "allreduce",
            "bytes": 1 << 20,
            "ranks": 4,
            "nodes": 4,
            "computation_us": x_us,
            "communication_us": scale * COMMUNICATION_US,
            "total_us": statistic(total_us, spread),
            "hidden": hidden_share(scale * COMMUNICATION_US, x_us, total_us),
            "slowdown_of_computation": 1.02,
            "amount": amount,
        }
        found.append(Point(**{**values, **other}))
    return found


def result(lines: dict[str, Line], spread: float = 0.005) -> Result:
    """Returns a result of one case, an allreduce of 1 MiB on 4 ranks, with these engines."""
    measured = [p for engine, line in lines.items() for p in points(engine, line, spread)]
    return Result(
        machine={"processor": "Example, 4 cores", "kernel": "Linux 6.1", "network": "lab, 4 nodes"},
        points=measured,
        candidates=[Candidate(MPI, engine) for engine in lines],
        alone=[blocking()],
    )


def sizes(lines: dict[str, dict[int, Line]]) -> Result:
    """Returns a result with several sizes. `lines` has a line by engine and size in bytes. The
    communication grows with the size."""
    found = Result(machine={"processor": "Example"})
    for engine, by_size in lines.items():
        for size_bytes, line in by_size.items():
            scale = size_bytes / (1 << 20)
            found.points += points(engine, line, scale=scale, bytes=size_bytes)
    every = sorted({point.bytes for point in found.points})
    found.alone = [blocking(size, COMMUNICATION_US * size / (1 << 20)) for size in every]
    return found
