"""Defines the options of `weft bench`, and turns them into a measurement."""

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from weft.data import json_file as json_of

if TYPE_CHECKING:
    from rich.console import Console

    from weft.bench.places import Place
    from weft.bench.settings import Settings
    from weft.measurements.result import Result
    from weft.measurements.store import Store

INTERRUPTED = 130
WHAT = "What is measured"
WHERE = "Where it is measured"
HOW = "How long and how exactly"
FILES = "Results"
Kernel = Literal["gemm", "gemv", "stencil"]
PresetName = Literal[
    "tcc",
    "threads-per-core",
    "placement",
    "nbc-eff",
    "iallreduce-kernel",
    "pipecg",
    "fft3d",
    "stencil",
    "cpals",
    "atmosphere",
    "gpu-stencil",
    "osu",
]
SAMPLES = Path("out/bench.sqlite")
# With --resume the settings of the stored run are used; only these options may be given again.
OF_RESUME = {"resume", "retry", "time_budget", "json_file", "csv_file"}


def bench(
    context: typer.Context,
    collective: Annotated[
        str,
        typer.Option(
            help="Collectives, separated by commas: allreduce, alltoall, bcast, reduce, allgather,"
            " scan, barrier.",
            metavar="NAMES",
            rich_help_panel=WHAT,
        ),
    ] = "allreduce",
    size: Annotated[
        str,
        typer.Option(
            "--bytes",
            help="Sizes, separated by commas, such as 64KiB,1MiB.",
            metavar="SIZES",
            rich_help_panel=WHAT,
        ),
    ] = "1MiB",
    engines: Annotated[
        str,
        typer.Option(
            help="Engines, separated by commas: native, function, thread, tcc, agent, assist, auto,"
            " and library-async, the MPI library's own asynchronous progress.",
            metavar="NAMES",
            rich_help_panel=WHAT,
        ),
    ] = "native,function,thread,tcc,assist",
    mpi: Annotated[
        Optional[str],
        typer.Option(
            help="MPI libraries, separated by commas: mpich, openmpi, intelmpi, or where they are"
            " installed.",
            show_default="the first that weft info lists",
            metavar="NAMES",
            rich_help_panel=WHERE,
        ),
    ] = None,
    placements: Annotated[
        str,
        typer.Option(
            help="Placements of the engines' threads, separated by commas, such as bind,numa.",
            metavar="NAMES",
            rich_help_panel=WHAT,
        ),
    ] = "bind",
    backoffs: Annotated[
        str,
        typer.Option(
            help="What the threads do after a poll that found nothing, separated by commas:"
            " yield, spin, sleep:US, quiet.",
            metavar="NAMES",
            rich_help_panel=WHAT,
        ),
    ] = "quiet",
    algorithms: Annotated[
        str,
        typer.Option(
            help="Weft's algorithms, separated by commas; selected: as Weft chooses.",
            metavar="NAMES",
            rich_help_panel=WHAT,
        ),
    ] = "selected",
    amounts: Annotated[
        str,
        typer.Option(
            help="Amounts of computation: a number of them (10), multiples of the communication"
            " (0.5x,2x), or times (1ms,40ms).",
            metavar="AMOUNTS",
            rich_help_panel=WHAT,
        ),
    ] = "10",
    kernel: Annotated[Kernel, typer.Option(help="The computation.", rich_help_panel=WHAT)] = "gemm",
    working_set: Annotated[
        Optional[str],
        typer.Option(
            help="The computation's memory, such as 4MiB.",
            show_default="32MiB; gemm needs little",
            metavar="SIZE",
            rich_help_panel=WHAT,
        ),
    ] = None,
    compute_library: Annotated[
        Optional[Path],
        typer.Option(
            help="A computation of your own: a library with the functions of weft_compute.h.",
            metavar="FILE",
            rich_help_panel=WHAT,
        ),
    ] = None,
    preset: Annotated[
        Optional[PresetName],
        typer.Option(
            help="A published experiment: tcc, threads-per-core, placement, nbc-eff,"
            " iallreduce-kernel, pipecg, fft3d, stencil, cpals, atmosphere, gpu-stencil; or osu,"
            " the overlap of all collectives as OSU's benchmarks print it, for all MPI libraries."
            " Other options win over its own.",
            metavar="NAME",
            rich_help_panel=WHAT,
        ),
    ] = None,
    lab: Annotated[
        Optional[str],
        typer.Option(
            help="Nodes joined by slow links on this machine, as in"
            " nodes=2,per-node=1,rate=200mbit,burst=64kb,delay=1ms.",
            show_default="nodes=2,rate=200mbit",
            metavar="SETTINGS",
            rich_help_panel=WHERE,
        ),
    ] = None,
    launcher: Annotated[
        Optional[str],
        typer.Option(
            help="What starts the ranks in place of the lab: mpiexec, srun, or"
            " 'mpiexec -hosts a,b'.",
            metavar="COMMAND",
            rich_help_panel=WHERE,
        ),
    ] = None,
    ranks: Annotated[
        Optional[str],
        typer.Option(
            help="Numbers of ranks, separated by commas, such as 2,4.",
            show_default="as the lab's nodes ask for, else 2",
            metavar="NUMBERS",
            rich_help_panel=WHERE,
        ),
    ] = None,
    fixed_work: Annotated[
        bool,
        typer.Option(
            "--fixed-work",
            help="The same total work on each number of ranks (strong scaling).",
            rich_help_panel=WHERE,
        ),
    ] = False,
    time_budget: Annotated[
        str,
        typer.Option(
            help="The longest time to measure, such as 10min.", metavar="TIME", rich_help_panel=HOW
        ),
    ] = "120s",
    hang_limit: Annotated[
        str,
        typer.Option(
            help="Stop a candidate that gives no answer for this time.",
            metavar="TIME",
            rich_help_panel=HOW,
        ),
    ] = "20s",
    seed: Annotated[
        int,
        typer.Option(help="Seed of the random orders.", metavar="NUMBER", rich_help_panel=HOW),
    ] = 1,
    resume: Annotated[
        Optional[Path],
        typer.Option(
            help="Go on with the last run of this file where it stopped.",
            rich_help_panel=HOW,
            metavar="FILE",
        ),
    ] = None,
    retry: Annotated[
        bool,
        typer.Option(
            "--retry",
            help="With --resume: try again what hung or failed.",
            rich_help_panel=HOW,
        ),
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            help="The SQLite file of all samples; runs are appended.",
            rich_help_panel=FILES,
            metavar="FILE",
        ),
    ] = SAMPLES,
    json_file: Annotated[
        Optional[Path],
        json_of.option("Also write the points as JSON.", FILES),
    ] = None,
    csv_file: Annotated[
        Optional[Path],
        typer.Option(
            "--csv",
            help="Also write a line of CSV for each point.",
            rich_help_panel=FILES,
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Measure how long a program takes with each engine, over the amount of computation."""
    # locals() has the converted parameters. Some versions of typer keep only unconverted ones in
    # the context.
    given = {name: value for name, value in locals().items() if name != "context"}
    from weft.bench.settings import SettingsError
    from weft.data.stored import ResultError
    from weft.lab import LabError
    from weft.system.mpi_libraries import MpiError

    said = said_by_the_user(context)
    try:
        raise typer.Exit(carry_out_options(given, said))
    except (SettingsError, ResultError, LabError, MpiError) as error:
        from weft.terminal import messages

        messages.say("weft bench", error)
        raise typer.Exit(2) from None


def said_by_the_user(context: typer.Context) -> set[str]:
    """Returns the names of the parameters that were given on the command line. The others have
    their defaults."""

    def source(name: str) -> str:
        found = context.get_parameter_source(name)
        return found.name if found else ""

    return {name for name in context.params if source(name) == "COMMANDLINE"}


def end_as_if_interrupted() -> None:
    """Makes SIGTERM and SIGHUP raise KeyboardInterrupt. A job has a session of its own, and would
    otherwise continue when this process is terminated."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup, for example, ignores SIGHUP
            signal.signal(number, interrupt)


def carry_out_options(given: dict[str, Any], said: set[str]) -> int:
    """Carries out the command, and returns its exit status. Raises SettingsError for wrong
    options."""
    from weft.bench import experiments, places
    from weft.bench.settings import SettingsError
    from weft.data.files import make_own_folder

    end_as_if_interrupted()
    files = (given["json_file"], given["csv_file"])
    if given["resume"]:
        for name in sorted(said - OF_RESUME):
            flag = experiments.flag(name)
            raise SettingsError(f"--resume goes on with the run's own settings; leave out {flag}")
        return go_on(given["resume"], given["time_budget"], given["retry"], *files)
    if given["retry"]:
        raise SettingsError("--retry needs the file of a run: --resume FILE --retry")
    if not given["lab"] and not given["launcher"] and (instead := places.without_a_lab()):
        print(f"weft bench: {instead}", file=sys.stderr)
        given["launcher"] = "mpiexec"
        said = said | {"launcher"}
    make_own_folder(given["out"], SAMPLES)
    if given["preset"]:
        return run_preset(given["preset"], given, said, given["out"], *files)
    return start(settings_of(given), given["out"], *files)


def settings_of(given: dict[str, Any], preset: str = "") -> "Settings":
    """Returns the checked options. Raises SettingsError, which names the option and its valid
    values."""
    from weft.bench import settings
    from weft.system import mpi_libraries

    wanted = settings.Settings(
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
        kernel=given["kernel"],
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
    settings.check_native_words(wanted)
    return wanted


def run_preset(
    name: str, given: dict[str, Any], said: set[str], out: Path, *files: Optional[Path]
) -> int:
    """A preset's runs; what was said on the command line wins over the preset's own options."""
    from weft.bench import experiments, osu
    from weft.measurements.store import Store
    from weft.system import mpi_libraries

    if name == osu.NAME:
        return osu.carry_out(given, said, files[0])
    chosen = experiments.adapted(experiments.find(name), given, said)
    if chosen.program:
        mpis = mpi_libraries.words(given["mpi"])
        to_output = json_of.is_alone(files[0])
        file = (not to_output and files[0]) or out.with_name(f"{name}.json")
        page = out.with_name(f"{name}.html")
        status = experiments.carry_out_kernel(chosen, mpis, file, page)
        if to_output:
            json_of.write(json_of.STANDARD_OUTPUT, json.loads(file.read_text()))
        return status

    def measure(options: dict[str, Any]) -> "Result":
        # Each run of the preset writes its own files.
        number = chosen.runs.index(options)
        own = [numbered(file, number + 1) if file and number else file for file in files]
        status = start(settings_of({**given, **options}, preset=name), out, *own)
        if status == INTERRUPTED:
            raise typer.Exit(status)
        with Store(out, create=False) as store:
            return store.result(store.last_run())

    return experiments.carry_out(chosen, measure, out.with_name(f"{name}.html"))


def numbered(file: Path, number: int) -> Path:
    if file == json_of.STANDARD_OUTPUT:
        return file
    return file.with_name(f"{file.stem}-{number}{file.suffix}")


def start(
    wanted: "Settings", out: Path, json_file: Optional[Path], csv_file: Optional[Path]
) -> int:
    from weft.bench import machine, places
    from weft.measurements.store import Store

    place = places.place(wanted)
    with Store(out) as store:
        run = store.new_run(machine.describe(place.description), wanted.to_json())
        return carry_out(wanted, place, store, run, json_file, csv_file)


def go_on(
    path: Path, time_budget: str, retry: bool, json_file: Optional[Path], csv_file: Optional[Path]
) -> int:
    """Continues the last run of a file with its stored settings and a new time budget. Returns the
    exit status."""
    from rich.console import Console

    from weft.bench import experiments, places, settings
    from weft.measurements import presets
    from weft.measurements.store import Store

    with Store(path, create=False) as store:
        run = store.last_run()
        _, wanted, complete = store.run_facts(run, settings.Settings)
        wanted.time_budget_s = settings.seconds("--time-budget", time_budget)
        if complete and not (retry and store.lost(run)):
            print(f"weft bench: the last run of {path} is complete; here it is", file=sys.stderr)
            return finish(Console(), store, run, json_file, csv_file)
        store.complete(run, False)
        status = carry_out(wanted, places.place(wanted), store, run, json_file, csv_file, retry)
        found = store.result(run)
        preset = presets.measured_for(wanted.preset, found.machine)
        if status == 0 and preset:
            experiments.tell(f"Found: {preset.judge(found)}")
        return status


def carry_out(
    wanted: "Settings",
    place: "Place",
    store: "Store",
    run: int,
    json_file: Optional[Path],
    csv_file: Optional[Path],
    retry: bool = False,
) -> int:
    from rich.console import Console

    from weft.bench import show
    from weft.bench.driver import Driver

    console = Console()
    interrupted = False
    try:
        with show.Display(console, store, run) as display:
            driver = Driver(wanted, place, store, run, display.tick, retry=retry)
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
    console: "Console",
    store: "Store",
    run: int,
    json_file: Optional[Path],
    csv_file: Optional[Path],
) -> int:
    from weft.bench import show
    from weft.measurements import result

    found = store.result(run)
    written = [f"samples: {store.path}"]
    if json_file:
        result.save_json(found, json_file, show.best_so_far(found))
        written.append(f"JSON: {json_file}")
    if csv_file:
        result.save_csv(found, csv_file)
        written.append(f"CSV: {csv_file}")
    show.show(console, found)
    console.print("; ".join(written), markup=False, highlight=False, soft_wrap=True)
    return 0 if found.points else 1
