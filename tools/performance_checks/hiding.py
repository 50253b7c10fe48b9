"""Measures collectives (bench/overlap) and the program's own messages (bench/messages) overlapped
with computation.

It also measures the cost of Weft if there is nothing to hide: of short calls, of an idle thread,
and of a program's start. All engines of a job of bench/overlap are interleaved, and ratios are
formed within a repetition."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial

from weft.measurements import statistics

from .check import Figure
from .jobs import WEFT, At, in_turn, median, ratio

OWN = ("function", "thread", "tcc", "assist")
ASYNC = {"MPICH_ASYNC_PROGRESS": "1", "MPIR_CVAR_ASYNC_PROGRESS": "1"}
BATCHES, ROUNDS, STARTS = 31, 7, 200
LONG, RATIO = 2 << 20, 1.3  # bytes of a message; ratio of computation to communication
EXCHANGE_ROUNDS, MESSAGES, SHORT_MESSAGES, IDLE_S = 6, 7, 500, 10
ONE_CORE_ROUNDS, ONE_CORE_REPETITIONS = 7, 20
WAYS = {"weft": [], "alone": None}  # options of `weft run`
THREAD = ["--engine", "thread"]
# The thread waits as by default, polls, or sleeps in a call of the library.
WAITING = {"thread": THREAD, "yield": [*THREAD, "--backoff", "yield"], "tcc": ["--engine", "tcc"]}
Samples = dict[str, list[float]]  # times by engine


def samples_of(data: dict, what: str) -> Samples:
    return {entry["engine"]: entry[what]["samples"] for entry in data["engines"]}


def interleaved(at: At, collective: str, size: str) -> tuple[dict, Samples, str]:
    """Returns the whole result, the times with computation, and the fastest of Weft's engines."""
    options = ["--collective", collective, "--bytes", size, "--repetitions", at.repetitions]
    options += ["--engines", ",".join(("native", *OWN, "auto"))]
    data = at.figures("overlap", options, ["--engine", "auto"])
    times = samples_of(data, "total_us")
    return data, times, min(OWN, key=lambda engine: median(times[engine]))


def hidden(data: dict, total_us: Sequence[float]) -> statistics.Statistic:
    """Returns the share of the communication that does not make the program longer."""
    communication, computation = data["communication_us"], data["computation_us"]["median"]
    least = min(communication, computation)
    return statistics.of([(communication + computation - us) / least for us in total_us])


def beside_computation(size: str, collectives: Sequence[str], at: At) -> Iterator[Figure]:
    for name in collectives:
        data, times, fastest = interleaved(at, name, size)
        own, native = (median(times[engine]) / 1000 for engine in (fastest, "native"))
        note = f"{fastest} {own:.1f} ms, native {native:.1f} ms"
        yield Figure(f"{name} hidden by the fastest engine", hidden(data, times[fastest]), size)
        for engine in ("thread", "tcc"):
            yield Figure(f"{name} hidden by {engine}", hidden(data, times[engine]), size)
        for what, engine in (("fastest engine", fastest), ("auto", "auto")):
            share = ratio(times[engine], times["native"])
            yield Figure(f"{name}: {what} / native", share, size, note)


def own_progress(at: At) -> Iterator[Figure]:
    """Compares the fastest engine with MPICH's own progress threads, without Weft and with the same
    work."""
    data, times, fastest = interleaved(at, "allreduce", "2MiB")
    options = ["--engines", "native", "--bytes", "2MiB", "--iterations", data["iterations"]]
    options += ["--repetitions", at.repetitions]
    theirs = samples_of(at.figures("overlap", options, **ASYNC), "total_us")["native"]
    share = statistics.ratio(statistics.of(times[fastest]), statistics.of(theirs))
    note = f"{median(times[fastest]) / 1000:.1f} ms, theirs {median(theirs) / 1000:.1f} ms"
    yield Figure("fastest engine / MPICH's own progress", share, "Iallreduce 2MiB", note)


def latency_us(at: At, weft: Sequence[str] | None, *engines: str) -> Samples:
    options = ["--latency", "--bytes", 8, "--engines", ",".join(engines), "--repetitions", BATCHES]
    return samples_of(at.figures("overlap", options, weft), "immediate_us")


def engines_at_8_bytes(at: At) -> Iterator[Figure]:
    times = latency_us(at, ["--engine", "auto"], "native", "thread", "function")
    for engine in ("thread", "function"):
        note = f"{median(times[engine]):.2f} us, native {median(times['native']):.2f} us"
        yield Figure(f"{engine} / native", ratio(times[engine], times["native"]), "8 B", note)


def native_at_8_bytes(at: At) -> Iterator[Figure]:
    def median_ns(weft: Sequence[str] | None) -> float:
        return 1000 * median(latency_us(at, weft, "native")["native"])

    ways = {"alone": partial(median_ns, None), "weft": partial(median_ns, ["--engine", "native"])}
    alone, through = in_turn(ways, at.few_or(ROUNDS)).values()
    note = f"{median(through):.0f} ns, without Weft {median(alone):.0f} ns"
    yield Figure("native with Weft / without", ratio(through, alone), "8 B", note)
    extra = statistics.of([mine - other for mine, other in zip(through, alone)])
    yield Figure("native with Weft, extra time", extra, "8 B", note)


def start_up(at: At) -> Iterator[Figure]:
    def milliseconds(*front: object) -> float:
        begin = time.perf_counter()
        subprocess.run([*front, "true"], check=True, stderr=subprocess.DEVNULL)
        return 1000 * (time.perf_counter() - begin)

    ways = {"alone": milliseconds, "weft": partial(milliseconds, WEFT, "run", "--")}
    alone, through = in_turn(ways, STARTS).values()
    extra = statistics.of([mine - other for mine, other in zip(through, alone)])
    yield Figure("weft run -- true, extra time", extra)


def exchanged(at: At, words: Sequence, ways: dict) -> dict[str, list[dict[str, float]]]:
    """Returns the medians of alternating jobs of bench/messages, by way and round."""

    def job(weft: Sequence | None) -> dict[str, float]:
        found = json.loads(at.job("messages", words, weft))
        return {name: median(times) for name, times in found.items() if isinstance(times, list)}

    jobs = {way: partial(job, weft) for way, weft in ways.items()}
    return in_turn(jobs, at.few_or(EXCHANGE_ROUNDS))


def messages(at: At) -> Iterator[Figure]:
    """Measures the program's own messages and one-sided accesses, under engine auto and without
    Weft."""
    for what in ("halo", "put", "get"):
        found = exchanged(at, [what, LONG, at.few_or(MESSAGES), RATIO], WAYS)
        weft, alone = ([job["hidden"] for job in found[way]] for way in WAYS)
        note = f"median {median(weft):.2f}; alone {median(alone):.2f}, least {min(alone):.2f}"
        yield Figure("hidden in every round", min(weft), f"{what} of 2 MiB", note)
    found = exchanged(at, ["halo", 8, 20 if at.short else SHORT_MESSAGES, 0], WAYS)
    weft, alone = ([job["alone_s"] for job in found[way]] for way in WAYS)
    yield Figure("with Weft / alone", ratio(weft, alone), "halo of 8 B")


def waiting(at: At) -> Iterator[Figure]:
    """Measures the processor time of the thread, on a core of its own, during a long MPI_Iallreduce
    in which the ranks sleep."""
    found = exchanged(at, ["allreduce", LONG, at.few_or(MESSAGES), RATIO, "sleep"], WAITING)

    def per_second(way: str, what: str) -> list[float]:
        return [job[what] / job["alone_s"] for job in found[way]]

    taken = {way: per_second(way, "other_cpu_s") for way in WAITING}
    sleeps = {way: median(per_second(way, "other_switches")) for way in WAITING}
    note = ", ".join(
        f"{way} {median(taken[way]):.3f} s, {n:.0f} sleeps" for way, n in sleeps.items()
    )
    extra = statistics.of([own - worker for own, worker in zip(taken["thread"], taken["tcc"])])
    yield Figure("processor time, more than tcc", extra, "for 1 s of communication", note)
    yield Figure("hidden meanwhile", statistics.of([job["hidden"] for job in found["thread"]]))


def idle(at: At) -> Iterator[Figure]:
    """Measures the thread while nothing is outstanding, after a collective that it has carried
    out."""
    seconds = 1 if at.short else IDLE_S
    for backoff in ("quiet", "yield"):
        said = at.job("idle", [seconds], [*THREAD, "--backoff", backoff])
        found = re.findall(r"thread weft\S*: (\d+) ticks, (\d+) wakes", said)
        for what, column in zip(("CPU ticks", "wake-ups"), zip(*found) if found else (None, None)):
            number = sum(map(int, column)) if column else None
            yield Figure(what, number, f"nothing outstanding, {backoff}, {seconds} s")


# These are the ways in which the progress threads of several ranks share a core.
SHARED = {
    "yield": [*THREAD, "--backoff", "yield"],
    "quiet": [*THREAD, "--backoff", "quiet"],
    "agent": ["--engine", "agent"],
}


def one_core(at: At) -> Iterator[Figure]:
    """Measures ranks that all compute on one core while their progress threads share another."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    placed = ["--placement", "list:" + ",".join([str(cores[-1])] * at.where.ranks)]
    repetitions = at.few_or(ONE_CORE_REPETITIONS)
    measured = ["--collective", "allgather", "--bytes", "1MiB", "--repetitions", repetitions]

    def total_us(options: Sequence[str]) -> float:
        engine, front = options[1], ["taskset", "-c", cores[0]]
        words = [*measured, "--engines", engine]
        data = at.figures("overlap", words, [*placed, *options], front=front)
        return median(samples_of(data, "total_us")[engine])

    ways = {way: partial(total_us, options) for way, options in SHARED.items()}
    found = in_turn(ways, at.few_or(ONE_CORE_ROUNDS))
    for way in ("quiet", "agent"):
        yield Figure(f"{way} / yield", ratio(found[way], found["yield"]), "Iallgather 1MiB")
