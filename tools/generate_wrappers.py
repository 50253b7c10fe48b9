#!/usr/bin/env python3
"""Writes src/interpose/generated/ from api/calls.json: the functions that the application calls."""

import functools
import sys

from call_table import (
    NOTICE,
    ROOT,
    argument,
    arguments,
    bring_up_to_date,
    has_arrays,
    is_access,
    is_known_again,
    known_as,
    lines,
    moves,
    normalised,
    parameters,
    passes_through,
    short,
    with_origin,
    wrap,
)

OUT = ROOT / "src" / "interpose" / "generated"
notice = functools.partial(NOTICE.format, script="generate_wrappers.py")
# The non-blocking form of these calls has another name than MPI_I with the call's own.
TESTS = {"Win_wait": "MPI_Win_test"}
# If a collective call has no non-blocking form, its ranks first wait for each other. This is the
# function by which they do so, for each kind of object on which the call is made.
JOINED_BY = {
    "comm": "join_collective",
    "file": "join_collective_of_file",
    "file_inout": "join_collective_of_file",
    "win": "join_collective_of_window",
}


def counted(call):
    request = argument(call, "request_out")
    return [
        f"  const int code = next({arguments(call)});",
        f"  passed_on(CallId::{short(call)}, started, {request}, code);",
        "  return code;",
    ]


def offered(call, offer):
    """Returns the first statements of a collective's wrapper. They take so few instructions that
    they hardly delay a short call."""
    arrays = "true" if has_arrays(call) else "false"
    next_call = f"bound(next_calls.{short(call)}, CallId::{short(call)})"
    return [
        f"  if (entry.nested()) return {next_call}({arguments(call)});",
        *normalised(call),
        f"  const Started started = {offer};",
        "  if (!known) [[unlikely]]",
        f"    remember_call(started, {arrays}, {known_as(call)});",
        "  if (started.taken) return started.code;",
    ]


def plan_known(call):
    """Returns the plan that the wrapper has found. If a call has arrays of counts, which the
    wrapper does not compare, the plan that it has found is that of another call."""
    return "nullptr" if has_arrays(call) else "known ? known->plan : nullptr"


def blocking_offer(call):
    offer = f"carry_out(CallId::{short(call)}, call, {plan_known(call)})"
    return [*offered(call, offer), "  const DeclinedCall declined(started);"]


def nonblocking_offer(call):
    plan, request = plan_known(call), argument(call, "request_out")
    return offered(call, f"start(CallId::{short(call)}, call, {plan}, {request})")


def persistent_body(call):
    request = argument(call, "request_out")
    offer = f"initialise(CallId::{short(call)}, call, next != nullptr, {request})"
    missing = f"  if (!next) missing_call(CallId::{short(call)});"
    taken = [f"  const Started started = {offer};", "  if (started.taken) return started.code;"]
    return normalised(call) + taken + [missing] + counted(call)


def nonblocking_form(call, calls):
    """Returns the call that does the same without blocking, such as MPI_Irecv for MPI_Recv; None if
    there is none."""
    name = short(call)
    form = calls.get(TESTS.get(name, f"MPI_I{name[0].lower()}{name[1:]}"))
    if not form or form.get("absent") != call.get("absent"):
        return None
    names = [a["name"] for a in call["args"]]
    offered = [a["name"] for a in form["args"]]
    started = [name for name in names if name != "status"] + ["request"]
    asked = [name for name in offered if name != "flag"]
    return form if offered == started or ("flag" in offered and asked == names) else None


def joining(call):
    """Returns the statements before a collective call that has no non-blocking form."""
    # This call also waits for ranks outside of its communicator.
    if call["name"] == "MPI_Intercomm_create":
        return [f"  after_deferred({argument(call, 'comm')});"]
    if not call.get("collective"):
        return []
    role = next(role for role in JOINED_BY if argument(call, role))
    given = f"*{argument(call, role)}" if role.endswith("inout") else argument(call, role)
    return [f"  {JOINED_BY[role]}(guard, {given});"]


def passed_on(call):
    """Returns the call of the MPI library. A file or window that it makes or frees is recorded."""
    made = {"new_file": "opened_file", "new_win": "opened_window"}
    for role, noted in made.items():
        if handle := argument(call, role):
            given = [f"*{handle}", argument(call, "comm")]
            given += [argument(call, "info")] if role == "new_win" else []
            after = f"  if (code == MPI_SUCCESS) {noted}(guard, {', '.join(given)});"
            return [f"  const int code = next({arguments(call)});", after, "  return code;"]
    if handle := argument(call, "file_inout"):
        return [
            f"  const MPI_File closed = *{handle};",
            f"  const int code = next({arguments(call)});",
            "  if (code == MPI_SUCCESS) closed_file(guard, closed);",
            "  return code;",
        ]
    if "begins" in call:
        given = ", ".join(filter(None, [argument(call, "assertion"), argument(call, "win")]))
        return [
            f"  const int code = next({arguments(call)});",
            f"  if (code == MPI_SUCCESS) begin_{call['begins']}({given});",
            "  return code;",
        ]
    return [f"  return {with_origin(call)};"]


def ends(call):
    """Returns the statement that ends the epoch on a window that the call completes."""
    if "ends" not in call:
        return []
    which = ", ".join(filter(None, [argument(call, "win"), argument(call, "target")]))
    return [f"  end_{call['ends']}({which});"]


def uses(call):
    """Returns the statement that records how the rank synchronises on a window."""
    return [f"  window_used(win, WindowUse::{call['uses']});"] if "uses" in call else []


def blocking_body(call, calls):
    lines = [f"  BlockingCall guard(CallId::{short(call)});"]
    form = nonblocking_form(call, calls)
    collective = call.get("collective") or call["class"] == "blocking_collective"
    alone = "must_not_block" if collective else "must_help"
    if form and any(a["name"] == "flag" for a in form["args"]):
        lines += [
            f"  if (guard.{alone}())",
            "    return guard.repeat([&](int* flag) {",
            f"      return next_calls.{short(form)}({arguments(form)});",
            "    });",
        ]
    elif form:
        status = "status" if any(a["name"] == "status" for a in call["args"]) else "nullptr"
        lines += [
            f"  if (guard.{alone}() && next_calls.{short(form)}) {{",
            "    const auto post = [&](MPI_Request* request) {",
            f"      return next_calls.{short(form)}({arguments(form)});",
            "    };",
            f"    return guard.drive(post, {status});",
            "  }",
        ]
    return lines + joining(call) + ends(call) + uses(call) + passed_on(call)


def comm_new_body(call):
    return [
        f"  BlockingCall guard(CallId::{short(call)});",
        *joining(call),
        f"  const int code = {with_origin(call)};",
        f"  communicator_created({argument(call, 'new_comm')}, code);",
        "  return code;",
    ]


def followed(call, follow):
    """Returns the statements that pass the call on, and let Weft progress its transfer if that is
    large."""
    moved, passed = moves(call), f"next({arguments(call)})"
    if not moved:
        return [f"  return {passed};"]
    may_be, are = (
        " || ".join(f"{asked}{what}" for what in moved) for asked in ("may_be_large", "is_large")
    )
    if len(moved) > 1:
        may_be, are = f"({may_be})", f"({are})"
    return [
        f"  if (!{may_be}) [[likely]]",
        f"    return {passed};",
        f"  const int code = {passed};",
        f"  if (code == MPI_SUCCESS && {are})",
        f"    {follow};",
        "  return code;",
    ]


def polled(call):
    """Returns the statements that progress Weft's operations and pass the call on."""
    request, flag = argument(call, "request_out"), argument(call, "flag")
    if "ends" in call:
        over = [f"  if (code == MPI_SUCCESS && *{flag})", f"  {ends(call)[0]}"]
        return [f"  const int code = next({arguments(call)});", *over, "  return code;"]
    if is_access(call):
        return followed(
            call, f"access_started({argument(call, 'win')}, {argument(call, 'target')})"
        )
    is_of_file = argument(call, "file") is not None
    follow = "access_to_file_started" if is_of_file else "transfer_started"
    return followed(call, f"{follow}(*{request})")


def body(call, calls):
    kind = call["class"]
    if kind == "nonblocking_collective":
        return counted(call)
    if kind == "persistent_collective":
        return persistent_body(call)
    if kind == "comm_new":
        return comm_new_body(call)
    if kind == "nonblocking_poll":
        return ["  poll();", *polled(call)]
    if kind == "persistent_message":
        return followed(call, f"transfer_initialised(*{argument(call, 'request_out')})")
    if kind == "completion":
        return [f"  return complete::{short(call)}({arguments(call)});"]
    if kind == "special":
        given = ", ".join(filter(None, [asked_caller(call) and "from", arguments(call)]))
        return [f"  return special::{short(call)}({given});"]
    return blocking_body(call, calls)


def asked_caller(call):
    """Returns the parameter that tells special::X the caller's address; None for most calls."""
    return "const void* from" if call.get("asks_caller") else None


def straight_on(call, form):
    """The call itself, before anything else, where that is enough."""
    bound = f"const auto passthrough = next_calls.{short(call)}.{form}_bound()"
    if not is_known_again(call):
        return [
            f"  if ({passes_through(call)})",
            f"    if ({bound})",
            f"      return passthrough({arguments(call)});",
        ]
    # passes_through() may count the call, so it is the last question.
    caller = "RETURN_ADDRESS" if form == "pmpi" else "nullptr"
    return [
        f"  const CachedCall* const known = cached_call({known_as(call)});",
        f"  if ({passes_through(call)}) {{",
        f"    {bound};",
        f"    if (passthrough && known->passes_through({caller}))",
        f"      return passthrough({arguments(call)});",
        "  }",
    ]


def entered_as_known(call):
    """Returns the statements that take over what the wrapper has found, and pass a call on that is
    left to the library."""
    found = [
        "  const CachedCall* const known = cached_calls.found;",
        "  const void* const caller = cached_calls.profiled_by;",
    ]
    if call["class"] != "nonblocking_collective" and not has_arrays(call):
        return found
    # passes_through_of_class() may count the call, so it is the last question.
    return [
        *found,
        "  if (known)",
        f"    if (const auto passthrough = next_calls.{short(call)}.bound_by(caller != nullptr))",
        "      if (known->passes_through_of_class(caller))",
        f"        return passthrough({arguments(call)});",
    ]


def when_nested(call):
    """Returns the condition under which a call from inside MPI is passed directly to the
    library."""
    if call["class"] != "completion":
        return "nested"
    count = argument(call, "request_count") or "1"
    by_value = "&request" if argument(call, "request") else None
    array = by_value or argument(call, "requests", "request_inout")
    return f"nested && !complete::any_is_ours({count}, {array})"


def wrapper(call, calls):
    name, passed = short(call), arguments(call)
    slot = f"bound(next_calls.{name}, CallId::{name})"
    # Weft itself provides persistent collectives if the library has none.
    if call["class"] == "persistent_collective":
        slot = f"bound_or_null(next_calls.{name})"
    offers = {
        "blocking_collective": blocking_offer,
        "nonblocking_collective": nonblocking_offer,
    }
    # A call that was offered to Weft comes from outside of MPI. At this point it is left to the
    # library.
    offered_before = call["class"] in offers
    first = "const Started& started" if offered_before else "bool nested"
    if call["class"] == "blocking_collective":
        first = None
    given_first = {None: None, "bool nested": "entry.nested()"}.get(first, "started")
    nested = ", ".join(filter(None, [first, asked_caller(call), parameters(call)]))
    from_ = "RETURN_ADDRESS" if asked_caller(call) else None
    entered = ", ".join(filter(None, [given_first, from_, passed]))
    text = [f"static {call['return']} {name}({nested}) {{"]
    if call["class"] == "object":
        text += [f"  {slot};", f"  return object::{name}(nested, {passed});", "}"]
    else:
        text += [f"  const auto next = {slot};"]
        if not offered_before:
            text += [f"  if ({when_nested(call)}) return {with_origin(call)};"]
        text += [*body(call, calls), "}"]
    offer = offers[call["class"]](call) if is_known_again(call) else []
    made = [*offer, f"  return {name}({entered});", "}"]
    passthrough = passes_through(call) is not None
    known = is_known_again(call)
    if passthrough:
        # This part is a separate function, so that a call that is passed on saves no registers. If
        # a call must be fast, the function has the same parameters, so that none is moved.
        taken = parameters(call) if known else f"{parameters(call)}, const void* caller"
        found = entered_as_known(call) if known else []
        head = f"[[gnu::noinline]] static {call['return']} {name}_entered({taken}) {{"
        text += [head, *found, "  const Entry entry(caller);", *made]
    for profiling in (False, True):
        exported = f"P{call['name']}" if profiling else call["name"]
        caller = "RETURN_ADDRESS" if profiling else "nullptr"
        text += [f"WEFT_WRAPPER {call['return']} {exported}({parameters(call)}) {{"]
        if passthrough:
            text += straight_on(call, "pmpi" if profiling else "mpi")
            text += [f"  cached_calls.enters(known, {caller});"] if known else []
            given = passed if known else f"{passed}, {caller}"
            text += [f"  return {name}_entered({given});", "}"]
        else:
            text += [f"  const Entry entry({caller});", *made]
    return "\n".join(wrap(line, 4 if line[0] in "sW[" else 6) for line in text) + "\n"


# Generated files ------------------------------------------------------------------------------


def bodies_h(calls, library):
    def declare(call):
        nested = "bool nested" if call["class"] == "object" else None
        listed = ", ".join(filter(None, [nested, asked_caller(call), parameters(call)]))
        return wrap(f"{call['return']} {short(call)}({listed});", 4)

    complete = lines([c for c in calls if c["class"] == "completion"], declare)
    object_ = lines([c for c in calls if c["class"] == "object"], declare)
    special = lines([c for c in calls if c["class"] == "special"], declare)
    return (
        notice(what="The wrapper bodies written by hand, one per call. nested: from inside MPI.")
        + f"""\
#pragma once

#include <mpi.h>

namespace weft::interpose {{

namespace complete {{
// Whether Weft must have a part in a completion call from inside MPI over these.
bool any_is_ours(int count, const MPI_Request* requests);
{complete}
}}  // namespace complete

namespace object {{
{object_}
}}  // namespace object

namespace special {{
{special}
}}  // namespace special

}}  // namespace weft::interpose
"""
    )


BOUND = """\
#define WEFT_WRAPPER extern "C" __attribute__((visibility("default")))
#define RETURN_ADDRESS __builtin_return_address(0)

namespace weft::interpose {
namespace {

// The next definition, looked up now if that has not happened yet.
template <class Function>
inline Function* bound_or_null(Next<Function>& slot) {
  if (Function* found = slot) [[likely]] return found;
  bind_now();
  return slot;
}

template <class Function>
inline Function* bound(Next<Function>& slot, CallId id) {
  Function* found = bound_or_null(slot);
  if (!found) [[unlikely]] missing_call(id);
  return found;
}

}  // namespace

"""


def wrappers_cc(calls, library):
    by_name = {call["name"]: call for call in calls}
    return (
        notice(what="Wrappers that the application calls instead of the MPI library.")
        + f"""\
#include "interpose/generated/bodies.h"
#include "library/generated/call_ids.h"
#include "library/generated/next_calls.h"
#include "runtime/request/blocking_call.h"
#include "interpose/hooks.h"
#include "interpose/objects.h"
#include "runtime/job/runtime.h"
#include "runtime/request/accesses.h"
#include "runtime/request/passthrough.h"
#include "runtime/request/windows.h"
#include "runtime/start/all_in_call.h"
#include "runtime/start/blocking.h"
#include "runtime/start/initialise.h"
#include "runtime/start/cached_calls.h"
#include "library/search.h"
#include "library/session_communicators.h"
#include "runtime/start/start.h"

{BOUND}{lines(calls, lambda call: wrapper(call, by_name))}
}}  // namespace weft::interpose
"""
    )


def exports_map(calls, library):
    names = "\n".join(f"    {call['name']};\n    P{call['name']};" for call in calls)
    return f"""\
/* Generated by tools/generate_wrappers.py from api/calls.json; do not edit.
   What the preloaded library shows: the wrapped calls by both names, include/weft.h, the C
   library's jumps, and the dynamic linker's calls by which the wrapped ones are looked up. */
{{
  global:
{names}
    dlopen;
    dlsym;
    weft_*;
    longjmp; _longjmp; siglongjmp; __longjmp_chk;
  local:
    *;
}};
"""


def late_handlers_cc(calls, library):
    def next_call(call):
        return f"  LateCall<&NextCalls::{short(call)}>::stand_before();"

    def library_call(call):
        return f"  LateCall<&LibraryCalls::{short(call)}>::stand_before();"

    return (
        notice(what="All calls of the library's, of the application's and of Weft's own.")
        + f"""\
#include "interpose/late_handlers.h"

namespace weft::interpose {{

void stand_before_all_calls() {{
{lines(calls, next_call)}
{lines(library, library_call)}
}}

}}  // namespace weft::interpose
"""
    )


FILES = {
    "bodies.h": bodies_h,
    "wrappers.cc": wrappers_cc,
    "exports.map": exports_map,
    "late_handlers.cc": late_handlers_cc,
}

if __name__ == "__main__":
    sys.exit(bring_up_to_date(FILES, OUT))
