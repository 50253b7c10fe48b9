"""Prints a prediction in the terminal, and converts it to JSON."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from weft.advise.analysis import Advice
from weft.advise.fragments import microseconds, size
from weft.advise.predict.prediction import Interval, Prediction, SitePrediction
from weft.advise.show import per_cent, short_place
from weft.data import json_file
from weft.data.stored import head

MOST_SITES = 8


def between(one: Interval) -> str:
    return f"{microseconds(one.expected)} [{microseconds(one.low)}, {microseconds(one.high)}]"


def share(one: Interval) -> str:
    return f"{per_cent(one.expected)} [{per_cent(one.low)}, {per_cent(one.high)}]"


def headline(found: Prediction) -> str:
    ranks, nodes = found.geometry.ranks, found.geometry.ranks // found.geometry.per_node
    where = f"{ranks:,} ranks on {nodes:,} nodes of {found.machine}"
    return (
        f"On {where} collectives would take {share(found.share)} of the run time, which would be"
        f" {between(found.elapsed_us)}."
    )


def recorded(found: Prediction) -> str:
    part = found.recorded_collective_us / found.recorded_us if found.recorded_us else 0.0
    return (
        f"In the record, {found.recorded_ranks:,} ranks, they take {per_cent(part)} of"
        f" {microseconds(found.recorded_us)}."
    )


def gain(what: str, one: Interval | None, of_us: float) -> str:
    if one is None:
        return f"{what}: nothing is known, since the record has no window worth a change."
    part = Interval(*(end / of_us for end in (one.low, one.expected, one.high)))
    return f"{what} would win {share(part)} of the run time."


def table(sites: list[SitePrediction]) -> Table:
    result = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    result.add_column("call site")
    for name in ("bytes", "ranks", "in the record", "there", "waiting", "auto wins", "change wins"):
        result.add_column(name, justify="right", vertical="bottom")
    for one in sites[:MOST_SITES]:
        change = "–" if one.change_us is None else microseconds(one.change_us)
        result.add_row(
            f"{one.site.call}, {one.site.calls:,} × {short_place(one.site)}",
            size(one.bytes),
            f"{one.ranks:,}",
            microseconds(one.recorded_us),
            between(one.us),
            microseconds(one.waiting_us),
            microseconds(one.free_us),
            change,
        )
    return result


def show(found: Prediction, file: Path | None, advice: Advice) -> None:
    if file:
        json_file.write(file, as_json(found, advice))
    if json_file.is_alone(file):
        return
    console = Console()
    console.print(headline(found), style="bold", highlight=False, markup=False)
    console.print(recorded(found), highlight=False, markup=False)
    expected_us = found.elapsed_us.expected
    for what, one in (
        ("Engine auto without a change", found.free_us),
        ("The advised changes with Weft", found.change_us),
    ):
        console.print(gain(what, one, expected_us), highlight=False, markup=False)
    console.print(table(found.sites))
    console.print("This rests on:", highlight=False)
    for words in found.assumptions:
        console.print(f"- {words}", highlight=False, markup=False)


def as_interval(one: Interval | None) -> dict | None:
    return None if one is None else {"low": one.low, "expected": one.expected, "high": one.high}


def as_json(found: Prediction, advice: Advice) -> dict:
    """Returns the prediction as a document of the schema weft-advise-prediction/1."""

    def site(one: SitePrediction) -> dict:
        frame = one.site.frames[0]
        return {
            "function": frame.function,
            "file": frame.file or None,
            "line": frame.line or None,
            "call": one.site.call,
            "calls": one.site.calls,
            "bytes": one.bytes,
            "ranks": one.ranks,
            "recorded_us": one.recorded_us,
            "time_us": as_interval(one.us),
            "waiting_us": one.waiting_us,
            "free_us": one.free_us,
            "change_us": one.change_us,
        }

    figures = {
        "seconds": found.elapsed_us.expected / 1e6,
        "collective_share": found.share.expected,
        "nodes": found.geometry.ranks // found.geometry.per_node,
    }
    return {
        **head("weft-advise-prediction/1", figures, advice.mpi, found.geometry.ranks),
        "program": advice.command,
        "machine": found.machine,
        "per_node": found.geometry.per_node,
        "scale": found.scale.name,
        "recorded": {
            "ranks": found.recorded_ranks,
            "time_us": found.recorded_us,
            "collectives_us": found.recorded_collective_us,
        },
        "time_us": as_interval(found.elapsed_us),
        "collectives_us": as_interval(found.collective_us),
        "collective_share": as_interval(found.share),
        "free_us": as_interval(found.free_us),
        "change_us": as_interval(found.change_us),
        "sites": [site(one) for one in found.sites],
        "assumptions": found.assumptions,
    }
