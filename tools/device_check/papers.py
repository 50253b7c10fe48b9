"""The papers' own experiments, as near as this machine comes to them; each takes a short part of a
call. Rows are shares of a time that the words before `of` name."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from math import ceil

from device_check import jobs
from device_check.jobs import Row

ENGINES = "native,function,thread,tcc"
INTEL_RANKS, SHARED_RANKS = 12, (8, 16)
LENGTHS = "8,4KiB,64KiB,1MiB"
NODES = 2  # of Okuma and Nanri's first figure: as many ranks, with threads on all cores
THREADS_PER_CORE = {"Prog1": 1, "Prog2": 2, "Prog4": 4}
MASTER_THREADS = 2
CG = "--grid 100x100x100 --tolerance 1e-2"
REPETITIONS = 7


def kernel_rows(
    row: Row, variables: dict[str, str], *options: object, each: int = 1
) -> Iterator[Row]:
    """A row for each variant of a kernel, whose time is divided by the blocking one's. each: cores
    of a rank."""
    if known := jobs.kept_of(row):
        yield from known
        return
    words = [*options, "--repetitions", REPETITIONS]
    found = jobs.found_by(row.ranks, row.collective, words, variables, each=each)
    variants = found.get("variants", [])
    times = {label_of(one): statistics.median(one["samples_us"]) for one in variants}
    if not times:
        yield row
    for name, time_us in times.items():
        words_of_it = f"{row.words}, {name}" if row.words else name
        told = {"of blocking": time_us / times["blocking"]}
        yield Row(row.group, row.collective, row.size, row.ranks, words_of_it, time_us, told)


def label_of(variant: dict) -> str:
    """Variants of one name have different engines."""
    return ", ".join(filter(None, (variant["name"], variant.get("engine"))))


def iallreduce_of(cores: int) -> Iterator[Row]:
    """Intel: two reductions of 10,000 doubles behind an update; 12 ranks take 54 % less time."""
    for ranks in sorted({min(INTEL_RANKS, cores), cores}):
        row = Row("iallreduce", "iallreduce_kernel", "80000", ranks, "")
        options = ("--elements", 10000, "--engines", ENGINES)
        yield from kernel_rows(row, jobs.preloaded("thread"), *options)


def shared_of(cores: int) -> Iterator[Row]:
    """Jocksch and Piccinali: an allreduce in shared memory, beside MPICH and Open MPI."""
    for mpi in jobs.LIBRARIES:
        for ranks in (n for n in SHARED_RANKS if n <= cores):
            if known := jobs.kept_of(Row("shared", "allreduce", LENGTHS, ranks, mpi)):
                yield from known
                continue
            runs = {
                engine: jobs.in_memory(ranks, engine, LENGTHS, mpi=mpi)
                for engine in ("", "function", "auto")
            }
            if not runs[""]:
                yield Row("shared", "allreduce", LENGTHS, ranks, mpi)
            for (form, size), alone in runs[""].items():
                row = Row("shared", "allreduce", LENGTHS, ranks, f"{mpi}, {form}, {size}", alone)
                for engine in ("function", "auto"):
                    if (form, size) in runs[engine]:
                        row.of_native[engine] = runs[engine][form, size] / alone
                yield row


def tcc_of(cores: int) -> Iterator[Row]:
    """Okuma and Nanri: the six cases. Of a node's cores each of two ranks has a half."""
    each = cores // NODES
    for order, size in ((4000, 5_000_000), (8000, 2_500_000)) if each > 1 else ():
        row = Row("tcc", "gemv_alltoall", str(size), NODES, f"order {order}")
        options = ("--order", order, "--bytes", size, "--threads", each, "--engines", ENGINES)
        yield from kernel_rows(row, jobs.preloaded("thread"), *options, each=each)


def threads_of(cores: int) -> Iterator[Row]:
    """Nanri and others: several threads on a core, and as many products in all cases as Normal
    chooses."""
    for size in (16, 1_000_000):
        for ratio in (0.5, 2):
            row = Row("threads", "gemm_allgather", str(size), cores, f"computation {ratio:g}")
            if known := jobs.kept_of(row):
                yield from known
                continue
            options = ["--bytes", size, "--repetitions", 3 * REPETITIONS, "--engines", "thread"]
            variables = jobs.preloaded("thread")
            normal = jobs.found_by(cores, row.collective, [*options, "--ratio", ratio], variables)
            if not normal:
                yield row
                continue
            row.native_us = blocking_of(normal)
            row.of_native["Normal"] = 1
            options += ["--products", normal["amount"]]
            for name, threads in THREADS_PER_CORE.items():
                ranks = cores * threads // (threads + 1)
                if ranks < 2 or ranks + ceil(ranks / threads) > cores:
                    continue
                packed = {**variables, "WEFT_PLACEMENT": f"pack:{threads}"}
                found = jobs.found_by(ranks, row.collective, options, packed)
                times = [v for v in found.get("variants", []) if v["name"] != "blocking"]
                if times:
                    median = min(statistics.median(one["samples_us"]) for one in times)
                    row.of_native[name] = median / row.native_us
            yield row


def blocking_of(found: dict) -> float:
    samples = {one["name"]: one["samples_us"] for one in found["variants"]}
    return statistics.median(samples["blocking"])


def masters_of(cores: int) -> Iterator[Row]:
    """Nakajima and others: sums and halo on the master thread, while the other multiplies."""
    ranks = cores // MASTER_THREADS
    if ranks < 2:
        return
    for method in ("pipelined", "classic"):
        row = Row("masters", "pipecg", "", ranks, method)
        options = [*CG.split(), "--threads", MASTER_THREADS, "--method", method]
        options += ["--engines", "native,thread,auto"]
        yield from kernel_rows(row, jobs.preloaded("thread"), *options, each=MASTER_THREADS)
