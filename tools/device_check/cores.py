"""Measures on many cores: the costs of collectives, engines, kernels and placements of threads."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from math import ceil
from pathlib import Path
from time import monotonic

from device_check import papers, programs
from device_check.jobs import Row, found_by, in_memory, kept, kept_of, output_of, preloaded

REPETITIONS = 7
STEPS = 500  # enough steps for engine auto, which tries variants at first
LEARNT_ROUNDS, KERNEL_ROUNDS, KERNEL_REPETITIONS = 3, 3, 5
ENGINES = "native,function,thread,tcc,assist"
LENGTHS = "8,4KiB,64KiB,1MiB"
COLLECTIVES = (("allreduce", "1MiB"), ("bcast", "1MiB"), ("alltoall", "64KiB"), ("scan", "1MiB"))


def show_in_memory(cores: int, end: float) -> None:
    print("allreduce in the node's memory: µs of MPICH, of Weft, and their ratio; the same of auto")
    for ranks in (n for n in (2, 4, 5, 8, 12, 16) if n <= cores):
        if monotonic() >= end:
            print("the rest is left out: its time is up")
            return
        runs = {engine: in_memory(ranks, engine, LENGTHS) for engine in ("", "function", "auto")}
        if not runs[""]:
            print(f"{ranks} ranks under MPICH alone: did not run", flush=True)
        for form, size in runs[""]:
            alone, *others = (times.get((form, size)) for times in runs.values())
            cells = "".join(
                f"{time:11.2f} {time / alone:6.2f}" if alone and time else " did not run"
                for time in others
            )
            print(f"{form:10} {ranks:5} {size:>8} {alone:11.2f}{cells}", flush=True)


def show_levels(cores: int, end: float) -> None:
    """Compares allreduce in one and in two levels if the node has several NUMA domains. Ranks fill
    one domain after the other, so that as many ranks as cores use all of them."""
    domains = Path("/sys/devices/system/node/online").read_text().strip()
    if not set(domains) & set("-,"):
        print("one NUMA domain: nothing to compare in two levels")
        return
    print(f"allreduce by NUMA domains ({domains}), {cores} ranks: two levels µs / one level µs")
    for name in ("flat", "tree", "ring"):
        if monotonic() >= end:
            print("the rest is left out: its time is up")
            return
        one = in_memory(cores, "function", LENGTHS, f"node-{name}")
        domain = "domain-tree" if name == "flat" else f"domain-{name}"
        two = in_memory(cores, "function", LENGTHS, domain)
        for key in sorted(one.keys() & two.keys()):
            words = f"{name:6} {key[0]:10} {key[1]:>8}"
            print(
                f"{words} {two[key]:11.2f} {one[key]:11.2f} {two[key] / one[key]:8.2f}", flush=True
            )


# ---- Engines, placements, split trees, several threads on a core -------------------------------


def overlap(row: Row, engines: str, **variables: str) -> Row:
    """All of these engines in one job."""
    if known := kept(row):
        return known
    options = ["--collective", row.collective, "--bytes", row.size]
    options += ["--engines", engines, "--repetitions", REPETITIONS]
    found = found_by(row.ranks, "overlap", options, preloaded("auto", **variables))
    if found:
        totals = {one["engine"]: one["total_us"]["median"] for one in found["engines"]}
        row.native_us = totals["native"]
        row.of_native = {name: total / row.native_us for name, total in totals.items()}
    return row


def engines_of(cores: int) -> Iterator[Row]:
    for ranks in sorted({n for n in (2, 4, 8, 16) if n <= cores} | {max(2, cores - 2)}):
        for collective, size in COLLECTIVES:
            yield overlap(Row("engines", collective, size, ranks, ""), ENGINES)


def steps(row: Row, engine: str, *options: object) -> list[float]:
    """Returns the output of bench/steps: seconds, microseconds per step, nanoseconds per
    iteration."""
    call = ["--collective", row.collective, "--bytes", row.size, *options]
    settings = preloaded(engine, WEFT_PLAN_CACHE="none")
    return [float(word) for word in (output_of(row.ranks, "steps", call, settings) or "").split()]


def learnt_of(cores: int) -> Iterator[Row]:
    """Measures learning in separate jobs that alternate, each with the same steps. They overlap
    with a computation as long as the collective. The time in which auto tries variants counts."""
    for ranks in sorted({n for n in (4, 8, 16) if n <= cores} | {max(2, cores - 2)}):
        for collective, size in COLLECTIVES:
            row = Row("learnt", collective, size, ranks, f"{STEPS} steps")
            if known_row := kept(row):
                yield known_row
                continue
            known = steps(row, "", "--steps", 50, "--blocking", 1, "--work", 0)
            if len(known) < 3:
                yield row
                continue
            options = ["--steps", STEPS, "--work", int(known[1] * 1000 / known[2])]
            step_us: dict[str, list[float]] = {}
            for _ in range(LEARNT_ROUNDS):
                for name in ("native", "blocking", "auto", "thread"):
                    engine = name if name in ("auto", "thread") else ""
                    more = ["--blocking", 1] if name == "blocking" else []
                    told = steps(row, engine, *options, *more)
                    step_us.setdefault(name, []).append(told[1] if told else 0)
            if all(all(times) for times in step_us.values()):
                row.native_us = statistics.median(step_us["native"])
                for name, times in step_us.items():
                    row.of_native[name] = statistics.median(times) / row.native_us
            yield row


def kernel(name: str, ranks: int, engine: str) -> dict[str, float]:
    """Returns the median time of a step in us by variant; empty if the job did not run. `engine` is
    Weft's; if it is empty, the job runs without Weft."""
    options = [*programs.KERNELS[name].split(), "--repetitions", KERNEL_REPETITIONS]
    options += ["--engines", engine or "native"]
    found = found_by(ranks, name, options, preloaded(engine))
    variants = found.get("variants", [])
    return {one["name"]: statistics.median(one["samples_us"]) for one in variants}


def kernels_of(cores: int) -> Iterator[Row]:
    """Measures whole kernels, each job with all of its variants. Times under Weft are divided by
    that of the blocking variant without Weft, which shows both a variant's gain and the cost of
    Weft itself."""
    for ranks in sorted({n for n in (8, 16) if n <= cores} | {max(2, cores - 2)}):
        for name in programs.KERNELS:
            if known := kept_of(Row("kernels", name, "", ranks, "")):
                yield from known
                continue
            jobs: dict[str, list[dict[str, float]]] = {"": [], "auto": [], "thread": []}
            for _ in range(KERNEL_ROUNDS):
                for engine, times in jobs.items():
                    times.append(kernel(name, ranks, engine))
            if not all(all(times) for times in jobs.values()):
                yield Row("kernels", name, "", ranks, "")
                continue
            blocking = statistics.median(times["blocking"] for times in jobs[""])
            for variant in jobs[""][0]:
                row = Row("kernels", name, "", ranks, variant, blocking)
                for engine, times in jobs.items():
                    median = statistics.median(one[variant] for one in times)
                    row.of_native[engine or "alone"] = median / blocking
                yield row


def messages(**variables: str) -> dict[str, str]:
    """Returns settings for algorithms by messages, since those of the papers use messages inside a
    node, too."""
    return {"WEFT_TRANSPORT": "mpi", **variables}


def placements_of(cores: int) -> Iterator[Row]:
    """Measures placements. According to the papers numa is slower than bind along a chain, and
    odd-even takes half the time of numa."""
    for ranks in sorted({cores // 2, 3 * cores // 4, cores - 2, cores - 1} & set(range(2, cores))):
        for placement in ("bind", "numa", "odd-even", "pack:2", "pack:4"):
            per_core = int(placement.partition(":")[2] or ranks)
            if ranks + ceil(ranks / per_core) > cores:
                continue
            settings = messages(WEFT_PLACEMENT=placement, WEFT_ALGORITHM_SCAN="chain")
            row = Row("placements", "scan", "1MiB", ranks, placement)
            yield overlap(row, "native,thread", **settings)


def best_split(cores: int, ranks: int, collective: str) -> str:
    command = [programs.BUILD / "bin" / "weft-cores", "model", "--cores", cores, "--ranks", ranks]
    words = [str(word) for word in [*command, "--collective", collective]]
    done = subprocess.run(words, env=programs.environment(), capture_output=True, text=True)
    return str(json.loads(done.stdout)["S"]) if done.returncode == 0 else "?"


def splits_of(cores: int) -> Iterator[Row]:
    """Measures split trees. According to the papers a split pays with few communication cores, and
    the best S grows with the number of ranks."""
    for collective in ("bcast", "reduce"):
        for ranks in range(max(2, cores // 2), cores):
            said = best_split(cores, ranks, collective)
            for split in range(4):
                settings = messages(
                    WEFT_PLACEMENT="odd-even",
                    WEFT_SPLIT=str(split),
                    **{f"WEFT_ALGORITHM_{collective.upper()}": "binomial"},
                )
                by_model = ", the model's" if said == str(split) else ""
                row = Row("splits", collective, "2MiB", ranks, f"S={split}{by_model}")
                yield overlap(row, "native,thread", **settings)


def compaction_of(cores: int) -> Iterator[Row]:
    """Findings: K threads on a core are switched whether they have work or not. Here they sleep for
    most of a round (quiet), or one of them works for all (agent)."""
    for per_core in (1, 2, 4):
        ranks = next((n for n in range(cores, 1, -1) if n + ceil(n / per_core) <= cores), 0)
        for size in ("16", "1MiB") if ranks else ():
            for engine, backoff in (("thread", "yield"), ("thread", "quiet"), ("agent", "yield")):
                settings = {
                    "WEFT_PLACEMENT": f"pack:{per_core}",
                    "WEFT_BACKOFF": backoff,
                    "WEFT_ENGINE": engine,
                }
                words = f"{per_core} a core, {'agent' if engine == 'agent' else backoff}"
                row = Row("compaction", "allgather", size, ranks, words)
                yield overlap(row, f"native,{engine}", **settings)


GROUPS = {
    "iallreduce": papers.iallreduce_of,
    "shared": papers.shared_of,
    "tcc": papers.tcc_of,
    "threads": papers.threads_of,
    "masters": papers.masters_of,
    "placements": placements_of,
    "splits": splits_of,
    "engines": engines_of,
    "learnt": learnt_of,
    "kernels": kernels_of,
    "compaction": compaction_of,
}
HEADING = "totals over native's, computation = communication"
PAPERS = ("iallreduce", "shared", "tcc", "threads", "masters", "placements", "splits")
PAPERS_S = 240  # of a call, in which all of these are begun
HEADINGS = {
    "kernels": "times over the blocking kernel's without Weft",
    "iallreduce": "times over the blocking kernel's",
    "shared": "times over the MPI library's own",
    "tcc": "times over the blocking kernel's",
    "threads": "times over that of blocking ranks on all cores",
    "masters": "times over the blocking kernel's",
}


def show(group: str, cores: int, end: float) -> list[Row]:
    """Prints a group's rows, and returns those that were measured before the time was over."""
    print(f"--- {group}: {HEADINGS.get(group, HEADING)}, {cores} cores")
    rows: list[Row] = []
    measured = GROUPS[group](cores)
    while monotonic() < end and (row := next(measured, None)):
        rows.append(row)
        cells = " ".join(
            f"{name} {share:.3f}" for name, share in row.of_native.items() if name != "native"
        )
        start = f"{row.collective:10} {row.size:>5} {row.ranks:3} ranks {row.words:18}"
        print(f"{start} {row.native_us:10.1f} us  {cells or 'did not run'}", flush=True)
    if monotonic() >= end:
        print("the rest is left out: its time is up")
    elif not rows:
        print("no core without a rank: nothing to compare")
    return rows


def check_cores(groups: Sequence[str], out: Path, end: float) -> int:
    programs.get_programs(*programs.PROGRAMS)
    cores = len(os.sched_getaffinity(0))
    rows: list[Row] = []
    left = [group for group in GROUPS if group in groups]
    papers_end = min(end, monotonic() + PAPERS_S)
    for number, group in enumerate(left):
        among = [one for one in left[number:] if (one in PAPERS) == (group in PAPERS)]
        until = papers_end if group in PAPERS else end
        share_s = (until - monotonic()) / len(among)
        rows += show(group, cores, monotonic() + share_s)
        write(rows, cores, out)
    if "memory" in groups:
        show_in_memory(cores, end)
        show_levels(cores, end)
    return 0


def write(rows: Sequence[Row], cores: int, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    found = {
        "schema": "weft-device-check/1",
        "date": date.today().isoformat(),
        "cores": cores,
        "processor": processor(),
        "commit": programs.commit(),
        "libraries": programs.libraries(),
        "rows": [asdict(row) for row in rows],
    }
    (out / "device-check.json").write_text(json.dumps(found, indent=1) + "\n")


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
