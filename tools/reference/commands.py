"""Describes the commands of `weft` and their options, as the programs themselves print them.

`weft run` and `weft schedule` are native and print their options as JSON. The other commands are
Typer's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import typer

from weft.terminal.descriptions import Argument, Command, Option, python_commands


def said(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr or done.stdout}")
    return done.stdout


def asked(*command: str | Path) -> dict:
    return json.loads(said(*command))


def native_run(facts: dict) -> Command:
    options = [
        Option(
            names=["-h", "--help"] if one["name"] == "--help" else [one["name"]],
            text=one["text"],
            argument=one["argument"],
            optional=bool(one["alone"]),
            choices=one["choices"].split(", ") if one["choices"] else [],
            default=one["default"],
            variable=one["variable"],
            group=one["group"],
        )
        for one in facts["options"]
    ]
    notes = {"Environment": facts["precedence"], "Exit status": facts["exit_status"]}
    return Command(["weft", "run"], facts["about"], options, runs_a_program=True, notes=notes)


def native_schedule(facts: dict, kinds: list[str]) -> Command:
    command = Command(["weft", "schedule"], facts["about"])
    for one in facts["options"]:
        if one["name"].startswith("-"):
            names = ["-h", "--help"] if one["name"] == "--help" else [one["name"]]
            command.options.append(
                Option(names, one["text"], one["argument"], False, [], one["default"])
            )
        else:
            command.arguments.append(Argument(one["name"], one["text"], False, choices=kinds))
    return command


def all_commands(app: typer.Typer, run: dict, schedule: dict) -> Command:
    weft = python_commands(app, ["weft"])
    native = {
        "run": native_run(run),
        "schedule": native_schedule(schedule, list(run["algorithms"])),
    }
    weft.commands = [native.get(one.words[-1], one) for one in weft.commands]
    return weft
