#!/usr/bin/env python3
"""Writes include/weft_gpu_calls.h and src/gpu/generated/ from api/calls.json.

Each non-blocking collective of the table has two forms: one is enqueued in a stream, and one is
initialised for repeated use. A table cannot forget one of them."""

import functools
import re
import sys

from call_table import (
    NOTICE,
    ROOT,
    base_name,
    bring_up_to_date,
    lines,
    normalised,
    parameters,
    short,
    wrap,
)

notice = functools.partial(NOTICE.format, script="generate_gpu.py")

HEADER_TEXT = """\
/* weft_gpu_calls.h: part of weft_gpu.h, and included by it. Written by tools/generate_gpu.py.
 *
 * weft_iX_enqueue starts MPI_IX in the stream; the arrays that it is given may be changed when it
 * has returned. On one communicator all ranks enqueue in the same order. While the stream is
 * captured, the call is collective and may wait for the other ranks, since the graph will start the
 * collective as a persistent one.
 *
 * weft_X_init prepares MPI_X_init, collective as that is, for weft_start_enqueue.
 *
 * The forms that end in _c have counts of MPI_Count, also where the MPI library has no such calls:
 * it needs them only where a count is larger than an int, and the data do not travel in parts.
 */
#ifndef WEFT_GPU_CALLS_H
#define WEFT_GPU_CALLS_H

/* clang-format off */
#ifdef __cplusplus
extern "C" {
#endif

%s
#ifdef __cplusplus
}
#endif

#endif
"""


def is_large(call):
    """Returns whether the call's counts are of type MPI_Count."""
    return call["name"].endswith("_c")


def suffix(call):
    return "_c" if is_large(call) else ""


def enqueued(call):
    """Returns the name and the parameters of a function such as weft_iallreduce_enqueue."""
    own = parameters(call).replace("MPI_Request* request", "weft_gpu_stream stream")
    name = f"weft_i{base_name(call).lower()}_enqueue{suffix(call)}"
    return f"{name}({own}, weft_gpu_request* request)"


def prepared(call):
    own = parameters(call).replace("MPI_Request* request", "weft_gpu_request* request")
    return f"weft_{base_name(call).lower()}_init{suffix(call)}({own})"


def prepared_by_mpi(call):
    return f"MPI_{base_name(call)}_init{suffix(call)}"


def of_arrays(call):
    """Returns the names of the array parameters. They are recognised by their type in C."""
    return [a["name"] for a in call["args"] if re.match(r"const \w+ \*$", a["type"])]


def prototype(text, arrays):
    for name in arrays:
        if not name.endswith("buf"):
            text = re.sub(rf"const (\w+)\* {name}\b", rf"const \1 {name}[]", text)
    return wrap(f"WEFT_GPU_API int {text};", 4)


def header(calls):
    out = []
    for call in calls:
        arrays = of_arrays(call)
        out.append(prototype(enqueued(call), arrays))
        out.append(prototype(prepared(call), arrays) + "\n")
    return HEADER_TEXT % "\n".join(out)


def wrapper(text, call, body):
    lines = [f"WEFT_GPU_API int {text} {{", *normalised(call), body, "}"]
    return "\n".join(wrap(line, 4 if line[0] == "W" else 6) for line in lines)


def interface_cc(calls):
    out = [
        "\n\n".join(
            (
                wrapper(enqueued(call), call, "  return enqueue(call, stream, request);"),
                wrapper(prepared(call), call, "  return prepare(call, request);"),
            )
        )
        for call in calls
    ]
    head = notice(what="The collectives of weft_gpu_calls.h.")
    return (
        head
        + """\
#include "gpu/mpi/enqueue.h"

using namespace weft;
using namespace weft::gpu;
using weft::CallId;

extern "C" {

"""
        + "\n\n".join(out)
        + "\n\n}\n"
    )


# The key is an argument's name, and the value the member of Call that holds it.
MEMBERS = {
    "send_buffer": "c.sendbuf",
    "recv_buffer": "c.recvbuf",
    "buffer": "c.recvbuf",
    "send_count": "c.sendcounts.one<{0}>()",
    "recv_count": "c.recvcounts.one<{0}>()",
    "count": "c.recvcounts.one<{0}>()",
    "send_counts": "c.sendcounts.array<{0}>()",
    "recv_counts": "c.recvcounts.array<{0}>()",
    "send_datatype": "c.sendtype",
    "recv_datatype": "c.recvtype",
    "datatype": "c.recvtype",
    "op": "c.op",
    "root": "c.root",
    "comm": "c.comm",
    "send_displacements": "c.senddispls.array<{0}>()",
    "recv_displacements": "c.recvdispls.array<{0}>()",
    "send_datatypes": "c.sendtypes",
    "recv_datatypes": "c.recvtypes",
    "request_out": "request",
}


def passed(call):
    def member(given):
        role = given["role"]
        if role == "displacements":
            side = "send" if base_name(call) == "Scatterv" else "recv"
            role = f"{side}_displacements"
        kind = re.sub(r"const |\W", "", given["type"])
        return MEMBERS[role].format(kind)

    return ", ".join(member(a) for a in call["args"])


def case(label, statement):
    text = (f"    case {label}:", f"      {statement}")
    return "\n".join(wrap(line, 10) for line in text)


def calls_cc(calls):
    def start(call):
        made = f"return {call['name']}({passed(call)});"
        return case(f"CallId::{short(call)}", made)

    def init(call):
        arguments = passed(call).replace(", request", ", MPI_INFO_NULL, request")
        return case(f"CallId::{short(call)}", f"return {prepared_by_mpi(call)}({arguments});")

    def form(call):
        return case(f"Kind::{base_name(call).lower()}", f"return CallId::{short(call)};")

    def may_lack(call):
        names = [prepared_by_mpi(call)] + ([call["name"]] if is_large(call) else [])
        return "\n".join(f"#pragma weak {name}" for name in names)

    def asked(call):
        names = call["name"], prepared_by_mpi(call)
        has = " && ".join(f'library_has("P{name}")' for name in names)
        return f"  static const bool has = {has};\n  return has;"

    with_ints = [call for call in calls if not is_large(call)]
    large = [call for call in calls if is_large(call)]
    head = notice(what="A Call made with the MPI library.")
    return (
        head
        + """\
#include "gpu/mpi/calls.h"

#include <dlfcn.h>

#include "transport/mpi/call.h"

// Open MPI has them since 5.0, while it calls itself MPI 3.1.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define WEFT_PREPARES
// The library that is there when the program runs may be older than this header.
"""
        + lines(calls, may_lack)
        + """
#endif

namespace weft::gpu {
namespace {

// Under Weft a plain name is Weft's, whether the library has such a call or not. So its own name is
// looked up in the file of one that Weft leaves alone; where that is the program, anywhere.
[[maybe_unused]] bool library_has(const char* name) {
  Dl_info found;
  if (!dladdr(reinterpret_cast<void*>(PMPI_Get_library_version), &found)) return false;
  void* const library = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  const bool has = dlsym(library ? library : RTLD_DEFAULT, name) != nullptr;
  if (library) dlclose(library);
  return has;
}

}  // namespace

int start_by_mpi(const Call& c, MPI_Request* request) {
  switch (c.form) {
"""
        + lines(calls, start)
        + """
    default:
      return MPI_ERR_ARG;
  }
}

#ifdef WEFT_PREPARES
int prepare_by_mpi(const Call& c, MPI_Request* request) {
  if (!library_has("PMPI_Allreduce_init")) return MPI_ERR_UNSUPPORTED_OPERATION;
  switch (c.form) {
"""
        + lines(calls, init)
        + """
    default:
      return MPI_ERR_ARG;
  }
}
#else
int prepare_by_mpi(const Call&, MPI_Request*) {
  return MPI_ERR_UNSUPPORTED_OPERATION;
}
#endif

bool has_large_counts() {
"""
        + lines(large[:1], asked)
        + """
  return false;
}

CallId with_ints(Kind kind) {
  switch (kind) {
"""
        + "\n".join(map(form, with_ints))
        + """
  }
  return {};
}

}  // namespace weft::gpu
"""
    )


def every(calls):
    """Returns the non-blocking collectives, with those whose counts are int first."""
    found = [call for call in calls if call["class"] == "nonblocking_collective"]
    return sorted(found, key=is_large)


FILES = {
    "include/weft_gpu_calls.h": lambda calls, _: header(every(calls)),
    "src/gpu/generated/interface.cc": lambda calls, _: interface_cc(every(calls)),
    "src/gpu/generated/calls.cc": lambda calls, _: calls_cc(every(calls)),
}

if __name__ == "__main__":
    sys.exit(bring_up_to_date(FILES, ROOT))
