"""The published experiments as presets: what to run here, what was published, and a judgement.

Presets are data. `weft bench --preset NAME` runs a preset's `runs`, and its page shows the
published result beside the measured one. A judgement says where the finding holds, where it does
not, and the likely cause. `not_available` names parts of an experiment that cannot be measured
here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.measurements.judgements import (
    ELEMENTS,
    NORMAL,
    THREADS,
    Judgement,
    judge_atmosphere,
    judge_cpals,
    judge_fft3d,
    judge_gpu_stencil,
    judge_iallreduce_kernel,
    judge_nbc_eff,
    judge_pipecg,
    judge_placement,
    judge_stencil,
    judge_tcc,
    judge_threads_per_core,
)
from weft.measurements.kernels import SCRATCH, Run
from weft.measurements.result import Result

LAB = "nodes=2,rate=200mbit"
MASTER_THREADS = 2  # threads of each rank, one of which communicates
# This number is assumed if a result does not say how many cores its machine has. All experiments
# fit into it.
UNKNOWN_CORES = 12


@dataclass(frozen=True)
class Preset:
    """A published experiment. `runs` has options of `weft bench`, by the names of its parameters
    (weft.bench.command.bench), with one dictionary per run. It is empty if nothing of the
    experiment can be measured yet. If `program` is set, the runs are options of that program of
    kernels/, and `judge` gets the figures of a run. `about` names options whose values define the
    experiment. `fixed` names options that the preset of such a program does not accept. With
    `series`, all runs are judged together."""

    name: str
    title: str
    published: str
    judge: Callable[[Any], Judgement]
    runs: list[dict[str, Any]] = field(default_factory=list)
    not_available: str | None = None
    program: str = ""
    needs_gpu: bool = False
    about: tuple[str, ...] = ("collective",)
    fixed: frozenset[str] = frozenset()
    series: bool = False


def presets(cores: int) -> dict[str, Preset]:
    """Returns all presets by name, scaled to a machine with this many usable cores."""
    found = (
        tcc(),
        threads_per_core(cores),
        placement(cores),
        nbc_eff(cores),
        iallreduce_kernel(cores),
        pipecg(cores),
        fft3d(),
        stencil(),
        cpals(),
        atmosphere(),
        gpu_stencil(),
    )
    return {preset.name: preset for preset in found}


def remarks(preset: Preset, found: Result) -> tuple[str, ...]:
    """Returns the published finding, the finding in a result, and what was not measured, as
    sentences."""
    said = [f"Published: {preset.published}", f"Found: {preset.judge(found)}"]
    if preset.not_available:
        said.append(f"Not measured here: {preset.not_available}")
    return tuple(said)


def findings(preset: Preset, runs: Sequence[Run]) -> list[str]:
    """Returns the judgements on a program's runs."""
    return [preset.judge(runs)] if preset.series else [preset.judge(run) for run in runs]


def measured_for(
    name: object, machine: dict[str, Any], *, of_a_program: bool = False
) -> Preset | None:
    """Returns the preset that a result names, scaled to the machine of the result.

    Returns None if there is no such preset, or if it is judged by other figures: by those of the
    benchmark, or by those of a program of kernels/."""
    cores = machine.get("cores")
    found = presets(cores if isinstance(cores, int) else UNKNOWN_CORES).get(str(name))
    return found if found and bool(found.program) == of_a_program else None


# ---- Presets ----------------------------------------------------------------------------------


def in_the_lab(collective: str, size: str, **more: str) -> dict[str, Any]:
    """Returns the options of a run between two nodes of the lab."""
    return {"collective": collective, "size": size, "lab": LAB, **more}


def tcc() -> Preset:
    measured = {"engines": "native,function,thread,tcc,assist,auto", "lab": LAB}
    return Preset(
        name="tcc",
        title="Threaded collective communication: Ialltoall over matrix-vector products",
        published=(
            "Okuma, Nanri: on 2 nodes (5 MB, matrix of order 4,000), overlap makes the program"
            " 1.346 (progress function), 1.127 (progress thread) and 1.166 (TCC) times as fast as"
            " without; on 32 nodes 1.338, 1.020 and 1.271. The function is called once per row."
            " With several collectives in flight a thread may gain more than TCC, which carries out"
            " one after the other."
        ),
        program="gemv_alltoall",
        runs=[
            {"arguments": "--order 4000 --bytes 5000000", **measured},
            # With this order the product takes about as long as the transfer on the lab's links,
            # which takes longer than on those of the publication.
            {"arguments": "--order 8000 --bytes 2500000", **measured},
            # The bytes are the same in total, in four collectives at once.
            {"arguments": "--order 8000 --bytes 625000 --in-flight 4", **measured},
        ],
        judge=judge_tcc,
        not_available=(
            "32 nodes, for the other case; 16 cores in each node, of which the engines with a"
            " thread leave one free."
        ),
    )


def ranks_beside(threads: int, cores: int) -> int:
    """Returns how many ranks leave enough cores for their threads, with this many threads on a
    core. Returns 0 if no number does.

    On two cores the threads get one core and all their ranks the other, which is another experiment
    than the published one."""
    if cores == 2:
        return threads if threads > 1 else 0
    ranks = cores * threads // (threads + 1)
    return ranks if ranks >= max(threads, 2) else 0


def threads_per_core(cores: int) -> Preset:
    cases = {name: ranks_beside(threads, cores) for name, threads in THREADS.items()}
    runs = []
    for size, size_in_words in ((16, "16 B"), (1000000, "1 MB")):
        for ratio, ratio_in_words in ((0.5, "1/2"), (2, "2")):
            words = f"--bytes {size} --repetitions {101 if size == 16 else 21}"
            told = {"series": f"{size_in_words}, computation {ratio_in_words} of communication"}
            told |= {"lab": None, "engines": "thread"}
            every = {"case": NORMAL, "ranks": cores, "on_cores": cores}
            runs.append({"arguments": f"{words} --ratio {ratio}", **every, **told})
            for name, ranks in cases.items():
                case = f"{name}, all ranks on one core" if cores == 2 else name
                some = {"case": case, "ranks": ranks, "on_cores": min(ranks, cores - 1)}
                some |= {"placement": f"pack:{THREADS[name]}"}
                if ranks:
                    runs.append({"arguments": f"{words} --products {{amount}}", **some, **told})
    return Preset(
        name="threads-per-core",
        title="Several progress threads on one core: Iallgather over matrix products",
        published=(
            "Nanri et al., jh250041: with 16 B, two threads per core are best at computation = 1/2"
            " communication, and no overlap at 2 times; with 1 MB, four threads per core are best"
            " at 1/2, and faster than no overlap at 2 times."
        ),
        program="gemm_allgather",
        runs=runs if cores > 1 else [],
        judge=judge_threads_per_core,
        series=True,
        fixed=frozenset({"lab", "ranks", "engines"}),
        not_available=threads_missing(cores),
    )


def threads_missing(cores: int) -> str:
    """Returns a text about the parts of the study's experiment that this machine cannot run."""
    needed = {"Prog1": 4, "Prog2": 3, "Prog4": 5}
    lacking = [name for name, threads in THREADS.items() if not ranks_beside(threads, cores)]
    parts = ["32 nodes of 120 cores"]
    parts += [f"{name}, which needs {needed[name]} cores" for name in lacking]
    if cores == 2:
        parts.append(
            "two thirds and four fifths of the cores at work in Prog2 and Prog4, all of whose ranks"
            " share one of two cores here"
        )
    return "; ".join(parts) + "."


FREE_CORES = 2  # number of cores left to the threads, as published


def placement(cores: int) -> Preset:
    """Returns the preset placement. It uses one node if that has cores for four ranks. With two
    ranks each thread would have a core of its own under any placement."""
    measured = {"engines": "thread", "placements": "bind,numa,odd-even", "amounts": "0.5x,1x,2x"}
    if cores >= 4 + FREE_CORES:
        own = {"algorithms": "chain", "launcher": "mpiexec", "lab": None}
        run = {"collective": "scan", "size": "1MB", "kernel": "gemm", **measured, **own}
        run["ranks"] = str(cores - FREE_CORES)
        missing = None if cores == 64 else f"64 cores: this machine has {cores}."
    else:
        run = in_the_lab("scan", "1MB", kernel="gemm", **measured)
        missing = (
            "cores without ranks, without which numa and odd-even put a thread where bind does."
        )
    return Preset(
        name="placement",
        title="Where progress threads run: Iscan along a chain",
        published=(
            "Denis et al. 2019: 62 ranks on 64 cores, 1 MB: placement numa takes 3 times as"
            " long as bind; odd-even is twice as fast as numa, and can be overlapped."
        ),
        runs=[run],
        judge=judge_placement,
        about=("collective", "placements"),
        not_available=missing,
    )


def nbc_eff(cores: int) -> Preset:
    run = {
        "collective": "allreduce",
        "size": "1MiB",
        "engines": "native,thread,tcc,library-async",
        "mpi": "mpich,openmpi,intelmpi",
        "amounts": "10",
    }
    per_node = min(8, cores // 2)
    runs = [{**run, "lab": LAB}]
    if per_node > 1:
        runs.append({**run, "lab": f"nodes=2,per-node={per_node},rate=200mbit"})
    return Preset(
        name="nbc-eff",
        title="Which MPI library: Iallreduce over ten amounts of computation",
        published=(
            "Nanri et al., jh250041: 1 rank per node: HPC-X with SHARP is fastest; 8: it has"
            " no significant advantage, and Intel MPI overtakes HPC-X as computation grows. Which"
            " library wins depends on the ranks per node and on the amount."
        ),
        runs=runs,
        judge=judge_nbc_eff,
        not_available=(
            "HPC-X and SHARP, which need InfiniBand switches"
            + (
                "."
                if per_node > 1
                else f"; several ranks per node, which {cores} cores cannot run."
            )
        ),
    )


def iallreduce_kernel(cores: int) -> Preset:
    engines = "native,function,thread,tcc,assist"
    run = {"arguments": f"--elements {ELEMENTS}", "engines": engines}
    return Preset(
        name="iallreduce-kernel",
        title="Three arrays: minimum and maximum reduced behind an update",
        published=(
            "Intel: the non-blocking version takes 54 % less time (12 ranks in shared memory of two"
            " Xeon E5-2697 v2, 10,000 doubles, Intel MPI 5.0). Where all cores are in use, it"
            " brings nothing."
        ),
        program="iallreduce_kernel",
        runs=[
            *({**run, "lab": None, "ranks": ranks} for ranks in sorted({min(12, cores), cores})),
            {**run, "lab": LAB},
        ],
        judge=judge_iallreduce_kernel,
        not_available=None if cores >= 12 else f"12 ranks: this machine has {cores} cores.",
    )


def pipecg(cores: int) -> Preset:
    engines = "native,thread,auto"
    # In the second run reductions take as long as on a large machine.
    labs = (LAB, f"{LAB},delay=1ms")
    runs: list[dict[str, Any]] = [
        {"arguments": f"--grid 32x32x32 --method {method}", "engines": engines, "lab": lab}
        for lab in labs
        for method in ("pipelined", "classic")
    ]
    missing = "2,048 nodes."
    if cores >= 2 * MASTER_THREADS:
        # The master thread of each rank communicates while the rank's other thread multiplies.
        words = f"--grid 32x32x32 --method pipelined --threads {MASTER_THREADS}"
        own = {"arguments": words, "engines": engines, "cores_per_node": MASTER_THREADS}
        runs += [{**own, "lab": lab} for lab in labs]
    else:
        missing = (
            "communication on the master thread, which needs a second core for each rank"
            f" (kernels/pipecg --threads); {missing}"
        )
    return Preset(
        name="pipecg",
        title="Conjugate gradients: inner products and halo behind the product with the matrix",
        published=(
            "Nakajima et al., jh250041: inner products and halo on the master thread, behind the"
            " product of the interior rows, improve the pipelined method's performance by 27 % over"
            " no overlap and by 6 % over the halo's alone (2,048 nodes, Odyssey)."
        ),
        program="pipecg",
        runs=runs,
        judge=judge_pipecg,
        not_available=missing,
    )


def fft3d() -> Preset:
    return Preset(
        name="fft3d",
        title="Fourier transforms: one block is transformed while the next one travels",
        published=(
            "Nanri et al., jh250041: communication takes far longer than computation, which"
            " limits the effect of overlap (a cluster of GPUs)."
        ),
        program="fft3d",
        runs=[{"arguments": "--grid 64x64x64", "engines": "native,thread,auto", "lab": LAB}],
        judge=judge_fft3d,
        not_available="GPUs.",
    )


def stencil() -> Preset:
    measured = {"engines": "native,thread,auto", "lab": LAB}
    return Preset(
        name="stencil",
        title="Halo exchange: the neighbours' planes travel while the interior is computed",
        published=(
            "Nakajima et al., jh250041: halo and inner products behind the interior points improve"
            " a solver's performance by 27 % over no overlap and by 6 % over the halo's alone,"
            " which by that brings about 20 % (2,048 nodes, Odyssey). Nanri et al., ibid.: of four"
            " methods for a stencil on four GPUs, CUDA graphs that notify the CPU are fastest."
        ),
        program="stencil",
        runs=[{"arguments": f"--grid {grid}", **measured} for grid in ("768x64x64", "1x2048x2048")],
        judge=judge_stencil,
        not_available="2,048 nodes; the four methods: they are preset gpu-stencil.",
    )


# These are pairs of the grid's size N and the number of steps.
GPU_STENCILS = ((1024, 1000), (2048, 500), (4096, 400), (8192, 200), (16384, 100), (32768, 40))


def gpu_stencil() -> Preset:
    return Preset(
        name="gpu-stencil",
        title="Halo exchange of GPUs: in CUDA streams and graphs, beside synchronising",
        published=(
            "Nanri et al., jh250041: of four methods for a 4-point stencil on 4 GPUs (default,"
            " notify, cooperative groups, graphs), CUDA graphs with notification are fastest"
            " (GENKAI, node group B)."
        ),
        program="gpu_stencil",
        needs_gpu=True,
        fixed=frozenset({"engines", "lab"}),
        runs=[
            {"arguments": f"--order {order} --steps {steps}", "lab": None, "ranks": "2"}
            for order, steps in GPU_STENCILS
        ],
        judge=judge_gpu_stencil,
        not_available="4 GPUs; MPI-ACX itself, whose pattern `acx` follows.",
    )


def cpals() -> Preset:
    # Each rank's rows are more than passes the lab's links at full speed.
    same = "--entries 4000000 --rank 16 --iterations 6"
    tensors = ("--dimensions 12000x8000x6000", "--tensor skewed --dimensions 6046x4592x14409")
    return Preset(
        name="cpals",
        title="Sparse tensors: the rows of one mode travel behind the product of the next",
        published=(
            "Nanri et al., jh250041: the exchange of rows that the products of a sparse tensor need"
            " (SPLATT) is not directly supported by MPI's collectives; implementations of it are"
            " being examined, without figures."
        ),
        program="cpals",
        runs=[
            {"arguments": f"{words} {same}", "engines": "native,thread,auto", "lab": LAB}
            for words in tensors
        ],
        judge=judge_cpals,
    )


def atmosphere() -> Preset:
    return Preset(
        name="atmosphere",
        title="Shallow water on a sphere: coefficients are gathered behind sections of a step",
        published=(
            "Nanri et al., jh250041: in a global atmospheric code, the pressure calculation, the"
            " advection calculation, the transform to wave numbers and the output can hide"
            " Allgather; a certain benefit is expected, without figures."
        ),
        program="atmosphere",
        # With this size and these links, communication takes about half of the time.
        runs=[
            {"arguments": words, "engines": "native,thread,auto", "lab": "nodes=2,rate=4gbit"}
            for words in (
                "--truncation 340 --steps 1",
                f"--truncation 340 --steps 2 --every 1 --output {SCRATCH}/fields",
            )
        ],
        judge=judge_atmosphere,
        not_available="a parallel file system: the output goes to this machine's disk.",
    )
