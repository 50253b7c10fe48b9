#!/usr/bin/env python3
"""Writes src/advise/generated/ from api/calls.json: the wrappers of the advisor's own library.

The advisor has its own wrappers, since it observes calls and changes nothing, while Weft's wrappers
carry calls out. Both must know the same calls, so that both are generated from one table."""

import functools
import sys

from call_table import (
    NOTICE,
    ROOT,
    argument,
    arguments,
    bring_up_to_date,
    is_access,
    lines,
    normalised,
    parameters,
    short,
    with_origin,
    wrap,
)
from generate_wrappers import BOUND

OUT = ROOT / "src" / "advise" / "generated"
notice = functools.partial(NOTICE.format, script="generate_advise_wrappers.py")
# For each role of a buffer these are the roles of the arguments that count its elements, and that
# have their type.
COUNTS = {
    "send_buffer": (("send_count", "count"), ("send_datatype", "datatype")),
    "recv_buffer": (("recv_count", "count"), ("recv_datatype", "datatype")),
    "buffer": (("count",), ("datatype",)),
}
# A buffer is not accessed at all if the argument with this role is MPI_PROC_NULL.
PEERS = {"send_buffer": ("destination", "target"), "recv_buffer": ("source", "target")}
# If the flag of one of these completion calls is set, no request of the call is incomplete.
ALL_COMPLETE = ("Wait", "Test", "Waitall", "Testall")


def given_buffers(call):
    """Yields each buffer argument with what MPI does with it: it is read or written."""
    for given in call["args"]:
        if given["role"] in COUNTS and given["type"].endswith("*"):
            use = "read" if given["role"] == "send_buffer" else "written"
            yield given, f"Visit::Use::{use}"


def passed_to(peer, count):
    """Returns code for the number of elements that are passed, which is zero to or from
    MPI_PROC_NULL."""
    return f"passed({peer}, {count})" if peer else count


def buffers(call):
    """Returns statements that report the buffers of a call that is no collective."""
    out = []
    for given, use in given_buffers(call):
        count, datatype = (argument(call, *roles) for roles in COUNTS[given["role"]])
        peer = argument(call, *PEERS.get(given["role"], ()))
        count = passed_to(peer, count) if count else None
        known = ", ".join(filter(None, [given["name"], count, datatype] if count else []))
        out.append(f"  visit.buffer({use}, {known or given['name']});")
    return out


def message(call):
    """Returns statements that report the number of elements, the type and the communicator of a
    message that is started or initialised. Returns none for other calls."""
    is_one = call["class"] == "persistent_message" or (
        call["class"] == "nonblocking_poll" and not short(call).startswith(("File_", "R"))
    )
    count = argument(call, "recv_count", "send_count", "count")
    if not is_one or not count or not argument(call, "request_out"):
        return []
    partitions = argument(call, "partitions")
    factor = f"{partitions} * " if partitions else ""
    return [
        passed_to(argument(call, "destination", "source"), f"{factor}{count}"),
        argument(call, "recv_datatype", "send_datatype", "datatype"),
        argument(call, "comm") or "handles.comm_null",
    ]


def completion(call, passed):
    one, many = argument(call, "request_inout"), argument(call, "requests")
    if not (one or many) or "get_status" in call["name"]:
        return [f"  return {passed};"]
    count = argument(call, "request_count") or "1"
    flag = argument(call, "flag")
    said = {
        "tests": "true" if short(call).startswith("Test") else None,
        "all": "true" if short(call) in ALL_COMPLETE else None,
        "flag": flag,
        "count": argument(call, "completed_count"),
        "indices": argument(call, "index", "indices"),
    }
    ends = ", ".join(f".{name} = {value}" for name, value in said.items() if value)
    return [
        f"  visit.completing({count}, {one or many});",
        f"  return visit.completed({one or many}, {passed}, {{{ends}}});",
    ]


def by_name(call, passed):
    """Returns the statements for the few calls that are treated by their names; None for others."""
    name = short(call)
    if name in ("Init", "Init_thread"):
        return [f"  return visit.begun({passed});"]
    if name == "Finalize":
        return ["  visit.ending();", f"  return {passed};"]
    if name in ("Comm_free", "Comm_disconnect"):
        comm = argument(call, "comm_inout")
        return [
            f"  visit.forgets(*{comm});",
            f"  return free_of_session({comm}, [&](MPI_Comm* {comm}) {{ return {passed}; }});",
        ]
    if name == "Win_free":
        return [f"  return visit.window_freed({passed});"]
    if name == "Request_free":
        return [f"  visit.freed({argument(call, 'request_inout')});", f"  return {passed};"]
    if name in ("Start", "Startall"):
        requests = argument(call, "requests", "request_inout")
        count = argument(call, "request_count") or "1"
        return [
            f"  visit.starting({count}, {requests});",
            f"  return visit.activated({count}, {requests}, {passed});",
        ]
    return None


def made_of(call):
    """Returns the call, with code that reports the communicator that it makes."""
    comm, copies = argument(call, "new_comm"), "dup" in call["name"]
    if not comm or not (copies or call["class"] == "comm_new"):
        return with_origin(call)
    parent = argument(call, "comm") or "handles.comm_null"
    return f"visit.made({parent}, {comm}, {str(copies).lower()}, {with_origin(call)})"


def body(call):
    passed, kind = made_of(call), call["class"]
    if found := by_name(call, passed):
        return found
    if kind == "completion":
        return completion(call, passed)
    if kind in ("blocking_collective", "nonblocking_collective"):
        text = [*normalised(call), "  visit.collective(call);"]
        if kind == "blocking_collective":
            return [*text, f"  return visit.blocking(call, {passed});"]
        request = argument(call, "request_out")
        return [*text, f"  return visit.started(&call, {request}, {passed});"]
    if kind == "persistent_collective":
        request = argument(call, "request_out")
        return [*normalised(call), f"  return visit.planned(call, {request}, {passed});"]
    request = argument(call, "request_out")
    if what := message(call):
        what = ", ".join([*what, request, passed])
        if kind == "persistent_message":
            ((given, use),) = given_buffers(call)
            use = "std::nullopt" if argument(call, "partitions") else use
            return [f"  return visit.planned_message({use}, {given['name']}, {what});"]
        return [*buffers(call), f"  return visit.started_message({what});"]
    if request:
        return [*buffers(call), f"  return visit.started(nullptr, {request}, {passed});"]
    if argument(call, "new_win"):
        # The kernel must be able to access memory that is registered with the network, so that it
        # must not be guarded.
        return ["  visit.unknown_memory();", f"  return visit.window_made({passed});"]
    return [*buffers(call), f"  return {passed};"]


def never_waits(call):
    """Returns whether the call returns at once, whatever the other ranks do."""
    name = short(call)
    if call["class"] == "nonblocking_poll":
        return not name.startswith(("File_", "R")) and not is_access(call)
    return call["class"] == "completion" and not name.startswith("Wait")


def wrapper(call):
    name, given, passed = short(call), parameters(call), arguments(call)
    inside = ", ".join(filter(None, ["Visit& visit", given]))
    waits, inline = "", ""
    # A program may call it in a polling loop, so that few instructions are used.
    if never_waits(call):
        waits, inline = ", Waits::never", "[[gnu::always_inline]] inline "
    text = [
        f"{inline}static int {name}([[maybe_unused]] {inside}) {{",
        f"  const auto next = bound(next_calls.{name}, CallId::{name});",
        *body(call),
        "}",
    ]
    for exported, profiling in ((call["name"], "false"), (f"P{call['name']}", "true")):
        text += [
            f"WEFT_WRAPPER int {exported}({given}) {{",
            f"  Visit visit(CallId::{name}, {profiling}, CALLED{waits});",
            f"  return {name}({', '.join(filter(None, ['visit', passed]))});",
            "}",
        ]
    return "\n".join(wrap(line, 4 if line[0] in "sW" else 6) for line in text) + "\n"


def wrappers_cc(calls, library):
    return (
        notice(what="Wrappers of the MPI calls that the advisor records.")
        + f"""\
#include "advise/visit.h"
#include "library/generated/call_ids.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "library/search.h"
#include "library/session_communicators.h"

{BOUND.replace("weft::interpose", "weft::advise")}#undef RETURN_ADDRESS
#define CALLED (Called{{__builtin_return_address(0), __builtin_dwarf_cfa()}})

{lines(calls, wrapper)}
}}  // namespace weft::advise
"""
    )


def exports_map(calls, library):
    names = "\n".join(f"    {call['name']};\n    P{call['name']};" for call in calls)
    return f"""\
/* Generated by tools/generate_advise_wrappers.py from api/calls.json; do not edit.
   The advisor's library shows the wrapped calls by both names, the functions that find calls in a
   library, and those that start threads and processes, or block and catch signals, which guards
   must know of. */
{{
  global:
{names}
    pthread_create; pthread_sigmask; sigprocmask; sigaction; sigaltstack; signal;
    fork; system; popen; posix_spawn; posix_spawnp;
    longjmp; _longjmp; siglongjmp; __longjmp_chk;
    dlsym; dlopen;
  local:
    *;
}};
"""


FILES = {"wrappers.cc": wrappers_cc, "exports.map": exports_map}

if __name__ == "__main__":
    sys.exit(bring_up_to_date(FILES, OUT))
