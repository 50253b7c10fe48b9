"""Converts advice into the data that `weft advise --json` writes and that notebooks read."""

from __future__ import annotations

from weft.advise.analysis import Advice
from weft.advise.places import Frame
from weft.advise.sites import MessageWait, Site, Toucher
from weft.data.stored import head


def as_bounds(found: tuple[float, float | None] | None) -> dict | None:
    return None if found is None else dict(zip(("least", "most"), found))


def as_toucher(one: Toucher) -> dict:
    frame = one.frame
    place = {"file": frame.file or None, "line": frame.line or None, "source": one.source or None}
    return {"function": frame.function, **place, "windows": one.windows}


def as_caller(frame: Frame) -> dict:
    names = ("function", "file", "line")
    return {name: getattr(frame, name) or None for name in names}


def as_message_wait(one: MessageWait) -> dict:
    frame = one.frames[0]
    place = {"function": frame.function, "file": frame.file or None, "line": frame.line or None}
    names = ("call", "waits", "messages", "bytes", "between_us", "waited_us", "tests", "share")
    return place | {name: getattr(one, name) for name in names}


def as_json(advice: Advice) -> dict:
    """Returns the advice as a document of the schema weft-advise/2. Times are in microseconds."""

    def site(one: Site) -> dict:
        frame = one.frames[0]
        window, before = one.window_us, one.before.bounds
        bounds = one.after.bounds if window is None else None
        free = (one.unchanged.low, one.unchanged.high) if one.unchanged else None
        return {
            "function": frame.function,
            "file": frame.file or None,
            "line": frame.line or None,
            "source": one.source or None,
            "callers": [as_caller(caller) for caller in one.callers],
            "call": one.call,
            "communicator": one.communicator,
            "ranks": one.comm_size,
            "nodes": one.nodes,
            "bytes": one.bytes,
            "calls": one.calls,
            "time_us": one.time_us,
            "share": one.share,
            "waiting": one.waiting,
            "first_use": [as_toucher(by) for by in one.users],
            "last_write": [as_toucher(by) for by in one.writers],
            "window_after_us": None if window is None else {"median": window},
            "window_after_bounds_us": as_bounds(bounds),
            "window_before_us": as_bounds(before),
            "wait_later_us": one.wait_later_us,
            "gain_us": {"low": one.gain_low_us, "high": one.gain_high_us},
            "free_us": one.unchanged.median if one.unchanged else None,
            "free_bounds_us": as_bounds(free),
        }

    headline = {
        "seconds": advice.elapsed_us / 1e6,
        "collective_share": advice.collective_share,
        "sites": len(advice.sites),
    }
    return {
        **head("weft-advise/2", headline, advice.mpi, advice.ranks),
        "program": advice.command,
        "mpi_error_us": advice.mpi_error_us,
        "sites": [site(one) for one in advice.sites],
        "message_waits": [as_message_wait(one) for one in advice.message_waits],
    }
