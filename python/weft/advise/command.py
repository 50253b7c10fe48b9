"""Defines the options of `weft advise`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Optional

import typer

from weft.data import json_file as json_of

if TYPE_CHECKING:
    from weft.advise.analysis import Advice
    from weft.advise.patch.diff import Patch
    from weft.advise.predict.asked import Asked

RECORD = Path("weft-advise.sqlite")
PAGE, COMPARISON = Path("weft-advise.html"), Path("weft-advise-comparison.html")
HOW = "How the program is run"
FILES = "What is written"
LATER = "From a record, without a program"
TRIED = "A change that is tried"
ELSEWHERE = "On another machine"
SAMPLE_S = 20.0  # time limit of the replays at the end
TRIALS = 12  # rounds of the program without and with a change, at most
OF_PROMISE = 0.45  # share of the time of a trial that is for replays; the rest is for the programs
NOT_STARTED = (126, 127)  # statuses of what could not be started, which has been said


def refuse(message: object) -> typer.Exit:
    from weft.terminal import messages

    messages.say("weft advise", message)
    return typer.Exit(2)


def per_cent(text: str) -> float:
    """Converts "5%" or "5" to 5.0. Raises an error of usage unless the number is between 0 and
    100."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1
    if not 0 <= value <= 100:
        raise refuse(f"--overhead {text} is no percentage: give a number from 0 to 100, such as 5%")
    return value


def load(path: Path) -> "Advice":
    from weft.advise import analysis, store
    from weft.data.stored import ResultError

    try:
        return analysis.analyse(store.read(path))
    except ResultError as error:
        raise refuse(error) from None


def advise(
    command: Annotated[
        Optional[list[str]],
        typer.Argument(
            help="The program, or its launcher (-- mpiexec -n 4 ./app).", metavar="COMMAND"
        ),
    ] = None,
    json_file: Annotated[
        Optional[Path],
        json_of.option("Also write the sites, or what changed, as JSON.", FILES),
    ] = None,
    page: Annotated[
        Optional[Path],
        typer.Option(
            "-o",
            "--out",
            help=f"The page, with everything in it ({PAGE}; of two records {COMPARISON}).",
            metavar="FILE",
            rich_help_panel=FILES,
        ),
    ] = None,
    record: Annotated[
        Path,
        typer.Option(
            help="Where the record of the run is kept.", metavar="FILE", rich_help_panel=FILES
        ),
    ] = RECORD,
    trace: Annotated[
        Optional[Path],
        typer.Option(
            help="Also write each rank's collectives and windows for Perfetto.",
            metavar="FILE",
            rich_help_panel=FILES,
        ),
    ] = None,
    patch: Annotated[
        Optional[Path],
        typer.Option(
            help="Also write the changes of the program that are advised as a unified diff of its"
            " source.",
            metavar="FILE",
            rich_help_panel=FILES,
        ),
    ] = None,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Build the program without and with the changes, beside its source, which stays as"
            " it is, and say whether to keep them.",
            rich_help_panel=TRIED,
        ),
    ] = False,
    build: Annotated[
        str,
        typer.Option(
            help="With --apply: the command that compiles the program, quoted as one word.",
            metavar="COMMAND",
            show_default=False,
            rich_help_panel=TRIED,
        ),
    ] = "",
    overhead: Annotated[
        str,
        typer.Option(
            help="The part of the run time that observing results may take; 0: none is observed.",
            metavar="PERCENT",
            rich_help_panel=HOW,
        ),
    ] = "5%",
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Run the recorded calls again, blocking and with Weft, for the gain's lower end.",
            rich_help_panel=HOW,
        ),
    ] = False,
    time_budget: Annotated[
        str,
        typer.Option(
            help="With --verify or --apply: begin no round that would end after this time.",
            metavar="TIME",
            rich_help_panel=HOW,
        ),
    ] = "5min",
    sample: Annotated[
        bool,
        typer.Option(
            help="Run some of the recorded calls again at the end, with and without Weft, so that"
            " the first line has a figure.",
            rich_help_panel=HOW,
        ),
    ] = True,
    mpi: Annotated[
        str,
        typer.Option(
            help="mpich, intelmpi, openmpi or abi.",
            show_default="found out",
            metavar="MPI",
            rich_help_panel=HOW,
        ),
    ] = "",
    from_record: Annotated[
        Optional[Path],
        typer.Option(
            "--from",
            help="Run nothing: advise on a record, or on what ranks of a crashed job have left in"
            " a directory. With --apply: of a run before.",
            metavar="FILE",
            rich_help_panel=LATER,
        ),
    ] = None,
    before: Annotated[
        Optional[Path],
        typer.Option(
            help="With --from: what changed since this record.",
            metavar="FILE",
            rich_help_panel=LATER,
        ),
    ] = None,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict",
            help="Predict the share of collectives on another machine, and the gain by Weft there.",
            rich_help_panel=ELSEWHERE,
        ),
    ] = False,
    nodes: Annotated[
        Optional[int],
        typer.Option(
            help="Number of nodes of that machine.", metavar="NUMBER", rich_help_panel=ELSEWHERE
        ),
    ] = None,
    per_node: Annotated[
        Optional[int],
        typer.Option(
            "--per-node",
            help="Ranks on each of its nodes.",
            show_default="as in the record",
            metavar="NUMBER",
            rich_help_panel=ELSEWHERE,
        ),
    ] = None,
    machine: Annotated[
        Optional[str],
        typer.Option(
            help="A machine that weft sim knows, or the file of one that it has calibrated.",
            metavar="MACHINE",
            rich_help_panel=ELSEWHERE,
        ),
    ] = None,
    scale: Annotated[
        Optional[str],
        typer.Option(
            help="How sizes and computation change with the ranks: strong, weak, or a JSON file.",
            metavar="SCALE",
            rich_help_panel=ELSEWHERE,
        ),
    ] = None,
) -> None:
    """Say which collectives of a program would gain from running behind computation."""
    budget = per_cent(overhead)
    budget_s = seconds("--time-budget", time_budget)
    elsewhere = asked_elsewhere(predict, nodes, per_node, machine, scale)
    check_apply(apply, build, command, bool(before or verify or trace or elsewhere))
    if not apply and bool(command) == bool(from_record):
        raise refuse("give either a program (weft advise -- ./app) or a record (--from FILE)")
    if before and not from_record:
        raise refuse("--before needs --from: it compares two records")
    if before and trace:
        raise refuse("--trace is the timeline of one run: leave it out with --before")
    if patch and before:
        raise refuse("--patch changes the program of one record: leave it out with --before")
    if patch or apply:
        check_parser()
    if before and from_record:
        present_comparison(load(before), load(from_record), json_file, page or COMPARISON)
        return
    if elsewhere and (before or verify or trace):
        raise refuse("--predict goes without --before, --verify and --trace")
    if verify and not command:
        raise refuse("--verify needs the program: it starts another job by its command")
    status = 0
    if command and not from_record:
        status = observe(command, budget, mpi, record)
        if verify and status == 0:
            replay(command, mpi, record, budget_s)
        elif sample and status == 0 and not elsewhere and not apply:
            replay_some(command, mpi, record)
        elif verify:
            why = f"the command ended with {status}"
            print(f"weft advise: nothing was replayed: {why}", file=sys.stderr)
    if from_record and from_record.is_dir():
        collect(from_record, record)
        from_record = None
    if elsewhere:
        present_prediction(elsewhere, from_record or record, json_file)
        raise typer.Exit(status)
    advice = load(from_record or record)
    if apply and status == 0:
        stored = from_record or record
        made = patch_of(advice, stored, patch)
        prove(made, Tried(list(command or ()), mpi, build, budget_s), advice, stored, json_file)
        raise typer.Exit(0)
    present(advice, Files(json_file, page or PAGE, trace, None if from_record else record))
    if patch:
        patch_of(advice, from_record or record, patch)
    raise typer.Exit(status)


def check_apply(apply: bool, build: str, command: Optional[list[str]], is_other: bool) -> None:
    from weft.system import installation

    if build and not apply:
        raise refuse("--build needs --apply: it says how the changed program is compiled")
    if not apply:
        return
    if not command:
        raise refuse("--apply needs the program, which it runs: weft advise --apply -- ./app")
    if is_other:
        raise refuse("--apply goes without --before, --verify, --trace and --predict")
    if installation.is_rank():
        raise refuse("--apply starts jobs of its own: write weft advise in front of mpiexec")


def check_parser() -> None:
    """Refuses --patch or --apply before the program runs if the parsers of the source's languages
    are missing."""
    from weft.advise.patch import languages

    try:
        for grammar in languages.GRAMMARS.values():
            languages.parser(grammar.module)
    except languages.NoParser as why:
        raise refuse(why) from None


def patch_of(advice: "Advice", record: Path, target: Optional[Path]) -> "Patch":
    """Returns the patch of the advised changes, and writes it to the target if there is one. Exits
    with an error if no change is possible."""
    from weft.advise import store
    from weft.advise.patch import diff, wish
    from weft.terminal import messages

    made = diff.make(wish.wishes_of(advice, store.read(record)))
    if not made.text:
        why = " ".join(made.left) or "no call is worth a change."
        raise refuse(f"{f'{target} is not written' if target else 'nothing is changed'}: {why}")
    for line in (*made.made, *made.left):
        messages.say("weft advise", line)
    if target:
        try:
            target.write_text(made.text, errors="surrogateescape")
        except OSError as error:
            raise refuse(error) from None
        messages.say("weft advise", f"the patch is {target}: patch -p1 -d {made.root} < {target}")
    return made


class Tried(NamedTuple):
    """How the program is run and built, and how long this may take."""

    command: list[str]
    mpi: str
    build: str
    budget_s: float


def prove(
    made: "Patch", how: Tried, advice: "Advice", record: Path, json_file: Optional[Path]
) -> None:
    from weft.advise import store
    from weft.advise.patch import promise, proof
    from weft.terminal import messages

    def tell(text: str) -> None:
        messages.say("weft advise", text)

    def promised() -> "Optional[promise.Promise]":
        tell("replaying the recorded calls as they were and as the patch makes them")
        try:
            stored = store.read(record)
            budget_s = how.budget_s * OF_PROMISE
            return promise.replayed(how.command, how.mpi, stored, advice, made.changes, budget_s)
        except promise.NotReplayed as why:
            tell(f"no gain is promised: {why}")
            return None

    try:
        trial = proof.new_trial(how.budget_s * (1 - OF_PROMISE), TRIALS)
        found = proof.prove(made, how.command, how.build, trial, tell, promised)
    except proof.Unproven as why:
        raise refuse(f"nothing is changed: {why}") from None
    proof.show_verdict(found)
    with reporting_write_errors():
        if json_file:
            json_of.write(json_file, found.to_json())


def asked_elsewhere(
    predict: bool,
    nodes: Optional[int],
    per_node: Optional[int],
    machine: Optional[str],
    scale: Optional[str],
) -> "Optional[Asked]":
    """Returns the machine and size to predict for; None if no prediction is asked for. Refuses
    impossible options, so that no program runs in vain."""
    if not predict and (nodes, per_node, machine, scale) == (None,) * 4:
        return None
    from weft.advise.predict.asked import Asked
    from weft.data.stored import ResultError

    if not predict:
        raise refuse("--nodes, --per-node, --machine and --scale need --predict")
    found = Asked(nodes, per_node, machine, scale)
    try:
        found.check()
    except ResultError as error:
        raise refuse(error) from None
    return found


def present_prediction(asked: "Asked", record: Path, json_file: Optional[Path]) -> None:
    from weft.advise.predict import show
    from weft.data.stored import ResultError

    try:
        found, advice = asked.answered(record)
    except ResultError as error:
        raise refuse(error) from None
    with reporting_write_errors():
        show.show(found, json_file, advice)


def observe(command: list[str], budget: float, mpi: str, record: Path) -> int:
    from weft.advise import launched, session, store
    from weft.data.stored import ResultError

    if launched.has_no_place(command):
        raise refuse(
            "put -- between the lab's options and the program: weft advise -- weft lab run"
            " --nodes 2 -- ./app"
        )
    try:
        store.try_to_write(record)
    except ResultError as error:
        raise refuse(error) from None
    status, recorded = session.record(command, budget, mpi, record)
    if not recorded:
        if status not in NOT_STARTED:
            print(
                "weft advise: nothing was recorded here: the program did not get through MPI_Init,"
                " or ran without the advisor's library, or its rank 0 ran on another node and has"
                " said where its record is",
                file=sys.stderr,
            )
        raise typer.Exit(status or 1)
    return status


def collect(directory: Path, record: Path) -> None:
    from weft.advise import session
    from weft.data.stored import ResultError

    try:
        session.collect(directory, record)
    except ResultError as error:
        raise refuse(error) from None


def seconds(option: str, text: str) -> float:
    from weft.bench.settings import SettingsError
    from weft.bench.settings import seconds as seconds_of

    try:
        return seconds_of(option, text)
    except SettingsError as error:
        raise refuse(error) from None


def replay_some(command: list[str], mpi: str, record: Path) -> None:
    """Replays some recorded calls if a job can be started, there is something to gain, and Weft did
    not run in the job already."""
    from weft.advise.analysis import LITTLE

    advice = load(record)
    is_open = advice.collective_share >= LITTLE and not advice.with_weft
    if advice.finalized and is_open and not advice.inside:
        print(
            "weft advise: some of the calls are run again, with Weft and without, for the report's"
            " first line (--no-sample leaves that out)",
            file=sys.stderr,
            flush=True,
        )
        replay(command, mpi, record, SAMPLE_S, sample=True)


def replay(
    command: list[str], mpi: str, record: Path, budget_s: float, sample: bool = False
) -> None:
    from weft.advise import store
    from weft.advise import verify as verified
    from weft.data.stored import ResultError

    try:
        rows = verified.run(command, mpi, store.read(record), load(record), budget_s, sample)
        store.add_replay(record, rows)
    except ResultError as error:
        raise refuse(error) from None


class Files(NamedTuple):
    json: Optional[Path]
    page: Path
    trace: Optional[Path]
    record: Optional[Path]


@contextmanager
def reporting_write_errors() -> Iterator[None]:
    """Reports a file that cannot be written in its block, and continues behind the block."""
    try:
        yield
    except OSError as error:
        from weft.terminal import messages

        messages.say("weft advise", error)


def present(advice: "Advice", files: Files) -> None:
    from weft.advise import as_data, show, timeline
    from weft.advise import page as page_of

    written = []
    with reporting_write_errors():
        if files.json:
            json_of.write(files.json, as_data.as_json(advice))
            written.append(f"sites: {files.json}")
        if files.trace:
            timeline.write_trace(files.trace, advice.timeline)
            written.append(f"timeline: {files.trace} (https://ui.perfetto.dev opens it)")
        page_of.write(files.page, advice)
        written.append(f"page: {files.page}")
    if files.record:
        written.append(f"record: {files.record} (weft advise --from {files.record})")
    show.show(advice, written)


def present_comparison(
    before: "Advice", after: "Advice", json_file: Optional[Path], page: Path
) -> None:
    from weft.advise import compare
    from weft.advise import page as page_of

    found, written = compare.compare(before, after), []
    with reporting_write_errors():
        if json_file:
            json_of.write(json_file, compare.as_json(found))
            written.append(f"what changed: {json_file}")
        page_of.write_comparison(page, found)
        written.append(f"page: {page}")
    compare.show(found, written)
