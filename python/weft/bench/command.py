"""`weft bench`: its options, and the way from them to a result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from weft import mpi_libraries
from weft.bench import experiments, machine, places, result, settings, show
from weft.bench.driver import Driver
from weft.bench.result import ResultError
from weft.bench.settings import Settings, SettingsError
from weft.bench.store import Store
from weft.lab import LabError
from weft.mpi_libraries import MpiError

INTERRUPTED = 130


def bench(
    collective: Annotated[str, typer.Option(help="Collectives: allreduce,bcast,…")] = "allreduce",
    size: Annotated[str, typer.Option("--bytes", help="Sizes: 64KiB,1MiB.")] = "1MiB",
    engines: Annotated[
        str, typer.Option(help="Engines; library-async is the MPI library's own progress.")
    ] = settings.DEFAULT_ENGINES,
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="MPI libraries: mpich,openmpi,intelmpi, or where they are installed.",
            show_default="the first that weft info lists",
        ),
    ] = None,
    placements: Annotated[str, typer.Option(help="Placements of threads: bind,numa.")] = "bind",
    backoffs: Annotated[str, typer.Option(help="Back-offs of threads: yield,spin.")] = "yield",
    algorithms: Annotated[
        str, typer.Option(help="Weft's algorithms; selected: as Weft chooses.")
    ] = "selected",
    amounts: Annotated[
        str, typer.Option(help="Amounts of computation: 10, or 0.5x,2x, or 1ms,40ms.")
    ] = "10",
    kernel: Annotated[str, typer.Option(help="Computation: gemm, gemv, stencil.")] = "gemm",
    working_set: Annotated[
        str | None, typer.Option("--working-set", help="Of the computation, such as 4MiB.")
    ] = None,
    compute_library: Annotated[
        Path | None, typer.Option(help="Your own computation (weft_compute.h).")
    ] = None,
    lab: Annotated[
        str | None, typer.Option(help="nodes=2,per-node=1,rate=200mbit,burst=256kb.")
    ] = None,
    launcher: Annotated[
        str | None, typer.Option(help="mpiexec, srun or 'mpiexec -hosts a,b'; no lab.")
    ] = None,
    ranks: Annotated[str | None, typer.Option(help="Numbers of ranks: 2 or 2,4.")] = None,
    fixed_work: Annotated[
        bool, typer.Option("--fixed-work", help="Strong scaling over --ranks.")
    ] = False,
    time_budget: Annotated[str, typer.Option(help="Such as 120s or 10min.")] = "120s",
    hang_limit: Annotated[str, typer.Option(help="Stop what gives no answer for so long.")] = "20s",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write weft-bench/1.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write a line per point.")] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="SQLite file of all samples; runs are appended.")
    ] = Path("out/bench.sqlite"),
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the last run of this file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the random orders.")] = 1,
    preset: Annotated[
        str | None, typer.Option(help="A published experiment: tcc, nbc-eff, iallreduce-kernel, …")
    ] = None,
) -> None:
    """Measure how long a program takes with each engine, over the amount of computation."""
    files = (json_file, csv_file)
    try:
        if resume:
            raise typer.Exit(go_on(resume, time_budget, *files))
        if not lab and not launcher and (instead := places.without_a_lab()):
            print(f"weft bench: {instead}", file=sys.stderr)
            launcher = "mpiexec"
        given = {
            "collective": collective,
            "size": size,
            "engines": engines,
            "mpi": mpi,
            "placements": placements,
            "backoffs": backoffs,
            "algorithms": algorithms,
            "amounts": amounts,
            "kernel": kernel,
            "working_set": working_set,
            "compute_library": compute_library,
            "lab": lab,
            "launcher": launcher,
            "ranks": ranks,
            "fixed_work": fixed_work,
            "time_budget": time_budget,
            "hang_limit": hang_limit,
            "seed": seed,
        }
        if preset:
            raise typer.Exit(run_preset(preset, given, out, *files))
        raise typer.Exit(start(settings_of(given), out, *files))
    except (SettingsError, ResultError, LabError, MpiError) as error:
        print(f"weft bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def settings_of(given: dict[str, Any], preset: str = "") -> Settings:
    """The options, checked; an error names the option and what it takes."""
    wanted = Settings(
        collectives=settings.words("--collective", given["collective"], settings.COLLECTIVES),
        bytes=[
            settings.size_bytes("--bytes", word)
            for word in settings.words("--bytes", given["size"])
        ],
        engines=settings.words("--engines", given["engines"], settings.ENGINES),
        mpis=mpi_libraries.words(given["mpi"]),
        placements=settings.words("--placements", given["placements"]),
        backoffs=settings.words("--backoffs", given["backoffs"]),
        algorithms=settings.words("--algorithms", given["algorithms"]),
        amounts=settings.check_amounts(given["amounts"]),
        kernel=settings.words("--kernel", given["kernel"], settings.KERNELS)[0],
        time_budget_s=settings.seconds("--time-budget", given["time_budget"]),
        ranks=settings.counts("--ranks", given["ranks"]) if given["ranks"] else [],
        working_set_bytes=settings.size_bytes("--working-set", given["working_set"])
        if given["working_set"]
        else 0,
        compute_library=settings.library(given["compute_library"]),
        fixed_work=given["fixed_work"],
        hang_s=settings.seconds("--hang-limit", given["hang_limit"]),
        seed=given["seed"],
        preset=preset,
    )
    settings.choose_place(wanted, given["lab"], given["launcher"])
    settings.check_native_words(wanted.placements, wanted.backoffs)
    return wanted


def run_preset(name: str, given: dict[str, Any], out: Path, *files: Path | None) -> int:
    """A preset's runs, with the time budget, seed and files that were asked for."""
    chosen = experiments.find(name)
    if chosen.program:
        mpis = mpi_libraries.words(given["mpi"])
        file = files[0] or out.with_name(f"{name}.json")
        page = out.with_name(f"{name}.html")
        return experiments.carry_out_kernel(through(chosen, given), mpis, file, page)

    def measure(options: dict[str, Any]) -> result.Result:
        status = start(settings_of({**given, **options}, preset=name), out, *files)
        if status == INTERRUPTED:
            raise typer.Exit(status)
        with Store(out, create=False) as store:
            return store.result(store.last_run())

    return experiments.carry_out(through(chosen, given), measure, out.with_name(f"{name}.html"))


def through(preset: experiments.Preset, given: dict[str, Any]) -> experiments.Preset:
    """The preset, through the launcher if one is named."""
    return experiments.through(preset, given["launcher"], given["ranks"])


def start(wanted: Settings, out: Path, json_file: Path | None, csv_file: Path | None) -> int:
    place = places.place(wanted)
    with Store(out) as store:
        run = store.new_run(machine.describe(place.description), wanted.to_json())
        return carry_out(wanted, place, store, run, json_file, csv_file)


def go_on(path: Path, time_budget: str, json_file: Path | None, csv_file: Path | None) -> int:
    """The last run of a file, with its own settings and a new budget."""
    with Store(path, create=False) as store:
        run = store.last_run()
        _, stored, complete = store.run_facts(run)
        try:
            wanted = Settings(**stored)
        except TypeError as error:
            raise ResultError(f"{path}: table run, row {run}: settings: {error}") from None
        wanted.time_budget_s = settings.seconds("--time-budget", time_budget)
        if complete:
            print(f"weft bench: the last run of {path} is complete; here it is", file=sys.stderr)
            return finish(Console(), store, run, json_file, csv_file)
        return carry_out(wanted, places.place(wanted), store, run, json_file, csv_file)


def carry_out(
    wanted: Settings,
    place: places.Place,
    store: Store,
    run: int,
    json_file: Path | None,
    csv_file: Path | None,
) -> int:
    console = Console()
    interrupted = False
    try:
        with show.Display(console, store, run) as display:
            driver = Driver(wanted, place, store, run, display.tick)
            driver.measure()
            driver.draw()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        place.close()
    status = finish(console, store, run, json_file, csv_file)
    if interrupted:
        text = f"Stopped; what was measured is kept. Go on with: weft bench --resume {store.path}"
        console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
        return INTERRUPTED
    return status


def finish(
    console: Console, store: Store, run: int, json_file: Path | None, csv_file: Path | None
) -> int:
    found = store.result(run)
    show.show(console, found)
    written = [f"samples: {store.path}"]
    if json_file:
        result.save_json(found, json_file)
        written.append(f"JSON: {json_file}")
    if csv_file:
        result.save_csv(found, csv_file)
        written.append(f"CSV: {csv_file}")
    console.print("; ".join(written), markup=False, highlight=False, soft_wrap=True)
    return 0 if found.points else 1
