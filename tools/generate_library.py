#!/usr/bin/env python3
"""Writes src/library/generated/ from api/calls.json, and the steps that are whole collectives."""

import functools
import sys

from call_table import (
    CALL_MEMBERS,
    NOTICE,
    ROOT,
    base_name,
    bring_up_to_date,
    lines,
    parameter_types,
    passes_through,
    short,
    wrap,
)

OUT = ROOT / "src"
notice = functools.partial(NOTICE.format, script="generate_library.py")


def pointer(call):
    return wrap(f"  {call['return']} (*{short(call)})({parameter_types(call)});", 6)


def slot(call):
    return wrap(f"  Next<{call['return']}({parameter_types(call)})> {short(call)};", 6)


def next_calls_h(calls, library):
    return (
        notice(what="The next definition in the chain of each intercepted call.")
        + f"""\
#pragma once

#include <mpi.h>

#include "library/older_mpi.h"
#include "base/this_thread.h"

namespace weft {{

// MPI_X goes on to the next MPI_X in the chain of tools, PMPI_X to the MPI library's own. Null
// until bound, and for good where no library in the chain has the call.
template <class Function>
struct Next {{
  Function* mpi;
  Function* pmpi;
  // The wrappers may run while another thread binds: pair with the release in bind_next_calls.
  Function* mpi_bound() const {{ return __atomic_load_n(&mpi, __ATOMIC_ACQUIRE); }}
  Function* pmpi_bound() const {{ return __atomic_load_n(&pmpi, __ATOMIC_ACQUIRE); }}
  Function* bound_by(bool profiling) const {{ return profiling ? pmpi_bound() : mpi_bound(); }}
  operator Function*() const {{ return bound_by(this_thread.is & kProfiling); }}
}};

struct NextCalls {{
{lines(calls, slot)}
}};

extern NextCalls next_calls __attribute__((visibility("hidden")));

// Looks every call up by both names, "MPI_Iallreduce" and "PMPI_Iallreduce"; a call not found
// keeps its pointer.
void bind_next_calls(void* (*find)(const char* name));
// Whether all that may go straight on goes to the library: no other tool is between.
bool library_is_next(bool (*is_library)(const void* function));

}}  // namespace weft
"""
    )


def next_calls_cc(calls, library):
    def bind(call):
        return f'  bind_slot(next_calls.{short(call)}, find, "P{call["name"]}");'

    def is_library(call):
        return f"  all = all && is_next(next_calls.{short(call)}, is_library);"

    return (
        notice(what="Binds the next definition of each intercepted call.")
        + f"""\
#include "library/generated/next_calls.h"

namespace weft {{
namespace {{

template <class Function>
void bind_slot(Next<Function>& slot, void* (*find)(const char*), const char* name) {{
  // Pair with the acquire of Next.
  if (void* found = find(name))
    __atomic_store_n(&slot.pmpi, reinterpret_cast<Function*>(found), __ATOMIC_RELEASE);
  if (void* found = find(name + 1))
    __atomic_store_n(&slot.mpi, reinterpret_cast<Function*>(found), __ATOMIC_RELEASE);
}}

// A call that no library has is no tool's.
template <class Function>
bool is_next(const Next<Function>& slot, bool (*is_library)(const void*)) {{
  const auto is = [&](Function* function) {{
    return !function || is_library(reinterpret_cast<const void*>(function));
  }};
  return is(slot.mpi) && is(slot.pmpi);
}}

}}  // namespace

constinit NextCalls next_calls{{}};

void bind_next_calls(void* (*find)(const char* name)) {{
{lines(calls, bind)}
}}

bool library_is_next(bool (*is_library)(const void* function)) {{
  bool all = true;
{lines([call for call in calls if passes_through(call)], is_library)}
  return all;
}}

}}  // namespace weft
"""
    )


def library_calls_h(calls, library):
    return (
        notice(what="The calls that Weft itself makes, by their PMPI_ names.")
        + f"""\
#pragma once

#include <mpi.h>

#include <vector>

namespace weft {{

struct LibraryCalls {{
{lines(library, pointer)}
}};

extern LibraryCalls library_calls;  // null until bound, and for good where the library lacks it

// Looks every call up by its name, "PMPI_Iallreduce". False: some are not there; `missing` then
// names them. Must be done before any other thread makes one of these calls.
bool bind_library_calls(void* (*find)(const char* name), std::vector<const char*>& missing);

}}  // namespace weft
"""
    )


def library_calls_cc(calls, library):
    def bind(call):
        return f'  bind_slot(library_calls.{short(call)}, find, "P{call["name"]}", {absent(call)});'

    def absent(call):
        return "optional" if float(call["since"]) >= 4 else "missing"

    return (
        notice(what="Binds the calls that Weft itself makes.")
        + f"""\
#include "library/generated/library_calls.h"

namespace weft {{
namespace {{

template <class Function>
void bind_slot(Function*& slot, void* (*find)(const char*), const char* name,
          std::vector<const char*>& missing) {{
  slot = reinterpret_cast<Function*>(find(name));
  if (!slot) missing.push_back(name);
}}

}}  // namespace

constinit LibraryCalls library_calls{{}};

bool bind_library_calls(void* (*find)(const char* name), std::vector<const char*>& missing) {{
  missing.clear();
  std::vector<const char*> optional;  // younger than MPI-3
{lines(library, bind)}
  return missing.empty();
}}

}}  // namespace weft
"""
    )


def call_ids_h(calls, library):
    names = wrap("  " + ", ".join(short(call) for call in calls), 2)
    return (
        notice(what="A number and a name for each call; needs no MPI.")
        + f"""\
#pragma once

#include <cstdint>

namespace weft {{

enum class CallId : std::uint16_t {{
{names}
}};

inline constexpr int kCalls = {len(calls)};

const char* call_name(CallId id);  // "MPI_Iallreduce"

}}  // namespace weft
"""
    )


def call_ids_cc(calls, library):
    names = "\n".join(f'    "{call["name"]}",' for call in calls)
    return (
        notice(what="The names of the calls.")
        + f"""\
#include "library/generated/call_ids.h"

namespace weft {{
namespace {{

constexpr const char* kNames[kCalls] = {{
{names}
}};

}}  // namespace

const char* call_name(CallId id) {{ return kNames[static_cast<int>(id)]; }}

}}  // namespace weft
"""
    )


def library_steps_cc(calls, library):
    by_name = {call["name"]: call for call in calls}

    def cases(form):
        """Returns one case per non-blocking call. It calls the blocking form if `form` is "", and
        the non-blocking one if it is "I"."""
        return lines(
            [c for c in calls if c["class"] == "nonblocking_collective"],
            lambda call: case(call, form),
        )

    def case(call, form):
        base = base_name(call)
        wide = "_c" if call["name"].endswith("_c") else ""
        made = call if form else by_name[f"MPI_{base}{wide}"]
        return f"    case CallId::{short(call)}:\n" + wrap(
            f"      return library_calls.{short(made)}({given(made)});", 10
        )

    def given(call):
        return ", ".join(member(call, a) for a in call["args"])

    def member(call, argument):
        if argument["role"] == "comm":
            return "comm"
        if argument["role"] == "request_out":
            return "request"
        side = "senddispls" if base_name(call) == "Scatterv" else "recvdispls"
        names = [m for m, roles in CALL_MEMBERS if argument["role"] in roles]
        name = side if argument["role"] == "displacements" else names[-1]
        element = argument["type"].removeprefix("const ").removesuffix(" *")
        if name.endswith(("counts", "displs")):
            form = "array" if argument["type"].endswith("*") else "one"
            return f"c.{name}.{form}<{element}>()"
        return f"c.{name}"

    return (
        notice(what="A whole collective as one call of the MPI library.")
        + f"""\
#include "transport/mpi/library_step.h"

#include "library/generated/library_calls.h"

namespace weft {{


int library_blocking(const Call& c, MPI_Comm comm) {{
  switch (c.form) {{
{cases("")}
    default:
      return MPI_ERR_INTERN;
  }}
}}

int library_nonblocking(const Call& c, MPI_Comm comm, MPI_Request* request) {{
  switch (c.form) {{
{cases("I")}
    default:
      return MPI_ERR_INTERN;
  }}
}}

}}  // namespace weft
"""
    )


FILES = {
    "library/generated/next_calls.h": next_calls_h,
    "library/generated/next_calls.cc": next_calls_cc,
    "library/generated/library_calls.h": library_calls_h,
    "library/generated/library_calls.cc": library_calls_cc,
    "library/generated/call_ids.h": call_ids_h,
    "library/generated/call_ids.cc": call_ids_cc,
    "transport/mpi/generated/library_steps.cc": library_steps_cc,
}

if __name__ == "__main__":
    sys.exit(bring_up_to_date(FILES, OUT))
